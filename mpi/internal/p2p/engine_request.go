package p2p

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// Status describes a received or probed message.
type Status struct {
	Source int // rank of the sender in the communicator; ProcNull if there was none
	Tag    int // tag of the message
	Bytes  int // bytes received; for a truncated message, bytes stored
	// Canceled is true for an operation that was withdrawn.
	Canceled bool
}

// Request is the part of a started operation that the engine has.
type Request struct {
	Engine   *Engine
	Finished atomic.Bool // set last, after Status and Err
	over     atomic.Bool // set by the first call of complete

	mu      sync.Mutex // guards waiting
	waiting *Waiter    // of the first goroutine that waits for the request
	more    []*Waiter  // of further goroutines that wait for it

	Status Status
	Err    error
	packed *packedCopy // of items; nil: the buffer is the memory of the program

	// Receives.
	Context  *Context   // nil for other kinds of request
	src, tag int32      // as posted; the tag also of a send
	elem     matchElem  // links of the posted receive queue; guarded by Engine.Mu
	order    uint64     // position in the order of posts
	Place    sync.Mutex // guards Buf of a receive while bytes are placed
	Buf      []byte
	Gaps     datatype.Buffer // in place of Buf: items that are not one run of memory; its Type is nil if Buf is used
	Exposed  Exposure        // set while RDMA may write to Buf; guarded by Place
	Length   uint64          // of the matched message
	sig, got datatype.Sig    // of the elements of buf, and of those of the message
	wrong    bool            // sig and got do not match
	Reduce   ReceiveReduce   // fused reduction, if Reducer is set; guarded by Place
	failed   atomic.Bool     // set by fail, under Place: bytes that arrive are not placed any more
	Epoch    uint32          // counts calls of unmatch, never reset: ends copies of earlier matches; guarded by Place
	quit     error           // the error to end with instead of waiting for another match; guarded by Engine.Mu
	probed   bool            // it receives a message of Mprobe, and can match no other

	anySource bool // a nonblocking AnySource receive of the program: see PendingFailure
	Internal  bool // internal request of a goroutine of the library: its waiter never polls
	Standing  bool // receive of a service, which is posted all the time

	// Sends.
	Peer    *Peer // also of a receive that waits for a body
	stream  uint16
	pending atomic.Int32 // events that are still to come: Released, SyncAck
	id      uint64       // in Engine.IDs; 0: none
	hdr     [envelope.MaxLen]byte
	Sent    *Context        // context that it was sent in
	Offered transport.Offer // set while the peer may read Buf; owned by the goroutine that removes id from Engine.IDs

	announced bool  // the message is an RTS; set before the id
	canceling bool  // the receiver was asked to forget the message; guarded by mu
	dropped   error // why nothing is to come of the message any more
}

var requestPool = sync.Pool{New: func() any { return new(Request) }}

// GetRequest returns a blank request from the pool.
func GetRequest(e *Engine) *Request {
	r := requestPool.Get().(*Request)
	r.Init(e)
	return r
}

// Init makes r, which is new or has been cleared, a request of e.
func (r *Request) Init(e *Engine) {
	r.Engine = e
	r.Finished.Store(false)
	r.over.Store(false)
}

// Recycle returns r, which GetRequest has returned, to the pool. No other reference to r may be
// left: r is done without an error, or was never started.
func (r *Request) Recycle() {
	if r.Clear() {
		requestPool.Put(r)
	}
}

// Clear makes r blank for its next use. It reports false if r must not be used again, because parts
// of the engine may still hold it.
func (r *Request) Clear() bool {
	if r.Err != nil {
		return false
	}
	r.Engine, r.Context, r.Buf, r.Peer, r.id, r.Length = nil, nil, nil, nil, 0, 0
	r.Sent, r.anySource, r.Internal, r.Standing, r.canceling, r.announced = nil, false, false, false, false, false
	r.quit, r.probed = nil, false
	if r.failed.Load() { // fail was called after r was done
		r.failed.Store(false)
	}
	if r.Reduce.Reducer != nil {
		r.Reduce = ReceiveReduce{}
	}
	if r.Gaps.Type != nil {
		r.Gaps = datatype.Buffer{}
	}
	r.Status = Status{}
	return true
}

// Free gives up r. It is recycled if it is done.
func (r *Request) Free() {
	if r.Finished.Load() {
		r.Recycle()
	}
}

// Complete ends r. Only the first call counts. The caller has set r.status before.
func (r *Request) Complete(err error) {
	if !r.over.CompareAndSwap(false, true) {
		return
	}
	if p := r.packed; p != nil {
		r.packed = nil
		p.end(r, err)
	}
	r.mu.Lock()
	r.Err, r.Status.Canceled = err, err == mpierr.ErrCanceled
	w, more := r.waiting, r.more
	r.waiting, r.more = nil, nil
	r.Finished.Store(true)
	// From here on the owner may recycle r: only its mutex may still be used.
	if w != nil {
		w.signal()
	}
	for _, w := range more {
		w.signal()
	}
	r.mu.Unlock()
}

// Fail completes r with err, and makes sure that its buffer is neither written nor read later. A
// send ends without an error if its receiver has read all of the buffer.
func (r *Request) Fail(err error) {
	r.Place.Lock()
	r.failed.Store(true)
	r.Buf, r.Gaps = nil, datatype.Buffer{}
	r.Place.Unlock()
	r.RevokeKey()
	if r.Context != nil { // rematch may have posted it again before it saw failed
		r.Engine.Mu.Lock()
		if r.Context.unpost(r) && r.tag == AnyTag {
			r.Context.recheck()
		}
		ms := r.Context.taken()
		r.Engine.Mu.Unlock()
		r.Engine.handAll(ms)
	}
	if r.Context == nil && r.Offered != nil {
		r.AfterReads(func(whole bool) {
			if whole {
				err = nil
			}
			r.Complete(err)
		})
		return
	}
	r.Complete(err)
}

// abandon ends r with err. Its id has been removed, so no answer of the peer can end it. An eager synchronous send is
// done when the link no longer reads its buffer; other requests are done at once.
func (r *Request) abandon(err error) {
	if r.Context != nil || r.Sent == nil || r.announced {
		r.Fail(err)
		return
	}
	r.dropped = err // seen by whoever books the last event
	r.Event(nil)    // in place of the answer of the receiver
}

// AddWaiter has complete signal w. It reports false if r is already done.
func (r *Request) AddWaiter(w *Waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Finished.Load() {
		return false
	}
	if r.waiting == nil {
		r.waiting = w
	} else {
		r.more = append(r.more, w)
	}
	return true
}

// DropWaiter undoes AddWaiter.
func (r *Request) DropWaiter(w *Waiter) {
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

// Wait waits until r is done or ctx ends, and returns its result.
func (r *Request) Wait(ctx context.Context) (Status, error) {
	if err := r.Await(ctx); err != nil {
		return Status{}, err
	}
	return r.Status, r.Err
}

// Await waits until r is done. It leaves the result in r.
func (r *Request) Await(ctx context.Context) error {
	if r.Finished.Load() {
		return nil
	}
	r.Engine.Coalescer.FlushBeforeWait()
	prog, waiters := &r.Engine.Progress, &r.Engine.Waiters
	var start poll.Wait
	if r.Internal {
		waiters = &r.Engine.internalWaiters
	} else if start = prog.Begin(); prog.Spin(ctx, start, r.Finished.Load) {
		prog.End(start)
		return nil
	}
	w := waiters.Get()
	defer w.Recycle()
	if !r.AddWaiter(w) {
		return nil
	}
	var gap poll.Wait
	for !r.Finished.Load() {
		err := r.PendingFailure()
		if err == nil && r.Internal {
			err = w.wait(ctx)
		} else if err == nil {
			err = prog.Rest(ctx, w, &gap, r.Finished.Load)
		}
		if err != nil {
			r.DropWaiter(w)
			if r.Finished.Load() {
				return nil
			}
			return err
		}
	}
	prog.End(start)
	return nil
}

// Test reports whether r is done, and its result if so. It polls the transport once.
func (r *Request) Test() (st Status, done bool, err error) {
	if !r.Finished.Load() {
		r.Engine.PollOnce()
		if !r.Finished.Load() {
			return Status{}, false, r.PendingFailure()
		}
	}
	return r.Status, true, r.Err
}
