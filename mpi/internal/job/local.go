package job

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/transport/inproc"
)

// Local is the launcher of a job whose ranks are goroutines of this process.
type Local struct {
	size int

	mu     sync.Mutex
	store  map[string]string
	ranks  []*Job
	wait   int           // ranks in the present barrier
	gate   chan struct{} // closed when it is over
	linked chan struct{} // closed when the in-process links are made
	abort  chan struct{}
	why    error
}

// NewLocal returns the launcher of n ranks. store holds values that ranks can get from the beginning; nil: none.
func NewLocal(n int, store map[string]string) *Local {
	l := &Local{
		size: n, store: make(map[string]string),
		gate: make(chan struct{}), linked: make(chan struct{}), abort: make(chan struct{}),
	}
	maps.Copy(l.store, store)
	return l
}

// Size returns the number of ranks.
func (l *Local) Size() int { return l.size }

// Link collects the ranks and, when it has all, makes links between them.
func (l *Local) Link(ctx context.Context, r *Job) error {
	l.mu.Lock()
	l.ranks = append(l.ranks, r)
	if len(l.ranks) == l.size {
		for i, a := range l.ranks {
			for _, b := range l.ranks[:i] {
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
		close(l.linked)
	}
	l.mu.Unlock()
	return l.pause(ctx, l.linked)
}

// pause waits for c, the end of ctx or an abort.
func (l *Local) pause(ctx context.Context, c chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.abort:
		return l.why
	}
}

// Put implements Launcher.
func (l *Local) Put(_ context.Context, key, value string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.store[key] = value
	return nil
}

// Get implements Launcher.
func (l *Local) Get(_ context.Context, key string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.store[key]
	if !ok {
		return "", fmt.Errorf("mpi: no value for %q", key)
	}
	return v, nil
}

// Barrier implements Launcher.
func (l *Local) Barrier(ctx context.Context) error {
	l.mu.Lock()
	gate := l.gate
	if l.wait++; l.wait == l.size {
		l.wait = 0
		l.gate = make(chan struct{})
		close(gate)
	}
	l.mu.Unlock()
	return l.pause(ctx, gate)
}

// Abort implements Launcher.
func (l *Local) Abort(code int, msg string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil {
		l.why = fmt.Errorf("%w: exit code %d: %s", mpierr.ErrAborted, code, msg)
		close(l.abort)
	}
	return nil
}

// Finalize implements Launcher.
func (l *Local) Finalize(context.Context) error { return nil }
