package fuzz

import (
	"bytes"
	"testing"

	"github.com/weftstack/weft/sctp/datachannel/dcep"
)

// FuzzDCEP parses messages of the Data Channel Establishment Protocol: what is accepted encodes to the
// same bytes, but for the parameter of reliable channels.
func FuzzDCEP(f *testing.F) {
	f.Add(dcep.AppendAck(nil))
	for _, o := range []dcep.Open{
		{}, {Type: dcep.RetransmitLimited, Reliability: 3, Label: []byte("label")},
		{Type: dcep.LifetimeLimited | dcep.Unordered, Reliability: 1 << 31, Priority: 256, Protocol: []byte("protocol")},
	} {
		b, err := dcep.AppendOpen(nil, &o)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, err := dcep.TypeOf(b)
		if err != nil {
			return
		}
		if kind == dcep.TypeAck {
			if !bytes.HasPrefix(b, dcep.AppendAck(nil)) { // what follows is ignored
				t.Fatalf("% x is taken for an acknowledgement", b)
			}
			return
		}
		var o dcep.Open
		if dcep.ParseOpen(b, &o) != nil {
			return
		}
		w, err := dcep.AppendOpen(nil, &o)
		want := bytes.Clone(b)
		if o.Type.Reliability() == dcep.Reliable {
			clear(want[4:8])
		}
		if err != nil || !bytes.Equal(w, want) {
			t.Fatalf("% x became % x, %v", b, w, err)
		}
	})
}
