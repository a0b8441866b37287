package sctp

import (
	"context"
	"errors"
	"io"

	"github.com/weftstack/weft/sctp/internal/core/reasm"
)

// errStopped and errExpired are what waiting returns when its channels close.
var (
	errStopped = errors.New("sctp: stopped")
	errExpired = errors.New("sctp: deadline exceeded")
)

// wait parks until the waiter is woken or one of the channels is closed.
func wait(w *waiter, stop, expired <-chan struct{}) error {
	select {
	case <-w.ch:
		return nil
	case <-stop:
		return errStopped
	case <-expired:
		return errExpired
	}
}

// Recv receives from any stream (RFC 9260, Section 11.1.7): it copies a message, or the next
// part of one that is longer than buf, and returns how many bytes it copied; info.EOR is set
// with the last part. It blocks until there is something, ctx is done, or the association has
// ended, and may make upcalls of other associations meanwhile. buf belongs to Recv until it
// returns.
//
// The error is that of ctx, io.EOF after a graceful shutdown by the peer, [ErrClosed] after
// [Association.Close], otherwise the reason of the end as of [Association.Err].
func (a *Association) Recv(ctx context.Context, buf []byte) (n int, info RecvInfo, err error) {
	n, err = a.recvContext(ctx, anyStream, buf, &info)
	return n, info, err
}

// RecvStream is [Association.Recv] for one stream; messages on other streams stay queued.
func (a *Association) RecvStream(ctx context.Context, stream uint16, buf []byte) (n int, info RecvInfo, err error) {
	n, err = a.recvContext(ctx, int(stream), buf, &info)
	return n, info, err
}

// TryRecv is [Association.Recv] that never blocks: it returns [ErrWouldBlock] if there is
// nothing to receive.
func (a *Association) TryRecv(buf []byte) (n int, info RecvInfo, err error) {
	n, err = a.recv(stopped, nil, anyStream, buf, &info)
	if err == errStopped {
		err = ErrWouldBlock
	}
	return n, info, err
}

// Peek describes the message from which the next [Association.Recv] will be, and returns how
// many bytes of it can be received now: all that are left of it if info.EOR is set. ok is
// false if there is nothing to receive. It does not block. It is SCTP_NXTINFO (RFC 6458,
// Section 5.3.6).
func (a *Association) Peek() (n int, info RecvInfo, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, i, ok := a.core.Peek()
	if !ok {
		return 0, RecvInfo{}, false
	}
	info.set(a, &i)
	return n, info, true
}

// ReadableStreams appends to dst the streams for which [Association.RecvStream] would not
// block.
func (a *Association) ReadableStreams(dst []uint16) []uint16 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.ReadableStreams(dst)
}

func (a *Association) recvContext(ctx context.Context, stream int, buf []byte, info *RecvInfo) (int, error) {
	n, err := a.recv(ctx.Done(), nil, stream, buf, info)
	if err == errStopped {
		err = ctx.Err()
	}
	return n, err
}

// recv receives from a stream or any, waiting until stop or expired is closed. What
// it received goes to info.
func (a *Association) recv(stop, expired <-chan struct{}, stream int, buf []byte, info *RecvInfo) (int, error) {
	var i reasm.RecvInfo
	var w Wait
	spin, again := false, false
	for {
		seq := a.seq.Load()
		a.mu.Lock()
		n, ok := a.read(stream, buf, &i)
		if ok {
			a.active()
			if a.core.WantTransmit() {
				a.goCallbacks(a.flushLocked(a.t.now()))
			} else {
				a.goCallbacks(a.drainAndUnlock())
			}
			w.End()
			info.set(a, &i)
			return n, nil
		}
		if a.eof || a.closing {
			err := a.recvEnd()
			a.mu.Unlock()
			return 0, err
		}
		if stop == stopped {
			a.mu.Unlock()
			return 0, errStopped
		}
		if w.t == nil {
			w = a.t.BeginWait()
			spin = w.w.Budget > 0
		}
		if spin {
			posted := a.postBuffer(stream, buf)
			a.mu.Unlock()
			// What moved a.seq was not what is waited for, if this is not the first time.
			spin = !(again && w.over(true)) && a.spin(&w, seq, posted, stop, expired)
			again = true
			if posted {
				if n, ok := a.takePosted(info); ok {
					w.End()
					return n, nil
				}
			}
			continue
		}
		wt := a.readers.add(stream)
		a.mu.Unlock()
		err := a.t.waitOn(wt, stop, expired)
		a.mu.Lock()
		if woken := a.readers.recycle(wt); err == nil {
			a.mu.Unlock()
		} else {
			if woken {
				a.drainAndUnlock() // pass the wake-up on to another reader
			} else {
				a.mu.Unlock()
			}
			return 0, err
		}
	}
}

// read reads from the core unless the association was closed. a.mu is held.
func (a *Association) read(stream int, buf []byte, info *reasm.RecvInfo) (n int, ok bool) {
	switch {
	case a.closing:
		return 0, false
	case stream == anyStream:
		return a.core.Read(buf, info)
	}
	return a.core.ReadStream(uint16(stream), buf, info)
}

// recvEnd returns why there will be nothing more to receive. a.mu is held.
func (a *Association) recvEnd() error {
	switch {
	case a.closing:
		return ErrClosed
	case a.err != nil:
		return a.err
	}
	return io.EOF
}

// set describes to the user what was received by a. See upcalls.set.
func (d *RecvInfo) set(a *Association, i *reasm.RecvInfo) {
	d.Association, d.Stream, d.SSN, d.MID = a, i.SID, uint16(i.SSN), uint32(i.MID)
	d.PPID, d.TSN, d.Unordered = i.PPID, uint32(i.TSN), i.Unordered
	d.Message, d.Offset, d.EOR, d.Aborted = i.Message, i.Offset, i.EOR, i.Aborted
}

// spin polls the sockets until a.seq moves, the budget of w is used up, or one of the channels
// is closed. It reports whether a.seq moved. posted is true if the caller has pre-posted a
// receive buffer.
func (a *Association) spin(w *Wait, seq uint32, posted bool, stop, expired <-chan struct{}) bool {
	t := a.t
	if !t.spinning.Enter() {
		return false
	}
	ended := false
	defer func() {
		t.spinning.Leave()
		if posted && !ended { // an upcall panicked or ended the goroutine: the buffer is not to be written to
			a.takePosted(new(RecvInfo))
		}
	}()
	moved := a.spinUntil(w, seq, stop, expired)
	ended = true
	return moved
}

// spinUntil is spin for a goroutine that is counted among those that spin.
func (a *Association) spinUntil(w *Wait, seq uint32, stop, expired <-chan struct{}) bool {
	return a.t.loop.Spin(&w.w, func() bool { return a.seq.Load() != seq },
		func() bool { return closed(stop) || closed(expired) })
}

// closed reports whether c is closed. Nothing is ever sent on it.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Recv receives from any association of the endpoint (one-to-many style, RFC 6458, Section 3);
// info.Association is the one. It blocks until there is a message, ctx is done, and returns
// its error, or the endpoint is closed, and returns [ErrClosed]. From the first call on, the
// endpoint keeps the associations that peers open without [Endpoint.Accept].
func (e *Endpoint) Recv(ctx context.Context, buf []byte) (int, RecvInfo, error) {
	if !e.many.Swap(true) {
		e.becomeMany()
	}
	for {
		e.mu.Lock()
		for len(e.ready) > 0 {
			a := e.ready[0]
			n := copy(e.ready, e.ready[1:])
			e.ready[n] = nil
			e.ready = e.ready[:n]
			a.queued = false
			e.mu.Unlock()
			if n, info, err := a.TryRecv(buf); err == nil {
				return n, info, nil
			}
			e.mu.Lock()
		}
		if e.closed.Load() {
			e.mu.Unlock()
			return 0, RecvInfo{}, e.t.closedError()
		}
		wt := e.waiters.add(0)
		e.mu.Unlock()
		w := e.t.BeginWait()
		stop := ctx.Done()
		if w.poll(func() bool { return len(wt.ch) > 0 || closed(stop) }); len(wt.ch) == 0 {
			if err := e.t.waitOn(wt, stop, nil); err != nil {
				e.recycle(wt, true)
				return 0, RecvInfo{}, ctx.Err()
			}
		}
		w.End()
		e.recycle(wt, false)
	}
}

// recycle takes a waiter back; if it leaves although it was woken, the next one
// is woken in its place.
func (e *Endpoint) recycle(wt *waiter, leaves bool) {
	var k wakeList
	e.mu.Lock()
	if e.waiters.recycle(wt) && leaves {
		e.waiters.takeFirst(&k)
	}
	e.mu.Unlock()
	k.wake()
}

// becomeMany makes the associations there are readable with Recv.
func (e *Endpoint) becomeMany() {
	for {
		select {
		case <-e.backlog:
			continue
		default:
		}
		break
	}
	for _, a := range e.Associations() {
		a.mu.Lock()
		a.runCallbacks(a.drainAndUnlock())
	}
}

// enqueue notes that an association has something for Recv.
func (e *Endpoint) enqueue(a *Association) {
	var k wakeList
	e.mu.Lock()
	if !a.queued {
		a.queued = true
		e.ready = append(e.ready, a)
		e.waiters.takeFirst(&k)
	}
	e.mu.Unlock()
	k.wake()
}
