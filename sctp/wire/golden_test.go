package wire

import (
	"bytes"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/golden"
)

// goldens returns the vectors of testdata/golden.txt by "kind name".
func goldens(t testing.TB) map[string][]byte {
	t.Helper()
	m := make(map[string][]byte)
	for _, v := range golden.Read(t, "testdata/golden.txt") {
		m[v.Kind+" "+v.Name] = v.Bytes
	}
	return m
}

func u16s(x ...uint16) Uint16s { return Uint16s{appendUint16s([]byte{}, x)} }

// is adapts a parser of something that carries nothing.
func is[V any](parse func(V) error) func(V) (any, error) {
	return func(v V) (any, error) { return nil, parse(v) }
}

// of adapts a typed parser.
func of[V, X any](parse func(V) (X, error)) func(V) (any, error) {
	return func(v V) (any, error) {
		x, err := parse(v)
		if err != nil {
			return nil, err
		}
		return x, nil
	}
}

// with adapts a typed appender.
func with[X any](app func([]byte, X) []byte, x X) func([]byte) []byte {
	return func(b []byte) []byte { return app(b, x) }
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// raw returns the parameter that the bytes are.
func raw(b ...byte) Param {
	it := NewParams(b)
	it.Next()
	return it.Param()
}

var addIP = AsconfRequest{Type: ParamAddIP, ID: 0x01023474, Addr: addr("192.0.2.1")}
var deleteIP = AsconfRequest{Type: ParamDeleteIP, ID: 0x01023476, Addr: addr("192.0.2.1")}
var setPrimary = AsconfRequest{Type: ParamSetPrimary, ID: 0x01023479, Addr: addr("192.0.2.1")}

func request(x AsconfRequest) Param { return raw(AppendAsconfRequest(nil, x)...) }

// meaning is what a vector means: parse gives want, and append gives the
// vector.
type meaning[V any] struct {
	parse  func(V) (any, error)
	want   any
	append func([]byte) []byte
}

func chunkGoldens() map[string]meaning[Chunk] {
	data := Data{
		TSN: 40, SID: 1, SSN: 7, PPID: 16, Begin: true, End: true, Immediate: true,
		Payload: []byte("hello"),
	}
	middle := Data{TSN: 1<<32 - 1, SID: 2, PPID: 46, Unordered: true, Payload: []byte{0xde, 0xad, 0xbe, 0xef}}
	idata := Data{TSN: 100, SID: 3, MID: 9, PPID: 17, Begin: true, Payload: []byte("abc")}
	ilast := Data{
		TSN: 101, SID: 3, MID: 1 << 31, FSN: 1, Unordered: true, End: true, Immediate: true,
		Payload: []byte("z"),
	}

	params := AppendAddr(nil, addr("192.0.2.1"))
	params = AppendForwardTSNSupported(params)
	params = AppendSupportedExtensions(params, ChunkForwardTSN, ChunkReConfig, ChunkIData, ChunkIForwardTSN)
	params = AppendECN(params)
	init := Init{Tag: 0x12345678, RWND: 131072, OutStreams: 10, InStreams: 65535, TSN: 0x9abcdef0, Params: params}
	initAck := Init{
		Tag: 1, RWND: 1500, OutStreams: 1, InStreams: 2,
		Params: AppendStateCookie(nil, []byte{0xca, 0xfe})[:6],
	}

	sack := Sack{
		CumTSN: 17, RWND: 65536,
		Gaps: GapBlocks{[]byte{0, 2, 0, 3, 0, 5, 0, 5}},
		Dups: Uint32s{[]byte{0, 0, 0, 16}},
	}
	resets := AppendOutgoingReset(nil, OutgoingReset{ReqSeq: 10, RespSeq: 19, LastTSN: 99}, []uint16{5})
	resets = AppendIncomingReset(resets, 11, nil)
	hmac := make([]byte, 20)
	for i := range hmac {
		hmac[i] = byte(i)
	}
	return map[string]meaning[Chunk]{
		"DATA":        {of(ParseData), data, with(AppendData, data)},
		"DATA/middle": {of(ParseData), middle, with(AppendData, middle)},
		"I-DATA":      {of(ParseIData), idata, with(AppendIData, idata)},
		"I-DATA/last": {of(ParseIData), ilast, with(AppendIData, ilast)},
		"INIT":        {of(ParseInit), init, with(AppendInit, init)},
		"INIT_ACK":    {of(ParseInitAck), initAck, with(AppendInitAck, initAck)},
		"SACK": {of(ParseSack), sack, func(b []byte) []byte {
			return AppendSack(b, 17, 65536, []GapBlock{{2, 3}, {5, 5}}, []uint32{16})
		}},
		"SACK/plain": {
			of(ParseSack), Sack{CumTSN: 1<<32 - 2, Gaps: GapBlocks{[]byte{}}, Dups: Uint32s{[]byte{}}},
			func(b []byte) []byte { return AppendSack(b, 1<<32-2, 0, nil, nil) },
		},
		"HEARTBEAT": {
			of(ParseHeartbeat), Heartbeat{[]byte("abc")}, with(AppendHeartbeat, Heartbeat{[]byte("abc")}),
		},
		"HEARTBEAT_ACK": {
			of(ParseHeartbeatAck), Heartbeat{[]byte("abcd")}, with(AppendHeartbeatAck, Heartbeat{[]byte("abcd")}),
		},
		"ABORT": {of(ParseAbort), Abort{Reflected: true, Causes: []byte{}}, with(AppendAbort, Abort{Reflected: true})},
		"ABORT/cause": {
			of(ParseAbort), Abort{Causes: []byte{0, 12, 0, 6, 'n', 'o'}},
			with(AppendAbort, Abort{Causes: AppendUserAbort(nil, []byte("no"))}),
		},
		"SHUTDOWN":     {of(ParseShutdown), Shutdown{42}, with(AppendShutdown, Shutdown{42})},
		"SHUTDOWN_ACK": {is(ParseShutdownAck), nil, AppendShutdownAck},
		"ERROR": {
			of(ParseOpError), OpError{[]byte{0, 1, 0, 8, 0, 42, 0, 0, 0, 4, 0, 4}},
			with(AppendOpError, OpError{AppendOutOfResource(AppendInvalidStream(nil, 42))}),
		},
		"COOKIE_ECHO": {
			of(ParseCookieEcho), CookieEcho{[]byte{1, 2, 3, 4, 5}},
			with(AppendCookieEcho, CookieEcho{[]byte{1, 2, 3, 4, 5}}),
		},
		"COOKIE_ACK": {is(ParseCookieAck), nil, AppendCookieAck},
		"ECNE":       {of(ParseECNE), ECNE{256}, with(AppendECNE, ECNE{256})},
		"CWR":        {of(ParseCWR), CWR{257}, with(AppendCWR, CWR{257})},
		"SHUTDOWN_COMPLETE": {
			of(ParseShutdownComplete), ShutdownComplete{}, with(AppendShutdownComplete, ShutdownComplete{}),
		},
		"SHUTDOWN_COMPLETE/T": {
			of(ParseShutdownComplete), ShutdownComplete{true}, with(AppendShutdownComplete, ShutdownComplete{true}),
		},
		"AUTH": {of(ParseAuth), Auth{2, HMACSHA1, hmac}, with(AppendAuth, Auth{2, HMACSHA1, hmac})},
		"ASCONF-ACK": {
			of(ParseAsconfAck), AsconfAck{0x01020304, []byte{}}, with(AppendAsconfAck, AsconfAck{Seq: 0x01020304}),
		},
		"ASCONF-ACK/refused": {
			of(ParseAsconfAck), AsconfAck{5, refusedDelete()}, with(AppendAsconfAck, AsconfAck{5, refusedDelete()}),
		},
		"RE-CONFIG": {of(ParseReConfig), ReConfig{resets}, with(AppendReConfig, ReConfig{resets})},
		"PAD":       {is(ParsePad), nil, with(AppendPad, 12)},
		"FORWARD-TSN": {
			of(ParseForwardTSN), ForwardTSN{255, Skips{[]byte{0, 1, 0, 9, 0xff, 0xff, 0x80, 0}}},
			func(b []byte) []byte { return AppendForwardTSN(b, 255, []Skip{{1, 9}, {65535, 32768}}) },
		},
		"ASCONF": {
			of(ParseAsconf), Asconf{7, addr("192.0.2.7"), request(addIP).Raw},
			with(AppendAsconf, Asconf{7, addr("192.0.2.7"), request(addIP).Raw}),
		},
		"I-FORWARD-TSN": {
			of(ParseIForwardTSN),
			IForwardTSN{256, ISkips{[]byte{0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0, 0, 0, 3}}},
			func(b []byte) []byte {
				return AppendIForwardTSN(b, 256, []ISkip{{SID: 1, MID: 65536}, {SID: 2, Unordered: true, MID: 3}})
			},
		},
	}
}

func refusedDelete() []byte {
	causes := AppendRefused(nil, CauseDeleteLastIP, request(deleteIP))
	return AppendAsconfError(nil, AsconfError{ID: deleteIP.ID, Causes: causes})
}

func paramGoldens() map[string]meaning[Param] {
	deleteIP6 := AsconfRequest{Type: ParamDeleteIP, ID: 0x01023476, Addr: addr("2001:db8::2")}
	outgoing := OutgoingReset{ReqSeq: 1, RespSeq: 2, LastTSN: 3, Streams: u16s(4, 5)}
	response := ReConfigResponse{RespSeq: 13, Result: ReConfigInProgress}
	tsns := ReConfigResponse{
		RespSeq: 13, Result: ReConfigPerformed, HasTSNs: true, SenderNextTSN: 0x1000, ReceiverNextTSN: 0x2000,
	}
	invalid := AsconfError{0x01023477, []byte{0, 7, 0, 4}}
	info := func(p Param) (any, error) { return p.Value, nil }
	return map[string]meaning[Param]{
		"heartbeat-info": {info, []byte{0xff}, func(b []byte) []byte {
			return AppendParam(b, ParamHeartbeatInfo, []byte{0xff})
		}},
		"ipv4":         {of(ParseAddr), addr("192.0.2.1"), with(AppendAddr, addr("::ffff:192.0.2.1"))},
		"ipv6":         {of(ParseAddr), addr("2001:db8::1"), with(AppendAddr, addr("2001:db8::1"))},
		"state-cookie": {of(ParseStateCookie), []byte{1, 2, 3, 4, 5, 6}, with(AppendStateCookie, []byte{1, 2, 3, 4, 5, 6})},
		"unrecognized": {
			of(ParseUnrecognized), raw(0xc1, 0x23, 0, 5, 0x77), with(AppendUnrecognized, raw(0xc1, 0x23, 0, 5, 0x77)),
		},
		"cookie-preservative": {of(ParseCookiePreservative), uint32(1000), with(AppendCookiePreservative, 1000)},
		"host-name":           {of(ParseHostName), []byte("a.b.c"), with(AppendHostName, "a.b.c")},
		"supported-addr-types": {of(ParseSupportedAddrTypes), u16s(5, 6), func(b []byte) []byte {
			return AppendSupportedAddrTypes(b, ParamIPv4, ParamIPv6)
		}},
		"outgoing-reset": {of(ParseOutgoingReset), outgoing, func(b []byte) []byte {
			return AppendOutgoingReset(b, outgoing, []uint16{4, 5})
		}},
		"incoming-reset": {of(ParseIncomingReset), IncomingReset{9, u16s(1, 2, 3)}, func(b []byte) []byte {
			return AppendIncomingReset(b, 9, []uint16{1, 2, 3})
		}},
		"tsn-reset":     {of(ParseTSNReset), uint32(12), with(AppendTSNReset, 12)},
		"response":      {of(ParseReConfigResponse), response, with(AppendReConfigResponse, response)},
		"response/tsns": {of(ParseReConfigResponse), tsns, with(AppendReConfigResponse, tsns)},
		"add-outgoing":  {of(ParseAddOutgoing), AddStreams{14, 3}, with(AppendAddOutgoing, AddStreams{14, 3})},
		"add-incoming":  {of(ParseAddIncoming), AddStreams{15, 256}, with(AppendAddIncoming, AddStreams{15, 256})},
		"ecn":           {is(ParseECN), nil, AppendECN},
		"zero-checksum": {of(ParseZeroChecksum), uint32(EDMIDDTLS), with(AppendZeroChecksum, EDMIDDTLS)},
		"random":        {of(ParseRandom), []byte{10, 11, 12}, with(AppendRandom, []byte{10, 11, 12})},
		"chunk-list": {of(ParseChunkList), ChunkTypes{0xc1, 0x80}, func(b []byte) []byte {
			return AppendChunkList(b, ChunkAsconf, ChunkAsconfAck)
		}},
		"hmac-algo": {of(ParseHMACAlgo), u16s(3, 1), func(b []byte) []byte {
			return AppendHMACAlgo(b, HMACSHA256, HMACSHA1)
		}},
		"hmac-algo/one": {of(ParseHMACAlgo), u16s(1), func(b []byte) []byte { return AppendHMACAlgo(b, HMACSHA1) }},
		"pad":           {is(ParsePadParam), nil, with(AppendPadParam, 8)},
		"supported-extensions": {of(ParseSupportedExtensions), ChunkTypes{130}, func(b []byte) []byte {
			return AppendSupportedExtensions(b, ChunkReConfig)
		}},
		"forward-tsn": {is(ParseForwardTSNSupported), nil, AppendForwardTSNSupported},
		"add-ip":      {of(ParseAsconfRequest), addIP, with(AppendAsconfRequest, addIP)},
		"delete-ip":   {of(ParseAsconfRequest), deleteIP6, with(AppendAsconfRequest, deleteIP6)},
		"error-cause": {of(ParseAsconfError), invalid, with(AppendAsconfError, invalid)},
		"set-primary": {of(ParseAsconfRequest), setPrimary, with(AppendAsconfRequest, setPrimary)},
		"success":     {of(ParseAsconfSuccess), uint32(0x01023478), with(AppendAsconfSuccess, 0x01023478)},
		"adaptation":  {of(ParseAdaptation), uint32(1), with(AppendAdaptation, 1)},
	}
}

func causeGoldens() map[string]meaning[Cause] {
	unknown := Chunk{Type: 0x7e, Flags: 1, Value: []byte{0xff}, Raw: []byte{0x7e, 1, 0, 5, 0xff}}
	params := []byte{0xc1, 0, 0, 4, 0xc2, 0, 0, 5, 1}
	addrs := AppendAddr(AppendAddr(nil, addr("192.0.2.1")), addr("192.0.2.2"))
	host := raw(0, 11, 0, 8, 'a', 'b', 'c', 0)
	refused := func(code CauseCode, x AsconfRequest) meaning[Cause] {
		return meaning[Cause]{of(ParseRefused), request(x), func(b []byte) []byte {
			return AppendRefused(b, code, request(x))
		}}
	}
	return map[string]meaning[Cause]{
		"invalid-stream": {of(ParseInvalidStream), uint16(0x1234), with(AppendInvalidStream, 0x1234)},
		"missing-param": {of(ParseMissingParams), u16s(7, 0x8002, 0x8004), func(b []byte) []byte {
			return AppendMissingParams(b, ParamStateCookie, ParamRandom, ParamHMACAlgo)
		}},
		"stale-cookie":         {of(ParseStaleCookie), uint32(1000000), with(AppendStaleCookie, 1000000)},
		"out-of-resource":      {is(ParseOutOfResource), nil, AppendOutOfResource},
		"unresolvable-address": {of(ParseUnresolvableAddress), host, with(AppendUnresolvableAddress, host)},
		"unrecognized-chunk":   {of(ParseUnrecognizedChunk), unknown, with(AppendUnrecognizedChunk, unknown)},
		"invalid-param":        {is(ParseInvalidParam), nil, AppendInvalidParam},
		"unrecognized-params":  {of(ParseUnrecognizedParams), params, with(AppendUnrecognizedParams, params)},
		"no-user-data":         {of(ParseNoUserData), uint32(40), with(AppendNoUserData, 40)},
		"cookie-in-shutdown":   {is(ParseCookieInShutdown), nil, AppendCookieInShutdown},
		"restart":              {of(ParseRestart), addrs, with(AppendRestart, addrs)},
		"user-abort":           {of(ParseUserAbort), []byte("bye"), with(AppendUserAbort, []byte("bye"))},
		"protocol-violation":   {of(ParseProtocolViolation), []byte("!"), with(AppendProtocolViolation, "!")},
		"delete-last-ip":       refused(CauseDeleteLastIP, deleteIP),
		"resource-shortage":    refused(CauseResourceShortage, addIP),
		"delete-source-ip":     refused(CauseDeleteSourceIP, deleteIP),
		"illegal-asconf-ack":   {is(ParseIllegalAsconfAck), nil, AppendIllegalAsconfAck},
		"no-authorization":     refused(CauseNoAuthorization, setPrimary),
		"unsupported-hmac":     {of(ParseUnsupportedHMAC), uint16(2), with(AppendUnsupportedHMAC, 2)},
	}
}

// TestGolden parses every vector and appends what it means again.
func TestGolden(t *testing.T) {
	left := goldens(t)
	chunks := func(b []byte) (Chunk, bool, []byte, error) {
		it := NewChunks(b)
		ok := it.Next()
		return it.Chunk(), ok, it.Rest(), it.Err()
	}
	params := func(b []byte) (Param, bool, []byte, error) {
		it := NewParams(b)
		ok := it.Next()
		return it.Param(), ok, it.Rest(), it.Err()
	}
	causes := func(b []byte) (Cause, bool, []byte, error) {
		it := NewCauses(b)
		ok := it.Next()
		return it.Cause(), ok, it.rest, it.Err()
	}
	testGoldens(t, left, "chunk ", chunkGoldens(), chunks)
	testGoldens(t, left, "param ", paramGoldens(), params)
	testGoldens(t, left, "cause ", causeGoldens(), causes)
	for key := range left {
		t.Errorf("%q in golden.txt has no test", key)
	}
}

func testGoldens[V any](t *testing.T, left map[string][]byte, kind string, table map[string]meaning[V],
	first func([]byte) (V, bool, []byte, error)) {
	for name, g := range table {
		t.Run(kind+name, func(t *testing.T) {
			b, ok := left[kind+name]
			if !ok {
				t.Fatal("not in golden.txt")
			}
			delete(left, kind+name)
			v, ok, rest, err := first(b)
			if !ok || err != nil || len(rest) != 0 {
				t.Fatalf("walk: ok %v, err %v, %d bytes left; want one element", ok, err, len(rest))
			}
			x, err := g.parse(v)
			if err != nil {
				t.Fatalf("parse: %v", err)
			}
			if !reflect.DeepEqual(x, g.want) {
				t.Errorf("parsed\n\t%+v, want\n\t%+v", x, g.want)
			}
			// Append behind something that is not aligned, as a caller may.
			got := g.append([]byte("xyz"))
			if string(got[:3]) != "xyz" || !bytes.Equal(got[3:], b) {
				t.Errorf("appended\n\t%x, want\n\t%x", got[3:], b)
			}
			// The same without padding at the end of the list.
			trimmed := trimList(b)
			if _, ok, _, err := first(trimmed); !ok || err != nil {
				t.Errorf("walk without padding: ok %v, err %v", ok, err)
			}
		})
	}
}

// TestGoldenCoversEveryType fails when a type is known that has no vector.
func TestGoldenCoversEveryType(t *testing.T) {
	seen := make(map[string]bool)
	for key, b := range goldens(t) {
		kind, _, _ := strings.Cut(key, " ")
		switch kind {
		case "chunk":
			seen["chunk "+ChunkType(b[0]).String()] = true
		case "param":
			seen["param "+ParamType(uint16(b[0])<<8|uint16(b[1])).String()] = true
		case "cause":
			seen["cause "+CauseCode(uint16(b[0])<<8|uint16(b[1])).String()] = true
		}
	}
	for i := range 1 << 16 {
		if c := ChunkType(i); i < 256 && c.Known() && !seen["chunk "+c.String()] {
			t.Errorf("no vector for chunk %v", c)
		}
		if p := ParamType(i); p.Known() && !seen["param "+p.String()] {
			t.Errorf("no vector for param %v", p)
		}
		if c := CauseCode(i); c.Known() && !seen["cause "+c.String()] {
			t.Errorf("no vector for cause %v", c)
		}
	}
	if len(seen) != 23+28+19 {
		t.Errorf("%d types have vectors, want 23 chunks, 28 parameters, 19 causes", len(seen))
	}
}
