// Package ddptest has an in-memory lower layer for tests of DDP and of what
// lies above it: a pair of ddp.Channels that reorder segments, under the
// control of the test. It owns no goroutine and no clock. It panics when the
// rules of ddp.Channel are broken, memory that changes too early included.
package ddptest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/ddp"
)

// ErrCut is the error of channels after Pipe.Cut.
var ErrCut = errors.New("ddptest: cut")

// Pipe is a pair of channels: what is sent into A comes to the sink of B, and
// the other way round, when Step is called. It is safe for concurrent use, but
// calls to one sink are only made one at a time if Step is.
type Pipe struct {
	A, B *End

	mu  sync.Mutex
	rng *rand.Rand // guarded by mu
	cut bool       // guarded by mu
	// Reorder is how many items may be overtaken by one; 0 keeps the order.
	Reorder int
}

// End is one side of a Pipe. It implements ddp.TrainChannel.
type End struct {
	pipe *Pipe
	peer *End
	// Size is the MULPDU; it may be changed between steps.
	Size int
	// Tap, if not nil, sees each segment that is sent.
	Tap func(seg []byte)

	sink     ddp.Sink
	held     atomic.Int64
	seq      uint64
	queue    []item // on the way to the peer
	acks     []item // delivered, not acknowledged
	ended    bool
	released bool
}

type item struct {
	seq   uint64
	seg   []byte // as it was sent
	body  []byte // the part of it that is referenced
	end   bool
	owner ddp.Owner
}

// intact panics if referenced memory was changed before it was delivered. After
// that a real lower layer might send it again, but only for the receiver to
// drop it.
func (it *item) intact() {
	if !bytes.Equal(it.body, it.seg[len(it.seg)-len(it.body):]) {
		panic("ddptest: the memory of a segment changed before it was delivered")
	}
}

// NewPipe returns a pipe that makes its choices from seed.
func NewPipe(seed uint64, mulpdu int) *Pipe {
	p := &Pipe{rng: rand.New(rand.NewPCG(seed, 0x5eed)), Reorder: 16}
	p.A, p.B = &End{pipe: p, Size: mulpdu}, &End{pipe: p, Size: mulpdu}
	p.A.peer, p.B.peer = p.B, p.A
	return p
}

// Attach gives the end the sink that hears the other end.
func (e *End) Attach(s ddp.Sink) { e.sink = s }

// Hold implements ddp.Holder.
func (e *End) Hold(n int) {
	if e.held.Add(int64(n)) < 0 {
		panic("ddptest: less than nothing is held")
	}
}

// Held returns how much the user of e holds.
func (e *End) Held() int { return int(e.held.Load()) }

// MULPDU implements ddp.Channel.
func (e *End) MULPDU() int { return e.Size }

// Send implements ddp.Channel.
func (e *End) Send(segs []ddp.Segment) (int, error) {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	if !e.open() {
		return 0, ErrCut
	}
	for i := range segs {
		e.put(segs[i].AppendTo(nil), segs[i].Body, segs[i].Owner)
	}
	return len(segs), nil
}

// SendTrain implements ddp.TrainChannel.
func (e *End) SendTrain(t *ddp.Train) error {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	if !e.open() {
		return ErrCut
	}
	if t.Segments() < 2 || t.Segments() > ddp.MaxTrain {
		panic("ddptest: not a batch")
	}
	segs, bodies := Cut(t, 0)
	for i, seg := range segs {
		e.put(seg[ddp.Headroom:], bodies[i], t.Owner)
	}
	return nil
}

// open reports whether anything may be sent.
func (e *End) open() bool { // pipe.mu is held
	switch {
	case e.pipe.cut:
		return false
	case e.ended:
		panic("ddptest: Send after Terminate")
	case e.released:
		panic("ddptest: Send after Release")
	}
	return true
}

// put queues a segment.
func (e *End) put(seg, body []byte, owner ddp.Owner) { // pipe.mu is held
	if len(seg) > e.Size && e.Size >= 64 {
		panic("ddptest: segment exceeds MULPDU")
	}
	if e.Tap != nil {
		e.Tap(seg)
	}
	e.queue = append(e.queue, item{seq: e.seq, seg: seg, body: body, owner: owner})
	e.seq++
}

// Inject sends raw bytes as if the user of e had sent them.
func (e *End) Inject(seg []byte) {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	e.queue = append(e.queue, item{seq: e.seq, seg: seg})
	e.seq++
}

// Terminate implements ddp.Channel.
func (e *End) Terminate() error {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	if e.pipe.cut {
		return ErrCut
	}
	if e.ended {
		panic("ddptest: second Terminate")
	}
	e.ended = true
	e.queue = append(e.queue, item{seq: e.seq, end: true})
	e.seq++
	return nil
}

// Release implements ddp.Channel.
func (e *End) Release() {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	if e.released {
		panic("ddptest: second Release")
	}
	if len(e.acks) > 0 {
		panic("ddptest: Release with segments outstanding")
	}
	e.released = true
}

// Released reports whether Release was called.
func (e *End) Released() bool {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	return e.released
}

// Queued returns how many items wait to be delivered to the peer.
func (e *End) Queued() int {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	return len(e.queue)
}

// Step delivers one item, or several segments that follow one another, or acknowledges
// one segment, at random. It reports false when there is nothing to do.
func (p *Pipe) Step() bool {
	p.mu.Lock()
	ends := [4]*End{p.A, p.B, p.A, p.B}
	var can [4]int
	n := 0
	for i, e := range ends {
		if i < 2 && len(e.queue) > 0 || i >= 2 && len(e.acks) > 0 {
			can[n] = i
			n++
		}
	}
	if n == 0 {
		p.mu.Unlock()
		return false
	}
	i := can[p.rng.IntN(n)]
	e := ends[i]
	if i >= 2 {
		k := p.rng.IntN(len(e.acks))
		it := e.acks[k]
		e.acks = append(e.acks[:k], e.acks[k+1:]...)
		p.mu.Unlock()
		it.owner.Released(nil)
		return true
	}
	e.deliver(p.rng.IntN(maxRun))
	return true
}

// maxRun bounds how many segments Step delivers at once.
const maxRun = 8

// Deliver delivers one item that e sent, acknowledging nothing. It reports
// false if there is none.
func (e *End) Deliver() bool {
	e.pipe.mu.Lock()
	if len(e.queue) == 0 {
		e.pipe.mu.Unlock()
		return false
	}
	e.deliver(0)
	return true
}

// deliver delivers one item, with up to more segments that come next if it is one, and
// unlocks.
func (e *End) deliver(more int) { // pipe.mu is held
	p := e.pipe
	k := p.rng.IntN(min(len(e.queue), p.Reorder+1))
	it := e.queue[k]
	segs := [][]byte{it.seg}
	for n := k; ; n++ {
		if e.queue[n].owner != nil {
			e.acks = append(e.acks, e.queue[n])
		}
		e.queue[n].intact()
		if n == k+more || n+1 == len(e.queue) || it.end || e.queue[n+1].end || e.queue[n+1].seq != it.seq+uint64(len(segs)) {
			break
		}
		segs = append(segs, e.queue[n+1].seg)
	}
	e.queue = append(e.queue[:k], e.queue[k+len(segs):]...)
	sink := e.peer.sink
	p.mu.Unlock()
	switch {
	case it.end:
		sink.End(it.seq)
	case len(segs) > 1:
		sink.Segments(it.seq, segs)
	default:
		sink.Segment(it.seq, it.seg)
	}
}

// Run steps until nothing is left to do and returns the number of steps.
func (p *Pipe) Run() (n int) {
	for p.Step() {
		n++
	}
	return n
}

// Cut loses the lower layer: all that is under way is dropped, and both sinks
// are told.
func (p *Pipe) Cut() {
	p.mu.Lock()
	p.cut = true
	var held []item
	for _, e := range []*End{p.A, p.B} {
		held = append(append(held, e.queue...), e.acks...)
		e.queue, e.acks = nil, nil
	}
	p.mu.Unlock()
	p.A.sink.Lost(ErrCut)
	p.B.sink.Lost(ErrCut)
	for _, it := range held {
		if it.owner != nil {
			it.owner.Released(ErrCut)
		}
	}
}
