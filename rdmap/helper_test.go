package rdmap

import (
	"slices"
	"testing"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddptest"
)

// side is one end of a pair: a stream and what its observer saw.
type side struct {
	t       *testing.T
	name    string
	table   *ddp.Table
	domain  *ddp.Domain
	s       *Stream
	end     *ddptest.End
	sent    []Completion
	recv    []Completion
	states  []State
	err     error
	drained int
	idle    int
}

func (o *side) Sent(c Completion)     { o.sent = append(o.sent, c) }
func (o *side) Received(c Completion) { o.recv = append(o.recv, c) }
func (o *side) Changed(st State, err error) {
	o.states = append(o.states, st)
	o.err = err
}
func (o *side) Drained() { o.drained++ }
func (o *side) Idle()    { o.idle++ }

// pair is two connected streams over a reordering pipe.
type pair struct {
	t    *testing.T
	pipe *ddptest.Pipe
	a, b *side
}

type pairConfig struct {
	seed     uint64
	mulpdu   int
	depth    int
	ird, ord int
	window   int
}

func newPair(t *testing.T, c pairConfig) *pair {
	t.Helper()
	if c.mulpdu == 0 {
		c.mulpdu = 1426
	}
	if c.depth == 0 {
		c.depth = 16
	}
	if c.ird == 0 {
		c.ird, c.ord = 4, 4
	}
	p := &pair{t: t, pipe: ddptest.NewPipe(c.seed, c.mulpdu)}
	p.a = newSide(t, "a", p.pipe.A, c)
	p.b = newSide(t, "b", p.pipe.B, c)
	return p
}

func newSide(t *testing.T, name string, end *ddptest.End, c pairConfig) *side {
	t.Helper()
	o := &side{t: t, name: name, table: ddp.NewTable(), domain: &ddp.Domain{}, end: end}
	s, err := NewStream(Config{Table: o.table, Domain: o.domain, SendDepth: c.depth, RecvDepth: c.depth,
		SendSGEs: 4, RecvSGEs: 4, MaxInline: 64, IRD: c.ird, ORD: c.ord, Window: c.window, Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	o.s = s
	end.Attach(s)
	ch := ddp.Channel(end)
	if c.seed%2 == 1 {
		ch = ddptest.Plain{Channel: end}
	}
	if err := s.Bind(ch); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(c.ord); err != nil {
		t.Fatal(err)
	}
	return o
}

// region registers n bytes, filled with a pattern.
func (o *side) region(n int, access ddp.Access) *ddp.Region {
	o.t.Helper()
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + len(o.name))
	}
	r, err := o.table.Add(b, 0, access, o.domain, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	return r
}

// post posts one operation.
func (o *side) post(w Work, bufs ...[]byte) {
	o.t.Helper()
	if err := o.s.Reserve(1); err != nil {
		o.t.Fatalf("%s: Reserve: %v", o.name, err)
	}
	fill(o.s.NextOp(), w, bufs...)
	o.s.Commit()
}

// fill fills in an operation.
func fill(op *Op, w Work, bufs ...[]byte) {
	sgl, inline := op.SGL, op.Inline
	op.Work = w
	op.SGL, op.Inline = sgl, append(inline, w.Inline...)
	for _, b := range bufs {
		op.SGL = append(op.SGL, ddp.Mem{B: b})
	}
}

// postRecv posts one receive.
func (o *side) postRecv(id uint64, bufs ...[]byte) {
	o.t.Helper()
	if err := o.s.ReserveRecv(1); err != nil {
		o.t.Fatalf("%s: ReserveRecv: %v", o.name, err)
	}
	b := o.s.NextRecv()
	b.ID = id
	for _, m := range bufs {
		b.SGL = append(b.SGL, ddp.Mem{B: m})
	}
	o.s.PostRecv()
	o.s.CommitRecv()
}

// wantSent takes the next send completion.
func (o *side) wantSent(id uint64, st Status) Completion {
	o.t.Helper()
	if len(o.sent) == 0 {
		o.t.Fatalf("%s: no send completion, want %d %v", o.name, id, st)
	}
	c := o.sent[0]
	o.sent = o.sent[1:]
	if c.ID != id || c.Status != st {
		o.t.Fatalf("%s: send completion = %d %v, want %d %v", o.name, c.ID, c.Status, id, st)
	}
	return c
}

// wantRecv takes the next receive completion.
func (o *side) wantRecv(id uint64, st Status) Completion {
	o.t.Helper()
	if len(o.recv) == 0 {
		o.t.Fatalf("%s: no receive completion, want %d %v", o.name, id, st)
	}
	c := o.recv[0]
	o.recv = o.recv[1:]
	if c.ID != id || c.Status != st {
		o.t.Fatalf("%s: receive completion = %d %v, want %d %v", o.name, c.ID, c.Status, id, st)
	}
	return c
}

// wantNothing fails on completions nobody expected.
func (o *side) wantNothing() {
	o.t.Helper()
	if len(o.sent) > 0 || len(o.recv) > 0 {
		o.t.Fatalf("%s: unexpected completions: sent %v, received %v", o.name, o.sent, o.recv)
	}
}

func (o *side) wantStates(want ...State) {
	o.t.Helper()
	if !slices.Equal(o.states, want) {
		o.t.Errorf("%s: states = %v, want %v", o.name, o.states, want)
	}
}

// pattern returns n bytes that depend on salt.
func pattern(n int, salt byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*13+i>>7) ^ salt
	}
	return b
}
