package mpi

import (
	"context"
	"errors"
	"slices"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// recv is the blocking receive.
func (c *comm) recv(ctx context.Context, s slot, b []byte, src, tag int) (status, error) {
	if src == procNull {
		return noMessage, c.usable()
	}
	if err := c.checkSource(s, src); err != nil {
		return status{}, err
	}
	r := getRequest(c.eng)
	c.startRecv(r, s, b, src, tag)
	return c.eng.finishRecv(ctx, r)
}

// recvInternal is recv for a goroutine of the library. It neither polls nor takes part in
// Leader/Followers, so it does not compete with the waits of the program.
func (c *comm) recvInternal(ctx context.Context, s slot, b []byte, src, tag int) (status, error) {
	r := getRequest(c.eng)
	r.internal = true
	c.startRecv(r, s, b, src, tag)
	return c.eng.finishRecv(ctx, r)
}

// finishRecv waits for r, as awaitRecv does, and recycles it.
func (e *engine) finishRecv(ctx context.Context, r *request) (status, error) {
	st, err := e.awaitRecv(ctx, r)
	if err == nil {
		r.recycle()
	}
	return st, err
}

// awaitRecv waits for r. If ctx ends before a message has matched, r is withdrawn. After a match
// the sender may have been told that its message is received, so awaitRecv waits for that message
// in spite of ctx.
func (e *engine) awaitRecv(ctx context.Context, r *request) (status, error) {
	if err := r.await(ctx); err != nil {
		e.cancel(r, err)
		_ = r.await(context.Background())
	}
	if r.err != nil && r.length <= uint64(r.status.Bytes) {
		return status{}, r.err
	}
	return r.status, r.err // with an error if the message was truncated, or of another type
}

// irecv starts a receive.
func (c *comm) irecv(s slot, b []byte, src, tag int) (*request, error) {
	r := getRequest(c.eng)
	if err := c.beginRecv(r, s, b, src, tag); err != nil {
		r.recycle()
		return nil, err
	}
	return r, nil
}

// beginRecv makes r a nonblocking receive. If it returns an error, r is as before.
func (c *comm) beginRecv(r *request, s slot, b []byte, src, tag int) error {
	if src == procNull {
		if err := c.usable(); err != nil {
			return err
		}
		r.status = noMessage
		r.complete(nil)
		return nil
	}
	if err := c.checkSource(s, src); err != nil {
		return err
	}
	r.anySource = src == anySource && s.context() == slotUser
	c.startRecv(r, s, b, src, tag)
	return nil
}

// noMessage is the status of operations with ProcNull.
var noMessage = status{Source: procNull, Tag: anyTag}

// sendrecv is the combined send and receive. Both slots belong to one context.
func (c *comm) sendrecv(ctx context.Context, s slot, sb []byte, dst, stag int, rs slot, rb []byte, src, rtag int) (status, error) {
	if src == procNull {
		return noMessage, c.send(ctx, s, sendStandard, sb, dst, stag)
	}
	if err := c.checkSource(rs, src); err != nil {
		return status{}, err
	}
	return c.sendWith(ctx, getRequest(c.eng), s, sb, dst, stag, rs, rb, src, rtag)
}

// partialError says that one of the two messages of a combined send and receive was exchanged and
// the other was not.
type partialError struct {
	Sent     bool  // the message was sent, and none received
	Received bool  // a message was received, and none sent
	Err      error // why the other one was not exchanged
}

func (e *partialError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *partialError) Unwrap() error { return e.Err }

// sendWith posts the receive r, sends, and waits for r. If the send fails, r is withdrawn, unless a
// message has matched it: then it receives that message.
func (c *comm) sendWith(ctx context.Context, r *request, s slot, sb []byte, dst, stag int, rs slot, rb []byte, src, rtag int) (status, error) {
	e := c.eng
	err := ctx.Err()
	if err == nil && dst != procNull {
		err = c.checkPeer(s, dst)
	}
	if err != nil { // before anything is received
		r.recycle()
		return status{}, err
	}
	c.startRecv(r, rs, rb, src, rtag)
	serr := c.send(ctx, s, sendStandard, sb, dst, stag)
	if serr != nil {
		e.cancel(r, serr)
		ctx = context.Background()
	}
	st, rerr := e.finishRecv(ctx, r)
	switch {
	case serr == nil && (rerr == nil || st != status{} || errors.Is(rerr, mpierr.ErrTypeMismatch)): // st: a truncated message
		return st, rerr
	case serr == nil && (s.context() != slotUser || dst == procNull):
		return status{}, rerr
	case serr == nil:
		return status{}, &partialError{Sent: true, Err: rerr}
	case rerr != nil && st == status{}:
		return status{}, serr
	case s.context() != slotUser:
		return st, serr
	}
	return st, &partialError{Received: true, Err: errors.Join(serr, rerr)}
}

func (c *comm) checkSource(s slot, src int) error {
	if src == anySource {
		return c.open(s)
	}
	return c.checkPeer(s, src)
}

// startRecv matches r with an unexpected message, or posts it.
func (c *comm) startRecv(r *request, s slot, b []byte, src, tag int) {
	e, x := c.eng, c.ctx[s.context()]
	r.ctx, r.src, r.tag, r.buf, r.sig = x, int32(src), int32(tag), b, s.sig()
	e.mu.Lock()
	if e.err != nil || x.dead != nil {
		err := e.err
		if err == nil {
			err = x.dead
		}
		e.mu.Unlock()
		r.complete(err)
		return
	}
	if x.post(r) == nil {
		if err := c.cannotWait(x, r); err != nil {
			x.unpost(r)
			e.mu.Unlock()
			r.complete(err)
			return
		}
	}
	ms := x.taken()
	e.mu.Unlock()
	e.handAll(ms)
}

// sourceGone returns why a receive from src cannot complete, or nil. e.mu is held. A peer is marked
// as failed before the engine fails the posted receives, so a receive that is posted after that
// finds the mark here.
func (c *comm) sourceGone(x *matchContext, src int) error {
	if src != anySource {
		return c.peers[src].failure()
	}
	if !x.unacked {
		return nil
	}
	for i, p := range c.peers {
		if err := p.failure(); err != nil && !p.disconnected.Load() && !c.hasAcked(i) {
			return err
		}
	}
	return nil
}

// cancel withdraws r, completes it with err, and reports true. If a message has matched r, cancel
// reports false and r receives the message. If that message does not come (see rematch), r is
// completed with err.
func (e *engine) cancel(r *request, err error) bool {
	e.mu.Lock()
	x := r.ctx
	ok := x.unpost(r)
	if !ok {
		r.quit = err
	} else if r.tag == anyTag {
		x.recheck()
	}
	ms := x.taken()
	e.mu.Unlock()
	e.handAll(ms)
	if ok {
		r.complete(err)
	}
	return ok
}

// peerDown fails the operations that wait for p.
func (e *engine) peerDown(p *peer, err error) {
	var unmatched []*request
	for _, r := range e.ids.removeAll(p) {
		if r.ctx != nil {
			unmatched = append(unmatched, r)
		} else {
			r.fail(err)
		}
	}
	var failed []*request
	var ready []*message
	e.mu.Lock()
	for _, x := range e.contexts {
		failed = x.sourceDown(p, err, failed)
		for m := x.taken(); m != nil; m = m.next {
			ready = append(ready, m)
		}
	}
	e.mu.Unlock()
	for _, r := range failed {
		r.fail(err)
	}
	for _, r := range unmatched {
		e.rematch(r, err)
	}
	for _, m := range ready {
		e.hand(m, m.match)
	}
	if !p.disconnected.Load() {
		e.interruptSends((*matchContext).isBroken, err)
	}
	if e.onDown != nil {
		go e.onDown(p, err)
	}
}

// sourceDown unposts the receives that wait for p and appends them to failed. It removes the RTS
// messages of p from the unexpected queue.
func (x *matchContext) sourceDown(p *peer, err error, failed []*request) []*request {
	src, bye := int32(-1), p.disconnected.Load()
	if x.comm != nil {
		if src = int32(slices.Index(x.comm.peers, p)); src < 0 {
			return failed
		}
		x.abandonGaps(src)
	}
	if !bye {
		x.unacked = true
		x.breakComm(err)
	}
	for _, m := range x.messages(func(m *message) bool { return m.peer == p && m.kind == envelope.RTS }) {
		x.removeMessage(m) // its body will not come
		m.recycle()
	}
	n := len(failed)
	x.posted.each(func(el *elem) {
		switch r := el.req; {
		case r.src == src && src >= 0, !bye && x.interrupts(r):
			failed = append(failed, r)
		case r.src == anySource && !bye && !x.internal:
			if !r.anySource {
				failed = append(failed, r)
			} else {
				r.wake() // its Wait returns ErrProcFailedPending
			}
		}
	})
	for _, r := range failed[n:] {
		x.unpost(r)
	}
	x.recheck()
	x.wakeProbers()
	return failed
}

// messages returns the unexpected messages for which f reports true.
func (x *matchContext) messages(f func(*message) bool) []*message {
	var ms []*message
	x.unexp.each(func(el *elem) {
		if m := el.msg; el == &m.elems[0] && f(m) {
			ms = append(ms, m)
		}
	})
	return ms
}

// closeAll fails all operations in progress, and all that start later.
func (e *engine) closeAll(err error) {
	e.mu.Lock()
	if e.err == nil {
		e.err = err
	}
	e.mu.Unlock()
	for _, p := range e.all() {
		for _, r := range e.ids.removeAll(p) {
			r.fail(err)
		}
	}
	e.mu.Lock()
	var rs []*request
	for _, x := range e.contexts {
		rs = x.drain(rs)
		x.wakeProbers()
	}
	e.mu.Unlock()
	for _, r := range rs {
		r.fail(err)
	}
}

// drain unposts all receives and appends them to rs.
func (x *matchContext) drain(rs []*request) []*request {
	n := len(rs)
	x.posted.each(func(el *elem) { rs = append(rs, el.req) })
	for _, r := range rs[n:] {
		x.unpost(r)
	}
	return rs
}

// dropContexts removes contexts: operations that wait, and messages that come later, fail with err.
func (e *engine) dropContexts(err error, contexts ...*matchContext) {
	var rs []*request
	var gone []*message
	e.mu.Lock()
	for _, x := range contexts {
		if x.dead != nil {
			continue
		}
		rs = x.drain(rs)
		x.dead = err
		delete(e.contexts, x.id)
		e.forgetContext(x.id, err)
		for _, m := range x.messages(func(*message) bool { return true }) {
			x.removeMessage(m)
			if m.whole {
				gone = append(gone, m)
			} else {
				m.dropped = true // freed by messageWhole
				if m.kind == envelope.Sync && errors.Is(err, mpierr.ErrRevoked) {
					m.kind = envelope.Eager // not matched, see arrive
				}
			}
		}
		x.wakeProbers()
	}
	e.mu.Unlock()
	for _, r := range rs {
		r.fail(err)
	}
	for _, m := range gone {
		switch {
		case !errors.Is(err, mpierr.ErrRevoked):
			m.peer.dropped(m.kind, m.length, m.id)
		case m.kind != envelope.RTS: // not matched, see arrive
			m.peer.repay(m.length)
		}
		m.recycle()
	}
}

// forgetContext remembers the id of a removed context. e.mu is held.
func (e *engine) forgetContext(id uint64, err error) {
	if len(e.freed) < maxFreed {
		e.freed = append(e.freed, id)
	} else {
		i := e.nfreed % maxFreed
		delete(e.dropped, e.freed[i])
		e.freed[i] = id
		e.nfreed++
	}
	if errors.Is(err, mpierr.ErrRevoked) {
		e.dropped[id] = true
	}
}
