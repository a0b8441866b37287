package mpi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/weftstack/weft/mpi/internal/job"
)

// RunLocal runs f as n ranks, goroutines of this process. It finalizes each rank after its f has
// returned, unless f has done so. It blocks until all ranks have returned, and returns their errors
// joined. If one rank fails, or ctx ends, the context of the others is cancelled and the job
// aborted; see [WithFaultTolerance] for an alternative. A rank also fails if f panics
// ([PanicError]), or ends its goroutine as testing.T.FailNow does (ErrGoexit). The transport is
// [TransportInproc] unless an option selects another; the network transports use the loopback
// interface. Environment variables are not read.
func RunLocal(ctx context.Context, n int, f func(ctx context.Context, w *World) error, opts ...Option) error {
	if n < 1 || n > MaxRanks {
		return fmt.Errorf("%w: %d ranks", ErrOption, n)
	}
	o, err := buildOptions(TransportInproc, append([]Option{ofProcess}, opts...))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fam := &localFamily{ctx: ctx, cancel: cancel, o: o}
	if fam.gateways, err = o.startGateways(n); err != nil {
		return err
	}
	if fam.gateways != nil {
		defer fam.gateways.Close()
	}
	program := func(int) func(context.Context, *World) error { return f }
	fam.start(&localJob{Local: job.NewLocal(n, nil), family: fam}, "", program)
	fam.wg.Wait()
	fam.unpublish()
	return errors.Join(fam.errs...)
}

// ofProcess sets the defaults of RunLocal.
func ofProcess(o *options) error {
	o.Local, o.FailureTimeout = true, LocalSilence
	return nil
}

// run is one rank. It reports whether the rank had joined the job before it failed.
func (j *localJob) run(
	ctx context.Context, rank int, o *options, f func(context.Context, *World) error,
) (joined bool, err error) {
	ro := *o
	if len(ro.Addrs) == 0 {
		ro.Addrs = []netip.AddrPort{job.Loopback}
	}
	if fam := j.family; fam.gateways != nil {
		if ro.Place, err = fam.gateways.Process(ro.SiteOf(rank)); err != nil {
			return false, fmt.Errorf("%w: %w", ErrOption, err)
		}
	}
	w := newWorld(rank, j.Size(), &ro, &localLauncher{j, rank})
	var tr job.Transport
	if ro.Transport == TransportInproc {
		tr, err = w.job.OpenInproc(j.Link)
	} else {
		tr, err = w.job.OpenTransport()
	}
	if err != nil {
		return false, err
	}
	err = w.join(ctx, tr)
	joined = err == nil
	if joined && j.spawned {
		err = w.connectParent(ctx)
	}
	if err == nil {
		ended := make(chan error, 1)
		goRecover(func() error { return f(ctx, w) }, func(err error) { ended <- err })
		err = <-ended
	}
	if err == nil {
		if err = w.usable(); err == nil || errors.Is(err, ErrFinalized) { // f may have called it
			return joined, w.Finalize(ctx)
		}
	}
	if ro.Tolerant {
		w.job.Die(err)
	} else {
		why, _, _ := strings.Cut(err.Error(), "\n") // of a panic without the stack
		w.Abort(1, why)
	}
	return joined, errors.Join(err, w.Finalize(ctx))
}

// localJob is a job of RunLocal, and its launcher.
type localJob struct {
	*job.Local
	family  *localFamily // nil: Init without a launcher
	app     []int        // by rank, of which command it is; nil: there is one
	spawned bool
}

// localLauncher is the launcher of one rank of a localJob.
type localLauncher struct {
	*localJob
	rank int
}
