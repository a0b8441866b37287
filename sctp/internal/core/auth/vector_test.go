package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	gohash "hash"
	"slices"
	"testing"

	"github.com/weftstack/weft/sctp/wire"
)

// RFC 4895, Section 6.1, computed by hand: the key vectors are RANDOM, CHUNKS
// and HMAC-ALGO without padding, the smaller one goes first, behind the endpoint
// pair shared key.
func TestAssociationSharedKey(t *testing.T) {
	var ra, rz [32]byte
	for i := range ra {
		ra[i], rz[i] = byte(i), byte(0x20+i)
	}
	// A wants ASCONF, ASCONF-ACK and DATA, and prefers SHA-256; Z lists nothing
	// and knows SHA-1 only.
	va := slices.Concat([]byte{0x80, 2, 0, 36}, ra[:], []byte{0x80, 3, 0, 7, 0xC1, 0x80, 0}, []byte{0x80, 4, 0, 8, 0, 3, 0, 1})
	vz := slices.Concat([]byte{0x80, 2, 0, 36}, rz[:], []byte{0x80, 4, 0, 6, 0, 1})
	ca := (&Config{Chunks: []wire.ChunkType{wire.ChunkAsconf, wire.ChunkAsconfAck, wire.ChunkData}}).WithDefaults()
	if got := NewVector(ra, ca); !bytes.Equal(got, va) {
		t.Fatalf("vector of A % x\nwant % x", got, va)
	}
	if got := NewVector(rz, &Config{HMACs: []uint16{1}}); !bytes.Equal(got, vz) {
		t.Fatalf("vector of Z % x\nwant % x", got, vz)
	}
	// vz is shorter, and so the smaller number.
	want := slices.Concat([]byte("secret"), vz, va)
	a, z := State{Mine: va, theirs: vz}, State{Mine: vz, theirs: va}
	if got := a.sharedKey([]byte("secret")); !bytes.Equal(got, want) {
		t.Errorf("key of A % x\nwant % x", got, want)
	}
	if got := z.sharedKey([]byte("secret")); !bytes.Equal(got, want) {
		t.Errorf("key of Z % x\nwant % x", got, want)
	}
	if got := z.sharedKey(nil); !bytes.Equal(got, want[6:]) {
		t.Errorf("key without a secret % x", got)
	}
	// A uses what Z lists first and the other way round.
	if a.theirs.hmac() != wire.HMACSHA1 || z.theirs.hmac() != wire.HMACSHA256 {
		t.Error("wrong choice of algorithms")
	}
	// Padded in an INIT they read the same.
	x := wire.Init{Params: Vector(va).AppendParams(nil)}
	if len(x.Params) != len(va)+1 {
		t.Errorf("%d bytes of parameters for a vector of %d", len(x.Params), len(va))
	}
}

func TestKeyVectorOrder(t *testing.T) {
	for _, x := range []struct {
		name string
		a, b Vector // a goes first
	}{
		{"smaller", Vector{1, 2, 3}, Vector{1, 2, 4}},
		{"shorter is smaller", Vector{9, 9}, Vector{1, 0, 0}},
		{"leading zeros", Vector{0, 0, 5}, Vector{7}},
		// "If the key vectors are equal as numbers but differ in length …
		// followed by the shorter key vector, followed by the longer".
		{"equal numbers", Vector{5}, Vector{0, 5}},
	} {
		if !x.a.less(x.b) || x.b.less(x.a) {
			t.Errorf("%s: % x is not before % x", x.name, x.a, x.b)
		}
	}
}

// RFC 4895, Section 3.2: "INIT, INIT-ACK, SHUTDOWN-COMPLETE, and AUTH chunks MUST
// NOT be listed", and are ignored.
func TestAuthChunkList(t *testing.T) {
	all := &Config{Chunks: []wire.ChunkType{wire.ChunkInit, wire.ChunkInitAck, wire.ChunkShutdownComplete,
		wire.ChunkAuth, wire.ChunkData}}
	c := all.WithDefaults()
	for _, typ := range []wire.ChunkType{wire.ChunkInit, wire.ChunkInitAck, wire.ChunkShutdownComplete, wire.ChunkAuth} {
		if slices.Contains(c.Chunks, typ) {
			t.Errorf("%v is listed", typ)
		}
	}
	v := NewVector([32]byte{}, all)
	if s := v.Chunks(); s.Has(wire.ChunkInit) || s.Has(wire.ChunkAuth) || !s.Has(wire.ChunkData) {
		t.Errorf("set %x", s)
	}
	if len(c.HMACs) != 2 || c.HMACs[0] != wire.HMACSHA256 || c.HMACs[1] != wire.HMACSHA1 {
		t.Errorf("algorithms %v", c.HMACs)
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	for _, id := range []uint16{wire.HMACSHA1, wire.HMACSHA256} {
		b.Run(fmt.Sprintf("hmac=%d", id), func(b *testing.B) {
			m := State{On: true, Mine: make(Vector, 50), theirs: make(Vector, 60), HMAC: id}
			m.Set(0, []byte("secret"))
			pkt := append(m.Begin(nil), make([]byte, 1400)...)
			b.SetBytes(int64(len(pkt)))
			b.ReportAllocs()
			for b.Loop() {
				m.Finish(pkt)
			}
		})
	}
}

// RFC 4895, Section 6.2: the HMAC covers "the AUTH chunk with its HMAC field set
// to zero … followed by all the chunks that are placed after the AUTH chunk",
// padding included.
func TestAuthChunk(t *testing.T) {
	for _, x := range []struct {
		id  uint16
		new func() gohash.Hash
		n   int
	}{{wire.HMACSHA1, sha1.New, 20}, {wire.HMACSHA256, sha256.New, 32}} {
		m := State{On: true, Mine: Vector("mine"), theirs: Vector("peer"), HMAC: x.id}
		m.Set(7, []byte("k"))
		b := m.Begin([]byte("head"))
		b = wire.AppendUserAbort(b, []byte("x")) // four and one byte, padded to eight
		m.Finish(b[4:])
		zeroed := slices.Concat([]byte{15, 0, 0, byte(8 + x.n), 0, 7, 0, byte(x.id)}, make([]byte, x.n), []byte{0, 12, 0, 5, 'x', 0, 0, 0})
		h := hmac.New(x.new, []byte("kminepeer"))
		h.Write(zeroed)
		want := h.Sum(nil)
		if got := b[4+8 : 4+8+x.n]; !bytes.Equal(got, want) {
			t.Errorf("HMAC %d: % x, want % x", x.id, got, want)
		}
		if len(b) != 4+len(zeroed) {
			t.Errorf("%d bytes", len(b))
		}
	}
}
