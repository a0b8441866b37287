package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi"
)

// threads has many goroutines of each rank do all kinds of things at once: on
// communicators of their own, on one that they share, and on one window.
func threads(ctx context.Context, c *mpi.Comm) error {
	const goroutines, rounds = 6, 4
	n, me := c.Size(), c.Rank()
	win, err := mpi.WinAllocate[int64](ctx, c, 2+goroutines*n)
	if err != nil {
		return err
	}
	if err := win.LockAll(ctx); err != nil {
		return err
	}
	own := make([]*mpi.Comm, goroutines)
	for g := range own {
		if own[g], err = c.Dup(ctx); err != nil {
			return err
		}
	}
	errs := make([]error, goroutines)
	// When one fails, others wait for it here and elsewhere.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for round := range rounds {
				errs[g] = errors.Join(together(ctx, own[g], g+round), pairs(ctx, c, g, round),
					oneSided(ctx, win, me, n, g, goroutines, round))
				if errs[g] != nil {
					errs[g] = fmt.Errorf("goroutine %d, round %d: %w", g, round, errs[g])
					stop()
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, d := range own {
		d.Free()
	}
	if err := errors.Join(win.UnlockAll(ctx), mpi.Barrier(ctx, c)); err != nil {
		return err
	}
	win.Sync()
	if b := win.Buf(); me == 0 && (b[0] != int64(n*goroutines*rounds) || b[1] != b[0]) {
		return fmt.Errorf("counters %v, want %d", b[:2], n*goroutines*rounds)
	}
	return win.Free(ctx)
}

// together does collectives on a communicator of one goroutine.
func together(ctx context.Context, c *mpi.Comm, seed int) error {
	n, me := c.Size(), c.Rank()
	for _, count := range []int{1, 1000} {
		mine, all := block(me, seed, count), make([]int, n*count)
		err := mpi.Allgather(ctx, c, mine, all)
		for r := range n {
			err = same("allgather", all[r*count:][:count], block(r, seed, count), err)
		}
		if err != nil {
			return err
		}
		r, err := mpi.Iallreduce(c, mine, all[:count], mpi.Max[int])
		if err == nil {
			_, err = r.Wait(ctx)
		}
		if err := same("allreduce", all[:count], block(n-1, seed, count), err); err != nil {
			return err
		}
		root := seed % n
		err = mpi.Bcast(ctx, c, mine, root)
		if err := same("bcast", mine, block(root, seed, count), err); err != nil {
			return err
		}
	}
	return mpi.Barrier(ctx, c)
}

// pairs sends messages around the communicator that all goroutines share. Each
// goroutine has a tag; that is all that keeps them apart.
func pairs(ctx context.Context, c *mpi.Comm, g, round int) error {
	n, me := c.Size(), c.Rank()
	next, prev := (me+1)%n, (me+n-1)%n
	length := []int{10, 300_000}[round%2]
	out, in := block(me, g+round, length), make([]int, length)
	s, err := mpi.Isend(c, out, next, g)
	if err != nil {
		return err
	}
	var st mpi.Status
	switch round % 4 {
	case 0:
		st, err = mpi.Recv(ctx, c, in, mpi.AnySource, g)
	case 1:
		var m *mpi.Message
		if m, err = mpi.Mprobe(ctx, c, mpi.AnySource, g); err == nil {
			st, err = mpi.Mrecv(ctx, m, in)
		}
	case 2:
		if st, err = mpi.Probe(ctx, c, prev, g); err == nil {
			st, err = mpi.Recv(ctx, c, in, st.Source, g)
		}
	default:
		var r *mpi.Request
		if r, err = mpi.Irecv(c, in, prev, g); err == nil {
			st, err = r.Wait(ctx)
		}
	}
	if err == nil && (st.Source != prev || st.Tag != g) {
		err = fmt.Errorf("message of tag %d from %d", st.Tag, st.Source)
	}
	if err := same("ring", in, block(prev, g+round, length), err); err != nil {
		return err
	}
	_, err = s.Wait(ctx)
	return err
}

// oneSided counts at rank 0, in two ways, and puts to, and gets from, a place at
// the next rank that is this goroutine's.
func oneSided(ctx context.Context, w *mpi.Win[int64], me, n, g, goroutines, round int) error {
	if _, err := w.FetchAndOp(ctx, 1, 0, 0, mpi.Sum[int64]); err != nil {
		return err
	}
	if err := w.Accumulate(ctx, []int64{1}, 0, 1, mpi.Sum[int64]); err != nil {
		return err
	}
	next, at := (me+1)%n, 2+me*goroutines+g
	out, in := []int64{int64(value(me, g, round))}, []int64{-1}
	if err := w.Put(ctx, out, next, at); err != nil {
		return err
	}
	if err := w.Flush(ctx, next); err != nil {
		return err
	}
	r, err := w.Rget(ctx, in, next, at)
	if err != nil {
		return err
	}
	if _, err := r.Wait(ctx); err != nil {
		return err
	}
	if in[0] != out[0] {
		return fmt.Errorf("got %d, put %d", in[0], out[0])
	}
	return nil
}
