package bench

import (
	"context"

	"github.com/weftstack/weft/mpi"
)

// persistentCase times the start and the end of a collective that was prepared
// once.
func persistentCase(b *state, k *collective) (*testCase, error) {
	p, err := k.init()
	if err != nil {
		return nil, err
	}
	blocking := *k
	blocking.call = func(ctx context.Context) error {
		r, err := p.Start()
		if err != nil {
			return err
		}
		_, err = r.Wait(ctx)
		r.Free()
		return err
	}
	c, err := blockingCase(b, &blocking)
	c.done = func(context.Context) error {
		p.Free()
		return nil
	}
	return c, err
}

// wBlocks are equal blocks for the exchanges that count in bytes and have a
// datatype for each block.
type wBlocks struct {
	counts, displs []int
	types          []*mpi.Datatype
}

func newWBlocks(n, size int) wBlocks {
	t, err := mpi.TypeOf[byte]()
	if err != nil {
		panic(err) // a byte has a datatype
	}
	w := wBlocks{}
	for i := range n {
		w.counts, w.displs, w.types = append(w.counts, size), append(w.displs, i*size), append(w.types, t)
	}
	return w
}

func collAlltoallw(b *state, size int) *collective {
	send, recv, w := memory[byte](b.size*size), memory[byte](b.size*size), newWBlocks(b.size, size)
	return alltoallCase(b, send, recv, size).by(
		func(ctx context.Context) error {
			return mpi.Alltoallw(ctx, b.c, send, w.counts, w.displs, w.types, recv, w.counts, w.displs, w.types)
		},
		func() (*mpi.Request, error) {
			return mpi.Ialltoallw(b.c, send, w.counts, w.displs, w.types, recv, w.counts, w.displs, w.types)
		},
		func() (*mpi.Persistent, error) {
			return mpi.AlltoallwInit(b.c, send, w.counts, w.displs, w.types, recv, w.counts, w.displs, w.types)
		})
}

// ring is a ring in which every rank has two neighbours, the one before and
// the one after it: what OSU calls cart:1:1.
type ring struct {
	g            mpi.Topology
	before, next int
	counts       []int
	one          []byte // a block
	send, recv   []byte // a block for each neighbour
}

func newRing(b *state, size int) *ring {
	r := &ring{before: (b.me + b.size - 1) % b.size, next: (b.me + 1) % b.size, counts: []int{size, size},
		one: memory[byte](size), send: memory[byte](2 * size), recv: memory[byte](2 * size)}
	g, err := mpi.NewGraph(context.Background(), b.c, []int{r.before, r.next}, []int{r.before, r.next}) // does not block
	if err != nil {
		panic(err) // the ranks exist
	}
	r.g = g
	return r
}

// gathers is a case in which each rank gives its neighbours the same block.
func (r *ring) gathers(b *state) *collective {
	return &collective{
		fill: func() { fillPattern(r.one, b.me); clear(r.recv) },
		check: func() error {
			return checkBlocks(r.recv, 2, len(r.one), func(i int) int { return []int{r.before, r.next}[i] })
		},
		free: r.g.Comm().Free,
	}
}

// exchanges is a case in which each rank gives its neighbours different blocks.
func (r *ring) exchanges(b *state) *collective {
	size := len(r.one)
	return &collective{
		fill: func() {
			for i, to := range []int{r.before, r.next} {
				fillPattern(block(r.send, i, size), b.me*b.size+to)
			}
			clear(r.recv)
		},
		check: func() error {
			return checkBlocks(r.recv, 2, size, func(i int) int { return []int{r.before, r.next}[i]*b.size + b.me })
		},
		free: r.g.Comm().Free,
	}
}

func collNeighborAllgather(b *state, size int) *collective {
	r := newRing(b, size)
	return r.gathers(b).by(
		func(ctx context.Context) error { return mpi.NeighborAllgather(ctx, r.g, r.one, r.recv) },
		func() (*mpi.Request, error) { return mpi.IneighborAllgather(r.g, r.one, r.recv) },
		func() (*mpi.Persistent, error) { return mpi.NeighborAllgatherInit(r.g, r.one, r.recv) })
}

func collNeighborAllgatherv(b *state, size int) *collective {
	r := newRing(b, size)
	return r.gathers(b).by(
		func(ctx context.Context) error { return mpi.NeighborAllgatherv(ctx, r.g, r.one, r.recv, r.counts, nil) },
		func() (*mpi.Request, error) { return mpi.IneighborAllgatherv(r.g, r.one, r.recv, r.counts, nil) },
		func() (*mpi.Persistent, error) { return mpi.NeighborAllgathervInit(r.g, r.one, r.recv, r.counts, nil) })
}

func collNeighborAlltoall(b *state, size int) *collective {
	r := newRing(b, size)
	return r.exchanges(b).by(
		func(ctx context.Context) error { return mpi.NeighborAlltoall(ctx, r.g, r.send, r.recv) },
		func() (*mpi.Request, error) { return mpi.IneighborAlltoall(r.g, r.send, r.recv) },
		func() (*mpi.Persistent, error) { return mpi.NeighborAlltoallInit(r.g, r.send, r.recv) })
}

func collNeighborAlltoallv(b *state, size int) *collective {
	r := newRing(b, size)
	n := r.counts
	return r.exchanges(b).by(
		func(ctx context.Context) error {
			return mpi.NeighborAlltoallv(ctx, r.g, r.send, n, nil, r.recv, n, nil)
		},
		func() (*mpi.Request, error) { return mpi.IneighborAlltoallv(r.g, r.send, n, nil, r.recv, n, nil) },
		func() (*mpi.Persistent, error) {
			return mpi.NeighborAlltoallvInit(r.g, r.send, n, nil, r.recv, n, nil)
		})
}

func collNeighborAlltoallw(b *state, size int) *collective {
	r := newRing(b, size)
	w := newWBlocks(2, size)
	return r.exchanges(b).by(
		func(ctx context.Context) error {
			return mpi.NeighborAlltoallw(ctx, r.g, r.send, w.counts, w.displs, w.types, r.recv, w.counts, w.displs, w.types)
		},
		func() (*mpi.Request, error) {
			return mpi.IneighborAlltoallw(r.g, r.send, w.counts, w.displs, w.types, r.recv, w.counts, w.displs, w.types)
		},
		func() (*mpi.Persistent, error) {
			return mpi.NeighborAlltoallwInit(r.g, r.send, w.counts, w.displs, w.types, r.recv, w.counts, w.displs, w.types)
		})
}
