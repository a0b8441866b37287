package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/mpi/internal/job"
	"github.com/weftstack/weft/mpi/internal/localsites"
)

// localFamily is a job of RunLocal and those that it has spawned.
type localFamily struct {
	ctx      context.Context
	cancel   context.CancelFunc
	o        *options
	gateways *localsites.Sites // nil: none
	wg       sync.WaitGroup

	mu    sync.Mutex
	n     int // jobs spawned
	errs  []error
	names map[string]string // ports that ranks have published, by service
}

// localNames are published by ranks of this process.
var localNames pmi.Names

// start runs the ranks of a job.
func (fam *localFamily) start(j *localJob, what string, f func(rank int) func(context.Context, *World) error) {
	for rank := range j.Size() {
		fam.wg.Go(func() {
			joined, err := j.run(fam.ctx, rank, fam.o, f(rank))
			if err == nil {
				return
			}
			fam.mu.Lock()
			fam.errs = append(fam.errs, fmt.Errorf("%srank %d: %w", what, rank, err))
			fam.mu.Unlock()
			if !fam.o.Tolerant || !joined { // the others of j wait for it to join
				fam.cancel()
			}
		})
	}
}

// Spawn implements dynamic.Spawner.
func (b *localLauncher) Spawn(_ context.Context, s *pmi.Spawn) (*pmi.Spawned, error) {
	fam := b.family
	if fam == nil {
		return nil, errors.New("the process was started without a launcher")
	}
	out := &pmi.Spawned{}
	var progs []Program
	var args [][]string
	var app []int
	for i, c := range s.Commands {
		p, ok := fam.o.programs[c.Path]
		n, err := pmi.Soft(c.Info[pmi.InfoSoft], c.N, MaxSpawn)
		if err == nil && !ok {
			err = fmt.Errorf("no program %.40q (see WithProgram)", c.Path)
		}
		if err != nil {
			n = c.N
		}
		for range n {
			progs, args, app = append(progs, p), append(args, c.Args), append(app, i)
			out.Errs = append(out.Errs, err)
		}
	}
	if out.Err() != nil {
		return out, nil
	}
	j := &localJob{Local: job.NewLocal(len(progs), s.Preput), family: fam, app: app, spawned: true}
	fam.mu.Lock()
	fam.n++
	what := fmt.Sprintf("spawned job %d, ", fam.n)
	fam.mu.Unlock()
	fam.start(j, what, func(rank int) func(context.Context, *World) error {
		return func(ctx context.Context, w *World) error { return progs[rank](ctx, w, args[rank]) }
	})
	return out, nil
}

// Publish implements nameService.
func (b *localLauncher) Publish(_ context.Context, name, port string) error {
	err := localNames.Publish(name, port)
	if fam := b.family; fam != nil && err == nil {
		fam.mu.Lock()
		defer fam.mu.Unlock()
		if fam.names == nil {
			fam.names = make(map[string]string)
		}
		fam.names[name] = port
	}
	return err
}

// unpublish removes what the ranks have published and left, as the end of a
// launcher does. A name that another job of the process has now has another port.
func (fam *localFamily) unpublish() {
	for name, port := range fam.names {
		_ = localNames.Unpublish(name, port)
	}
}

// Unpublish implements nameService.
func (b *localLauncher) Unpublish(_ context.Context, name, port string) error {
	return localNames.Unpublish(name, port)
}

// Lookup implements nameService.
func (b *localLauncher) Lookup(_ context.Context, name string) (string, error) {
	return localNames.Lookup(name)
}

// AppNum implements launcherInfo.
func (b *localLauncher) AppNum(context.Context) (int, error) {
	if b.app == nil {
		return 0, nil
	}
	return b.app[b.rank], nil
}

// UniverseSize implements launcherInfo.
func (b *localLauncher) UniverseSize(context.Context) (int, error) { return b.Size(), nil }
