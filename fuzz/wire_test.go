package fuzz

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/weftstack/weft/internal/golden"
	"github.com/weftstack/weft/sctp/wire"
)

// vectors returns the golden vectors of package wire.
func vectors(t testing.TB) []golden.Vector {
	t.Helper()
	return golden.Read(t, "../sctp/wire/testdata/golden.txt")
}

// packets makes seeds of the vectors: each chunk alone, each parameter in an
// INIT ACK and an ASCONF, each cause in an ERROR, everything together, and some
// shapes that once broke other stacks.
func packets(t testing.TB) [][]byte {
	h := wire.AppendHeader(nil, wire.Header{SrcPort: 5001, DstPort: 5002, VTag: 1})
	var seeds [][]byte
	add := func(chunks []byte) {
		pkt := append(h[:len(h):len(h)], chunks...)
		wire.SetChecksum(pkt)
		seeds = append(seeds, pkt)
	}
	var all []byte
	for _, v := range vectors(t) {
		switch v.Kind {
		case "chunk":
			add(v.Bytes)
			all = append(all, v.Bytes...)
		case "param":
			add(wire.AppendInitAck(nil, wire.Init{Tag: 1, Params: v.Bytes}))
			add(wire.AppendAsconf(nil, wire.Asconf{Seq: 1, Params: v.Bytes}))
		case "cause":
			add(wire.AppendOpError(nil, wire.OpError{Causes: v.Bytes}))
		}
	}
	add(all)
	add(nil)
	add([]byte{0, 3, 0, 0})                                             // a chunk of length 0
	add([]byte{0, 3, 0xff, 0xff, 1})                                    // a chunk beyond the packet
	add([]byte{1, 0, 0, 24, 7: 1, 13: 1, 15: 1, 20: 0, 5, 0, 0})        // a parameter of length 0
	add([]byte{3, 0, 0, 16, 12: 0xff, 0xff, 0xff, 0xff})                // counts beyond the chunk
	add([]byte{9, 0, 0, 12, 0, 6, 0, 8, 0x7e, 0, 0xff, 0xff})           // an unrecognized chunk cut short
	add([]byte{193, 0, 0, 12, 0, 0, 0, 1, 0, 5, 0, 2})                  // an address of length 2
	add(bytes.Repeat([]byte{0x7e, 0, 0, 4}, 300))                       // many unknown chunks
	add(nestedUnrecognized(64))                                         // parameters in parameters
	return append(seeds, nil, h[:11], append(h[:12:12], 0xc1, 0, 0xff)) // less than a header, a chunk header cut
}

// nestedUnrecognized returns an INIT ACK whose Unrecognized Parameter holds an
// Unrecognized Parameter, and so on, depth times.
func nestedUnrecognized(depth int) []byte {
	p := wire.AppendParam(nil, wire.ParamUnrecognized, nil)
	for range depth {
		p = wire.AppendParam(nil, wire.ParamUnrecognized, p)
	}
	return wire.AppendInitAck(nil, wire.Init{Tag: 1, Params: p})
}

// wantInside fails unless view lies within whole.
func wantInside(t *testing.T, what string, whole, view []byte) {
	t.Helper()
	if len(view) == 0 {
		return
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(view)))
	if at < start || at+uintptr(len(view)) > start+uintptr(len(whole)) {
		t.Fatalf("%s: view of %d bytes is not inside the %d bytes it is from", what, len(view), len(whole))
	}
}

// FuzzPacket parses arbitrary bytes with everything there is. Nothing may
// panic, no view may leave the packet, and no walk may be longer than the bytes
// allow.
func FuzzPacket(f *testing.F) {
	for _, pkt := range packets(f) {
		f.Add(pkt)
	}
	f.Fuzz(func(t *testing.T, pkt []byte) {
		text := wire.Describe(pkt)
		if strings.ContainsAny(text, "\n\r") {
			t.Errorf("description of more than one line: %q", text)
		}
		if _, err := wire.ParseHeader(pkt); err != nil {
			if len(pkt) >= wire.HeaderLen || wire.VerifyChecksum(pkt) {
				t.Fatalf("%d bytes: %v", len(pkt), err)
			}
			return
		}
		summed := bytes.Clone(pkt)
		wire.SetChecksum(summed)
		if !wire.VerifyChecksum(summed) || wire.Checksum(summed) != wire.Checksum(pkt) {
			t.Fatal("the checksum of a packet depends on its checksum field")
		}
		walkChunks(t, pkt[wire.HeaderLen:])
		// Any bytes may be taken for a list of parameters or causes.
		walkParams(t, pkt)
		walkCauses(t, pkt)
	})
}

func walkChunks(t *testing.T, b []byte) {
	n := 0
	it := wire.NewChunks(b)
	for it.Next() {
		c := it.Chunk()
		wantInside(t, c.Type.String(), b, c.Raw)
		wantInside(t, c.Type.String(), c.Raw, c.Value)
		wantInside(t, "rest", b, it.Rest())
		if n += len(c.Raw); len(c.Raw) != len(c.Value)+wire.ChunkHeaderLen || n > len(b) {
			t.Fatalf("%v: %d bytes, value %d, %d so far of %d", c.Type, len(c.Raw), len(c.Value), n, len(b))
		}
		checkChunk(t, c)
	}
	if it.Err() == nil && len(it.Rest()) != 0 {
		t.Fatalf("walk ended with %d bytes left and no error", len(it.Rest()))
	}
}

// checkChunk gives c to every chunk parser: to those of other types too, which
// must refuse it.
func checkChunk(t *testing.T, c wire.Chunk) {
	for typ, recode := range chunkCodecs {
		out, err := recode(c)
		if typ != c.Type && !errors.Is(err, wire.ErrType) {
			t.Fatalf("parser of %v takes %v: %v", typ, c.Type, err)
		}
		if err == nil && len(out) > wire.Padded(len(c.Raw)) {
			t.Fatalf("%v: %d bytes became %d", typ, len(c.Raw), len(out))
		}
	}
	switch c.Type {
	case wire.ChunkData, wire.ChunkIData:
		parse := wire.ParseData
		if c.Type == wire.ChunkIData {
			parse = wire.ParseIData
		}
		if d, err := parse(c); err == nil {
			wantInside(t, "payload", c.Value, d.Payload)
			if len(d.Payload) == 0 {
				t.Fatal("no user data, and no error")
			}
		}
	case wire.ChunkInit:
		if x, err := wire.ParseInit(c); err == nil {
			wantInside(t, "params", c.Value, x.Params)
			walkParams(t, x.Params)
		}
	case wire.ChunkInitAck:
		if x, err := wire.ParseInitAck(c); err == nil {
			walkParams(t, x.Params)
		}
	case wire.ChunkHeartbeat:
		if x, err := wire.ParseHeartbeat(c); err == nil {
			wantInside(t, "info", c.Value, x.Info)
		}
	case wire.ChunkAbort:
		if x, err := wire.ParseAbort(c); err == nil {
			walkCauses(t, x.Causes)
		}
	case wire.ChunkError:
		if x, err := wire.ParseOpError(c); err == nil {
			walkCauses(t, x.Causes)
		}
	case wire.ChunkReConfig:
		if x, err := wire.ParseReConfig(c); err == nil {
			walkParams(t, x.Params)
			x.Allowed()
		}
	case wire.ChunkAsconf:
		if x, err := wire.ParseAsconf(c); err == nil {
			wantInside(t, "params", c.Value, x.Params)
			walkParams(t, x.Params)
		}
	case wire.ChunkAsconfAck:
		if x, err := wire.ParseAsconfAck(c); err == nil {
			walkParams(t, x.Params)
		}
	case wire.ChunkAuth:
		if x, err := wire.ParseAuth(c); err == nil {
			wantInside(t, "HMAC", c.Value, x.HMAC)
		}
	}
}

func walkParams(t *testing.T, b []byte) {
	it := wire.NewParams(b)
	for it.Next() {
		p := it.Param()
		wantInside(t, p.Type.String(), b, p.Raw)
		wantInside(t, p.Type.String(), p.Raw, p.Value)
		for _, codec := range paramCodecs {
			out, err := codec.recode(p)
			if err == nil && !codec.takes(p.Type) {
				t.Fatalf("parser of %v takes %v", codec.types, p.Type)
			}
			if err == nil {
				fixedPoint(t, p.Type.String(), out, func(b []byte) ([]byte, error) {
					return codec.recode(oneParam(t, b))
				})
			}
		}
		if p.Type == wire.ParamErrorCause {
			if x, err := wire.ParseAsconfError(p); err == nil {
				walkCauses(t, x.Causes)
			}
		}
	}
	if it.Err() == nil && len(it.Rest()) != 0 {
		t.Fatalf("walk ended with %d bytes left and no error", len(it.Rest()))
	}
}

func walkCauses(t *testing.T, b []byte) {
	it := wire.NewCauses(b)
	for it.Next() {
		c := it.Cause()
		wantInside(t, c.Code.String(), b, c.Raw)
		wantInside(t, c.Code.String(), c.Raw, c.Value)
		for _, codec := range causeCodecs {
			out, err := codec.recode(c)
			if err == nil && !codec.takes(c.Code) {
				t.Fatalf("parser of %v takes %v", codec.codes, c.Code)
			}
			if err == nil {
				fixedPoint(t, c.Code.String(), out, func(b []byte) ([]byte, error) {
					return codec.recode(oneCause(t, b))
				})
			}
		}
	}
}

// fixedPoint fails unless parsing and appending out gives out again.
func fixedPoint(t *testing.T, what string, out []byte, recode func([]byte) ([]byte, error)) {
	t.Helper()
	again, err := recode(out)
	if err != nil {
		t.Fatalf("%s: own output %x: %v", what, out, err)
	}
	if !bytes.Equal(again, out) {
		t.Fatalf("%s: appended %x, then %x", what, out, again)
	}
}

// FuzzRoundTrip takes the bytes for chunks, and checks for each that parses
// that what the appender makes of it is one well-formed chunk which parses and
// appends to itself.
func FuzzRoundTrip(f *testing.F) {
	for _, pkt := range packets(f) {
		if len(pkt) > wire.HeaderLen {
			f.Add(pkt[wire.HeaderLen:])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		it := wire.NewChunks(b)
		for it.Next() {
			c := it.Chunk()
			recode, ok := chunkCodecs[c.Type]
			if !ok {
				if c.Type.Known() {
					t.Fatalf("%v is known and has no codec here", c.Type)
				}
				continue
			}
			out, err := recode(c)
			if err != nil {
				continue
			}
			fixedPoint(t, c.Type.String(), out, func(b []byte) ([]byte, error) {
				if len(b)%4 != 0 {
					t.Fatalf("%v: %d bytes are not aligned", c.Type, len(b))
				}
				return recode(oneChunk(t, b))
			})
		}
	})
}

// TestVectorsAreFixedPoints makes sure that the seeds exercise FuzzRoundTrip:
// every chunk vector parses, and appends to itself.
func TestVectorsAreFixedPoints(t *testing.T) {
	seen := make(map[wire.ChunkType]bool)
	for _, v := range vectors(t) {
		if v.Kind != "chunk" {
			continue
		}
		c := oneChunk(t, v.Bytes)
		seen[c.Type] = true
		out, err := chunkCodecs[c.Type](c)
		if err != nil || !bytes.Equal(out, v.Bytes) {
			t.Errorf("%s: %x, %v; want %x", v.Name, out, err, v.Bytes)
		}
	}
	for typ := range chunkCodecs {
		if !seen[typ] {
			t.Errorf("no vector for %v", typ)
		}
	}
}

func oneChunk(t testing.TB, b []byte) wire.Chunk {
	t.Helper()
	it := wire.NewChunks(b)
	if !it.Next() || it.Err() != nil || len(it.Rest()) != 0 {
		t.Fatalf("%x is not one chunk: %v", b, it.Err())
	}
	return it.Chunk()
}

func oneParam(t testing.TB, b []byte) wire.Param {
	t.Helper()
	it := wire.NewParams(b)
	if !it.Next() || it.Err() != nil || len(it.Rest()) != 0 {
		t.Fatalf("%x is not one parameter: %v", b, it.Err())
	}
	return it.Param()
}

func oneCause(t testing.TB, b []byte) wire.Cause {
	t.Helper()
	it := wire.NewCauses(b)
	if !it.Next() || it.Err() != nil {
		t.Fatalf("%x is not one cause: %v", b, it.Err())
	}
	c := it.Cause()
	if it.Next() {
		t.Fatalf("%x is more than one cause", b)
	}
	return c
}
