package mpi

import "testing"

// TestOfferEnvelope: what put writes get reads, and nothing else.
func TestOfferEnvelope(t *testing.T) {
	v := envelope{kind: kindReady, flags: flagSeq, source: 3, ctx: 1, tag: 5, seq: 7, length: 1 << 40, id: 9, offer: true,
		grant: grant{stag: 0x01020304, port: 500, token: [tokenLen]byte{1, 2, 3}}}
	var b [envelopeMaxLen]byte
	enc := v.put(&b)
	if k := kind(enc[0]); k != kindOffer || len(enc) != k.headerLen() || !k.matched() || k.hasBody() {
		t.Errorf("kind %d, %d bytes", k, len(enc))
	}
	var got envelope
	if !got.get(enc) || got != v {
		t.Errorf("got %+v, want %+v", got, v)
	}
	enc[46] = 1 // reserved
	if got.get(enc) {
		t.Error("a reserved byte was not looked at")
	}
}
