package stream

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/sctp/relay"
)

// flow is what arrives from a process on a stream, for one connection after the other.
type flow struct {
	p      *peer
	stream uint16
	turn   chan struct{} // full while a goroutine receives

	// Guarded by Endpoint.mu.
	r     *relay.Receiver
	s     *relay.Sender // of the other direction
	renew bool          // s must be begun again before it is used
	conn  *Conn         // that it is for now; nil: none

	// awaits tells that this side has opened a connection, the one with the generation awaited, which is over
	// here, and that the other side has not said so yet.
	awaits  bool
	awaited uint32

	// partial is the beginning of a message other than data. Used by the goroutine that receives.
	partial []byte

	// dirty is true if drain is to be called by the goroutine that receives, when it is done.
	dirty atomic.Bool
}

func isAgain(err error) bool { return errors.Is(err, relay.ErrWouldBlock) }

// adopt makes r the receiver of the flow, if it has something: another life of the origin has begun the flow, whose
// former receiver has ended. Only the dispatcher calls it.
func (f *flow) adopt(r *relay.Receiver) {
	b := bufpool.Get(scratchSize)
	defer b.Put()
	scratch := b.Bytes(scratchSize)
	n, info, err := r.TryRecv(scratch)
	if err != nil {
		return // nothing has come yet, or this is a former one
	}
	e := f.p.e
	f.turn <- struct{}{}
	e.mu.Lock()
	former := f.r
	f.r, f.partial, f.renew = r, f.partial[:0], true
	e.mu.Unlock()
	if former != nil {
		discard(former)
		f.failOn(former, relay.ErrRestarted)
	}
	f.handle(scratch[:n], info)
	f.leave()
}

// sender returns the sender of the other direction for a new connection.
func (f *flow) sender() (*relay.Sender, error) {
	e := f.p.e
	e.mu.Lock()
	former, renew := f.s, f.renew
	f.renew = false
	e.mu.Unlock()
	if renew && former != nil {
		former.End()
	}
	s, err := e.cfg.Node.Sender(f.p.addr, f.stream)
	e.mu.Lock()
	f.s = s
	e.mu.Unlock()
	return s, err
}

// scratchSize is the length of the buffers for what no reader is to have.
const scratchSize = 2048

// discard drops what r has, until it has no more, or has ended.
func discard(r *relay.Receiver) {
	b := bufpool.Get(scratchSize)
	defer b.Put()
	for {
		if _, _, err := r.TryRecv(b.Bytes(scratchSize)); err != nil {
			return
		}
	}
}

// leave gives the turn back.
func (f *flow) leave() {
	<-f.turn
	if f.dirty.Load() {
		f.drain()
	}
}

// drain receives what is there, as long as the flow has no connection whose reader is to have it: that is woken. If
// another goroutine has the turn it does so afterwards. It never waits.
func (f *flow) drain() {
	for {
		f.dirty.Store(true)
		select {
		case f.turn <- struct{}{}:
		default:
			return
		}
		f.dirty.Store(false)
		f.drainTurn()
		<-f.turn
		if !f.dirty.Load() {
			return
		}
	}
}

// drainTurn is drain for the goroutine that has the turn.
func (f *flow) drainTurn() {
	var b *bufpool.Buffer
	defer func() {
		if b != nil {
			b.Put()
		}
	}()
	e := f.p.e
	for {
		e.mu.Lock()
		r, c := f.r, f.conn
		forReader := c != nil && c.state == stateOpen && !c.endReceived
		held := c != nil && c.state == statePending
		e.mu.Unlock()
		if forReader {
			c.wake()
			return
		}
		if r == nil || held {
			return
		}
		if b == nil {
			b = bufpool.Get(scratchSize)
		}
		n, info, err := r.TryRecv(b.Bytes(scratchSize))
		if err != nil {
			f.ended(r, err)
			return
		}
		f.handle(b.Bytes(scratchSize)[:n], info)
	}
}

// read receives bytes of c, after what precedes them. The caller has the turn. It returns relay.ErrWouldBlock if none
// are there.
func (f *flow) read(c *Conn, b []byte) (int, error) {
	e := f.p.e
	for {
		e.mu.Lock()
		r, current := f.r, f.conn == c
		e.mu.Unlock()
		if !current || r == nil {
			return 0, relay.ErrWouldBlock // c knows why, or nothing has come yet
		}
		n, info, err := r.TryRecv(b)
		if err != nil {
			f.ended(r, err)
			return 0, err
		}
		k, generation := splitPPID(info.PPID)
		if k == kindData && generation == c.generation && !info.Aborted {
			e.mu.Lock()
			ok := f.conn == c && c.state == stateOpen && !c.endReceived
			if ok {
				e.counters.BytesReceived += uint64(n)
			}
			e.mu.Unlock()
			if ok && n > 0 {
				return n, nil
			}
		}
		f.handle(b[:n], info)
	}
}

// ended resets the connection if err is the end of the flow.
func (f *flow) ended(r *relay.Receiver, err error) {
	if isAgain(err) {
		return
	}
	e := f.p.e
	e.mu.Lock()
	if f.r == r {
		f.r = nil
	}
	e.mu.Unlock()
	f.failOn(r, err)
}

// failOn resets the connection if it is with the life of the other process whose flow r was.
func (f *flow) failOn(r *relay.Receiver, err error) {
	e := f.p.e
	e.mu.Lock()
	c := f.conn
	ok := c != nil && c.r == r
	e.mu.Unlock()
	if ok {
		c.fail(fmt.Errorf("%w: %w", ErrReset, err), CodeUnspecified, true)
	}
}

// keepPartial is the capacity in bytes of the buffers that flows keep.
const keepPartial = 64

// handle deals with a part of a message that is not data for a reader. The caller has the turn.
func (f *flow) handle(b []byte, info relay.Info) {
	k, generation := splitPPID(info.PPID)
	if k == kindData {
		f.unread(generation, info)
		return
	}
	if f.partial = append(f.partial, b...); len(f.partial) > maxMessage {
		f.partial = f.partial[:maxMessage+1] // is refused at its end
	}
	if !info.EOR {
		return
	}
	msg := f.partial
	if f.partial = f.partial[:0]; cap(msg) > keepPartial {
		f.partial = nil
	}
	ok := !info.Aborted && len(msg) <= maxMessage && len(msg) > 0
	switch {
	case !ok:
	case f.stream == controlStream:
		ok = k == kindPing || (k == kindDone || k == kindReset) && f.onNotice(k, generation, msg)
	case k == kindOpen:
		ok = f.onOpen(generation, msg)
	case k == kindAccept || k == kindRefuse || k == kindEnd:
		ok = f.onAnswer(k, generation, msg)
	default:
		ok = false
	}
	if !ok {
		f.violation(k, generation)
	}
}

// unread deals with data that no reader is to have: of a former connection, or of one that was closed.
func (f *flow) unread(generation uint32, info relay.Info) {
	e := f.p.e
	e.mu.Lock()
	c := f.conn
	if c == nil || c.generation != generation || c.state == stateOpening {
		e.counters.Stale++
		e.mu.Unlock()
		return
	}
	cut, over := info.Aborted, c.endReceived
	e.mu.Unlock()
	switch {
	case over:
		f.violation(kindData, generation)
	case cut:
		c.fail(fmt.Errorf("%w: the other end gave up in the middle of a write", ErrReset), CodeUnspecified, true)
	default: // as TCP answers data for a socket that was closed
		c.fail(fmt.Errorf("%w: data after Close", ErrReset), CodeUnspecified, true)
	}
}

// onAnswer handles accept, refuse and end.
func (f *flow) onAnswer(k kind, generation uint32, msg []byte) bool {
	e := f.p.e
	e.mu.Lock()
	c := f.conn
	if c == nil || c.generation != generation {
		e.counters.Stale++
		e.mu.Unlock()
		return true
	}
	if k == kindEnd {
		if c.state == stateOpening || c.state == statePending || c.endReceived {
			e.mu.Unlock()
			return false
		}
		c.endReceived = true
		tell := c.finish()
		e.mu.Unlock()
		c.wake()
		if tell {
			f.p.tell(false)
		}
		return true
	}
	if c.state != stateOpening {
		e.mu.Unlock()
		return false
	}
	if k == kindAccept {
		if msg[0] != version {
			e.mu.Unlock()
			return false
		}
		c.state, c.r = stateOpen, f.r
		e.counters.Opened++
		close(c.opened)
		e.mu.Unlock()
		return true
	}
	e.counters.RefusedByPeer++
	e.mu.Unlock()
	c.refused(Code(msg[0]), string(msg[1:min(len(msg), 1+maxText)]))
	return true
}

// onNotice handles a message of the control flow.
func (f *flow) onNotice(k kind, generation uint32, msg []byte) bool {
	n, ok := parseNotice(k, generation, msg)
	if !ok {
		return false
	}
	e := f.p.e
	e.mu.Lock()
	var c *Conn
	g := f.p.flows[n.stream]
	switch {
	case g != nil && g.conn != nil && g.conn.generation == generation:
		c = g.conn
		if k == kindDone {
			c.peerDone = true
			c = nil
		} else {
			e.counters.ResetByPeer++
		}
	case g != nil && g.awaits && g.awaited == generation:
		g.release()
	default:
		e.counters.Stale++
	}
	e.mu.Unlock()
	if c != nil {
		c.fail(fmt.Errorf("%w by the other end (code %d)", ErrReset, n.code), CodeUnspecified, false)
	}
	return true
}

// release gives back the stream of a connection that is over at both ends. mu is held.
func (f *flow) release() {
	if f.awaits {
		f.awaits = false
		f.p.free = append(f.p.free, f.stream)
	}
}

// violation resets the connection of a message that breaks the protocol.
func (f *flow) violation(k kind, generation uint32) {
	e := f.p.e
	e.mu.Lock()
	c := f.conn
	if c != nil && c.generation != generation {
		c = nil
	}
	e.counters.Violations++
	e.mu.Unlock()
	e.note(slog.LevelWarn, "message that breaks the protocol", slog.String("process", f.p.addr.String()),
		slog.Int("stream", int(f.stream)), slog.Int("type", int(k)))
	if c != nil {
		c.fail(fmt.Errorf("%w: message of type %d breaks the protocol", ErrReset, k), CodeProtocol, true)
	}
}
