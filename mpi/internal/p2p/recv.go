package p2p

import (
	"context"
	"errors"
	"slices"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Recv is the blocking receive.
func (c *Comm) Recv(ctx context.Context, s Slot, b []byte, src, tag int) (Status, error) {
	if src == ProcNull {
		return noMessage, c.Usable()
	}
	if err := c.CheckSource(s, src); err != nil {
		return Status{}, err
	}
	r := GetRequest(c.Engine)
	c.StartRecv(r, s, b, src, tag)
	return c.Engine.FinishRecv(ctx, r)
}

// RecvInternal is recv for a goroutine of the library. It neither polls nor takes part in
// Leader/Followers, so it does not compete with the waits of the program.
func (c *Comm) RecvInternal(ctx context.Context, s Slot, b []byte, src, tag int) (Status, error) {
	r := GetRequest(c.Engine)
	r.Internal = true
	c.StartRecv(r, s, b, src, tag)
	return c.Engine.FinishRecv(ctx, r)
}

// FinishRecv waits for r, as AwaitRecv does, and recycles it.
func (e *Engine) FinishRecv(ctx context.Context, r *Request) (Status, error) {
	st, err := e.AwaitRecv(ctx, r)
	if err == nil {
		r.Recycle()
	}
	return st, err
}

// AwaitRecv waits for r. If ctx ends before a message has matched, r is withdrawn. After a match
// the sender may have been told that its message is received, so AwaitRecv waits for that message
// in spite of ctx.
func (e *Engine) AwaitRecv(ctx context.Context, r *Request) (Status, error) {
	if err := r.Await(ctx); err != nil {
		e.Cancel(r, err)
		_ = r.Await(context.Background())
	}
	if r.Err != nil && r.Length <= uint64(r.Status.Bytes) {
		return Status{}, r.Err
	}
	return r.Status, r.Err // with an error if the message was truncated, or of another type
}

// Irecv starts a receive.
func (c *Comm) Irecv(s Slot, b []byte, src, tag int) (*Request, error) {
	r := GetRequest(c.Engine)
	if err := c.BeginRecv(r, s, b, src, tag); err != nil {
		r.Recycle()
		return nil, err
	}
	return r, nil
}

// BeginRecv makes r a nonblocking receive. If it returns an error, r is as before.
func (c *Comm) BeginRecv(r *Request, s Slot, b []byte, src, tag int) error {
	if src == ProcNull {
		if err := c.Usable(); err != nil {
			return err
		}
		r.Status = noMessage
		r.Complete(nil)
		return nil
	}
	if err := c.CheckSource(s, src); err != nil {
		return err
	}
	r.anySource = src == AnySource && s.context() == SlotUser
	c.StartRecv(r, s, b, src, tag)
	return nil
}

// noMessage is the status of operations with ProcNull.
var noMessage = Status{Source: ProcNull, Tag: AnyTag}

// Sendrecv is the combined send and receive. Both slots belong to one context.
func (c *Comm) Sendrecv(
	ctx context.Context, s Slot, sb []byte, dst, stag int, rs Slot, rb []byte, src, rtag int,
) (Status, error) {
	if src == ProcNull {
		return noMessage, c.Send(ctx, s, SendStandard, sb, dst, stag)
	}
	if err := c.CheckSource(rs, src); err != nil {
		return Status{}, err
	}
	return c.SendWith(ctx, GetRequest(c.Engine), s, sb, dst, stag, rs, rb, src, rtag)
}

// PartialError says that one of the two messages of a combined send and receive was exchanged and
// the other was not.
type PartialError struct {
	Sent     bool  // the message was sent, and none received
	Received bool  // a message was received, and none sent
	Err      error // why the other one was not exchanged
}

func (e *PartialError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *PartialError) Unwrap() error { return e.Err }

// SendWith posts the receive r, sends, and waits for r. If the send fails, r is withdrawn, unless a
// message has matched it: then it receives that message.
func (c *Comm) SendWith(
	ctx context.Context, r *Request, s Slot, sb []byte, dst, stag int, rs Slot, rb []byte, src, rtag int,
) (Status, error) {
	if err := c.beforeSendWith(ctx, r, s, dst); err != nil {
		return Status{}, err
	}
	c.StartRecv(r, rs, rb, src, rtag)
	serr := c.Send(ctx, s, SendStandard, sb, dst, stag)
	return c.afterSendWith(ctx, r, s, dst, serr)
}

// beforeSendWith returns why SendWith cannot send, before anything is received, and recycles r then.
func (c *Comm) beforeSendWith(ctx context.Context, r *Request, s Slot, dst int) error {
	err := ctx.Err()
	if err == nil && dst != ProcNull {
		err = c.CheckPeer(s, dst)
	}
	if err != nil {
		r.Recycle()
	}
	return err
}

// afterSendWith waits for the receive r of a SendWith, of which the send has ended with serr.
func (c *Comm) afterSendWith(ctx context.Context, r *Request, s Slot, dst int, serr error) (Status, error) {
	e := c.Engine
	if serr != nil {
		e.Cancel(r, serr)
		ctx = context.Background()
	}
	st, rerr := e.FinishRecv(ctx, r)
	switch {
	case serr == nil && (rerr == nil || isOfMessage(rerr)):
		return st, rerr
	case serr == nil && (s.context() != SlotUser || dst == ProcNull):
		return Status{}, rerr
	case serr == nil:
		return Status{}, &PartialError{Sent: true, Err: rerr}
	case rerr != nil && !isOfMessage(rerr):
		return Status{}, serr
	case s.context() != SlotUser:
		return st, serr
	}
	return st, &PartialError{Received: true, Err: errors.Join(serr, rerr)}
}

// isOfMessage reports whether the error of a receive is about the message that it got, and not the
// reason why it got none.
func isOfMessage(err error) bool {
	return errors.Is(err, mpierr.ErrTruncate) || errors.Is(err, mpierr.ErrCount) || errors.Is(err, mpierr.ErrTypeMismatch)
}

// CheckSource returns the error of a receive from src, or nil if it may be posted.
func (c *Comm) CheckSource(s Slot, src int) error {
	if src == AnySource {
		return c.open(s)
	}
	return c.CheckPeer(s, src)
}

// StartRecv matches r with an unexpected message, or posts it.
func (c *Comm) StartRecv(r *Request, s Slot, b []byte, src, tag int) {
	e, x := c.Engine, c.Contexts[s.context()]
	r.Context, r.src, r.tag, r.Buf, r.sig = x, int32(src), int32(tag), b, s.Sig()
	e.Mu.Lock()
	if e.err != nil || x.dead != nil {
		err := e.err
		if err == nil {
			err = x.dead
		}
		e.Mu.Unlock()
		r.Complete(err)
		return
	}
	if x.post(r) == nil {
		if err := c.cannotWait(x, r); err != nil {
			x.unpost(r)
			e.Mu.Unlock()
			r.Complete(err)
			return
		}
	}
	ms := x.taken()
	e.Mu.Unlock()
	e.handAll(ms)
}

// sourceGone returns why a receive from src cannot complete, or nil. e.mu is held. A peer is marked
// as failed before the engine fails the posted receives, so a receive that is posted after that
// finds the mark here.
func (c *Comm) sourceGone(x *Context, src int) error {
	if src != AnySource {
		return c.Peers[src].Failure()
	}
	if !x.unacked {
		return nil
	}
	for i, p := range c.Peers {
		if err := p.Failure(); err != nil && !p.Disconnected.Load() && !c.hasAcked(i) {
			return err
		}
	}
	return nil
}

// Cancel withdraws r, completes it with err, and reports true. If a message has matched r, cancel
// reports false and r receives the message. If that message does not come (see rematch), r is
// completed with err.
func (e *Engine) Cancel(r *Request, err error) bool {
	e.Mu.Lock()
	x := r.Context
	ok := x.unpost(r)
	if !ok {
		r.quit = err
	} else if r.tag == AnyTag {
		x.recheck()
	}
	ms := x.taken()
	e.Mu.Unlock()
	e.handAll(ms)
	if ok {
		r.Complete(err)
	}
	return ok
}

// peerDown fails the operations that wait for p.
func (e *Engine) peerDown(p *Peer, err error) {
	var unmatched []*Request
	for _, r := range e.IDs.removeAll(p) {
		if r.Context != nil {
			unmatched = append(unmatched, r)
		} else {
			r.abandon(err)
		}
	}
	var failed []*Request
	var ready []*Message
	e.Mu.Lock()
	for _, x := range e.Contexts {
		failed = x.sourceDown(p, err, failed)
		for m := x.taken(); m != nil; m = m.next {
			ready = append(ready, m)
		}
	}
	e.Mu.Unlock()
	for _, r := range failed {
		r.Fail(err)
	}
	for _, r := range unmatched {
		e.rematch(r, err)
	}
	for _, m := range ready {
		e.hand(m, m.match)
	}
	if !p.Disconnected.Load() {
		e.InterruptSends((*Context).isBroken, err)
	}
}

// sourceDown unposts the receives that wait for p and appends them to failed. It removes the RTS
// messages of p from the unexpected queue.
func (x *Context) sourceDown(p *Peer, err error, failed []*Request) []*Request {
	src, bye := int32(-1), p.Disconnected.Load()
	local := false // p is in the local group of an intercommunicator: nothing is received from it
	if x.comm != nil {
		if src = int32(slices.Index(x.comm.Peers, p)); src >= 0 {
			x.abandonGaps(src)
		} else if local = !bye && slices.Contains(x.comm.Local, p); !local {
			return failed
		}
	}
	if !bye {
		x.unacked = x.unacked || !local
		x.breakComm(err)
	}
	for _, m := range x.messages(func(m *Message) bool { return m.peer == p && m.kind == envelope.RTS }) {
		x.removeMessage(m) // its body will not come
		m.recycle()
	}
	n := len(failed)
	x.posted.each(func(el *matchElem) {
		switch r := el.request; {
		case r.src == src && src >= 0, !bye && x.interrupts(r):
			failed = append(failed, r)
		case r.src == AnySource && !bye && !local && !x.internal:
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

// Messages returns the unexpected messages for which f reports true.
func (x *Context) messages(f func(*Message) bool) []*Message {
	var ms []*Message
	x.unexpected.each(func(el *matchElem) {
		if m := el.msg; el == &m.elems[0] && f(m) {
			ms = append(ms, m)
		}
	})
	return ms
}

// closeAll fails all operations in progress, and all that start later.
func (e *Engine) closeAll(err error) {
	e.Mu.Lock()
	if e.err == nil {
		e.err = err
	}
	e.Mu.Unlock()
	for _, p := range e.AllPeers() {
		for _, r := range e.IDs.removeAll(p) {
			r.abandon(err)
		}
	}
	e.Mu.Lock()
	var rs []*Request
	for _, x := range e.Contexts {
		rs = x.drain(rs)
		x.wakeProbers()
	}
	e.Mu.Unlock()
	for _, r := range rs {
		r.Fail(err)
	}
}

// drain unposts all receives and appends them to rs.
func (x *Context) drain(rs []*Request) []*Request {
	n := len(rs)
	x.posted.each(func(el *matchElem) { rs = append(rs, el.request) })
	for _, r := range rs[n:] {
		x.unpost(r)
	}
	return rs
}

// dropContexts removes contexts: operations that wait, and messages that come later, fail with err.
func (e *Engine) dropContexts(err error, contexts ...*Context) {
	var rs []*Request
	var gone []*Message
	e.Mu.Lock()
	for _, x := range contexts {
		if x.dead != nil {
			continue
		}
		rs = x.drain(rs)
		x.dead = err
		delete(e.Contexts, x.id)
		e.forgetContext(x.id, err)
		for _, m := range x.messages(func(*Message) bool { return true }) {
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
	e.Mu.Unlock()
	for _, r := range rs {
		r.Fail(err)
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
func (e *Engine) forgetContext(id uint64, err error) {
	if len(e.Freed) < maxFreed {
		e.Freed = append(e.Freed, id)
	} else {
		i := e.nfreed % maxFreed
		delete(e.dropped, e.Freed[i])
		e.Freed[i] = id
		e.nfreed++
	}
	if errors.Is(err, mpierr.ErrRevoked) {
		e.dropped[id] = true
	}
}
