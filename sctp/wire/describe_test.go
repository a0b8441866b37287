package wire

import (
	"strings"
	"testing"
)

// TestDescribeGoldens describes every chunk vector, and fails when a vector has
// no expected text.
func TestDescribeGoldens(t *testing.T) {
	want := map[string]string{
		"DATA":                "DATA IBE tsn=40 sid=1 ssn=7 ppid=16 len=5",
		"DATA/middle":         "DATA U tsn=4294967295 sid=2 ssn=0 ppid=46 len=4",
		"I-DATA":              "I-DATA B tsn=100 sid=3 mid=9 ppid=17 len=3",
		"I-DATA/last":         "I-DATA IUE tsn=101 sid=3 mid=2147483648 fsn=1 len=1",
		"INIT":                "INIT tag=12345678 rwnd=131072 out=10 in=65535 tsn=2596069104 {ipv4 192.0.2.1, forward-tsn, supported-extensions FORWARD-TSN,RE-CONFIG,I-DATA,I-FORWARD-TSN, ecn}",
		"INIT_ACK":            "INIT ACK tag=00000001 rwnd=1500 out=1 in=2 tsn=0 {state-cookie len=2}",
		"SACK":                "SACK cum=17 rwnd=65536 gap=2-3,5-5 dup=16",
		"SACK/plain":          "SACK cum=4294967294 rwnd=0",
		"HEARTBEAT":           "HEARTBEAT info=3",
		"HEARTBEAT_ACK":       "HEARTBEAT ACK info=4",
		"ABORT":               "ABORT T",
		"ABORT/cause":         `ABORT {user-initiated abort "no"}`,
		"SHUTDOWN":            "SHUTDOWN cum=42",
		"SHUTDOWN_ACK":        "SHUTDOWN ACK",
		"ERROR":               "ERROR {invalid stream identifier sid=42, out of resource}",
		"COOKIE_ECHO":         "COOKIE ECHO len=5",
		"COOKIE_ACK":          "COOKIE ACK",
		"ECNE":                "ECNE tsn=256",
		"CWR":                 "CWR tsn=257",
		"SHUTDOWN_COMPLETE":   "SHUTDOWN COMPLETE",
		"SHUTDOWN_COMPLETE/T": "SHUTDOWN COMPLETE T",
		"AUTH":                "AUTH key=2 hmac=1 len=20",
		"ASCONF-ACK":          "ASCONF-ACK seq=16909060",
		"ASCONF-ACK/refused":  "ASCONF-ACK seq=5 {error-cause id=16921718 {request to delete last remaining IP address 0xc002}}",
		"RE-CONFIG":           "RE-CONFIG {outgoing-reset req=10 resp=19 last=99 streams 5, incoming-reset req=11 streams all}",
		"PAD":                 "PAD len=12",
		"FORWARD-TSN":         "FORWARD-TSN cum=255 skip=1:9,65535:32768",
		"ASCONF":              "ASCONF seq=7 addr=192.0.2.7 {add-ip id=16921716 addr=192.0.2.1}",
		"I-FORWARD-TSN":       "I-FORWARD-TSN cum=256 skip=1:65536,2:3U",
	}
	for key, b := range goldens(t) {
		name, ok := strings.CutPrefix(key, "chunk ")
		if !ok {
			continue
		}
		got := string(AppendChunkDescription(nil, oneChunk(t, b)))
		if w, ok := want[name]; !ok || got != w {
			t.Errorf("%s:\n\t%s, want\n\t%s", name, got, w)
		}
	}
}

// TestDescribeParamsAndCauses does the same for parameters and causes.
func TestDescribeParamsAndCauses(t *testing.T) {
	want := map[string]string{
		"param heartbeat-info":       "heartbeat-info len=1",
		"param ipv4":                 "ipv4 192.0.2.1",
		"param ipv6":                 "ipv6 2001:db8::1",
		"param state-cookie":         "state-cookie len=6",
		"param unrecognized":         "unrecognized 0xc123",
		"param cookie-preservative":  "cookie-preservative 1000",
		"param host-name":            `host-name "a.b.c"`,
		"param supported-addr-types": "supported-addr-types 5,6",
		"param outgoing-reset":       "outgoing-reset req=1 resp=2 last=3 streams 4,5",
		"param incoming-reset":       "incoming-reset req=9 streams 1,2,3",
		"param tsn-reset":            "tsn-reset 12",
		"param response":             "response resp=13 result=6",
		"param response/tsns":        "response resp=13 result=1 next=4096/8192",
		"param add-outgoing":         "add-outgoing req=14 streams=3",
		"param add-incoming":         "add-incoming req=15 streams=256",
		"param ecn":                  "ecn",
		"param zero-checksum":        "zero-checksum 1",
		"param random":               "random len=3",
		"param chunk-list":           "chunk-list ASCONF,ASCONF-ACK",
		"param hmac-algo":            "hmac-algo 3,1",
		"param hmac-algo/one":        "hmac-algo 1",
		"param pad":                  "pad len=4",
		"param supported-extensions": "supported-extensions RE-CONFIG",
		"param forward-tsn":          "forward-tsn",
		"param add-ip":               "add-ip id=16921716 addr=192.0.2.1",
		"param delete-ip":            "delete-ip id=16921718 addr=2001:db8::2",
		"param error-cause":          "error-cause id=16921719 {invalid mandatory parameter}",
		"param set-primary":          "set-primary id=16921721 addr=192.0.2.1",
		"param success":              "success 16921720",
		"param adaptation":           "adaptation 0x00000001",
		"cause invalid-stream":       "invalid stream identifier sid=4660",
		"cause missing-param":        "missing mandatory parameter 7,32770,32772",
		"cause stale-cookie":         "stale cookie usec=1000000",
		"cause out-of-resource":      "out of resource",
		"cause unresolvable-address": "unresolvable address 0x000b",
		"cause unrecognized-chunk":   "unrecognized chunk type 0x7e",
		"cause invalid-param":        "invalid mandatory parameter",
		"cause unrecognized-params":  "unrecognized parameters 0xc100,0xc200",
		"cause no-user-data":         "no user data tsn=40",
		"cause cookie-in-shutdown":   "cookie received while shutting down",
		"cause restart":              "restart of an association with new addresses 0x0005,0x0005",
		"cause user-abort":           `user-initiated abort "bye"`,
		"cause protocol-violation":   `protocol violation "!"`,
		"cause delete-last-ip":       "request to delete last remaining IP address 0xc002",
		"cause resource-shortage":    "operation refused due to resource shortage 0xc001",
		"cause delete-source-ip":     "request to delete source IP address 0xc002",
		"cause illegal-asconf-ack":   "association aborted due to illegal ASCONF-ACK",
		"cause no-authorization":     "request refused, no authorization 0xc004",
		"cause unsupported-hmac":     "unsupported HMAC identifier id=2",
	}
	for key, b := range goldens(t) {
		var got string
		switch key[:5] {
		case "param":
			got = string(appendParams(nil, b))
		case "cause":
			got = string(appendCauses(nil, b))
		default:
			continue
		}
		if w, ok := want[key]; !ok || got != " {"+w+"}" {
			t.Errorf("%s:\n\t%s, want\n\t {%s}", key, got, w)
		}
	}
}

func TestDescribe(t *testing.T) {
	pkt := AppendHeader(nil, Header{SrcPort: 5001, DstPort: 9899, VTag: 0x9a1b00c3})
	empty := string(pkt)
	pkt = AppendSack(pkt, 17, 131072, []GapBlock{{2, 3}}, nil)
	pkt = AppendData(pkt, Data{TSN: 40, SID: 1, SSN: 7, Begin: true, End: true, Payload: make([]byte, 1432)})
	summed := append([]byte(nil), pkt...)
	SetChecksum(summed)
	bad := append([]byte(nil), summed...)
	bad[30] ^= 1
	const chunks = " SACK cum=17 rwnd=131072 gap=2-3; DATA BE tsn=40 sid=1 ssn=7 ppid=0 len=1432"
	for _, tt := range []struct{ name, in, want string }{
		{"whole", string(summed), "5001>9899 tag=9a1b00c3:" + chunks},
		{"zero checksum", string(pkt), "5001>9899 tag=9a1b00c3 zero-checksum:" + chunks},
		{"wrong checksum", string(bad), "5001>9899 tag=9a1b00c3 bad-checksum:"},
		{"nothing", "", "packet [wire: truncated]"},
		{"header cut", empty[:11], "packet [wire: truncated]"},
		{"header only", empty, "5001>9899 tag=9a1b00c3 zero-checksum:"},
		{"chunk cut", empty + "\x0b\x00\x00\x04\x00\x00\x00", "5001>9899 tag=9a1b00c3 zero-checksum: COOKIE ACK … [wire: truncated]"},
		{"chunk wrong", empty + "\x0b\x00\x00\x08\x00\x00\x00\x00", "5001>9899 tag=9a1b00c3 zero-checksum: COOKIE ACK [wire: bad length field]"},
		{"unknown", empty + "\x7e\x00\x00\x05\x01\x00\x00\x00", "5001>9899 tag=9a1b00c3 zero-checksum: chunk(0x7e) len=5"},
		{"no user data", empty + "\x00\x03\x00\x10\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00",
			"5001>9899 tag=9a1b00c3 zero-checksum: DATA BE tsn=1 sid=0 ssn=0 ppid=0 len=0 [wire: no user data]"},
		{"unknown parameter and cause", empty + "\x82\x00\x00\x0a\x12\x34\x00\x06\x01\x02\x00\x00" + "\x09\x00\x00\x08\x12\x34\x00\x04",
			"5001>9899 tag=9a1b00c3 zero-checksum: RE-CONFIG {param(0x1234) len=2}; ERROR {cause(4660) len=0}"},
	} {
		if got := Describe([]byte(tt.in)); !strings.HasPrefix(got, tt.want) || (tt.name != "wrong checksum" && got != tt.want) {
			t.Errorf("%s:\n\t%s, want\n\t%s", tt.name, got, tt.want)
		}
	}
}

// TestDescribeIsBounded gives packets that would make endless lines.
func TestDescribeIsBounded(t *testing.T) {
	h := AppendHeader(nil, Header{})
	var many, texts []byte
	for range 10000 {
		many = AppendCookieAck(many)
	}
	for range 100 {
		texts = AppendUserAbort(texts, []byte(strings.Repeat("\"\n", 300)))
	}
	for _, tt := range []struct {
		name string
		body []byte
		want string
	}{
		{"chunks", many, "; +"},
		{"gap blocks", AppendSack(nil, 0, 0, make([]GapBlock, 5000), make([]uint32, 5000)), " gap=0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,+4992 more dup=0,0,0,0,0,0,0,0,+4992 more"},
		{"skips", AppendForwardTSN(nil, 0, make([]Skip, 10)), "0:0,+2 more"},
		{"skips of messages", AppendIForwardTSN(nil, 0, make([]ISkip, 10)), "0:0,+2 more"},
		{"texts", AppendAbort(nil, Abort{Causes: texts}), `"+536`},
		{"chunk types", AppendInit(nil, Init{Params: AppendParam(nil, ParamChunkList, make([]byte, 300))}), "DATA,+292 more"},
		{"streams", AppendReConfig(nil, ReConfig{AppendIncomingReset(nil, 1, make([]uint16, 300))}), "0,+292 more"},
	} {
		got := Describe(append(h[:HeaderLen:HeaderLen], tt.body...))
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: no %q in %s", tt.name, tt.want, got)
		}
		if max := 2 * describeBytes; len(got) > max {
			t.Errorf("%s: %d bytes of description, want at most %d", tt.name, len(got), max)
		}
		if strings.ContainsAny(got, "\n\r\x00") {
			t.Errorf("%s: more than one line: %q", tt.name, got)
		}
	}
}
