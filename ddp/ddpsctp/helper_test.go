package ddpsctp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddptest"
	"github.com/weftstack/weft/sctp"
)

// wire connects two associations in memory. Messages are delivered when the
// test says so, in any order, and acknowledged then.
type wire struct {
	t    *testing.T
	a, b *testLink
	rng  *rand.Rand
}

type testLink struct {
	w       *wire
	peer    *testLink
	assoc   *Association
	queue   []message
	log     []string // control messages sent
	aborted string
	max     int
	held    int
	tag     uint32
	reqs    []*Request
}

type message struct {
	sid   uint16
	ppid  uint32
	data  []byte
	owner ddp.Owner
}

func newWire(t *testing.T, seed uint64, streams int) *wire {
	w := &wire{t: t, rng: rand.New(rand.NewPCG(seed, 3))}
	w.a, w.b = &testLink{w: w, max: 1444, tag: 0x80000000}, &testLink{w: w, max: 1444, tag: 0x7fffffff}
	w.a.peer, w.b.peer = w.b, w.a
	w.a.assoc, w.b.assoc = NewAssociation(w.a, streams, new(Acceptor)), NewAssociation(w.b, streams, new(Acceptor))
	for _, l := range []*testLink{w.a, w.b} {
		l.assoc.acc.onRequest = func(r *Request) { l.reqs = append(l.reqs, r) }
	}
	return w
}

func (l *testLink) Control(sid uint16, msg []byte, owner ddp.Owner) error {
	l.queue = append(l.queue, message{sid, PPIDControl, bytes.Clone(msg), owner})
	c, _ := ParseControl(msg[2:])
	l.log = append(l.log, fmt.Sprintf("%d:%d:%v", sid, binary.BigEndian.Uint16(msg), c.Function))
	return nil
}

func (l *testLink) Segments(sid uint16, segs []ddp.Segment) (int, error) {
	for i := range segs {
		data := append(bytes.Clone(segs[i].Frame()), segs[i].Body...)
		l.queue = append(l.queue, message{sid, PPIDSegment, data, segs[i].Owner})
	}
	return len(segs), nil
}

func (l *testLink) SendSegmented(sid, ssn uint16, t *ddp.Train) error {
	segs, _ := ddptest.Cut(t, ssn)
	for _, data := range segs {
		l.queue = append(l.queue, message{sid, PPIDSegment, data, t.Owner})
	}
	return nil
}

func (l *testLink) Hold(_ uint16, n int) { l.held += n }

func (l *testLink) MaxPayload() int     { return l.max }
func (l *testLink) Abort(reason string) { l.aborted = reason }

func (l *testLink) Admit()                        {}
func (l *testLink) ExtendProbation(time.Duration) {}

func (l *testLink) Tags() (local, peer uint32) { return l.tag, l.peer.tag }

// step delivers one message, or several at once, of those near the head of a random queue.
func (w *wire) step() bool {
	l := w.a
	if len(w.b.queue) > 0 && (len(w.a.queue) == 0 || w.rng.IntN(2) == 0) {
		l = w.b
	}
	return l.deliver(w.rng.IntN(8), 1+w.rng.IntN(4)*w.rng.IntN(2))
}

// deliver delivers n messages at once, the i-th in the queue first, or the last.
func (l *testLink) deliver(i, n int) bool {
	if len(l.queue) == 0 {
		return false
	}
	i = min(i, len(l.queue)-1)
	n = min(n, len(l.queue)-i)
	batch := slices.Clone(l.queue[i : i+n])
	l.queue = slices.Delete(l.queue, i, i+n)
	for k, m := range batch {
		l.peer.assoc.Receive(&sctp.Piece{Stream: m.sid, PPID: m.ppid, Data: m.data, Begin: true, End: true, More: k < n-1})
	}
	for _, m := range batch {
		if m.owner != nil {
			m.owner.Released(nil)
		}
	}
	return true
}

func (w *wire) run() {
	for w.step() {
	}
}

// wantLog checks the control messages a side has sent.
func (l *testLink) wantLog(want ...string) {
	l.w.t.Helper()
	if !slices.Equal(l.log, want) {
		l.w.t.Errorf("control messages = %q, want %q", l.log, want)
	}
}

// peerStream is a ddp.Sink that notes what it gets in order.
type peerStream struct {
	order   map[uint64]string
	got     []string
	next    uint64
	lost    error
	answer  *Answer
	session *Session
	fail    error
	runs    []int // lengths of what came by Segments
}

func (p *peerStream) put(seq uint64, s string) error {
	if p.fail != nil {
		return p.fail
	}
	if p.order == nil {
		p.order = make(map[uint64]string)
	}
	if _, dup := p.order[seq]; dup || seq < p.next {
		return ddp.ErrSequence
	}
	p.order[seq] = s
	for {
		s, ok := p.order[p.next]
		if !ok {
			return nil
		}
		p.got = append(p.got, s)
		delete(p.order, p.next)
		p.next++
	}
}

func (p *peerStream) Segment(seq uint64, seg []byte) error { return p.put(seq, string(seg)) }
func (p *peerStream) Segments(first uint64, segs [][]byte) error {
	p.runs = append(p.runs, len(segs))
	for i, seg := range segs {
		if err := p.Segment(first+uint64(i), seg); err != nil {
			return err
		}
	}
	return nil
}
func (p *peerStream) Skip(seq uint64) error { return p.put(seq, "skip") }
func (p *peerStream) End(seq uint64) error  { return p.put(seq, "end") }
func (p *peerStream) Lost(err error)        { p.lost = err }
func (p *peerStream) Answered(a Answer)     { p.answer = &a }
func (p *peerStream) bind(s *Session) error { p.session = s; return nil }

// send sends one segment with the given text as payload.
func (p *peerStream) send(t *testing.T, text string) {
	t.Helper()
	m := ddp.Message{SGL: []ddp.Mem{{B: []byte(text)}}, Len: uint32(len(text)), Owner: &noOwner{}, Credit: &noOwner{}}
	segs := make([]ddp.Segment, 1)
	m.Next(p.session.MULPDU(), &segs[0])
	if _, err := p.session.Send(segs); err != nil {
		t.Fatal(err)
	}
}

// text takes the headers off.
func text(got []string) []string {
	var r []string
	for _, s := range got {
		if len(s) > ddp.UntaggedHeaderLen {
			s = s[ddp.UntaggedHeaderLen:]
		}
		r = append(r, s)
	}
	return r
}

// open opens a session from a to b.
func open(t *testing.T, w *wire, e *Enhanced) (pa, pb *peerStream) {
	t.Helper()
	pa, pb = &peerStream{}, &peerStream{}
	if _, err := w.a.assoc.Initiate(pa, pa.bind, e, []byte("hi")); err != nil {
		t.Fatal(err)
	}
	w.a.deliver(0, 1)
	if len(w.b.reqs) == 0 {
		t.Fatal("no request")
	}
	r := w.b.reqs[len(w.b.reqs)-1]
	if string(r.Private) != "hi" {
		t.Errorf("private data = %q", r.Private)
	}
	if err := r.Accept(pb, pb.bind, Enhanced{IRD: 3, ORD: 4}, []byte("ok")); err != nil {
		t.Fatal(err)
	}
	return pa, pb
}
