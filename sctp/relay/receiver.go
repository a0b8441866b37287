package relay

import (
	"log/slog"

	"github.com/weftstack/weft/internal/fifo"
	"github.com/weftstack/weft/sctp/relay/frame"
)

// Fragment is a part of a message, as Config.OnFragment gets it. Fragments of the messages of a flow come in
// order and contiguous, but unordered messages of one fragment may come between.
type Fragment struct {
	PPID                  uint32
	Unordered, Begin, End bool
	// Aborted tells that the rest of the message will never come: its sender gave up. End is set, and
	// there is no Data.
	Aborted bool
	// Err, if not nil, is why the flow has ended: ErrRestarted, ErrLost. It comes alone and last; a message that had
	// begun ends without its rest. End and Aborted are set.
	Err error
	// Message numbers the messages of the flow, those that are unordered and of one fragment by
	// themselves. Offset is where in the message Data begins.
	Message, Offset uint64
	// Data is valid until OnFragment returns.
	Data []byte
}

// unread is a fragment that waits for its reader. Its bytes are packet.bytes()[from:].
type unread struct {
	p        *packet
	from     int
	fragment Fragment // without Data
}

// Receiver is the target of a flow: messages from another process on a stream. It is safe for concurrent
// use; one Recv at a time reads a message.
type Receiver struct {
	n      *Node
	from   Address
	stream uint16
	hash   uint32        // of the flow of its acks
	turn   chan struct{} // full while a Recv reads
	signal chan struct{} // something has come, or the flow has ended

	// The rest is guarded by the mutex of the node.
	incarnation uint32
	next        uint32 // number that the data sequence continues with
	base        uint32 // first number of the single sequence that is missing
	have        [maxSingles / 64]uint64
	via         *conn // that the last frame came by
	attempt     uint8 // of the last frame
	gapTold     bool  // the gap in this attempt was reported
	current     Fragment
	open        bool // a message has begun; current describes its next fragment
	reading     Info // PPID and Unordered of the message that is read
	singles     uint64

	data, single fifo.Queue[unread]
	held         int // memory of both in bytes
	granted      int // window of the last ack, less what came since
	unacked      int // bytes since the last ack
	owes         bool
	listed       bool
	delivering   bool     // a goroutine is in OnFragment, or about to be
	upcall       Fragment // of the goroutine in OnFragment
	err          error
	value        value
	upcalls      *Handler

	counters ReceiverCounters
}

const (
	// ackEvery is after how many bytes at most an ack goes.
	ackEvery = 64 << 10
)

// Origin returns the process that sends.
func (r *Receiver) Origin() Address { return r.from }

// Stream returns the stream of the flow.
func (r *Receiver) Stream() uint16 { return r.stream }

// onData handles a data, single, cut or probe frame.
func (n *Node) onData(via *conn, f *frame.Frame) {
	n.mu.Lock()
	r := n.receiver(via, f)
	if n.ended.Len() > 0 {
		defer n.runUpcalls()
	}
	if r == nil {
		n.mu.Unlock()
		return
	}
	r.via = via
	if f.Attempt != r.attempt {
		if int8(f.Attempt-r.attempt) > 0 || r.next == 0 && r.base == 0 {
			r.attempt, r.gapTold = f.Attempt, false
		}
	}
	switch {
	case f.Type == frame.Probe && f.Flags&frame.Gone != 0:
		r.onGone(via, f)
		defer n.runUpcalls()
	case r.err != nil:
		n.counters.Stale++
	case f.Type == frame.Probe:
		r.onProbe(f)
	default:
		r.onNext(f) // unlocks
		return
	}
	n.mu.Unlock()
}

// onNext handles a data, single or cut frame of a flow that has not ended. mu is held, and released.
func (r *Receiver) onNext(f *frame.Frame) {
	n := r.n
	credit := len(f.Payload) + creditCost
	if !r.expected(f) {
		n.mu.Unlock()
		return
	}
	item := r.describe(f)
	direct := r.upcalls.OnFragment != nil && !r.delivering
	if direct && !r.hasRoom(len(f.Payload)+packetCost) || !direct && !r.store(f, item) {
		r.counters.NoMemory++
		n.mu.Unlock()
		return
	}
	r.advance(f, item)
	r.unacked += credit
	r.granted -= credit
	r.counters.Frames++
	r.counters.Bytes += uint64(len(f.Payload))
	if item.End && !item.Aborted {
		r.counters.Messages++
	}
	if f.Flags&frame.AckNow != 0 || r.unacked >= min(ackEvery, n.cfg.FlowWindow/8) {
		r.answer(0)
	} else {
		r.owe()
	}
	if !direct {
		if !r.delivering {
			r.notify()
		}
		n.mu.Unlock()
		return
	}
	r.delivering = true
	call := r.upcalls.OnFragment
	n.mu.Unlock()
	r.upcall = item
	r.upcall.Data = f.Payload
	call(r, &r.upcall)
	n.mu.Lock()
	r.deliver()
	n.mu.Unlock()
}

// deliver passes what came meanwhile to OnFragment. mu is held.
func (r *Receiver) deliver() {
	n := r.n
	for r.data.Len()+r.single.Len() > 0 {
		q := &r.single
		if q.Len() == 0 {
			q = &r.data
		}
		u := q.Pop()
		r.upcall = u.fragment
		if u.p != nil {
			r.free(u.p)
			r.upcall.Data = u.p.bytes()[u.from:]
		}
		call := r.upcalls.OnFragment
		n.mu.Unlock()
		call(r, &r.upcall)
		if u.p != nil {
			u.p.release()
		}
		n.mu.Lock()
	}
	r.upcall.Data = nil
	r.delivering = false
	r.grow()
}

// receiver returns the flow that f belongs to, nil if f is refused. mu is held.
func (n *Node) receiver(via *conn, f *frame.Frame) *Receiver {
	id := flowID{f.From, f.Stream}
	r := n.receivers[id]
	if n.closed {
		return nil
	}
	if r != nil && f.Incarnation != r.incarnation {
		if int32(f.Incarnation-r.incarnation) < 0 {
			n.counters.Stale++
			return nil
		}
		if f.Flags&frame.Fresh != 0 {
			r.end(ErrRestarted)
			r = nil
		}
	}
	if r != nil && f.Incarnation == r.incarnation {
		return r
	}
	if f.Flags&frame.Fresh == 0 {
		// The former life of this process had it: the origin learns that from the incarnation.
		n.counters.Stale++
		n.answerUnknown(via, f)
		return nil
	}
	if n.receivers[id] == nil && len(n.receivers) >= n.cfg.MaxFlows {
		n.counters.Refused++
		if c := n.legBack(via, f.From, f.Job); c != nil {
			n.control(c, nil, &frame.Frame{Header: frame.Header{
				Type: frame.Refuse, Hops: frame.MaxHops, Stream: f.Stream, Job: f.Job,
				From: f.To, To: f.From, Incarnation: f.Incarnation,
			}, Reason: frame.TooManyFlows}, f.Job)
		}
		return nil
	}
	r = &Receiver{
		n: n, from: f.From, stream: f.Stream, hash: flowHash(n.cfg.Job, n.cfg.Address, f.From, f.Stream),
		turn: make(chan struct{}, 1), signal: make(chan struct{}, 1), incarnation: f.Incarnation,
		attempt: f.Attempt, granted: initialWindow, upcalls: n.handler(f.Stream),
	}
	n.receivers[id] = r
	return r
}

// expected reports whether f is to be taken, and deals with those that are not. mu is held.
func (r *Receiver) expected(f *frame.Frame) bool {
	if f.Type == frame.Single {
		d := f.Seq - r.base
		if d < maxSingles && r.have[f.Seq%maxSingles/64]&(1<<(f.Seq%64)) == 0 {
			return true
		}
		r.counters.Duplicates++
		r.owe()
		return false
	}
	switch d := int32(f.Seq - r.next); {
	case d == 0:
		return true
	case d < 0:
		r.counters.Duplicates++
		r.owe()
	default:
		r.counters.Gaps++
		if !r.gapTold && f.Attempt == r.attempt {
			r.gapTold = true
			r.answer(frame.Resend)
		}
	}
	return false
}

// describe tells which fragment of which message f is. mu is held.
func (r *Receiver) describe(f *frame.Frame) Fragment {
	if f.Type == frame.Single {
		return Fragment{PPID: f.PPID, Unordered: true, Begin: true, End: true, Message: r.singles}
	}
	t := r.current
	t.Begin, t.End = f.Flags&frame.First != 0, f.Flags&frame.Last != 0
	switch {
	case f.Type == frame.Cut:
		t.End, t.Aborted = true, true
	case t.Begin:
		t.PPID, t.Unordered, t.Offset = f.PPID, f.Flags&frame.Unordered != 0, 0
	}
	return t
}

// advance records that f, which is the fragment t, was taken. mu is held.
func (r *Receiver) advance(f *frame.Frame, t Fragment) {
	if f.Type == frame.Single {
		r.singles++
		r.have[f.Seq%maxSingles/64] |= 1 << (f.Seq % 64)
		for {
			w, bit := &r.have[r.base%maxSingles/64], uint64(1)<<(r.base%64)
			if *w&bit == 0 {
				return
			}
			*w &^= bit
			r.base++
		}
	}
	r.next++
	r.current = t
	r.current.Offset += uint64(len(f.Payload))
	if t.End {
		r.current = Fragment{Message: t.Message + 1}
	}
}

// owe has an ack sent at the next tick. mu is held.
func (r *Receiver) owe() {
	r.unacked = max(r.unacked, 1)
	if !r.owes {
		r.owes = true
		r.n.answers = append(r.n.answers, r)
	}
}

// answer sends an ack. mu is held.
func (r *Receiver) answer(flags frame.Flags) {
	n := r.n
	c := n.legBack(r.via, r.from, r.hash)
	if c == nil || r.err != nil {
		return
	}
	r.unacked, r.granted = 0, r.window()
	r.counters.Acks++
	n.control(c, nil, &frame.Frame{Header: frame.Header{
		Type: frame.Ack, Flags: flags, Hops: frame.MaxHops, Stream: r.stream, Job: n.cfg.Job, Attempt: r.attempt,
		From: n.cfg.Address, To: r.from, Incarnation: n.cfg.Incarnation, Seq: r.next,
	}, PeerIncarnation: r.incarnation, Window: uint32(r.granted), SingleNext: r.base}, r.hash)
}

// answerUnknown confirms nothing, for a flow that this process does not know. mu is held.
func (n *Node) answerUnknown(via *conn, f *frame.Frame) {
	h := flowHash(n.cfg.Job, n.cfg.Address, f.From, f.Stream)
	if c := n.legBack(via, f.From, h); c != nil {
		n.control(c, nil, &frame.Frame{Header: frame.Header{
			Type: frame.Ack, Hops: frame.MaxHops, Stream: f.Stream, Job: n.cfg.Job, Attempt: f.Attempt,
			From: n.cfg.Address, To: f.From, Incarnation: n.cfg.Incarnation,
		}, PeerIncarnation: f.Incarnation}, h)
	}
}

// onProbe answers. mu is held.
func (r *Receiver) onProbe(f *frame.Frame) {
	var flags frame.Flags
	if f.Attempt == r.attempt {
		if int32(f.Seq-r.next) > 0 {
			flags |= frame.Resend
		}
		if int32(f.SingleNext-r.base) > 0 {
			flags |= frame.ResendSingle
		}
	}
	r.answer(flags)
}

// notify wakes a reader. mu is held.
func (r *Receiver) notify() {
	wake(r.signal)
	if !r.listed && r.upcalls.OnFragment == nil {
		r.listed = true
		r.n.ready.Push(r)
		wake(r.n.readable)
	}
}

// end ends the flow. What was received can still be read. mu is held.
func (r *Receiver) end(err error) {
	if r.err != nil {
		return
	}
	r.err = err
	if err != ErrClosed {
		r.n.note(slog.LevelInfo, "flow from another process ended", slog.String("origin", r.from.String()),
			slog.Int("stream", int(r.stream)), slog.Any("error", err))
		if r.upcalls.OnFragment != nil {
			r.data.Push(unread{fragment: Fragment{End: true, Aborted: true, Err: err}})
			if !r.delivering {
				r.delivering = true
				r.n.ended.Push(r)
			}
		}
	}
	r.notify()
}

// discard drops what was not read. mu is held.
func (r *Receiver) discard() {
	for _, q := range [...]*fifo.Queue[unread]{&r.data, &r.single} {
		for q.Len() > 0 {
			if u := q.Pop(); u.p != nil {
				r.free(u.p)
				u.p.release()
			}
		}
	}
}
