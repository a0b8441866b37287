package wire

import (
	"encoding/binary"
	"errors"
	"testing"
)

// TestMalformedChunks gives each parser what its layout rules out.
func TestMalformedChunks(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parse func(Chunk) (any, error)
		in    []byte
		want  error
	}{
		{"DATA/no fields", of(ParseData), []byte{0, 3, 0, 4}, ErrTruncated},
		{"DATA/header cut", of(ParseData), append([]byte{0, 3, 0, 15}, make([]byte, 12)...), ErrTruncated},
		{"DATA/no user data", of(ParseData), append([]byte{0, 3, 0, 16}, make([]byte, 12)...), ErrNoUserData},
		{"I-DATA/header cut", of(ParseIData), append([]byte{64, 3, 0, 19}, make([]byte, 16)...), ErrTruncated},
		{"I-DATA/no user data", of(ParseIData), append([]byte{64, 3, 0, 20}, make([]byte, 16)...), ErrNoUserData},
		{"INIT/header cut", of(ParseInit), append([]byte{1, 0, 0, 19}, make([]byte, 16)...), ErrTruncated},
		{"INIT ACK/header cut", of(ParseInitAck), append([]byte{2, 0, 0, 8}, make([]byte, 4)...), ErrTruncated},
		{"SACK/header cut", of(ParseSack), append([]byte{3, 0, 0, 15}, make([]byte, 12)...), ErrTruncated},
		{"SACK/gaps beyond", of(ParseSack), append([]byte{3, 0, 0, 16}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0), ErrLength},
		{"SACK/dups beyond", of(ParseSack), append([]byte{3, 0, 0, 16}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), ErrLength},
		{"SACK/counts huge", of(ParseSack), append([]byte{3, 0, 0, 16}, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255), ErrLength},
		{"SACK/bytes left", of(ParseSack), append([]byte{3, 0, 0, 20}, make([]byte, 16)...), ErrLength},
		{"SACK/odd", of(ParseSack), append([]byte{3, 0, 0, 17}, make([]byte, 16)...), ErrLength},
		{"HEARTBEAT/empty", of(ParseHeartbeat), []byte{4, 0, 0, 4}, ErrTruncated},
		{"HEARTBEAT/other parameter", of(ParseHeartbeat), []byte{4, 0, 0, 8, 0, 2, 0, 4}, ErrType},
		{"HEARTBEAT/info too short", of(ParseHeartbeat), []byte{4, 0, 0, 8, 0, 1, 0, 3}, ErrLength},
		{"HEARTBEAT/info beyond", of(ParseHeartbeat), []byte{4, 0, 0, 8, 0, 1, 0, 5}, ErrTruncated},
		{"HEARTBEAT ACK/cut", of(ParseHeartbeatAck), []byte{5, 0, 0, 6, 0, 1, 0, 0}, ErrTruncated},
		{"ERROR/empty", of(ParseOpError), []byte{9, 0, 0, 4}, ErrTruncated},
		{"SHUTDOWN/empty", of(ParseShutdown), []byte{7, 0, 0, 4}, ErrTruncated},
		{"SHUTDOWN/cut", of(ParseShutdown), []byte{7, 0, 0, 7, 0, 0, 0, 0}, ErrTruncated},
		{"SHUTDOWN/long", of(ParseShutdown), []byte{7, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0}, ErrLength},
		{"SHUTDOWN ACK/long", is(ParseShutdownAck), []byte{8, 0, 0, 5, 0, 0, 0, 0}, ErrLength},
		{"SHUTDOWN COMPLETE/long", of(ParseShutdownComplete), []byte{14, 0, 0, 8, 0, 0, 0, 0}, ErrLength},
		{"COOKIE ECHO/empty", of(ParseCookieEcho), []byte{10, 0, 0, 4}, ErrTruncated},
		{"COOKIE ACK/long", is(ParseCookieAck), []byte{11, 0, 0, 5, 0, 0, 0, 0}, ErrLength},
		{"ECNE/cut", of(ParseECNE), []byte{12, 0, 0, 6, 0, 0, 0, 0}, ErrTruncated},
		{"CWR/long", of(ParseCWR), []byte{13, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0}, ErrLength},
		{"AUTH/cut", of(ParseAuth), []byte{15, 0, 0, 7, 0, 0, 0, 0}, ErrTruncated},
		{"FORWARD-TSN/cut", of(ParseForwardTSN), []byte{192, 0, 0, 7, 0, 0, 0, 0}, ErrTruncated},
		{"FORWARD-TSN/odd", of(ParseForwardTSN), []byte{192, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0}, ErrLength},
		{"I-FORWARD-TSN/cut", of(ParseIForwardTSN), []byte{194, 0, 0, 4}, ErrTruncated},
		{"I-FORWARD-TSN/half an entry", of(ParseIForwardTSN), []byte{194, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0}, ErrLength},
		{"RE-CONFIG/empty", of(ParseReConfig), []byte{130, 0, 0, 4}, ErrTruncated},
		{"ASCONF/cut", of(ParseAsconf), []byte{193, 0, 0, 7, 0, 0, 0, 0}, ErrTruncated},
		{"ASCONF/no address", of(ParseAsconf), []byte{193, 0, 0, 8, 0, 0, 0, 0}, ErrTruncated},
		{"ASCONF/address cut", of(ParseAsconf), []byte{193, 0, 0, 12, 0, 0, 0, 0, 0, 5, 0, 8}, ErrTruncated},
		{"ASCONF/address too short", of(ParseAsconf), []byte{193, 0, 0, 12, 0, 0, 0, 0, 0, 5, 0, 4}, ErrTruncated},
		{"ASCONF/no address", of(ParseAsconf), []byte{193, 0, 0, 16, 0, 0, 0, 0, 0, 7, 0, 8, 'a', 'b', 'c', 0}, ErrType},
		{"ASCONF/address of length 2", of(ParseAsconf), []byte{193, 0, 0, 12, 0, 0, 0, 0, 0, 5, 0, 2}, ErrLength},
		{"ASCONF-ACK/cut", of(ParseAsconfAck), []byte{128, 0, 0, 5, 0, 0, 0, 0}, ErrTruncated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			it := NewChunks(tt.in)
			if !it.Next() || it.Next() || it.Err() != nil {
				t.Fatalf("not one chunk: %v", it.Err())
			}
			if _, err := tt.parse(it.Chunk()); !errors.Is(err, tt.want) {
				t.Errorf("err %v, want %v", err, tt.want)
			}
		})
	}
}

// TestNoUserDataNamesTSN checks that the TSN is there for the cause of RFC 9260,
// Section 3.3.10.9.
func TestNoUserDataNamesTSN(t *testing.T) {
	it := NewChunks([]byte{0, 3, 0, 16, 0, 0, 0, 77, 0, 1, 0, 2, 0, 0, 0, 0})
	it.Next()
	if d, err := ParseData(it.Chunk()); !errors.Is(err, ErrNoUserData) || d.TSN != 77 || d.SID != 1 {
		t.Errorf("ParseData = %+v, %v; want TSN 77 and %v", d, err, ErrNoUserData)
	}
	it = NewChunks([]byte{64, 3, 0, 20, 0, 0, 0, 78, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	it.Next()
	if d, err := ParseIData(it.Chunk()); !errors.Is(err, ErrNoUserData) || d.TSN != 78 {
		t.Errorf("ParseIData = %+v, %v; want TSN 78 and %v", d, err, ErrNoUserData)
	}
}

func TestMalformedParams(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parse func(Param) (any, error)
		in    []byte
		want  error
	}{
		{"ipv4/short", of(ParseAddr), []byte{0, 5, 0, 7, 1, 2, 3, 0}, ErrTruncated},
		{"ipv4/long", of(ParseAddr), []byte{0, 5, 0, 9, 1, 2, 3, 4, 5}, ErrLength},
		{"ipv6/as long as ipv4", of(ParseAddr), []byte{0, 6, 0, 8, 1, 2, 3, 4}, ErrTruncated},
		{"ipv6/long", of(ParseAddr), append([]byte{0, 6, 0, 24}, make([]byte, 20)...), ErrLength},
		{"unrecognized/empty", of(ParseUnrecognized), []byte{0, 8, 0, 4}, ErrTruncated},
		{"unrecognized/inner beyond", of(ParseUnrecognized), []byte{0, 8, 0, 8, 0, 1, 0, 9}, ErrTruncated},
		{"unrecognized/inner of length 0", of(ParseUnrecognized), []byte{0, 8, 0, 8, 0, 1, 0, 0}, ErrLength},
		{"cookie-preservative/short", of(ParseCookiePreservative), []byte{0, 9, 0, 6, 0, 0}, ErrTruncated},
		{"cookie-preservative/long", of(ParseCookiePreservative), []byte{0, 9, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0}, ErrLength},
		{"host-name/no terminator", of(ParseHostName), []byte{0, 11, 0, 7, 'a', 'b', 'c', 0}, ErrValue},
		{"host-name/empty", of(ParseHostName), []byte{0, 11, 0, 4}, ErrValue},
		{"supported-addr-types/odd", of(ParseSupportedAddrTypes), []byte{0, 12, 0, 7, 0, 5, 0, 0}, ErrLength},
		{"outgoing-reset/short", of(ParseOutgoingReset), append([]byte{0, 13, 0, 15}, make([]byte, 12)...), ErrTruncated},
		{"outgoing-reset/odd", of(ParseOutgoingReset), append([]byte{0, 13, 0, 17}, make([]byte, 16)...), ErrLength},
		{"incoming-reset/short", of(ParseIncomingReset), []byte{0, 14, 0, 7, 0, 0, 0, 0}, ErrTruncated},
		{"incoming-reset/odd", of(ParseIncomingReset), []byte{0, 14, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0}, ErrLength},
		{"tsn-reset/short", of(ParseTSNReset), []byte{0, 15, 0, 4}, ErrTruncated},
		{"tsn-reset/long", of(ParseTSNReset), []byte{0, 15, 0, 9, 0, 0, 0, 0, 0}, ErrLength},
		{"response/short", of(ParseReConfigResponse), []byte{0, 16, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0}, ErrTruncated},
		{"response/one TSN", of(ParseReConfigResponse), append([]byte{0, 16, 0, 16}, make([]byte, 12)...), ErrLength},
		{"response/long", of(ParseReConfigResponse), append([]byte{0, 16, 0, 24}, make([]byte, 20)...), ErrLength},
		{"add-outgoing/short", of(ParseAddOutgoing), []byte{0, 17, 0, 8, 0, 0, 0, 0}, ErrTruncated},
		{"add-incoming/long", of(ParseAddIncoming), append([]byte{0, 18, 0, 13}, make([]byte, 12)...), ErrLength},
		{"ecn/long", is(ParseECN), []byte{0x80, 0, 0, 8, 0, 0, 0, 0}, ErrLength},
		{"zero-checksum/short", of(ParseZeroChecksum), []byte{0x80, 1, 0, 4}, ErrTruncated},
		{"hmac-algo/odd", of(ParseHMACAlgo), []byte{0x80, 4, 0, 5, 1}, ErrLength},
		{"forward-tsn/long", is(ParseForwardTSNSupported), []byte{0xc0, 0, 0, 5, 1}, ErrLength},
		{"add-ip/short", of(ParseAsconfRequest), []byte{0xc0, 1, 0, 7, 0, 0, 0}, ErrTruncated},
		{"add-ip/no address", of(ParseAsconfRequest), []byte{0xc0, 1, 0, 8, 0, 0, 0, 0}, ErrTruncated},
		{"add-ip/address beyond", of(ParseAsconfRequest), []byte{0xc0, 1, 0, 12, 0, 0, 0, 0, 0, 5, 0, 8}, ErrTruncated},
		{"add-ip/address of length 1", of(ParseAsconfRequest), []byte{0xc0, 1, 0, 12, 0, 0, 0, 0, 0, 5, 0, 1}, ErrLength},
		{"add-ip/host name", of(ParseAsconfRequest), []byte{0xc0, 1, 0, 12, 0, 0, 0, 0, 0, 11, 0, 4}, ErrType},
		{"error-cause/short", of(ParseAsconfError), []byte{0xc0, 3, 0, 6, 0, 0}, ErrTruncated},
		{"success/long", of(ParseAsconfSuccess), []byte{0xc0, 5, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0}, ErrLength},
		{"adaptation/short", of(ParseAdaptation), []byte{0xc0, 6, 0, 6, 0, 0}, ErrTruncated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			it := NewParams(tt.in)
			if !it.Next() || it.Next() || it.Err() != nil {
				t.Fatalf("not one parameter: %v", it.Err())
			}
			if _, err := tt.parse(it.Param()); !errors.Is(err, tt.want) {
				t.Errorf("err %v, want %v", err, tt.want)
			}
		})
	}
}

func TestMalformedCauses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parse func(Cause) (any, error)
		in    []byte
		want  error
	}{
		{"invalid-stream/short", of(ParseInvalidStream), []byte{0, 1, 0, 6, 0, 0}, ErrTruncated},
		{"invalid-stream/long", of(ParseInvalidStream), []byte{0, 1, 0, 9, 0, 0, 0, 0, 0}, ErrLength},
		{"missing-param/short", of(ParseMissingParams), []byte{0, 2, 0, 7, 0, 0, 0}, ErrTruncated},
		{"missing-param/too many", of(ParseMissingParams), []byte{0, 2, 0, 10, 0, 0, 0, 2, 0, 7}, ErrLength},
		{"missing-param/count overflows", of(ParseMissingParams), []byte{0, 2, 0, 10, 0x80, 0, 0, 1, 0, 7}, ErrLength},
		{"missing-param/odd", of(ParseMissingParams), []byte{0, 2, 0, 9, 0, 0, 0, 0, 1}, ErrLength},
		{"stale-cookie/short", of(ParseStaleCookie), []byte{0, 3, 0, 4}, ErrTruncated},
		{"out-of-resource/long", is(ParseOutOfResource), []byte{0, 4, 0, 5, 1}, ErrLength},
		{"unresolvable-address/empty", of(ParseUnresolvableAddress), []byte{0, 5, 0, 4}, ErrTruncated},
		{"unresolvable-address/inner beyond", of(ParseUnresolvableAddress), []byte{0, 5, 0, 8, 0, 5, 0, 8}, ErrTruncated},
		{"unrecognized-chunk/empty", of(ParseUnrecognizedChunk), []byte{0, 6, 0, 4}, ErrTruncated},
		{"unrecognized-chunk/cut", of(ParseUnrecognizedChunk), []byte{0, 6, 0, 8, 0x7e, 0, 0, 9}, ErrTruncated},
		{"unrecognized-chunk/inner of length 0", of(ParseUnrecognizedChunk), []byte{0, 6, 0, 8, 0x7e, 0, 0, 0}, ErrLength},
		{"invalid-param/long", is(ParseInvalidParam), []byte{0, 7, 0, 8, 0, 0, 0, 0}, ErrLength},
		{"no-user-data/long", of(ParseNoUserData), []byte{0, 9, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0}, ErrLength},
		{"cookie-in-shutdown/long", is(ParseCookieInShutdown), []byte{0, 10, 0, 5, 0}, ErrLength},
		{"delete-last-ip/empty", of(ParseRefused), []byte{0, 0xa0, 0, 4}, ErrTruncated},
		{"no-authorization/inner of length 3", of(ParseRefused), []byte{0, 0xa4, 0, 8, 0xc0, 1, 0, 3}, ErrLength},
		{"illegal-asconf-ack/long", is(ParseIllegalAsconfAck), []byte{0, 0xa3, 0, 5, 0}, ErrLength},
		{"unsupported-hmac/short", of(ParseUnsupportedHMAC), []byte{1, 5, 0, 5, 0}, ErrTruncated},
		{"unsupported-hmac/long", of(ParseUnsupportedHMAC), []byte{1, 5, 0, 8, 0, 0, 0, 0}, ErrLength},
	} {
		t.Run(tt.name, func(t *testing.T) {
			it := NewCauses(tt.in)
			if !it.Next() || it.Next() || it.Err() != nil {
				t.Fatalf("not one cause: %v", it.Err())
			}
			if _, err := tt.parse(it.Cause()); !errors.Is(err, tt.want) {
				t.Errorf("err %v, want %v", err, tt.want)
			}
		})
	}
}

// TestWrongType gives every parser an element of a type that no parser knows.
func TestWrongType(t *testing.T) {
	long := make([]byte, 64)
	for name, g := range chunkGoldens() {
		if _, err := g.parse(Chunk{Type: 0x7e, Value: long}); !errors.Is(err, ErrType) {
			t.Errorf("chunk %s: err %v, want %v", name, err, ErrType)
		}
	}
	for name, g := range paramGoldens() {
		if name == "heartbeat-info" {
			continue // has no parser of its own
		}
		if _, err := g.parse(Param{Type: 0x7ffe, Value: long}); !errors.Is(err, ErrType) {
			t.Errorf("param %s: err %v, want %v", name, err, ErrType)
		}
	}
	for name, g := range causeGoldens() {
		if _, err := g.parse(Cause{Code: 0x7ffe, Value: long}); !errors.Is(err, ErrType) {
			t.Errorf("cause %s: err %v, want %v", name, err, ErrType)
		}
	}
}

// TestEveryCutOfGoldens shortens and lengthens each vector byte by byte, with
// a length field that agrees, and parses and describes it: whatever the answer,
// no panic.
func TestEveryCutOfGoldens(t *testing.T) {
	chunks, params, causes := chunkGoldens(), paramGoldens(), causeGoldens()
	for key, b := range goldens(t) {
		kind, name := key[:5], key[6:]
		for n := 4; n <= len(b)+9; n++ {
			c := make([]byte, n)
			copy(c, b)
			binary.BigEndian.PutUint16(c[2:], uint16(n))
			switch kind {
			case "chunk":
				it := NewChunks(c)
				for it.Next() {
					chunks[name].parse(it.Chunk())
					AppendChunkDescription(nil, it.Chunk())
				}
			case "param":
				it := NewParams(c)
				for it.Next() {
					params[name].parse(it.Param())
				}
				appendParams(nil, c)
			case "cause":
				it := NewCauses(c)
				for it.Next() {
					causes[name].parse(it.Cause())
				}
				appendCauses(nil, c)
			}
		}
	}
}
