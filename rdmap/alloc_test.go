package rdmap

import (
	"testing"

	"github.com/weftstack/weft/ddp"
)

// direct is a channel without an allocation of its own: what is sent waits in
// a fixed buffer until the test moves it.
type direct struct {
	peer   *Stream
	seq    uint64
	n      int
	bufs   [64][]byte
	owners [64]ddp.Owner
}

func (d *direct) MULPDU() int { return 1426 }
func (d *direct) Send(segs []ddp.Segment) (int, error) {
	for i := range segs {
		d.bufs[d.n] = segs[i].AppendTo(d.bufs[d.n][:0])
		d.owners[d.n] = segs[i].Owner
		d.n++
	}
	return len(segs), nil
}
func (d *direct) Terminate() error { return nil }
func (d *direct) Release()         {}

// move delivers and acknowledges everything, the last first.
func (d *direct) move() bool {
	n := d.n
	if n == 0 {
		return false
	}
	for i := n - 1; i >= 0; i-- {
		d.peer.Segment(d.seq+uint64(i), d.bufs[i])
	}
	d.seq += uint64(n)
	d.n = 0
	for i := range n {
		d.owners[i].Released(nil)
	}
	return true
}

// tally counts completions.
type tally struct{ sent, received, failed int }

func (c *tally) Sent(x Completion) {
	c.sent++
	if x.Status != StatusSuccess {
		c.failed++
	}
}
func (c *tally) Received(x Completion) {
	c.received++
	if x.Status != StatusSuccess {
		c.failed++
	}
}
func (c *tally) Changed(State, error) {}
func (c *tally) Drained()             {}
func (c *tally) Idle()                {}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	var ch [2]direct
	var s [2]*Stream
	var c tally
	table, domain := ddp.NewTable(), &ddp.Domain{}
	for i := range s {
		var err error
		s[i], err = NewStream(Config{Table: table, Domain: domain, SendDepth: 8, RecvDepth: 8, SendSGEs: 2, RecvSGEs: 2,
			MaxInline: 32, IRD: 4, ORD: 4, Window: 64, Observer: &c})
		if err != nil {
			t.Fatal(err)
		}
		s[i].Bind(&ch[i])
		s[i].Start(4)
	}
	ch[0].peer, ch[1].peer = s[1], s[0]
	for i := range ch {
		for k := range ch[i].bufs {
			ch[i].bufs[k] = make([]byte, 0, 1500)
		}
	}
	mem, local := make([]byte, 8192), make([]byte, 8192)
	region, err := table.Add(mem, 0, ddp.RemoteRead|ddp.RemoteWrite|ddp.RemoteAtomic, domain, nil)
	if err != nil {
		t.Fatal(err)
	}
	kinds := []OpKind{OpWrite, OpSend, OpRead, OpFetchAdd, OpWriteImm, OpImm}
	run := func() {
		if err := s[1].ReserveRecv(3); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			b := s[1].NextRecv()
			b.SGL = append(b.SGL, ddp.Mem{B: local[:100]})
			s[1].PostRecv()
		}
		s[1].CommitRecv()
		if err := s[0].Reserve(len(kinds)); err != nil {
			t.Fatal(err)
		}
		for _, k := range kinds {
			op := s[0].NextOp()
			op.Kind, op.Flags, op.STag = k, FlagSignaled, region.STag()
			switch k {
			case OpWrite, OpRead:
				op.SGL = append(op.SGL, ddp.Mem{B: local[:3000]}, ddp.Mem{B: local[3000:]})
			case OpSend:
				op.SGL = append(op.SGL, ddp.Mem{B: local[:99]})
			case OpFetchAdd:
				op.SGL = append(op.SGL, ddp.Mem{B: local[:8]})
			case OpWriteImm:
				op.Inline = append(op.Inline, "inline"...)
			}
		}
		s[0].Commit()
		for ch[0].move() || ch[1].move() {
		}
	}
	run()
	// Pools may be emptied by a collection, and are under the race detector.
	if n := testing.AllocsPerRun(200, run); n >= 2 {
		t.Errorf("%v allocations for %d operations", n, len(kinds))
	}
	if c.failed > 0 || c.sent != 202*len(kinds) || c.received != 202*3 {
		t.Errorf("completions %+v", c)
	}
}
