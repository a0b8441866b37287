package fuzz

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddptest"
	"github.com/weftstack/weft/rdmap"
)

// Sizes of the model.
const (
	cellSize = 128
	cells    = 256
	guardLen = 64
	rdDepth  = 3
	qDepth   = 24
	counters = 4
)

// iwarp drives two RDMAP streams over a reordering pipe by a byte script and
// compares what happens with a model of memory.
type iwarp struct {
	t     testing.TB
	pipe  *ddptest.Pipe
	sides [2]*iwarpSide
	rng   *rand.Rand
}

// iwarpSide is one stream and the memory its peer may use.
type iwarpSide struct {
	w      *iwarp
	name   string
	peer   *iwarpSide
	table  *ddp.Table
	stream *rdmap.Stream
	end    *ddptest.End
	pool   *ddp.Pool   // not nil: where receives come from
	window *ddp.Region // bound again and again to parts of target

	mem     []byte // guard, target, guard, source, guard, counters, guard
	fence   []byte // what the peer reads and then overwrites, fenced
	fenced  *ddp.Region
	fenceIs []byte
	target  *ddp.Region
	source  *ddp.Region
	count   *ddp.Region
	model   []byte           // of mem
	written []placed         // by the peer, in order, since cells were reused
	wants   []wantMessage    // that the peer has sent, not delivered
	values  [counters]uint64 // of the counters, when all atomics posted are done
	recvs   []postedRecv
	cell    int // next free cell in the peer's target

	posted  []postedOp // not completed
	nextID  uint64
	sent    []rdmap.Completion
	recv    []rdmap.Completion
	err     error
	drained int
}

type placed struct {
	off  int
	data []byte
}

type wantMessage struct {
	data   []byte
	imm    uint64
	isImm  bool
	flags  rdmap.CompletionFlags
	writes int // placed before it is delivered
}

type postedRecv struct {
	id   uint64
	bufs [][]byte
}

type postedOp struct {
	id       uint64
	signaled bool
	kind     rdmap.OpKind
	bufs     [][]byte // memory that may be used again when it is complete
	want     []byte   // what a read or atomic returns
}

func (s *iwarpSide) Sent(c rdmap.Completion)     { s.sent = append(s.sent, c) }
func (s *iwarpSide) Received(c rdmap.Completion) { s.recv = append(s.recv, c) }
func (s *iwarpSide) Drained()                    { s.drained++ }
func (s *iwarpSide) Idle()                       {}
func (s *iwarpSide) Changed(_ rdmap.State, err error) {
	s.err = err
}

func newIWARP(t testing.TB, seed uint64, mulpdu, window int) *iwarp {
	w := &iwarp{t: t, pipe: ddptest.NewPipe(seed, mulpdu), rng: rand.New(rand.NewPCG(seed, 7))}
	w.pipe.Reorder = 40
	ends := [2]*ddptest.End{w.pipe.A, w.pipe.B}
	for i := range w.sides {
		s := &iwarpSide{w: w, name: string(rune('a' + i)), table: ddp.NewTable(), end: ends[i]}
		const target = cells * cellSize
		s.mem = make([]byte, 4*guardLen+2*target+8*counters)
		for k := range s.mem {
			s.mem[k] = byte(w.rng.Uint32())
		}
		domain := &ddp.Domain{}
		region := func(off, n int, acc ddp.Access) *ddp.Region {
			r, err := s.table.Add(s.mem[off:off+n:off+n], 0, acc, domain, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		s.target = region(guardLen, target, ddp.RemoteWrite)
		s.source = region(2*guardLen+target, target, ddp.RemoteRead)
		s.count = region(3*guardLen+2*target, 8*counters, ddp.RemoteAtomic)
		for k := range s.values {
			s.values[k] = binary.NativeEndian.Uint64(s.count.Bytes()[8*k:])
		}
		s.model = bytes.Clone(s.mem)
		s.fence = w.random(600)
		s.fenceIs = bytes.Clone(s.fence)
		s.fenced, _ = s.table.Add(s.fence, 0, ddp.RemoteRead|ddp.RemoteWrite, domain, nil)
		var err error
		if s.window, err = s.table.Reserve(domain); err != nil {
			t.Fatal(err)
		}
		if seed>>i&1 != 0 {
			s.pool = ddp.NewPool(qDepth, 4, func() {})
		}
		s.stream, err = rdmap.NewStream(rdmap.Config{Table: s.table, Domain: domain, SendDepth: qDepth, RecvDepth: qDepth,
			SendSGEs: 4, RecvSGEs: 4, MaxInline: 48, IRD: rdDepth, ORD: rdDepth, Window: window, Observer: s, Shared: s.pool})
		if err != nil {
			t.Fatal(err)
		}
		s.end.Attach(s.stream)
		s.stream.Bind(s.end)
		s.stream.Start(rdDepth)
		w.sides[i] = s
	}
	w.sides[0].peer, w.sides[1].peer = w.sides[1], w.sides[0]
	for _, s := range w.sides {
		for range qDepth {
			s.postRecv()
		}
	}
	return w
}

// split cuts b into up to four parts at random.
func (w *iwarp) split(b []byte) (l [][]byte) {
	for len(l) < 3 && w.rng.IntN(3) == 0 {
		n := w.rng.IntN(len(b) + 1)
		l, b = append(l, b[:n:n]), b[n:]
	}
	return append(l, b)
}

func (w *iwarp) random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(w.rng.Uint32())
	}
	return b
}

const maxMessage = 900

func (s *iwarpSide) postRecv() {
	s.nextID++
	r := postedRecv{s.nextID, s.w.split(make([]byte, maxMessage))}
	fill := func(b *ddp.Buffer) {
		b.ID = r.id
		for _, m := range r.bufs {
			b.SGL = append(b.SGL, ddp.Mem{B: m})
		}
	}
	s.recvs = append(s.recvs, r)
	if s.pool != nil {
		if !s.pool.Reserve(1) {
			s.w.t.Fatalf("%s: the pool is full", s.name)
		}
		fill(s.pool.Next())
		s.pool.Post()
		s.pool.Commit()
		return
	}
	if err := s.stream.ReserveRecv(1); err != nil {
		s.w.t.Fatalf("%s: ReserveRecv: %v", s.name, err)
	}
	fill(s.stream.NextRecv())
	s.stream.PostRecv()
	s.stream.CommitRecv()
}

// receive takes the receive that a completion is of: the oldest or, of a pool,
// any.
func (s *iwarpSide) receive(id uint64) (r postedRecv) {
	for i := range s.recvs {
		if s.recvs[i].id == id {
			r = s.recvs[i]
			s.recvs = slices.Delete(s.recvs, i, i+1)
			return r
		}
		if s.pool == nil {
			break
		}
	}
	s.w.t.Fatalf("%s: receive %d completed out of order", s.name, id)
	return r
}

// post posts work. buf, split at random, is its memory.
func (s *iwarpSide) post(k rdmap.Work, buf, want []byte) {
	for s.stream.Reserve(1) != nil {
		if s.err != nil {
			s.w.t.Fatalf("%s: %v", s.name, s.err)
		}
		s.w.step()
	}
	op := s.stream.NextOp()
	sgl, inline := op.SGL, op.Inline
	op.Work = k
	op.SGL, op.Inline = sgl, inline
	s.nextID++
	op.ID = s.nextID
	if s.w.rng.IntN(3) > 0 {
		op.Flags |= rdmap.FlagSignaled
	}
	p := postedOp{id: op.ID, signaled: op.Flags&rdmap.FlagSignaled != 0, kind: k.Kind, want: want}
	if len(buf) > 0 && len(buf) <= 48 && !k.Kind.Responds() && s.w.rng.IntN(2) == 0 {
		op.Inline = append(op.Inline, buf...)
		clear(buf)
	} else if buf != nil {
		p.bufs = s.w.split(buf)
		for _, m := range p.bufs {
			op.SGL = append(op.SGL, ddp.Mem{B: m})
		}
	}
	s.posted = append(s.posted, p)
	s.stream.Commit()
}

// place returns where n bytes can be written, in cells of the peer that nothing
// else writes: where writes overlap the result is anybody's guess.
func (s *iwarpSide) place(n int) int {
	need := (n + cellSize - 1) / cellSize
	if s.cell+need > cells {
		s.w.quiesce()
		for _, x := range s.w.sides {
			x.cell, x.written = 0, nil
		}
	}
	off := s.cell*cellSize + s.w.rng.IntN(need*cellSize-n+1)
	s.cell += need
	return off
}

// write posts a write of n bytes.
func (s *iwarpSide) write(n int, flags rdmap.OpFlags, imm bool) {
	off := s.place(n)
	data := s.w.random(n)
	p := s.peer
	copy(p.model[guardLen+off:], data)
	p.written = append(p.written, placed{off, bytes.Clone(data)})
	k := rdmap.Work{Kind: rdmap.OpWrite, Flags: flags, STag: p.target.STag(), TO: uint64(off)}
	if imm {
		k.Kind, k.Imm = rdmap.OpWriteImm, s.w.rng.Uint64()
		s.wantMessage(wantMessage{imm: k.Imm, isImm: true, flags: rdmap.CompletionImm})
	}
	s.post(k, data, nil)
}

// openWindow binds a window, which the peer writes n bytes through and then
// invalidates.
func (s *iwarpSide) openWindow(n int) {
	p := s.peer
	off := p.place(n)
	for s.stream.Reserve(1) != nil {
		s.w.step()
	}
	op := s.stream.NextOp()
	sgl, inline := op.SGL, op.Inline
	mem := s.target.Bytes()[off : off+n]
	s.target.Pin()
	s.window.Pin()
	s.nextID++
	op.Work = rdmap.Work{ID: s.nextID, Kind: rdmap.OpBind, Flags: rdmap.FlagSignaled, TO: 1 << 33, Access: ddp.RemoteWrite,
		SGL: append(sgl, ddp.Mem{B: mem, Region: s.target}, ddp.Mem{Region: s.window}), Inline: inline}
	s.posted = append(s.posted, postedOp{id: op.ID, signaled: true, kind: op.Kind})
	s.stream.Commit()
	for s.window.Revoked() {
		if !s.w.step() {
			s.w.t.Fatalf("%s: the window is not bound", s.name)
		}
	}
	data := s.w.random(n)
	copy(s.model[guardLen+off:], data)
	s.written = append(s.written, placed{off, bytes.Clone(data)})
	p.post(rdmap.Work{Kind: rdmap.OpWrite, STag: s.window.STag(), TO: 1 << 33}, data, nil)
	p.wantMessage(wantMessage{flags: rdmap.CompletionInvalidate})
	p.post(rdmap.Work{Kind: rdmap.OpSendInvalidate, Invalidate: s.window.STag()}, nil, nil)
	for !s.window.Revoked() {
		if !s.w.step() {
			s.w.t.Fatalf("%s: the window was not invalidated", s.name)
		}
	}
}

// wantMessage notes what the peer will receive.
func (s *iwarpSide) wantMessage(m wantMessage) {
	for len(s.peer.wants) >= qDepth-1 {
		s.w.step()
	}
	m.writes = len(s.peer.written)
	s.peer.wants = append(s.peer.wants, m)
}

func (s *iwarpSide) send(n int, flags rdmap.OpFlags) {
	data := s.w.random(n)
	m := wantMessage{data: bytes.Clone(data)}
	if flags&rdmap.FlagSolicited != 0 {
		m.flags = rdmap.CompletionSolicited
	}
	s.wantMessage(m)
	s.post(rdmap.Work{Kind: rdmap.OpSend, Flags: flags}, data, nil)
}

func (s *iwarpSide) imm(flags rdmap.OpFlags) {
	m := wantMessage{imm: s.w.rng.Uint64(), isImm: true, flags: rdmap.CompletionImm}
	if flags&rdmap.FlagSolicited != 0 {
		m.flags |= rdmap.CompletionSolicited
	}
	s.wantMessage(m)
	s.post(rdmap.Work{Kind: rdmap.OpImm, Flags: flags, Imm: m.imm}, nil, nil)
}

func (s *iwarpSide) read(n int, flags rdmap.OpFlags) {
	src := s.peer.source
	off := s.w.rng.IntN(len(src.Bytes()) - n + 1)
	s.post(rdmap.Work{Kind: rdmap.OpRead, Flags: flags, STag: src.STag(), TO: uint64(off)},
		s.w.random(n), src.Bytes()[off:off+n])
}

// exchange reads memory and then overwrites it: fenced, so that the read
// returns what was there before (RFC 5040, Section 5.5, rule 12).
func (s *iwarpSide) exchange() {
	p := s.peer
	n := len(p.fence)
	s.post(rdmap.Work{Kind: rdmap.OpRead, STag: p.fenced.STag()}, make([]byte, n), p.fenceIs)
	p.fenceIs = s.w.random(n)
	s.post(rdmap.Work{Kind: rdmap.OpWrite, Flags: rdmap.FlagFence, STag: p.fenced.STag()}, bytes.Clone(p.fenceIs), nil)
}

func (s *iwarpSide) atomic(swap bool) {
	p := s.peer
	i := s.w.rng.IntN(counters)
	k := rdmap.Work{Kind: rdmap.OpFetchAdd, STag: p.count.STag(), TO: uint64(8 * i), Data: s.w.rng.Uint64()}
	old := p.values[i]
	if swap {
		k.Kind, k.Mask, k.CompareMask, k.Compare = rdmap.OpCompareSwap, 1<<64-1, 1<<64-1, old
		if s.w.rng.IntN(2) == 0 {
			k.Compare++
		} else {
			p.values[i] = k.Data
		}
	} else {
		p.values[i] += k.Data
	}
	s.post(k, make([]byte, 8), binary.NativeEndian.AppendUint64(nil, old))
}

// step lets the pipe do one thing and checks what came of it.
func (w *iwarp) step() bool {
	ok := w.pipe.Step()
	for _, s := range w.sides {
		s.check()
	}
	return ok
}

// quiesce runs until nothing is under way.
func (w *iwarp) quiesce() {
	for w.step() {
	}
}

// check compares what completed with what should.
func (s *iwarpSide) check() {
	t := s.w.t
	if s.err != nil {
		t.Fatalf("%s: stream ended: %v", s.name, s.err)
	}
	for _, c := range s.sent {
		// Completions come in order, and stand for the unsignaled before them.
		for {
			if len(s.posted) == 0 {
				t.Fatalf("%s: completion %d of nothing", s.name, c.ID)
			}
			p := s.posted[0]
			s.posted = s.posted[1:]
			if got := bytes.Join(p.bufs, nil); p.want != nil && !bytes.Equal(got, p.want) {
				t.Fatalf("%s: %v %d returned %d wrong bytes", s.name, p.kind, p.id, len(got))
			}
			for _, b := range p.bufs {
				for i := range b {
					b[i] = 0xEE // it is ours again
				}
			}
			if p.id == c.ID {
				if c.Status != rdmap.StatusSuccess || !p.signaled {
					t.Fatalf("%s: %v %d: %v, signaled %v", s.name, p.kind, p.id, c.Status, p.signaled)
				}
				break
			}
			if p.signaled {
				t.Fatalf("%s: completion %d before %d", s.name, c.ID, p.id)
			}
		}
	}
	s.sent = s.sent[:0]
	for _, c := range s.recv {
		r := s.receive(c.ID)
		if len(s.wants) == 0 {
			t.Fatalf("%s: message nobody sent", s.name)
		}
		m := s.wants[0]
		s.wants = s.wants[1:]
		if c.Status != rdmap.StatusSuccess || c.Flags != m.flags || int(c.Len) != len(m.data) ||
			c.Imm != m.imm && m.isImm || !bytes.Equal(bytes.Join(r.bufs, nil)[:len(m.data)], m.data) {
			t.Fatalf("%s: received %+v, want %d bytes, flags %v", s.name, c, len(m.data), m.flags)
		}
		// RFC 5040, Section 5.5, rule 10: the writes before it are there.
		for _, p := range s.written[:min(m.writes, len(s.written))] {
			if !bytes.Equal(s.target.Bytes()[p.off:p.off+len(p.data)], p.data) {
				t.Fatalf("%s: a message was delivered before a write at %d", s.name, p.off)
			}
		}
	}
	n := len(s.recv)
	s.recv = s.recv[:0]
	for range n {
		s.postRecv()
	}
}

// play runs a script.
func (w *iwarp) play(script []byte) {
	for i := 0; i+1 < len(script); i += 2 {
		op, arg := script[i], int(script[i+1])
		s := w.sides[op&1]
		var flags rdmap.OpFlags
		if op&2 != 0 {
			flags |= rdmap.FlagFence
		}
		if op&4 != 0 {
			flags |= rdmap.FlagSolicited
		}
		switch op >> 3 % 12 {
		case 11:
			s.openWindow(1 + arg*3)
		case 10:
			s.exchange()
		case 0, 1:
			s.write(1+arg*29, flags&^rdmap.FlagSolicited, false)
		case 2:
			s.write(1+arg, flags&^rdmap.FlagSolicited, true)
		case 3, 4:
			s.send(min(arg*5, maxMessage), flags)
		case 5:
			s.imm(flags)
		case 6, 7:
			s.read(arg*31, flags)
		case 8:
			s.atomic(arg&1 != 0)
		case 9:
			for range arg {
				w.step()
			}
		}
		for _, s := range w.sides {
			s.check()
		}
	}
}

// finish closes both streams and compares the memory.
func (w *iwarp) finish() {
	w.quiesce()
	for _, s := range w.sides {
		if len(s.wants) > 0 {
			w.t.Fatalf("%s: %d messages missing", s.name, len(s.wants))
		}
		for _, p := range s.posted {
			if p.signaled {
				w.t.Fatalf("%s: %v %d did not complete", s.name, p.kind, p.id)
			}
		}
		for i, v := range s.values {
			binary.NativeEndian.PutUint64(s.model[len(s.model)-guardLen-8*(counters-i):], v)
		}
		if !bytes.Equal(s.mem, s.model) || !bytes.Equal(s.fence, s.fenceIs) {
			w.t.Fatalf("%s: memory differs from the model", s.name)
		}
	}
	w.sides[w.rng.IntN(2)].stream.Close()
	w.pipe.Run()
	for _, s := range w.sides {
		left := len(s.recv)
		if s.pool != nil { // what no message took stays there
			left, _, _ = s.pool.Len()
		}
		if st, _ := s.stream.State(); st != rdmap.StateError || s.drained != 1 || !s.end.Released() || left != qDepth {
			w.t.Fatalf("%s: state %v, drained %d, released %v, flushed %d", s.name, st, s.drained, s.end.Released(), len(s.recv))
		}
	}
}
