package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/weftstack/weft/internal/fifo"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay/frame"
)

const (
	// probeAfter is how long a flow waits for a confirmation before it asks; creditProbe how
	// long it waits for credit.
	probeAfter  = 200 * time.Millisecond
	creditProbe = time.Second
	// maxSingles is how many single frames are under way beyond the first unconfirmed one: with frames that fill a
	// packet 3 MB, what fits into 1 Gb/s with a round trip of 18 ms and more.
	maxSingles = 2048
	// cutBatch is how many frames of a message are made between two looks at the limits.
	cutBatch = 16
)

// SendOptions describes a message.
type SendOptions struct {
	// PPID is the payload protocol identifier, which the target gets unchanged.
	PPID uint32
	// Header is sent in front of the message, as part of it, so that a caller need not join them.
	Header []byte
	// Unordered messages may overtake others of their flow. One that does not fit one frame
	// is delivered in order.
	Unordered bool
	// AckNow asks the target to confirm the message at once, as Send does in mode Chained. Without it a
	// confirmation may take 25 ms longer.
	AckNow bool
	// More tells that another message follows at once: it may wait for that, to be sent with it. TrySend only.
	More bool
	// Owner, if not nil, is told when the target has confirmed all of the message, with nil, or that the flow has ended,
	// with the reason: once, with no lock held, but not if TrySend returns an error. TrySend only, and not within it.
	Owner sctp.SendOwner
	// Group is a number by which Sender.Disown finds the message.
	Group uint32
}

// Sender is the origin of a flow: messages from this process to another one on a stream. It is safe for
// concurrent use.
type Sender struct {
	n      *Node
	to     Address
	stream uint16
	hash   uint32
	turn   chan struct{} // full while a Send cuts its message into frames
	room   chan struct{} // the Send that has the turn may look at the limits again

	// incarnation is that of the node, or a later one if the flow has been begun again.
	incarnation uint32

	// The rest is guarded by the mutex of the node; q by that of the leg.
	leg     *conn // that the frames under way take; nil: none
	q       queue
	data    sequence
	single  sequence
	credit  int // that the frames kept take
	held    int // memory that they take, and that is reserved
	out     int // credit of those under way
	window  int
	unasked int // credit sent since an ack was asked for
	attempt uint8
	busy    bool // is in Node.busy
	bound   bool // the target is the process with the incarnation target
	target  uint32
	err     error
	waits   []*confirmation
	done    uint64 // bytes confirmed: see Progress
	told    bool   // is in Node.told
	telling bool   // the flow has ended by a loss of which the target is to be told
	value   value
	upcalls *Handler

	progress, heard, probed time.Time // zero: at the next tick

	counters SenderCounters
}

// sequence are the frames of a flow that are not confirmed, in order.
type sequence struct {
	kept fifo.Queue[*packet]
	base uint32 // number of the first
	next uint32 // of the next to be sent
}

func (q *sequence) end() uint32      { return q.base + uint32(q.kept.Len()) }
func (q *sequence) unconfirmed() int { return int(q.next - q.base) }

// confirmation is a call that waits until the target has confirmed all numbers before its own.
type confirmation struct {
	data, single uint32
	done         chan struct{}
}

// Sender returns the sender of a flow: from this process to another one, which may be this one, on a stream. There is one
// for each target and stream, until it ends with an error: then Sender begins the flow again, and the target, if it
// has known the former one, gets another Receiver. Errors: ErrAddress, ErrLimit, ErrClosed.
func (n *Node) Sender(to Address, stream uint16) (*Sender, error) {
	if !valid(to) {
		return nil, fmt.Errorf("%w: %v: numbers begin with 1", ErrAddress, to)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	id := flowID{to, stream}
	s := n.senders[id]
	switch {
	case n.closed:
		return nil, ErrClosed
	case s != nil && s.err == nil:
		return s, nil
	case s == nil && len(n.senders) >= n.cfg.MaxFlows:
		return nil, fmt.Errorf("%w: %d to other processes", ErrLimit, len(n.senders))
	}
	incarnation := n.cfg.Incarnation
	if s != nil {
		incarnation = n.later(s.incarnation)
	}
	s = &Sender{
		n: n, to: to, stream: stream, upcalls: n.handler(stream), hash: flowHash(n.cfg.Job, n.cfg.Address, to, stream), incarnation: incarnation,
		turn: make(chan struct{}, 1), room: make(chan struct{}, 1), window: min(initialWindow, n.cfg.FlowWindow),
	}
	n.senders[id] = s
	return s, nil
}

// later returns the incarnation of a flow after the one that had last. It differs from those of lives of other nodes of
// this program, too, which may follow within a millisecond.
func (n *Node) later(last uint32) uint32 {
	if n.clocked {
		return newIncarnation()
	}
	return last + 1
}

// Target and Stream return what the flow was made with.
func (s *Sender) Target() Address { return s.to }

// Stream returns the stream of the flow.
func (s *Sender) Stream() uint16 { return s.stream }

// Send sends a message of any length, and waits while the limits of the flow or the node are reached. In mode Piecewise it
// returns when the node has copied the message, in mode Chained when the target has it. msg and
// the header belong to the caller again when Send returns.
//
// If ctx ends while a part of the message is on its way the target gets the rest no more, but learns of it
// (Info.Aborted); in mode Chained, once all of it is, the message may still arrive. Errors: that of ctx, ErrEmpty,
// ErrClosed, ErrRestarted, ErrUnreachable, *RefusedError.
func (s *Sender) Send(ctx context.Context, msg []byte, o SendOptions) error {
	if len(msg)+len(o.Header) == 0 {
		return ErrEmpty
	}
	select {
	case s.turn <- struct{}{}:
	default:
		select {
		case s.turn <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.n.ctx.Done():
			return ErrClosed
		}
	}
	c, err := s.cut(ctx, msg, o)
	<-s.turn
	if err != nil || c == nil {
		return err
	}
	return s.await(ctx, c)
}

// TrySend is Send that never waits, in any mode as Piecewise: it returns ErrWouldBlock, and takes nothing, if there is
// no room for the whole message, or while another call sends. A message beyond the flow window is taken when
// the flow has nothing unconfirmed and the node has memory; ErrLimit is returned if it can never have enough.
func (s *Sender) TrySend(msg []byte, o SendOptions) error {
	if len(msg)+len(o.Header) == 0 {
		return ErrEmpty
	}
	select {
	case s.turn <- struct{}{}:
	default:
		return ErrWouldBlock
	}
	defer func() { <-s.turn }()
	m := s.message(msg, o)
	m.ackNow, m.owner, m.group = o.AckNow, o.Owner, o.Group
	n := s.n
	n.mu.Lock()
	if err := s.state(); err != nil {
		n.mu.Unlock()
		return err
	}
	frames := (m.left() + m.size - 1) / m.size
	credit, cost := m.left()+frames*creditCost, frames*m.cost()
	room := s.credit+credit <= n.cfg.FlowWindow && s.held+cost <= max(FlowReserve, n.share(s.held))
	if s.credit == 0 && !room {
		if cost > max(FlowReserve, n.cfg.SendMemory) {
			n.mu.Unlock()
			return fmt.Errorf("%w: message of %d bytes takes up to %d, but SendMemory is %d", ErrLimit, len(msg), cost, n.cfg.SendMemory)
		}
		room = cost <= n.cfg.SendMemory-n.sendHeld
	}
	if !room {
		s.counters.WouldBlock++
		n.mu.Unlock()
		n.pump() // perhaps there was More
		return ErrWouldBlock
	}
	s.reserve(cost)
	n.mu.Unlock()
	for m.left() > 0 {
		var batch [cutBatch]*packet
		k := m.frames(batch[:])
		n.mu.Lock()
		err := s.state()
		for _, p := range batch[:k] {
			if err != nil {
				p.release()
			} else {
				s.keep(p, m.single)
			}
		}
		if err != nil { // the flow has ended meanwhile
			s.reserve(-cost)
			n.mu.Unlock()
			return err
		}
		n.mu.Unlock()
	}
	n.mu.Lock()
	s.reserve(-cost)
	s.counters.Messages++
	s.push()
	n.mu.Unlock()
	if !o.More {
		n.pump()
	}
	return nil
}

// share is how much memory a sender that has held may use. mu is held.
func (n *Node) share(held int) int { return max(0, n.cfg.SendMemory-n.sendHeld+held) / 8 }

func (s *Sender) reserve(cost int) {
	s.held += cost
	s.n.sendHeld += cost
}

func (s *Sender) state() error {
	if s.n.closed {
		return ErrClosed
	}
	return s.err
}

// keep gives p the next number. mu is held.
func (s *Sender) keep(p *packet, single bool) {
	q := &s.data
	if single {
		q = &s.single
	}
	frame.SetSeq(p.bytes(), q.end())
	q.kept.Push(p)
	s.credit += p.credit
	s.reserve(p.cost())
	s.counters.Frames++
	s.counters.Bytes += uint64(p.credit - creditCost)
}

// cut makes frames of msg as there is room. In mode Chained it returns what Send waits for.
func (s *Sender) cut(ctx context.Context, msg []byte, o SendOptions) (*confirmation, error) {
	n := s.n
	m := s.message(msg, o)
	m.ackNow = o.AckNow || n.cfg.Mode == Chained
	begun := false
	for {
		n.mu.Lock()
		if err := s.state(); err != nil {
			n.mu.Unlock()
			return nil, err
		}
		k, cost := 0, m.cost()
		for left := m.left(); k < cutBatch && left > 0; k++ {
			c := s.credit + k*(m.size+creditCost) + min(left, m.size) + creditCost
			if s.credit+k > 0 && c > n.cfg.FlowWindow || s.held+(k+1)*cost > max(FlowReserve, n.share(s.held)) {
				break
			}
			left -= min(left, m.size)
		}
		if k == 0 {
			s.counters.Waits++
			n.mu.Unlock()
			n.pump()
			select {
			case <-s.room:
				continue
			case <-n.ctx.Done():
				return nil, ErrClosed
			case <-ctx.Done():
				if begun {
					s.abandon()
				}
				return nil, ctx.Err()
			}
		}
		s.reserve(k * cost)
		n.mu.Unlock()
		var batch [cutBatch]*packet
		m.frames(batch[:k])
		n.mu.Lock()
		s.reserve(-k * cost)
		if err := s.state(); err != nil {
			n.mu.Unlock()
			for _, p := range batch[:k] {
				p.release()
			}
			return nil, err
		}
		for _, p := range batch[:k] {
			s.keep(p, m.single)
		}
		begun = true
		s.push()
		if m.left() > 0 {
			n.mu.Unlock()
			n.pump()
			continue
		}
		s.counters.Messages++
		var c *confirmation
		if n.cfg.Mode == Chained {
			c = s.confirm()
		}
		n.mu.Unlock()
		n.pump()
		return c, nil
	}
}

// abandon ends a message whose beginning is on its way.
func (s *Sender) abandon() {
	n := s.n
	p := newPacket(frame.HeaderSize)
	h := frame.Header{
		Type: frame.Cut, Hops: frame.MaxHops, Stream: s.stream, Job: n.cfg.Job,
		From: n.cfg.Address, To: s.to, Incarnation: s.incarnation,
	}
	frame.AppendHeader(p.bytes()[:0], &h)
	p.hash, p.credit = s.hash, creditCost
	n.mu.Lock()
	if s.state() != nil {
		n.mu.Unlock()
		p.release()
		return
	}
	s.keep(p, false)
	s.push()
	n.mu.Unlock()
	n.pump()
}

// confirm returns a confirmation of all that was sent, nil if there is nothing to wait for. mu is held.
func (s *Sender) confirm() *confirmation {
	if s.data.kept.Len()+s.single.kept.Len() == 0 {
		return nil
	}
	var c *confirmation
	if n := s.n; len(n.spare) > 0 {
		c = n.spare[len(n.spare)-1]
		n.spare = n.spare[:len(n.spare)-1]
	} else {
		c = &confirmation{done: make(chan struct{}, 1)}
	}
	c.data, c.single = s.data.end(), s.single.end()
	s.waits = append(s.waits, c)
	return c
}

// await waits for c.
func (s *Sender) await(ctx context.Context, c *confirmation) (err error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	n := s.n
	n.mu.Lock()
	waits := false
	for i, w := range s.waits {
		if waits = w == c; waits {
			last := len(s.waits) - 1
			s.waits[i] = s.waits[last]
			s.waits[last] = nil
			s.waits = s.waits[:last]
			break
		}
	}
	if !waits { // it was woken
		err = nil
		if !s.confirmed(c) {
			err = s.state()
		}
	}
	select {
	case <-c.done:
	default:
	}
	n.spare = append(n.spare, c)
	n.mu.Unlock()
	return err
}

func (s *Sender) confirmed(c *confirmation) bool {
	return int32(c.data-s.data.base) <= 0 && int32(c.single-s.single.base) <= 0
}

// Flush waits until the target has confirmed all that was sent. Errors are those of Send.
func (s *Sender) Flush(ctx context.Context) error {
	s.n.mu.Lock()
	c := s.confirm()
	err := s.state()
	if c != nil && err != nil { // what is kept is lost
		s.waits = s.waits[:len(s.waits)-1]
	}
	s.n.mu.Unlock()
	if c == nil || err != nil {
		return err
	}
	return s.await(ctx, c)
}
