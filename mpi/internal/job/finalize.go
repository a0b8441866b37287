package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// OnFinalize registers f to be called by Finalize, before the final barrier,
// the last registered first.
func (j *Job) OnFinalize(f func(context.Context) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closers = append(j.closers, f)
}

// Leave says that the process is about to leave the job: from now on a link that a peer closes without a reason is no
// failure.
func (j *Job) Leave() { j.leaving.Store(true) }

// Leaving reports whether Leave has been called.
func (j *Job) Leaving() bool { return j.leaving.Load() }

// Finalize leaves the job. barrier waits for all ranks, in a fault-tolerant job for those that are alive. It delivers
// everything that was sent, and closes the links; if ctx ends first, without waiting for the peers.
func (j *Job) Finalize(ctx context.Context, barrier func(context.Context) error) error {
	var errs []error
	j.mu.Lock()
	closers := j.closers
	j.closers = nil
	j.mu.Unlock()
	j.Ports.CloseAll()
	aborted := j.Usable() != nil
	for i := len(closers) - 1; i >= 0; i-- {
		if err := closers[i](ctx); err != nil && !aborted {
			errs = append(errs, err)
		}
	}
	if !aborted {
		if err := barrier(ctx); err != nil {
			errs = append(errs, fmt.Errorf("finalize: %w", err))
		}
		j.awaitRemotes(ctx)
		errs = append(errs, j.shutdownLinks(ctx))
	}
	j.Engine.End(mpierr.ErrFinalized)
	errs = append(errs, j.Transport.Close())
	if !aborted {
		errs = append(errs, j.Launcher.Finalize(ctx))
	}
	return errors.Join(errs...)
}

// shutdownLinks shuts the links to all peers down, at the same time.
func (j *Job) shutdownLinks(ctx context.Context) error {
	var wg sync.WaitGroup
	peers := j.Engine.AllPeers()
	errs := make([]error, len(peers))
	for i, p := range peers {
		if p.Link == nil || p.Failure() != nil && !p.Disconnected.Load() {
			continue
		}
		wg.Go(func() {
			p.Goodbye()
			if err := p.Link.Shutdown(ctx); err != nil && p.Remote == nil && (!j.Options.Tolerant || p.Failure() == nil) {
				errs[i] = fmt.Errorf("mpi: closing the link to rank %d: %w", p.Rank, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Abort ends the whole job: the launcher kills all ranks, with the given exit code and message, and
// all operations of this rank fail with ErrAborted. before runs once that is logged.
func (j *Job) Abort(code int, msg string, before func()) {
	err := fmt.Errorf("%w by rank %d: %s", mpierr.ErrAborted, j.Rank(), msg)
	j.Record(slog.LevelError, "job aborted", slog.Int("code", code), Cause(err))
	before()
	_ = j.Launcher.Abort(code, msg) // a launcher that is gone cannot be told
	j.Engine.End(err)
	for _, p := range j.Engine.AllPeers() {
		if p.Link != nil {
			p.Link.Abort(msg)
		}
	}
}
