package p2p

import (
	"testing"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// holder is a link that keeps the packed copies that it is given.
type holder struct {
	sink
	copies []transport.Owner
	bytes  int
	kinds  []envelope.Kind
}

func (l *holder) Send(_ uint16, hdr, body []byte, own transport.Owner) error {
	var v envelope.Header
	if v.Decode(hdr) {
		l.kinds = append(l.kinds, v.Kind)
	}
	if own != nil {
		l.copies = append(l.copies, own)
		l.bytes += len(body)
	}
	return nil
}

// Packed copies of eager messages belong to the link, so that the sends are done: what a link that
// transmits nothing holds of them is bounded by the credit of the peer. Later messages are announced.
func TestPackedCopiesAreBounded(t *testing.T) {
	c, p := newTestEngine(t)
	h := c.Engine.DefaultHints()
	h.Eager = 32 << 10
	c.SetHints(h)
	l := &holder{}
	p.Link = l
	const credit, block = 256 << 10, 40
	p.Credit.Store(credit)
	x, want := vector(t, 4*maxPrompt/block, block)
	var late []*Request
	for range 3 * credit / len(want) {
		r := GetRequest(c.Engine)
		if err := c.BeginSendItems(r, SendStandard, false, &x, 1, 0); err != nil {
			t.Fatal(err)
		}
		if r.Finished.Load() {
			r.Free()
		} else {
			late = append(late, r)
		}
	}
	most := credit / int(cost(len(want)))
	if len(l.copies) != most || l.bytes != most*len(want) {
		t.Errorf("the link holds %d copies of %d bytes in all, want %d of %d", len(l.copies), l.bytes, most, most*len(want))
	}
	for i, k := range l.kinds {
		if announced := i >= most; (k == envelope.RTS) != announced {
			t.Errorf("message %d is of kind %v", i, k)
		}
	}
	if len(late) != len(l.kinds)-most {
		t.Errorf("%d sends are not done, %d were announced", len(late), len(l.kinds)-most)
	}
	for _, own := range l.copies {
		if _, ok := own.(*bufpool.Buffer); !ok {
			t.Fatalf("the owner of a copy is %T, which refers to the request", own)
		}
		own.Released(nil)
	}
	p.Credit.Store(credit)
	for _, r := range late {
		r.Fail(nil)
	}
}
