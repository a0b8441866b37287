package p2p

import "github.com/weftstack/weft/mpi/internal/envelope"

// A receive that has matched a message normally gets it. It does not if the sender
// dies before all of the body is here, or gives the send up because of a failure
// elsewhere. The match then counts as never made: the receive takes its old place
// among the posted ones and goes on to its next match. So does one that the program
// has given up meanwhile, except that it then ends without a message.

// rematch undoes the match of r, whose message will not come because of err. Nothing
// else of the engine refers to r: it has no id, and no parser fills it.
func (e *Engine) rematch(r *Request, err error) {
	if r.probed || r.Reduce.Reducer != nil {
		// A message of Mprobe has no substitute, and an operand may be overwritten.
		r.Fail(err)
		return
	}
	r.unmatch()
	x := r.Context
	e.Mu.Lock()
	if r.failed.Load() { // by fail, which completes it
		e.Mu.Unlock()
		return
	}
	switch {
	case r.quit != nil:
		err = r.quit
	case e.err != nil:
		err = e.err
	case x.dead != nil:
		err = x.dead
	default:
		err = x.repost(r)
	}
	ms := x.taken()
	e.Mu.Unlock()
	e.handAll(ms)
	switch {
	case err != nil:
		r.Complete(err)
	case r.anySource:
		r.wake() // it may have to report ErrProcFailedPending
	}
}

// unmatch ends all access to the buffer of r for the message that it had matched.
func (r *Request) unmatch() {
	r.Place.Lock()
	r.Epoch++
	r.Place.Unlock()
	r.RevokeKey()
}

// repost is post for a receive that was posted, or matched at once, before: it keeps
// its place in the order. It returns why r cannot wait, if it cannot.
func (x *Context) repost(r *Request) error {
	for m := x.lookup(r.src, r.tag); m != nil; m = x.lookup(r.src, r.tag) {
		x.removeMessage(m)
		if m.kind != envelope.RTS || m.peer.Failure() == nil {
			x.take(m, r)
			return nil
		}
		m.recycle() // its body will not come
	}
	if x.comm != nil {
		if err := x.comm.cannotWait(x, r); err != nil {
			return err
		}
	}
	r.elem.request = r
	x.posted.insertOrdered(matchKey{r.src, r.tag}, &r.elem)
	x.count(r, 1)
	return nil
}

// cannotWait returns why r cannot be posted: its source is gone, or the communicator
// is broken. e.mu is held.
func (c *Comm) cannotWait(x *Context, r *Request) error {
	err := c.sourceGone(x, int(r.src))
	if err != nil && !r.anySource {
		return err
	}
	if !x.interrupts(r) {
		return nil
	}
	if err == nil {
		err = c.BrokenBy()
	}
	return err
}
