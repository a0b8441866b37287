package sctp

import (
	"context"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/internal/udpio"
)

// Send queues a message of any length on a stream (RFC 9260, Section 11.1.5). It blocks while
// the send buffer is full, until ctx is done, and does not wait for the acknowledgement. When
// it returns msg belongs to the caller again; with opts.Owner it belongs to the association
// until Released is called, and is not copied.
//
// The error is that of ctx, [ErrShutdown] after a shutdown began, the reason of the end as of
// [Association.Err] or [ErrClosed] after the end, [ErrNoStream], [ErrEmpty],
// [ErrMessageTooLong], [ErrMessageOpen], [ErrOptions] or [ErrNoKey].
//
// Like [Association.TrySend] it makes no upcalls, so it may be called with locks held that
// upcalls take, unless it has to wait for room or, in a sequence of messages, had to just
// before: then it polls the sockets itself, see [Transport.Poll].
func (a *Association) Send(ctx context.Context, msg []byte, opts SendOptions) error {
	err := a.send(ctx.Done(), nil, msg, &opts)
	if err == errStopped {
		return ctx.Err()
	}
	return err
}

// TrySend is [Association.Send] that never blocks and makes no upcalls: it returns
// [ErrWouldBlock] when the send buffer is full and opts.Force is not set.
func (a *Association) TrySend(msg []byte, opts SendOptions) error {
	return a.send(stopped, nil, msg, &opts)
}

// Flush transmits messages that were sent with [SendOptions].More and wait for another one.
// It does not block.
func (a *Association) Flush() { a.goCallbacks(a.flush()) }

// stopped makes send and recv return at once instead of waiting. Nothing is ever sent on it:
// only its identity counts.
var stopped = make(<-chan struct{})

// send queues a message. It waits for room until stop or expired is closed, and
// then returns errStopped or errExpired.
func (a *Association) send(stop, expired <-chan struct{}, msg []byte, opts *SendOptions) error {
	a.prefetchForSend()
	var m tx.Message
	if opts.Owner == nil && len(msg) >= minBorrow && !opts.More && a.canBorrow.Load() && a.flushing.Load() == 0 {
		newMessage(&m, nil, opts)
		m.Body, m.Borrowed = msg, true
		return a.push(stop, expired, &m, nil, false)
	}
	own := newMessage(&m, msg, opts)
	return a.push(stop, expired, &m, own, opts.More)
}

// sendSmall is the small-message fast path: m goes straight into a packet, as the core has said
// that no other message, retransmission or control chunk is to be sent. It unlocks a.mu and
// leaves timers and bookkeeping until the packet has left. looks is true if the caller may poll
// the sockets; startFlush has returned true. It reports false, and has not sent m, if the
// packet has to wait for room in a window.
func (a *Association) sendSmall(m *tx.Message, looks bool) bool {
	now := a.t.now()
	b := batchBufs.Get().(*batchBuf)
	out, ok := a.core.SendSmall(now, m, b.space(), &b.tx)
	if !ok {
		batchBufs.Put(b)
		a.goCallbacks(a.transmitAll(now)) // others may have left their flush to this goroutine
		return false
	}
	looks = looks && a.countUnread(m.Len(), false) && a.maySenderPoll(now)
	a.mu.Unlock()
	a.t.send(out, b)
	batchBufs.Put(b)
	// Timers and bookkeeping, for which the packet need not wait.
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

// push queues m and transmits what may leave. own is the memory of its copy, nil if it was
// not copied; more is true if the caller sends another message at once. It waits as send does.
func (a *Association) push(stop, expired <-chan struct{}, m *tx.Message, own *bufpool.Buffer, more bool) error {
	small := !more && a.autoClose == 0 && m.Len() < minIOVec // the core may take the small-message fast path
	for {
		a.mu.Lock()
		if m.Borrowed {
			a.endBorrow() // the buffer of another goroutine
		}
		if small && a.flushing.Load() == 0 && a.core.CanSendSmall(m) && a.startFlush() {
			if a.sendSmall(m, stop != stopped) {
				return nil
			}
			small = false
			continue
		}
		err := a.core.Send(a.sendTime(m), m)
		if err != tx.ErrWouldBlock || stop == stopped {
			if err != nil {
				a.goCallbacks(a.drainAndUnlock())
				own.Put()
				return a.sendError(err)
			}
			n := m.Len()
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
			a.writers.takeFirst(&k) // pass the wake-up on to the next writer
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
	// pollEvery is after how many bytes a sender that fills the send buffer polls the
	// sockets itself, 128 KiB. A message counts as at least minCounted bytes.
	//
	// With messages longer than minCounted it polls before a GSO batch leaves:
	// acknowledgements make room for more packets, which would be a short batch of their own
	// after it. With shorter messages it polls after the batch has left, so that the receiver
	// has something to do meanwhile.
	pollEvery  = 128 << 10
	minCounted = 512
	// borrowedShare divides the bytes of a message whose send buffer is borrowed (zero-copy
	// send): its packets have left when Send returns, and while the windows have room for the
	// next one it is cheaper to read several acknowledgements at a time.
	borrowedShare = 4
	// maxPollAge is the longest time since the last poll, or the last wait for room, after
	// which a sender polls, 200 µs: a slower sender leaves it to the readers.
	maxPollAge = clock.Time(minTick)
)

// countUnread counts n bytes that are sent, from a borrowed buffer or not, and reports
// whether to ask maySenderPoll. a.mu is held.
func (a *Association) countUnread(n int, borrowed bool) bool {
	if borrowed {
		n /= borrowedShare
	}
	a.unread += max(n, minCounted)
	return a.unread >= pollEvery
}

// maySenderPoll reports whether a sender should poll the sockets: acknowledgements that wake a
// reader move the state of the association to another processor's cache and back. a.mu is
// held.
func (a *Association) maySenderPoll(now clock.Time) bool {
	a.unread = 0
	if now-a.senderPolled > maxPollAge {
		return false
	}
	a.senderPolled = now
	return true
}

// newMessage makes the message that opts describe. If they name no owner it copies msg and
// returns the memory of the copy. It returns nil if they do, and if the core copies the
// message because it is short.
func newMessage(m *tx.Message, msg []byte, opts *SendOptions) (own *bufpool.Buffer) {
	*m = tx.Message{}
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
	case len(msg) <= tx.MaxHeader && len(m.Header) == 0:
		m.Header, m.Body = msg, nil // headers are copied
	case len(msg) > 0:
		m.Body, own = copyMessage(msg)
		m.Owner = own
	}
	return own
}

// launch transmits what was queued, unless more is true or the last packets are corked: held
// back for the next message to fill them up. It unlocks a.mu.
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

// sendTime returns the time for core.Send, which uses it only for a message with a lifetime:
// reading the clock took 8 % of the time of a sender of short messages.
func (a *Association) sendTime(m *tx.Message) clock.Time {
	if m.Lifetime == 0 {
		return 0
	}
	return a.t.now()
}

// An Outgoing is a message of [Association.TrySendBatch], with its options. Msg is copied
// unless Owner is set.
type Outgoing struct {
	Msg []byte
	SendOptions
}

// TrySendBatch queues messages in order in one step, as calls of [Association.TrySend] would
// with More for all but the last. It does not block. It returns how many were queued, and, if
// that is not all, the error of the next one: [ErrWouldBlock] when the send buffer is full, or
// another one of TrySend. The queued messages are transmitted; Released is not called for the
// owners of the others.
func (a *Association) TrySendBatch(batch []Outgoing) (n int, err error) {
	if len(batch) == 0 {
		return 0, nil
	}
	a.prefetchForSend()
	a.mu.Lock()
	var m tx.Message
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

// MaxSeries bounds the bytes of the messages of a [Series], headers included.
const MaxSeries = tx.MaxSegmented

// A Series is a batch of messages that are cut from one buffer, each with a header of its own
// (segmented send). An upper layer uses it to make messages that fit one packet each.
type Series struct {
	// Body is what the messages carry: Unit bytes each, the last what is left.
	Body []byte
	Unit int
	// Headers holds what goes in front of each, as part of it, one after another and
	// all of the same length, at most MaxHeader bytes.
	Headers []byte
}

// TrySendSeries queues the messages of s in order, all or none, in little more time than one.
// It does not block, and returns [ErrWouldBlock] when the send buffer is full.
//
// opts are the options of all messages, but Immediate holds for the last one. Unordered and
// Owner must be set: Released is called once, when all messages are acknowledged, and until
// then neither Body nor Headers may change. It returns [ErrOptions] for ordered messages,
// without an Owner, with a partial reliability policy or opts.Header, and for a Series that is
// empty or longer than [MaxSeries].
func (a *Association) TrySendSeries(s Series, opts SendOptions) error {
	if opts.Owner == nil || s.Unit <= 0 {
		return ErrOptions
	}
	a.prefetchForSend()
	var m tx.Message
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
