package rdmap

import (
	"errors"
	"slices"
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
	return sideOn(t, ch, 0), ch
}

// sideOn makes a stream on a channel.
func sideOn(t *testing.T, ch ddp.Channel, window int) *side {
	t.Helper()
	o := &side{t: t, name: "a", table: ddp.NewTable(), domain: &ddp.Domain{}}
	s, err := NewStream(Config{Table: o.table, Domain: o.domain, SendDepth: 16, RecvDepth: 16,
		SendSGEs: 4, RecvSGEs: 4, MaxInline: 64, IRD: 4, ORD: 4, Window: window, Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Bind(ch), s.Start(4)); err != nil {
		t.Fatal(err)
	}
	o.s = s
	return o
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

// batchChannel is an openChannel that keeps batches until they are acknowledged.
type batchChannel struct {
	openChannel
	batches []ddp.Train
	err     error
}

func (c *batchChannel) SendTrain(t *ddp.Train) error {
	if c.err != nil {
		return c.err
	}
	c.batches = append(c.batches, *t)
	return nil
}

// ack acknowledges the oldest n batches.
func (c *batchChannel) ack(n int) {
	done := c.batches[:n]
	c.batches = c.batches[n:]
	for _, t := range done {
		ddp.ReleaseN(t.Owner, t.Segments(), nil)
	}
}

// A message goes as batches, as large as the window allows. The last segment of one that
// fills it, and that of the message, are to be acknowledged at once.
func TestBatchesFitTheWindow(t *testing.T) {
	const window, payload = 64, 100 - ddp.TaggedHeaderLen
	ch := new(batchChannel)
	o := sideOn(t, ch, window)
	// 150 segments of one piece of memory, one of two pieces, and 9 of the second.
	mem := make([]byte, 160*payload-1)
	o.post(Work{Kind: OpWrite, ID: 1, Flags: FlagSignaled}, mem[:150*payload+10], mem[150*payload+10:])
	under := func(segments ...int) { // urgent ones negative
		t.Helper()
		var got []int
		for _, tr := range ch.batches {
			n := tr.Segments()
			if tr.Urgent {
				n = -n
			}
			got = append(got, n)
		}
		if !slices.Equal(got, segments) {
			t.Fatalf("batches of %d segments under way, want %d", got, segments)
		}
	}
	const quarter = window / 4
	under(quarter, quarter, quarter, -quarter)
	ch.ack(1) // too little to go on
	under(quarter, quarter, -quarter)
	ch.ack(1)
	under(quarter, -quarter, quarter, -quarter)
	ch.sends = 0
	ch.ack(4)
	under(quarter, -quarter, quarter, 150-9*quarter, -9) // two, as half was free, and what is left
	if !ch.batches[4].Header.Last || ch.sends != 1 {
		t.Errorf("%d sends around one segment that is not contiguous; the last batch is the last: %v", ch.sends, ch.batches[4].Header.Last)
	}
	ch.ack(3)
	ch.ack(1)
	if len(o.sent) != 0 {
		t.Error("the write is complete before all of it is acknowledged")
	}
	ch.ack(1)
	o.wantSent(1, StatusSuccess)

	ch.err = errors.New("no more")
	o.post(Work{Kind: OpWrite, ID: 2, Flags: FlagSignaled}, mem)
	if o.s.inflight.Load() != 0 || len(o.sent) != 1 || o.sent[0].Status == StatusSuccess || o.drained != 1 {
		t.Errorf("after an error: %d segments outstanding, completions %+v, drained %d times", o.s.inflight.Load(), o.sent, o.drained)
	}
}
