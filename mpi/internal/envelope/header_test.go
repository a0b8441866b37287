package envelope

import (
	"math/rand/v2"
	"testing"
)

// TestRTSKey checks that what Encode writes Decode reads, and nothing else.
func TestRTSKey(t *testing.T) {
	v := Header{Kind: RTS, Flags: FlagSeq, Source: 3, Context: 1, Tag: 5, Seq: 7, Length: 1 << 40, ID: 9, HasKey: true,
		Key: Key{STag: 0x01020304, Port: 500, Token: [TokenLen]byte{1, 2, 3}}}
	var b [MaxLen]byte
	enc := v.Encode(&b)
	if k := Kind(enc[0]); k != RTSKey || len(enc) != k.HeaderLen() || !k.Matched() || k.HasBody() {
		t.Errorf("kind %d, %d bytes", k, len(enc))
	}
	var got Header
	if !got.Decode(enc) || got != v {
		t.Errorf("got %+v, want %+v", got, v)
	}
	enc[46] = 1 // reserved
	if got.Decode(enc) {
		t.Error("a reserved byte was not looked at")
	}
}

// TestDecodeAnything decodes random bytes as every kind: what is well-formed encodes to the
// same bytes again.
func TestDecodeAnything(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		for kind := range Kinds + 2 {
			var b, again [MaxLen]byte
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			b[0], b[24], b[25], b[26] = byte(kind), 0, 0, 0
			if !kind.Matched() {
				b[2], b[3] = 0, 0
				b[38], b[39] = 0, 0
			}
			b[16] &= 0x7f
			b[46], b[47] = 0, 0
			enc := b[:kind.HeaderLen()]
			var v Header
			ok := v.Decode(enc)
			if want := kind > 0 && kind < Kinds; ok != want {
				t.Fatalf("kind %d: well-formed %t, want %t (%x)", kind, ok, want, enc)
			}
			if ok && string(v.Encode(&again)) != string(enc) {
				t.Fatalf("kind %d: %x, encoded again %x", kind, enc, again[:len(enc)])
			}
		}
	}
}
