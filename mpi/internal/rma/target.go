package rma

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/ctxmutex"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
)

// targetState is the state of an origin's operations on one target.
type targetState struct {
	rank     int
	handle   int32             // of the rank on the device
	counters *rdmadev.Counters // of operations on its memory
	turn     ctxmutex.Mutex    // held by the goroutine that completes operations

	copied     atomic.Bool // a direct copy was made since the last synchronization
	atomics    atomic.Bool // an RDMA atomic was given up, and may be under way
	aggregated aggregatedPuts
	// posts counts the Posts of the target that a failed Start has received and the next one uses.
	posts atomic.Int32

	mu      sync.Mutex // guards what follows
	locked  bool       // the origin holds a lock there
	trusted bool       // the lock was taken with AssertNoCheck: the target does not know of it
	unsure  bool       // active messages but those that release locks were sent since the last flush request
	// released is true if a lock was released since the last flush request.
	released bool
	updates  uint64          // number of updates sent in messages
	proved   uint64          // number of those that are known to be performed
	sends    []Request       // bulk data being sent from the buffers of operations
	results  []result        // answers of operations
	unpack   []unpack        // where parts of answers are stored when there are no results any more
	proof    *result         // answer to the last flush request
	conn     *rdmadev.Conn   // where the last operations were posted; all windows share it
	left     []*rdmadev.Conn // connections that have failed, whose operations may still use buffers
	last     uint64          // number of the last one of this window
	wrote    uint64          // number of its last write
	flushed  uint64          // up to here its operations are known to be complete, here and at the target
	err      error           // first error not yet reported
}

// unpack is packed data for items with gaps.
type unpack struct {
	data []byte
	to   datatype.Buffer
}

// result is an answer that has not arrived.
type result struct {
	r    Request
	want int     // expected length; -1: any
	to   []byte  // buffer for the answer
	code [1]byte // buffer for the answer to a flush
	upTo uint64  // value of updates that the answer to a flush proves
}

// refusal returns why an operation was refused, whose answer has another length, n, than it asks for: see
// service.refuse. Of a single byte only its place can be wrong; the rest was checked before it was asked for.
func (r *result) refusal(n int) error {
	code := amRange
	if n == 1 && r.to[0] != amOK {
		code = r.to[0]
	}
	return fmt.Errorf("refused by the target: %w", amError(code))
}

func (t *targetState) init(c Comm, rank int) {
	t.rank, t.handle, t.counters = rank, c.Handle(rank), c.Counters(rank)
	t.turn = ctxmutex.New()
	t.aggregated.mu = ctxmutex.New()
}

// markCopied records that a direct copy was made.
func (t *targetState) markCopied() {
	if !t.copied.Load() { // usually it is set already
		t.copied.Store(true)
	}
}

// keepPost records a Post that no Start has used.
func (t *targetState) keepPost() { t.posts.Add(1) }

// takePost uses up a recorded Post, if there is one.
func (t *targetState) takePost() bool {
	if t.posts.Add(-1) >= 0 {
		return true
	}
	t.posts.Add(1)
	return false
}

// updated reports whether all updates sent in messages are known to be performed.
func (t *targetState) updated() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.proved == t.updates
}

// note keeps an error for the next synchronization.
func (t *targetState) note(err error) {
	t.mu.Lock()
	if t.err == nil {
		t.err = err
	}
	t.mu.Unlock()
}

// bursts reports whether there were Puts by RDMA since the last synchronization.
func (t *targetState) bursts() bool {
	t.mu.Lock()
	c := t.conn
	t.mu.Unlock()
	return c != nil && c.Unproved()
}

// reported returns the error kept by note, once.
func (t *targetState) reported() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.err
	t.err = nil
	if err != nil {
		err = fmt.Errorf("one-sided operation on rank %d: %w", t.rank, err)
	}
	return err
}

// local waits until the buffers of all operations are free.
func (t *targetState) local(ctx context.Context, w *Window) error {
	if t.idle() {
		t.copied.Store(false)
		return t.reported()
	}
	if err := t.turn.Lock(ctx); err != nil {
		return err
	}
	defer t.turn.Unlock()
	if err := t.completeOps(ctx, w, false); err != nil {
		return err
	}
	return t.reported()
}

// startFlush sends aggregated Puts and, if active messages were sent, a flush request, without
// waiting for the answer. It returns an error only if ctx ended; others are kept.
func (t *targetState) startFlush(ctx context.Context, w *Window) error {
	if err := w.spill(ctx, t.rank); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	var err error
	num := w.number()
	t.mu.Lock()
	conn := t.conn
	ask := t.unsure && t.proof == nil
	if ask {
		p := &result{want: 1, upTo: t.updates}
		if p.r, err = w.c.Irecv(p.code[:], t.rank, answerTag(num)); err == nil {
			t.proof, t.unsure, t.released = p, false, false
		} else if t.err == nil {
			t.err = err
		}
	}
	p := t.proof
	t.mu.Unlock()
	if conn != nil {
		conn.StartProof(ctx)
	}
	if !ask || err != nil {
		return nil
	}
	if err = w.send(ctx, t.rank, amHeader{kind: amFlush, answer: true, num: num}, nil); err != nil {
		over := ctx.Err()
		t.mu.Lock()
		t.unsure = true
		if t.err == nil && over == nil {
			t.err = err
		}
		if t.proof == p { // else completeOps has taken it
			p.r.Cancel()
		}
		t.mu.Unlock()
		return over // no operation has failed: the next flush sends the request again
	}
	return nil
}

// flush waits until all operations are complete at the target.
func (t *targetState) flush(ctx context.Context, w *Window) error {
	if !t.aggregated.some.Load() && t.idle() {
		t.copied.Store(false)
		return t.reported()
	}
	if err := t.turn.Lock(ctx); err != nil {
		return err
	}
	defer t.turn.Unlock()
	if err := t.completeOps(ctx, w, true); err != nil {
		return err
	}
	return t.reported()
}

// completeOps completes operations locally, and if remote is set at the target, too. It returns an
// error only if ctx ended; it may then be called again.
func (t *targetState) completeOps(ctx context.Context, w *Window, remote bool) error {
	t.copied.Store(false)
	if remote {
		if err := t.startFlush(ctx, w); err != nil {
			return err
		}
		w.c.FlushSends()
	}
	if err := t.completeRDMA(ctx, remote); err != nil {
		return err
	}
	for {
		t.mu.Lock()
		var next result
		kind := 0
		switch {
		case len(t.results) > 0:
			next, kind = t.results[0], 1
		case len(t.sends) > 0:
			next, kind = result{r: t.sends[0], want: -1}, 2
		case remote && t.proof != nil:
			next, kind = result{r: t.proof.r, want: 1}, 3
		case remote && t.unsure && t.err == nil:
			kind = 4 // more was sent after the flush request that is now answered
		}
		proof := t.proof
		if len(t.results) == 0 {
			for _, u := range t.unpack {
				u.to.Unpack(u.data, 0)
			}
			t.unpack = nil
		}
		t.mu.Unlock()
		switch kind {
		case 0:
			return nil
		case 4:
			if err := t.startFlush(ctx, w); err != nil {
				return err
			}
			continue
		}
		n, err := next.r.Wait(ctx)
		if err != nil && ctx.Err() != nil && !next.r.Done() {
			return ctx.Err()
		}
		t.mu.Lock()
		switch kind {
		case 1:
			t.results = t.results[:copy(t.results, t.results[1:])]
		case 2:
			t.sends = t.sends[:copy(t.sends, t.sends[1:])]
		case 3:
			if t.proof = nil; err == nil {
				t.proved = max(t.proved, proof.upTo)
				err = amError(proof.code[0])
			}
		}
		switch {
		case errors.Is(err, mpierr.ErrCanceled): // its request was not sent, and the error is kept
			err = nil
		case err == nil && next.want >= 0 && n != next.want:
			err = next.refusal(n)
		}
		if err != nil && t.err == nil {
			t.err = err
		}
		t.mu.Unlock()
		next.r.Free()
	}
}

// awaitAtomics waits for RDMA atomics that were given up: updates in messages would overtake them.
func (t *targetState) awaitAtomics(ctx context.Context) error {
	if !t.atomics.Load() {
		return nil
	}
	if err := t.turn.Lock(ctx); err != nil {
		return err
	}
	defer t.turn.Unlock()
	t.atomics.Store(false) // before: others may be given up meanwhile
	err := t.completeRDMA(ctx, false)
	if err != nil {
		t.atomics.Store(true)
	}
	return err
}

// completeRDMA is completeOps for the operations on the queue pair.
func (t *targetState) completeRDMA(ctx context.Context, remote bool) error {
	t.mu.Lock()
	conn, last, left := t.conn, t.last, t.left
	t.mu.Unlock()
	for _, c := range left {
		if err := c.AwaitEnd(ctx); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		t.mu.Lock()
		t.left = t.left[len(left):]
		t.mu.Unlock()
	}
	if conn == nil {
		return nil
	}
	var err error
	if remote {
		err = conn.Prove(ctx, last)
	} else {
		err = conn.Wait(ctx, last)
	}
	if err == nil {
		t.mu.Lock()
		if t.conn == conn && (remote || t.wrote <= t.flushed) {
			t.flushed = max(t.flushed, last)
		}
		t.mu.Unlock()
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.mu.Lock()
	if t.conn == conn {
		t.conn, t.last, t.wrote, t.flushed = nil, 0, 0, 0 // the next operation connects again
	}
	if t.err == nil {
		t.err = err
	}
	t.mu.Unlock()
	return nil
}
