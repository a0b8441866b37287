package mpi

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/envelope"
)

// A Request is a started operation (MPI_Request). It stays valid after it is
// done; Free gives it back for reuse. Its methods may be called from any
// goroutine.
type Request struct {
	eng  *engine
	done atomic.Bool // set last, after status and err
	over atomic.Bool // set by the first to complete it
	// told is true once Waitany, Waitsome, Testany or Testsome has returned r.
	told atomic.Bool

	mu      sync.Mutex // guards waiting
	waiting *waiter
	more    []*waiter // further goroutines that wait for the same request

	status Status
	err    error

	// Receives.
	ctx      *matchContext // nil for other kinds of request
	src, tag int32         // as posted
	elem     elem          // place among the posted receives; guarded by eng.mu
	order    uint64        // when it was posted
	place    sync.Mutex    // guards buf of a receive while bytes are placed
	buf      []byte
	exposed  exposure      // what the peer may write to; guarded by place
	length   uint64        // of the matched message
	sig, got datatype.Sig  // of the elements of buf, and of those of the message
	wrong    bool          // they do not match
	reduce   receiveReduce // what is done with what comes; guarded by place
	failed   atomic.Bool   // fail was called: what comes is not placed any more; set under place
	epoch    uint32        // counts unmatch, never reset: a copier of an earlier match stops; guarded by place
	quit     error         // the error to end with instead of waiting for another match; guarded by eng.mu
	probed   bool          // it receives a message of Mprobe, and can have no other

	anySource bool // it may be pending while a failure is not acknowledged
	internal  bool // the program does not wait for it (internal request): its waiter never polls

	// Sends.
	peer    *peer // also of a receive that waits for a body
	stream  uint16
	pending atomic.Int32 // events to wait for: Released, SyncAck
	id      uint64       // in eng.ids; 0: none
	hdr     [envelope.MaxLen]byte
	sent    *matchContext // where it was sent
	offered offering      // what the peer may read; whoever takes r's id may take it

	canceling bool  // the receiver was asked to forget the message; guarded by mu
	dropped   error // why the receiver dropped the message without receiving it

	comm        *Comm     // whose error handler gets the error; may be nil
	generalized *Grequest // that it belongs to; may be nil
}

var requestPool = sync.Pool{New: func() any { return new(Request) }}

// newRequest returns a blank request from the pool.
func newRequest(e *engine) *Request {
	r := requestPool.Get().(*Request)
	r.eng = e
	r.done.Store(false)
	r.over.Store(false)
	r.told.Store(false)
	return r
}

// recycle gives r back to the pool. Nothing may refer to it any more: it is
// done without an error, or was never started.
func (r *Request) recycle() {
	if r.err != nil {
		return // parts of the engine may still hold it
	}
	r.eng, r.ctx, r.comm, r.generalized, r.buf, r.peer, r.id, r.length = nil, nil, nil, nil, nil, nil, 0, 0
	r.sent, r.anySource, r.internal, r.canceling = nil, false, false, false
	r.quit, r.probed = nil, false
	if r.failed.Load() { // too late: it was done
		r.failed.Store(false)
	}
	if r.reduce.red != nil {
		r.reduce = receiveReduce{}
	}
	r.status = Status{}
	requestPool.Put(r)
}

// doneRequest returns a request that is complete from the start.
func doneRequest(e *engine, st Status, err error) *Request {
	r := newRequest(e)
	r.status = st
	r.complete(err)
	return r
}

// goRequest runs f on a goroutine of its own; the request is done when f ends,
// see goRecover. It is how operations made of several messages become nonblocking.
func goRequest(w *World, f func() (Status, error)) *Request {
	r := newRequest(w.eng)
	goRecover(func() (err error) {
		r.status, err = f()
		return err
	}, r.complete)
	return r
}

// complete ends r. Only the first call counts. r.status is set before.
func (r *Request) complete(err error) {
	if !r.over.CompareAndSwap(false, true) {
		return
	}
	r.mu.Lock()
	r.err = err
	w, more := r.waiting, r.more
	r.waiting, r.more = nil, nil
	r.done.Store(true)
	// From here on the owner may recycle r; only its mutex is still ours.
	if w != nil {
		w.signal()
	}
	for _, w := range more {
		w.signal()
	}
	r.mu.Unlock()
}

// fail ends r with err, and makes sure that its buffer is not written to, or read,
// later. A send whose receiver has read all of it ends without.
func (r *Request) fail(err error) {
	r.place.Lock()
	r.failed.Store(true)
	r.buf = nil
	r.place.Unlock()
	r.revokeKey()
	if r.ctx != nil { // rematch may have posted it again before it saw failed
		r.eng.mu.Lock()
		if r.ctx.unpost(r) && r.tag == AnyTag {
			r.ctx.recheck()
		}
		ms := r.ctx.taken()
		r.eng.mu.Unlock()
		r.eng.handAll(ms)
	}
	if r.ctx == nil && r.offered != nil {
		r.afterReads(func(whole bool) {
			if whole {
				err = nil
			}
			r.complete(err)
		})
		return
	}
	r.complete(err)
}

// addWaiter makes complete signal w. It reports false if r is already done.
func (r *Request) addWaiter(w *waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done.Load() {
		return false
	}
	if r.waiting == nil {
		r.waiting = w
	} else {
		r.more = append(r.more, w)
	}
	return true
}

// dropWaiter undoes addWaiter.
func (r *Request) dropWaiter(w *waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == w {
		r.waiting = nil
		return
	}
	for i, v := range r.more {
		if v == w {
			r.more = append(r.more[:i], r.more[i+1:]...)
			return
		}
	}
}

// Wait blocks until the operation is done and returns its result; the buffer
// may then be used again (MPI_Wait). If ctx is done first it returns ctx.Err()
// and the operation goes on: its buffer is still in use. So it does after
// ErrProcFailedPending.
func (r *Request) Wait(ctx context.Context) (Status, error) {
	e := r.eng
	t := e.enter()
	st, err := r.wait(ctx)
	if err != nil && r.done.Load() { // perhaps only since ctx ended: that it is done counts
		st, err = r.status, r.raise()
	}
	e.leave(t, "Wait", st.Bytes, err)
	return st, err
}

// wait is Wait, not recorded.
func (r *Request) wait(ctx context.Context) (Status, error) {
	if err := r.await(ctx); err != nil {
		return Status{}, err
	}
	return r.status, r.err
}

// await is Wait without the result.
func (r *Request) await(ctx context.Context) error {
	if r.done.Load() {
		return nil
	}
	r.eng.coalescer.flushBeforeWait()
	prog, waiters := &r.eng.prog, &r.eng.waiters
	var start poll.Wait
	if r.internal {
		waiters = &r.eng.internalWaiters
	} else if start = prog.begin(); prog.spin(ctx, start, r.done.Load) {
		prog.end(start)
		return nil
	}
	w := waiters.get()
	defer w.recycle()
	if !r.addWaiter(w) {
		return nil
	}
	var gap poll.Wait
	for !r.done.Load() {
		err := r.pendingFailure()
		if err == nil && r.internal {
			err = w.wait(ctx)
		} else if err == nil {
			err = prog.rest(ctx, w, &gap, r.done.Load)
		}
		if err != nil {
			r.dropWaiter(w)
			if r.done.Load() {
				return nil
			}
			return err
		}
	}
	prog.end(start)
	return nil
}

// Test reports whether the operation is done, and its result if so (MPI_Test).
// It does not block; it gives the transport a chance to receive.
func (r *Request) Test() (st Status, done bool, err error) {
	e := r.eng
	t := e.enter()
	st, done, err = r.test()
	if err != nil && done {
		err = r.raise()
	}
	e.leave(t, "Test", st.Bytes, err)
	return st, done, err
}

// test is Test, not recorded.
func (r *Request) test() (st Status, done bool, err error) {
	if !r.done.Load() {
		r.eng.pollOnce()
		if !r.done.Load() {
			return Status{}, false, r.pendingFailure()
		}
	}
	return r.status, true, r.err
}

// Free gives r up; it must not be used afterwards, by anyone. Calling it is
// optional: it lets the memory be used again at once. If r is not done the
// operation goes on, and uses its buffer until then (MPI-4.1, Section 3.7.3).
func (r *Request) Free() {
	if r.done.Load() {
		r.recycle()
	}
}
