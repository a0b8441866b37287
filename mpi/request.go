package mpi

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/envelope"
)

// A Request is a started operation (MPI_Request). It stays valid after it is done; [Request.Free]
// gives it back for reuse. Its methods may be called from any goroutine.
type Request struct {
	eng  *engine
	done atomic.Bool // set last, after status and err
	over atomic.Bool // set by the first call of complete
	// told is true once Waitany, Waitsome, Testany or Testsome has returned r.
	told atomic.Bool

	mu      sync.Mutex // guards waiting
	waiting *waiter    // of the first goroutine that waits for the request
	more    []*waiter  // of further goroutines that wait for it

	status Status
	err    error

	// Receives.
	ctx      *matchContext // nil for other kinds of request
	src, tag int32         // as posted
	elem     elem          // links of the posted receive queue; guarded by eng.mu
	order    uint64        // position in the order of posts
	place    sync.Mutex    // guards buf of a receive while bytes are placed
	buf      []byte
	exposed  exposure      // set while RDMA may write to buf; guarded by place
	length   uint64        // of the matched message
	sig, got datatype.Sig  // of the elements of buf, and of those of the message
	wrong    bool          // sig and got do not match
	reduce   receiveReduce // fused reduction, if red is set; guarded by place
	failed   atomic.Bool   // set by fail, under place: bytes that arrive are not placed any more
	epoch    uint32        // counts calls of unmatch, never reset: ends copies of earlier matches; guarded by place
	quit     error         // the error to end with instead of waiting for another match; guarded by eng.mu
	probed   bool          // it receives a message of Mprobe, and can match no other

	anySource bool // a nonblocking AnySource receive of the program: see pendingFailure
	internal  bool // internal request of a goroutine of the library: its waiter never polls

	// Sends.
	peer    *peer // also of a receive that waits for a body
	stream  uint16
	pending atomic.Int32 // events that are still to come: Released, SyncAck
	id      uint64       // in eng.ids; 0: none
	hdr     [envelope.MaxLen]byte
	sent    *matchContext // context that it was sent in
	offered offering      // set while the peer may read buf; owned by the goroutine that removes id from eng.ids

	canceling bool  // the receiver was asked to forget the message; guarded by mu
	dropped   error // why the receiver dropped the message without receiving it

	comm        *Comm     // whose error handler gets the error; may be nil
	generalized *Grequest // set for a generalized request
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

// recycle returns r to the pool. No other reference to r may be left: r is done without an error,
// or was never started.
func (r *Request) recycle() {
	if r.err != nil {
		return // parts of the engine may still hold it
	}
	r.eng, r.ctx, r.comm, r.generalized, r.buf, r.peer, r.id, r.length = nil, nil, nil, nil, nil, nil, 0, 0
	r.sent, r.anySource, r.internal, r.canceling = nil, false, false, false
	r.quit, r.probed = nil, false
	if r.failed.Load() { // fail was called after r was done
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

// goRequest runs f on a goroutine of its own; the request is done when f returns, see goRecover. It
// makes operations of several messages nonblocking.
func goRequest(w *World, f func() (Status, error)) *Request {
	r := newRequest(w.eng)
	goRecover(func() (err error) {
		r.status, err = f()
		return err
	}, r.complete)
	return r
}

// complete ends r. Only the first call counts. The caller has set r.status before.
func (r *Request) complete(err error) {
	if !r.over.CompareAndSwap(false, true) {
		return
	}
	r.mu.Lock()
	r.err = err
	w, more := r.waiting, r.more
	r.waiting, r.more = nil, nil
	r.done.Store(true)
	// From here on the owner may recycle r: only its mutex may still be used.
	if w != nil {
		w.signal()
	}
	for _, w := range more {
		w.signal()
	}
	r.mu.Unlock()
}

// fail completes r with err, and makes sure that its buffer is neither written nor read later. A
// send ends without an error if its receiver has read all of the buffer.
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

// addWaiter has complete signal w. It reports false if r is already done.
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

// Wait blocks until the operation is done and returns its result; the buffer may then be used again
// (MPI_Wait). If ctx ends first it returns ctx.Err(), and the operation goes on with its buffer. It
// also goes on after ErrProcFailedPending, which a receive from [AnySource] returns while a failure
// is not acknowledged: see [Comm.AckFailed].
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

// wait is Wait without profiling and error handler.
func (r *Request) wait(ctx context.Context) (Status, error) {
	if err := r.await(ctx); err != nil {
		return Status{}, err
	}
	return r.status, r.err
}

// await waits until r is done. It leaves the result in r.
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

// Test reports whether the operation is done, and its result if so (MPI_Test). It does not block;
// it polls the transport once. err may be ErrProcFailedPending if done is false: see
// [Request.Wait].
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

// test is Test without profiling and error handler.
func (r *Request) test() (st Status, done bool, err error) {
	if !r.done.Load() {
		r.eng.pollOnce()
		if !r.done.Load() {
			return Status{}, false, r.pendingFailure()
		}
	}
	return r.status, true, r.err
}

// Free gives up r, which must not be used afterwards by any goroutine. It is optional: it lets the
// memory be reused at once. If r is not done, the operation goes on and uses its buffer until it is
// done (MPI-4.1, Section 3.7.3).
func (r *Request) Free() {
	if r.done.Load() {
		r.recycle()
	}
}
