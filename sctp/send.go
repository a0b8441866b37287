package sctp

import (
	"context"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/udpio"
)

// Send queues msg on a stream, waiting for room in the send buffer until ctx
// is done. A message may have any length. msg is copied unless opts.Owner is
// set. Like TrySend it makes no upcalls, so it may be called with locks held that
// upcalls take, unless it has to wait for room or, in a stream of messages, had to
// just before: then it reads the sockets itself, see Poll of Transport.
func (a *Association) Send(ctx context.Context, msg []byte, opts SendOptions) error {
	err := a.send(ctx.Done(), nil, msg, &opts)
	if err == errStopped {
		return ctx.Err()
	}
	return err
}

// TrySend is Send that never waits: it returns ErrWouldBlock when the send
// buffer is full (and opts.Force is not set).
func (a *Association) TrySend(msg []byte, opts SendOptions) error {
	return a.send(stopped, nil, msg, &opts)
}

// Flush transmits what sends with More left unsent.
func (a *Association) Flush() { a.goCallbacks(a.flush()) }

// stopped makes send and recv return at once instead of waiting. It is a
// channel that is never used: only its identity counts.
var stopped = make(<-chan struct{})

// send queues a message. It waits for room until stop or expired is closed, and
// then returns errStopped or errExpired.
func (a *Association) send(stop, expired <-chan struct{}, msg []byte, opts *SendOptions) error {
	a.prefetchForSend()
	var m core.Message
	if opts.Owner == nil && len(msg) >= minBorrow && !opts.More && a.canBorrow.Load() && a.flushing.Load() == 0 {
		newMessage(&m, nil, opts)
		m.Body, m.Borrowed = msg, true
		return a.push(stop, expired, &m, nil, false)
	}
	own := newMessage(&m, msg, opts)
	return a.push(stop, expired, &m, own, opts.More)
}

// sendSmall sends m, of which the core says that nothing else is under way with it, and
// unlocks a.mu. looks tells that it may read the sockets. The caller has begun to transmit.
// It reports false, and has not sent m, if its packet has to wait.
func (a *Association) sendSmall(m *core.Message, looks bool) bool {
	now := a.t.now()
	b := batchBufs.Get().(*batchBuf)
	out, ok := a.core.SendSmall(now, m, b.space(), &b.tx)
	if !ok {
		batchBufs.Put(b)
		a.goCallbacks(a.transmitAll(now)) // for whoever left that to us meanwhile
		return false
	}
	looks = looks && a.countUnread(len(m.Header)+len(m.Body), false) && a.maySenderPoll(now)
	a.mu.Unlock()
	a.t.send(out, b)
	batchBufs.Put(b)
	// What is to be done besides, the answer need not wait for.
	a.mu.Lock()
	if a.flushing.CompareAndSwap(1, 0) {
		a.t.flushes.Add(-1)
		a.arm()
		a.goCallbacks(a.drainAndUnlock())
	} else {
		a.goCallbacks(a.transmitAll(a.t.now()))
	}
	if looks {
		a.t.pollAsSender()
	}
	return true
}

// push queues m, whose copy is own if it was copied; more tells that another one
// follows at once. See send.
func (a *Association) push(stop, expired <-chan struct{}, m *core.Message, own *bufpool.Buffer, more bool) error {
	alone := !more && a.autoClose == 0 && len(m.Body) < minIOVec // it may be
	for {
		a.mu.Lock()
		if m.Borrowed {
			a.endBorrow() // that of somebody else
		}
		if alone && a.flushing.Load() == 0 && a.core.CanSendSmall(m) && a.startFlush() {
			if a.sendSmall(m, stop != stopped) {
				return nil
			}
			alone = false
			continue
		}
		err := a.core.Send(a.sendTime(m), m)
		if err != core.ErrWouldBlock || stop == stopped {
			if err != nil {
				a.goCallbacks(a.drainAndUnlock())
				own.Put()
				return a.sendError(err)
			}
			n := len(m.Header) + len(m.Body)
			long := n > minCounted
			look := stop != stopped && a.countUnread(n, m.Borrowed) && !(long && (more || !m.Borrowed && a.shouldCork())) && a.maySenderPoll(a.t.now())
			if look && long {
				a.goCallbacks(a.drainAndUnlock())
				a.t.pollAsSender()
				a.mu.Lock()
			}
			a.goCallbacks(a.launch(more))
			if look && !long {
				a.t.pollAsSender()
			}
			return nil
		}
		// Room comes with acknowledgements: whatever was left unsent has to go.
		wt := a.writers.add(0)
		a.mu.Unlock()
		a.goCallbacks(a.flush())
		err = a.t.waitOn(wt, stop, expired)
		var k wakeList
		a.mu.Lock()
		if a.writers.recycle(wt) && err != nil {
			a.writers.takeFirst(&k) // the wake-up was for somebody who wants it
		}
		a.senderPolled = a.t.now()
		a.mu.Unlock()
		k.wake()
		if err != nil {
			own.Put()
			return err
		}
	}
}

const (
	// pollEvery is how many bytes one who sends more than there is room for sends
	// until it reads the sockets itself. A message counts as minCounted or more.
	//
	// With longer messages it reads before a train leaves: acknowledgements let go
	// what waits, and after the train that would be the short rest of one. With
	// shorter ones after it, so that the receiver has something to do meanwhile.
	pollEvery  = 128 << 10
	minCounted = 512
	// borrowedShare is by how much less a message that is lent counts: its packets have left
	// when the next one comes, and while there is room in the windows to lend that, too,
	// acknowledgements are cheaper to read several at a time.
	borrowedShare = 4
	// maxPollAge is how long ago the last time may be, or the last wait for room.
	maxPollAge = clock.Time(minTick)
)

// countUnread reports, of one who sends n bytes, which may be lent, whether it is time to ask
// looks. a.mu is held.
func (a *Association) countUnread(n int, lent bool) bool {
	if lent {
		n /= borrowedShare
	}
	a.unread += max(n, minCounted)
	return a.unread >= pollEvery
}

// looks reports whether one who sent much should read the sockets: acknowledgements
// that wake a reader take the state of the association to another processor and back.
// a.mu is held.
func (a *Association) maySenderPoll(now clock.Time) bool {
	a.unread = 0
	if now-a.senderPolled > maxPollAge {
		return false
	}
	a.senderPolled = now
	return true
}

// newMessage makes the message that opts describe. Where they name no owner it is
// a copy, which it returns; else, and where the core will copy it, nil.
func newMessage(m *core.Message, msg []byte, opts *SendOptions) (own *bufpool.Buffer) {
	*m = core.Message{}
	m.SID, m.PPID, m.Unordered, m.Immediate, m.Force = opts.Stream, opts.PPID, opts.Unordered, opts.Immediate, opts.Force
	m.Header, m.Body, m.Lifetime = opts.Header, msg, clock.Time(opts.Lifetime)
	m.Remote, m.Keyed, m.Key = opts.Remote, opts.UseAuthKey, opts.AuthKey
	switch opts.PR {
	case LimitedRetransmissions:
		m.LimitRtx, m.MaxRtx = true, uint32(max(opts.MaxRetransmits, 0))
	case Prioritized:
		m.Droppable, m.Priority = true, opts.Priority
	}
	switch {
	case opts.Owner != nil:
		m.Owner = opts.Owner
	case len(msg) <= core.MaxHeader && len(m.Header) == 0:
		m.Header, m.Body = msg, nil // headers are copied
	case len(msg) > 0:
		m.Body, own = copyMessage(msg)
		m.Owner = own
	}
	return own
}

// launch transmits what was queued, unless more follows at once or it may wait for
// others to join it. It releases a.mu.
func (a *Association) launch(more bool) deferred {
	a.active()
	if more || !a.core.Borrowing() && a.shouldCork() {
		return a.drainAndUnlock()
	}
	return a.flushLocked(a.t.now())
}

func (a *Association) shouldCork() bool {
	return a.core.ShouldCork(a.t.sockets().maxSegs, udpio.MaxBatchBytes)
}

// sendTime returns the time for core.Send, which wants it only for a message with a
// lifetime: readings of the clock took 8 % of a sender of short messages.
func (a *Association) sendTime(m *core.Message) clock.Time {
	if m.Lifetime == 0 {
		return 0
	}
	return a.t.now()
}

// An Outgoing is a message of TrySendBatch, with its options.
type Outgoing struct {
	Msg []byte
	SendOptions
}

// TrySendBatch queues messages in order as calls of TrySend would, all but the
// last with More, in one step. It returns how many were queued: after an error,
// which is that of the next one, those are transmitted, and Released is not called
// for the owners of the others.
func (a *Association) TrySendBatch(batch []Outgoing) (n int, err error) {
	if len(batch) == 0 {
		return 0, nil
	}
	a.prefetchForSend()
	a.mu.Lock()
	var m core.Message
	for n < len(batch) {
		own := newMessage(&m, batch[n].Msg, &batch[n].SendOptions)
		if err = a.core.Send(a.sendTime(&m), &m); err != nil {
			own.Put()
			break
		}
		n++
	}
	if n == 0 {
		a.goCallbacks(a.drainAndUnlock())
	} else {
		a.goCallbacks(a.launch(err == nil && batch[n-1].More))
	}
	if err != nil {
		err = a.sendError(err)
	}
	return n, err
}

// MaxSegmented bounds a Series: the bytes of its messages, headers included.
const MaxSeries = core.MaxSegmented

// A Series is many messages that are cut from one buffer, each with a header of its
// own, as an upper layer does that makes its messages fit packets.
type Series struct {
	// Body is what the messages carry: Unit bytes each, the last what is left.
	Body []byte
	Unit int
	// Headers holds what goes in front of each, as part of it, one after another and
	// all of the same length, at most MaxHeader bytes.
	Headers []byte
}

// TrySendSeries queues the messages of s, all or none, as TrySend would in order, and
// takes little longer than for one. opts are those of all, but that Immediate is of
// the last. They are unordered and have an Owner, who is told once that all are
// acknowledged: until then neither Body nor Headers must change. ErrOptions is returned
// for other ones, for a partial reliability policy, for opts.Header, and for a Series
// that is none or longer than MaxSegmented.
func (a *Association) TrySendSeries(s Series, opts SendOptions) error {
	if opts.Owner == nil || s.Unit <= 0 {
		return ErrOptions
	}
	a.prefetchForSend()
	var m core.Message
	newMessage(&m, s.Body, &opts) // no copy, as there is an owner
	m.SegmentSize, m.Headers = s.Unit, s.Headers
	return a.push(stopped, nil, &m, nil, opts.More)
}

// sendError translates an error of core.Send.
func (a *Association) sendError(err error) error {
	if err == core.ErrClosed {
		if e := a.Err(); e != nil {
			return e
		}
	}
	return coreError(err)
}

// copyAtOnce is how much of a message is copied at a time, 256 KiB. Go copies 1 MiB or more
// past the caches on amd64, and packets are built from the copy next.
const copyAtOnce = 256 << 10

// copyMessage returns a copy of msg and the pooled memory that holds it.
func copyMessage(msg []byte) ([]byte, *bufpool.Buffer) {
	mem := bufpool.Get(len(msg))
	body := mem.Bytes(len(msg))
	for dst := body; len(msg) > 0; {
		n := copy(dst, msg[:min(len(msg), copyAtOnce)])
		dst, msg = dst[n:], msg[n:]
	}
	return body, mem
}
