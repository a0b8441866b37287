package envelope

import "testing"

// TestOfferEnvelope: what put writes get reads, and nothing else.
func TestOfferEnvelope(t *testing.T) {
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
