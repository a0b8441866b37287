package mpi

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// status describes a received or probed message.
type status struct {
	Source int // rank of the sender in the communicator; ProcNull if there was none
	Tag    int // tag of the message
	Bytes  int // bytes received; for a truncated message, bytes stored
}

// request is the part of a started operation that the engine has.
type request struct {
	eng  *engine
	done atomic.Bool // set last, after status and err
	over atomic.Bool // set by the first call of complete

	mu      sync.Mutex // guards waiting
	waiting *waiter    // of the first goroutine that waits for the request
	more    []*waiter  // of further goroutines that wait for it

	status status
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
	sent    *matchContext   // context that it was sent in
	offered transport.Offer // set while the peer may read buf; owned by the goroutine that removes id from eng.ids

	canceling bool  // the receiver was asked to forget the message; guarded by mu
	dropped   error // why the receiver dropped the message without receiving it
}

var requestPool = sync.Pool{New: func() any { return new(request) }}

// getRequest returns a blank request from the pool.
func getRequest(e *engine) *request {
	r := requestPool.Get().(*request)
	r.init(e)
	return r
}

// init makes r, which is new or has been cleared, a request of e.
func (r *request) init(e *engine) {
	r.eng = e
	r.done.Store(false)
	r.over.Store(false)
}

// recycle returns r, which getRequest has returned, to the pool. No other reference to r may be
// left: r is done without an error, or was never started.
func (r *request) recycle() {
	if r.clear() {
		requestPool.Put(r)
	}
}

// clear makes r blank for its next use. It reports false if r must not be used again, because parts
// of the engine may still hold it.
func (r *request) clear() bool {
	if r.err != nil {
		return false
	}
	r.eng, r.ctx, r.buf, r.peer, r.id, r.length = nil, nil, nil, nil, 0, 0
	r.sent, r.anySource, r.internal, r.canceling = nil, false, false, false
	r.quit, r.probed = nil, false
	if r.failed.Load() { // fail was called after r was done
		r.failed.Store(false)
	}
	if r.reduce.red != nil {
		r.reduce = receiveReduce{}
	}
	r.status = status{}
	return true
}

// free gives up r. It is recycled if it is done.
func (r *request) free() {
	if r.done.Load() {
		r.recycle()
	}
}

// complete ends r. Only the first call counts. The caller has set r.status before.
func (r *request) complete(err error) {
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
func (r *request) fail(err error) {
	r.place.Lock()
	r.failed.Store(true)
	r.buf = nil
	r.place.Unlock()
	r.revokeKey()
	if r.ctx != nil { // rematch may have posted it again before it saw failed
		r.eng.mu.Lock()
		if r.ctx.unpost(r) && r.tag == anyTag {
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
func (r *request) addWaiter(w *waiter) bool {
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
func (r *request) dropWaiter(w *waiter) {
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

// wait waits until r is done or ctx ends, and returns its result.
func (r *request) wait(ctx context.Context) (status, error) {
	if err := r.await(ctx); err != nil {
		return status{}, err
	}
	return r.status, r.err
}

// await waits until r is done. It leaves the result in r.
func (r *request) await(ctx context.Context) error {
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

// test reports whether r is done, and its result if so. It polls the transport once.
func (r *request) test() (st status, done bool, err error) {
	if !r.done.Load() {
		r.eng.pollOnce()
		if !r.done.Load() {
			return status{}, false, r.pendingFailure()
		}
	}
	return r.status, true, r.err
}
