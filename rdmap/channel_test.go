package rdmap

import (
	"errors"
	"testing"

	"github.com/weftstack/weft/ddp"
)

// openChannel is a ddp.Channel that remembers what it got.
type openChannel struct {
	queues []uint32 // of untagged segments
	sends  int      // calls of Send
}

func (c *openChannel) MULPDU() int { return 100 }
func (c *openChannel) Send(segs []ddp.Segment) (int, error) {
	c.sends++
	for i := range segs {
		if h, _, _ := ddp.ParseHeader(segs[i].AppendTo(nil)); !h.Tagged {
			c.queues = append(c.queues, h.QN)
		}
		segs[i].Owner.Released(nil)
	}
	return len(segs), nil
}
func (c *openChannel) Terminate() error { return nil }
func (c *openChannel) Release()         {}

// onChannel makes a stream on an openChannel.
func onChannel(t *testing.T) (*side, *openChannel) {
	t.Helper()
	ch := new(openChannel)
	o := &side{t: t, name: "a", table: ddp.NewTable(), domain: &ddp.Domain{}}
	s, err := NewStream(Config{Table: o.table, Domain: o.domain, SendDepth: 16, RecvDepth: 16,
		SendSGEs: 4, RecvSGEs: 4, MaxInline: 64, IRD: 4, ORD: 4, Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Bind(ch), s.Start(4)); err != nil {
		t.Fatal(err)
	}
	o.s = s
	return o, ch
}

// RFC 5043, Section 11.2: untagged messages are not delayed for others to join
// them: each goes to the lower layer before the post returns.
func TestUntaggedMessagesAreNotHeldBack(t *testing.T) {
	o, ch := onChannel(t)
	for i := range 10 {
		o.post(Work{Kind: OpSend}, make([]byte, 1+50*i))
		if ch.sends != i+1 {
			t.Errorf("a send of %d bytes waits for more", 1+50*i)
		}
	}
}

// RFC 5043, Section 11.3: a stream whose association has gone sends no Terminate
// message, other ends do.
func TestLossSendsNoTerminate(t *testing.T) {
	o, ch := onChannel(t)
	o.s.Lost(errors.New("gone"))
	if len(ch.queues) != 0 || o.drained != 1 {
		t.Errorf("lost: queues %v, drained %d times", ch.queues, o.drained)
	}
	o, ch = onChannel(t)
	o.s.Fail(FaultInsufficientIRD)
	if len(ch.queues) != 1 || ch.queues[0] != QueueTerminate {
		t.Errorf("failed: queues %v, want that of Terminate messages", ch.queues)
	}
}
