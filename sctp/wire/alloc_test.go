package wire

import "testing"

// Results that the measured functions leave behind, so that the compiler
// keeps the work.
var (
	sinkErr error
	sinkInt int
	sinkSum uint32
)

// parseAll walks pkt with every parser that applies, keeping nothing.
func parseAll(pkt []byte) {
	h, err := ParseHeader(pkt)
	sinkErr, sinkSum = err, h.VTag
	it := NewChunks(pkt[HeaderLen:])
	for it.Next() {
		c := it.Chunk()
		switch c.Type {
		case ChunkData:
			d, err := ParseData(c)
			sinkInt, sinkErr = len(d.Payload), err
		case ChunkIData:
			d, err := ParseIData(c)
			sinkInt, sinkErr = len(d.Payload), err
		case ChunkInit:
			x, _ := ParseInit(c)
			parseParams(x.Params)
		case ChunkInitAck:
			x, _ := ParseInitAck(c)
			parseParams(x.Params)
		case ChunkSack:
			x, err := ParseSack(c)
			sinkErr = err
			for i := range x.Gaps.Len() {
				sinkInt += int(x.Gaps.At(i).End)
			}
			for i := range x.Dups.Len() {
				sinkSum += x.Dups.At(i)
			}
		case ChunkHeartbeat:
			x, err := ParseHeartbeat(c)
			sinkInt, sinkErr = len(x.Info), err
		case ChunkHeartbeatAck:
			x, err := ParseHeartbeatAck(c)
			sinkInt, sinkErr = len(x.Info), err
		case ChunkAbort:
			x, _ := ParseAbort(c)
			parseCauses(x.Causes)
		case ChunkError:
			x, _ := ParseOpError(c)
			parseCauses(x.Causes)
		case ChunkShutdown:
			x, err := ParseShutdown(c)
			sinkSum, sinkErr = x.CumTSN, err
		case ChunkShutdownAck:
			sinkErr = ParseShutdownAck(c)
		case ChunkShutdownComplete:
			_, sinkErr = ParseShutdownComplete(c)
		case ChunkCookieEcho:
			x, err := ParseCookieEcho(c)
			sinkInt, sinkErr = len(x.Cookie), err
		case ChunkCookieAck:
			sinkErr = ParseCookieAck(c)
		case ChunkECNE:
			_, sinkErr = ParseECNE(c)
		case ChunkCWR:
			_, sinkErr = ParseCWR(c)
		case ChunkAuth:
			x, err := ParseAuth(c)
			sinkInt, sinkErr = len(x.HMAC), err
		case ChunkForwardTSN:
			x, err := ParseForwardTSN(c)
			sinkErr = err
			for i := range x.Skips.Len() {
				sinkInt += int(x.Skips.At(i).SSN)
			}
		case ChunkIForwardTSN:
			x, err := ParseIForwardTSN(c)
			sinkErr = err
			for i := range x.Skips.Len() {
				sinkSum += x.Skips.At(i).MID
			}
		case ChunkReConfig:
			x, _ := ParseReConfig(c)
			if x.Allowed() {
				parseParams(x.Params)
			}
		case ChunkAsconf:
			x, _ := ParseAsconf(c)
			parseParams(x.Params)
		case ChunkAsconfAck:
			x, _ := ParseAsconfAck(c)
			parseParams(x.Params)
		case ChunkPad:
			sinkErr = ParsePad(c)
		}
	}
	sinkErr = it.Err()
}

func parseParams(list []byte) {
	it := NewParams(list)
	for it.Next() {
		p := it.Param()
		switch p.Type {
		case ParamIPv4, ParamIPv6:
			_, sinkErr = ParseAddr(p)
		case ParamAddIP, ParamDeleteIP, ParamSetPrimary:
			_, sinkErr = ParseAsconfRequest(p)
		case ParamErrorCause:
			x, _ := ParseAsconfError(p)
			parseCauses(x.Causes)
		case ParamOutgoingReset:
			x, err := ParseOutgoingReset(p)
			sinkInt, sinkErr = x.Streams.Len(), err
		case ParamIncomingReset:
			x, err := ParseIncomingReset(p)
			sinkInt, sinkErr = x.Streams.Len(), err
		case ParamReConfigResponse:
			_, sinkErr = ParseReConfigResponse(p)
		default:
			v, err := uint16sParam(p, p.Type)
			sinkInt, sinkErr = v.Len(), err
		}
	}
}

func parseCauses(list []byte) {
	it := NewCauses(list)
	for it.Next() {
		switch c := it.Cause(); c.Code {
		case CauseMissingParam:
			v, err := ParseMissingParams(c)
			sinkInt, sinkErr = v.Len(), err
		case CauseUnrecognizedChunk:
			_, sinkErr = ParseUnrecognizedChunk(c)
		default:
			_, sinkErr = causeValue(c, c.Code, -1)
		}
	}
}

// allGoldens is one packet with every chunk vector, and the parameter and cause
// vectors in an INIT ACK and an ERROR.
func allGoldens(t testing.TB) []byte {
	pkt := AppendHeader(nil, Header{SrcPort: 1, DstPort: 2, VTag: 3})
	var params, causes []byte
	for key, b := range goldens(t) {
		switch key[:5] {
		case "chunk":
			pkt = append(pkt, b...)
		case "param":
			params = append(params, b...)
		case "cause":
			causes = append(causes, b...)
		}
	}
	pkt = AppendInitAck(pkt, Init{Params: params})
	return AppendOpError(pkt, OpError{Causes: causes})
}

func wantNoAllocs(t *testing.T, name string, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%s: %v allocations, want 0", name, n)
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	pkt := allGoldens(t)
	wantNoAllocs(t, "parse", func() { parseAll(pkt) })
	malformed := pkt[:len(pkt)-5]
	wantNoAllocs(t, "parse malformed", func() { parseAll(malformed) })
	wantNoAllocs(t, "SetChecksum", func() { SetChecksum(pkt) })
	wantNoAllocs(t, "VerifyChecksum", func() { VerifyChecksum(pkt) })
}

func TestAppendDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 4096)
	tables := make(map[string]func([]byte) []byte)
	for name, g := range chunkGoldens() {
		tables["chunk "+name] = g.append
	}
	for name, g := range paramGoldens() {
		tables["param "+name] = g.append
	}
	for name, g := range causeGoldens() {
		tables["cause "+name] = g.append
	}
	// These build what they append as they go.
	request := request(deleteIP)
	response := AppendAsconfRequest(nil, addIP)
	tables["chunk ASCONF"] = func(b []byte) []byte {
		return AppendAsconf(b, Asconf{7, addIP.Addr, response})
	}
	for _, x := range []struct {
		name string
		code CauseCode
	}{
		{"delete-last-ip", CauseDeleteLastIP},
		{"resource-shortage", CauseResourceShortage},
		{"delete-source-ip", CauseDeleteSourceIP},
		{"no-authorization", CauseNoAuthorization},
	} {
		tables["cause "+x.name] = func(b []byte) []byte { return AppendRefused(b, x.code, request) }
	}
	for name, app := range tables {
		wantNoAllocs(t, name, func() { sinkInt = len(app(buf)) })
	}
	wantNoAllocs(t, "header", func() { sinkInt = len(AppendHeader(buf, Header{})) })
}

func TestDescribeDoesNotAllocate(t *testing.T) {
	pkt := allGoldens(t)
	buf := make([]byte, 0, 4*describeBytes)
	wantNoAllocs(t, "AppendDescription", func() { sinkInt = len(AppendDescription(buf, pkt)) })
}
