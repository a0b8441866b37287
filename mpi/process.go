package mpi

import (
	"context"
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi/internal/ctxmutex"
)

// process is the part in a job that Init and SessionInit share. A process joins once:
// its launcher knows it once, and gave it one connection.
var process = struct {
	joining ctxmutex.Mutex // held by the Init or SessionInit that joins

	mu       sync.Mutex
	w        *World // nil until the process has joined; guarded by mu, as all below
	failed   error  // why it never will
	inited   bool   // Init has returned w
	sessions int    // of SessionInit, not finalized
	leaving  bool   // the last user of w has begun to finalize it
}{joining: ctxmutex.New()}

// Initialized reports whether Init has succeeded in this process, also after Finalize
// (MPI_Initialized). Like there, sessions and RunLocal do not count.
func Initialized() bool {
	p := &process
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inited
}

// Finalized reports whether Finalize of the World that Init returned has ended
// (MPI_Finalized).
func Finalized() bool {
	p := &process
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inited && p.w.finalized.Load()
}

// joinOnce returns the World of the process, which joins its job if it has not done so.
// It calls user with the lock, which notes who uses the World or says why not.
func joinOnce(ctx context.Context, opts []Option, user func() error) (*World, error) {
	p := &process
	if err := p.joining.Lock(ctx); err != nil {
		return nil, err
	}
	defer p.joining.Unlock()
	p.mu.Lock()
	w, failed := p.w, p.failed
	p.mu.Unlock()
	if failed != nil {
		return nil, fmt.Errorf("mpi: a process joins its job once, and an earlier attempt failed: %w", failed)
	}
	if w == nil {
		var spent bool
		var err error
		if w, spent, err = joinJob(ctx, opts); err != nil {
			if spent {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.failed = err
			}
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w = w
	if p.leaving || w.job.Leaving() {
		return nil, fmt.Errorf("%w: this process joins its job once", ErrFinalized)
	}
	if err := user(); err != nil {
		return nil, err
	}
	return w, nil
}

// leaveOnce notes the end of a session and reports whether that was the last user.
func leaveOnce() bool {
	p := &process
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions--
	p.leaving = p.leaving || p.sessions == 0 && !p.inited
	return p.leaving
}
