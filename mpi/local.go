package mpi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"github.com/weftstack/weft/mpi/internal/job"
	"github.com/weftstack/weft/mpi/internal/transport/inproc"
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
	job := newLocalJob(n)
	job.family = fam
	fam.start(job, "", func(int) func(context.Context, *World) error { return f })
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
	w := newWorld(rank, j.size, &ro, &localLauncher{job: j, rank: rank})
	var tr job.Transport
	if ro.Transport == TransportInproc {
		tr, err = w.job.OpenInproc(j.link)
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

// localJob is the launcher of RunLocal.
type localJob struct {
	size    int
	family  *localFamily // nil: Init without a launcher
	app     []int        // by rank, of which command it is; nil: there is one
	spawned bool

	mu     sync.Mutex
	store  map[string]string
	ranks  []*job.Job
	wait   int           // ranks in the present barrier
	gate   chan struct{} // closed when it is over
	linked chan struct{} // closed when the in-process links are made
	abort  chan struct{}
	why    error
}

func newLocalJob(n int) *localJob {
	return &localJob{
		size: n, store: make(map[string]string),
		gate: make(chan struct{}), linked: make(chan struct{}), abort: make(chan struct{}),
	}
}

// link collects the ranks and, when it has all, makes links between them.
func (j *localJob) link(ctx context.Context, r *job.Job) error {
	j.mu.Lock()
	j.ranks = append(j.ranks, r)
	if len(j.ranks) == j.size {
		for i, a := range j.ranks {
			for _, b := range j.ranks[:i] {
				if a.Options.Place != nil && a.Options.Place.Site != b.Options.Place.Site {
					continue // through gateways
				}
				ab := &inproc.Link{To: b.Engine.Peers[a.Rank()]}
				ba := &inproc.Link{To: a.Engine.Peers[b.Rank()], Rev: ab}
				ab.Rev = ba
				a.Engine.Peers[b.Rank()].Link = ab
				b.Engine.Peers[a.Rank()].Link = ba
			}
		}
		close(j.linked)
	}
	j.mu.Unlock()
	return j.pause(ctx, j.linked)
}

// pause waits for c, the end of ctx or an abort.
func (j *localJob) pause(ctx context.Context, c chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-j.abort:
		return j.why
	}
}

// localLauncher is the job.Launcher of one rank of a localJob.
type localLauncher struct {
	job  *localJob
	rank int
}

func (b *localLauncher) Put(_ context.Context, key, value string) error {
	b.job.mu.Lock()
	defer b.job.mu.Unlock()
	b.job.store[key] = value
	return nil
}

func (b *localLauncher) Get(_ context.Context, key string) (string, error) {
	b.job.mu.Lock()
	defer b.job.mu.Unlock()
	v, ok := b.job.store[key]
	if !ok {
		return "", fmt.Errorf("mpi: no value for %q", key)
	}
	return v, nil
}

func (b *localLauncher) Barrier(ctx context.Context) error {
	j := b.job
	j.mu.Lock()
	gate := j.gate
	if j.wait++; j.wait == j.size {
		j.wait = 0
		j.gate = make(chan struct{})
		close(gate)
	}
	j.mu.Unlock()
	return j.pause(ctx, gate)
}

func (b *localLauncher) Abort(code int, msg string) error {
	j := b.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.why == nil {
		j.why = fmt.Errorf("%w: exit code %d: %s", ErrAborted, code, msg)
		close(j.abort)
	}
	return nil
}

func (b *localLauncher) Finalize(context.Context) error { return nil }
