package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// winTarget is what an origin knows about its operations on one target.
type winTarget struct {
	rank int
	turn ctxMutex // held by the one that completes operations

	copied     atomic.Bool // something, by directMem, since operations were completed
	aggregated aggregatedPuts
	// posts counts the Posts of the target that a Start which failed has received.
	posts atomic.Int32

	mu      sync.Mutex // guards what follows
	locked  bool       // the origin holds a lock there
	trusted bool       // the lock is one that the target does not know of
	unsure  bool       // messages were sent since the last flush was asked for
	updates uint64     // sent in messages
	proved  uint64     // of those, performed for sure
	sends   []*Request // bulk data being sent from the buffers of operations
	results []winResult
	proof   *winResult // answer to the last flush that was asked for
	conn    *rmaConn   // where the last operations were posted
	last    uint64     // the last of them
	err     error      // first error not yet reported
}

// winResult is an answer on its way.
type winResult struct {
	r    *Request
	want int
	code [1]byte // of proofs
	upTo uint64  // updates that a proof is about
}

func (t *winTarget) init(rank int) {
	t.rank = rank
	t.turn = newCtxMutex()
	t.aggregated.mu = newCtxMutex()
}

// markCopied notes that something is copied.
func (t *winTarget) markCopied() {
	if !t.copied.Load() { // most often it is noted already
		t.copied.Store(true)
	}
}

// keepPost notes a Post that no Start has used.
func (t *winTarget) keepPost() { t.posts.Add(1) }

// takePost takes one that was noted, if there is one.
func (t *winTarget) takePost() bool {
	if t.posts.Add(-1) >= 0 {
		return true
	}
	t.posts.Add(1)
	return false
}

// updated reports whether all updates sent in messages are performed.
func (t *winTarget) updated() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.proved == t.updates
}

// note keeps an error for the next synchronization.
func (t *winTarget) note(err error) {
	t.mu.Lock()
	if t.err == nil {
		t.err = err
	}
	t.mu.Unlock()
}

// bursts reports whether there were Puts by RDMA since the last synchronization.
func (t *winTarget) bursts() bool {
	t.mu.Lock()
	c := t.conn
	t.mu.Unlock()
	return c != nil && c.bursts()
}

// reported returns the error kept, once.
func (t *winTarget) reported() error {
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
func (t *winTarget) local(ctx context.Context, w *window) error {
	if t.idle() {
		t.copied.Store(false)
		return t.reported()
	}
	if err := t.turn.lock(ctx); err != nil {
		return err
	}
	defer t.turn.unlock()
	if err := t.completeOps(ctx, w, false); err != nil {
		return err
	}
	return t.reported()
}

// startFlush posts what is aggregated, and asks the target to tell when it has served
// what was sent, if there is anything, without waiting for the answer. It returns an
// error only if ctx ended; others are kept.
func (t *winTarget) startFlush(ctx context.Context, w *window) error {
	if err := w.spill(ctx, t.rank); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	var err error
	num := w.number()
	t.mu.Lock()
	conn := t.conn
	ask := t.unsure && t.proof == nil
	if ask {
		p := &winResult{want: 1, upTo: t.updates}
		if p.r, err = w.c.irecv(slotWin, p.code[:], t.rank, answerTag(num)); err == nil {
			t.proof, t.unsure = p, false
		} else if t.err == nil {
			t.err = err
		}
	}
	p := t.proof
	t.mu.Unlock()
	if conn != nil {
		conn.startProof(ctx)
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
		if t.proof == p { // else it has failed
			p.r.Cancel()
		}
		t.mu.Unlock()
		return over // no operation has failed: the next flush asks again
	}
	return nil
}

// flush waits until all operations are complete at the target.
func (t *winTarget) flush(ctx context.Context, w *window) error {
	if !t.aggregated.some.Load() && t.idle() {
		t.copied.Store(false)
		return t.reported()
	}
	if err := t.turn.lock(ctx); err != nil {
		return err
	}
	defer t.turn.unlock()
	if err := t.completeOps(ctx, w, true); err != nil {
		return err
	}
	return t.reported()
}

// completeOps completes operations here, and with remote at the target too. It
// returns an error only if ctx ended; it may then be called again.
func (t *winTarget) completeOps(ctx context.Context, w *window, remote bool) error {
	t.copied.Store(false)
	if remote {
		if err := t.startFlush(ctx, w); err != nil {
			return err
		}
		w.c.w.eng.coalescer.flushBeforeWait()
	}
	if err := t.completeRDMA(ctx, remote); err != nil {
		return err
	}
	for {
		t.mu.Lock()
		var next winResult
		kind := 0
		switch {
		case len(t.results) > 0:
			next, kind = t.results[0], 1
		case len(t.sends) > 0:
			next, kind = winResult{r: t.sends[0], want: -1}, 2
		case remote && t.proof != nil:
			next, kind = winResult{r: t.proof.r, want: 1}, 3
		case remote && t.unsure && t.err == nil:
			kind = 4 // more was sent after the flush that has now been answered
		}
		proof := t.proof
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
		st, err := next.r.wait(ctx)
		if err != nil && ctx.Err() != nil && !next.r.done.Load() {
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
		case errors.Is(err, ErrCanceled): // what it answers was not sent, which is noted
			err = nil
		case err == nil && next.want >= 0 && st.Bytes != next.want:
			err = fmt.Errorf("%w: refused by the target", ErrAccess)
		}
		if err != nil && t.err == nil {
			t.err = err
		}
		t.mu.Unlock()
		next.r.Free()
	}
}

// completeRDMA is the part of completeOps that concerns the queue pair.
func (t *winTarget) completeRDMA(ctx context.Context, remote bool) error {
	t.mu.Lock()
	conn, last := t.conn, t.last
	t.mu.Unlock()
	if conn == nil {
		return nil
	}
	var err error
	if remote {
		err = conn.prove(ctx, last)
	} else {
		err = conn.wait(ctx, last)
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && conn.failure() == nil {
		return ctx.Err()
	}
	t.mu.Lock()
	if t.conn == conn {
		t.conn = nil // the next operation connects again
	}
	if t.err == nil {
		t.err = err
	}
	t.mu.Unlock()
	return nil
}
