package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestGrequest(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		g := w.StartGrequest(nil)
		r, err := Irecv(w.Comm(), make([]int, 1), 1-w.Rank(), 0)
		if err != nil {
			return err
		}
		if _, done, _ := g.Request().Test(); done {
			return errors.New("done before it was completed")
		}
		go func() {
			g.Complete(Status{Source: 7, Tag: 8, Bytes: 24}, nil)
			g.Complete(Status{}, errTestOver) // too late
		}()
		if err := Send(ctx, w.Comm(), []int{1}, 1-w.Rank(), 0); err != nil {
			return err
		}
		sts, err := Waitall(ctx, r, g.Request())
		if err != nil {
			return err
		}
		if n, _ := Count[int64](sts[1]); sts[1].Source != 7 || n != 3 {
			return fmt.Errorf("%+v", sts)
		}
		var h *Grequest
		told := 0
		h = w.StartGrequest(func(done bool) {
			if told++; !done {
				h.Complete(Status{}, ErrCanceled)
			}
		})
		if !h.Request().Cancel() || told != 1 {
			return fmt.Errorf("cancelled %d times", told)
		}
		if _, err := h.Request().Wait(ctx); !errors.Is(err, ErrCanceled) {
			return fmt.Errorf("cancelled: %w", err)
		}
		if g.Request().Cancel() {
			return errors.New("a request that is done was cancelled")
		}
		return nil
	})
}

// A request that is given up goes on; a persistent receive can be cancelled and
// started again.
func TestRequestFreeAndCancel(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c, other := w.Comm(), 1-w.Rank()
		in, out := make([]int, 10), make([]int, 100_000)
		r, err := Irecv(c, in, other, 1)
		if err != nil {
			return err
		}
		r.Free()
		s, err := Isend(c, out, other, 2)
		if err != nil {
			return err
		}
		s.Free()
		if err := Send(ctx, c, []int{5}, other, 1); err != nil {
			return err
		}
		if _, err := Recv(ctx, c, make([]int, len(out)), other, 2); err != nil {
			return err
		}
		p, err := RecvInit(c, make([]int, 1), other, 3)
		if err != nil {
			return err
		}
		for round := range 3 {
			q, err := p.Start()
			if err != nil {
				return err
			}
			if !q.Cancel() || q.Cancel() {
				return fmt.Errorf("round %d: not cancelled once", round)
			}
			if _, err := q.Wait(ctx); !errors.Is(err, ErrCanceled) {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		if err := c.barrier(ctx); err != nil { // what is sent now is not for those cancelled
			return err
		}
		q, err := p.Start()
		if err != nil {
			return err
		}
		b, err := BsendInit(c, out[:1], other, 3)
		if err != nil {
			return err
		}
		for i := range 2 {
			out[0] = 40 + i
			br, err := b.Start()
			if err != nil {
				return err
			}
			out[0] = 0
			if _, err := br.Wait(ctx); err != nil {
				return err
			}
			if i == 0 {
				if _, err := q.Wait(ctx); err != nil {
					return err
				}
			}
		}
		var x [1]int
		if _, err := Recv(ctx, c, x[:], other, 3); err != nil || x[0] != 41 {
			return fmt.Errorf("buffered: %d, %w", x[0], err)
		}
		d, dr, err := c.Idup()
		if err != nil {
			return err
		}
		if _, err := dr.Wait(ctx); err != nil || c.Compare(d) != Congruent {
			return fmt.Errorf("duplicate: %v, %w", d, err)
		}
		return c.barrier(ctx)
	})
}

func TestTranslateRanksAndVersion(t *testing.T) {
	g, h := Group{ranks: []int32{4, 2, 7}}, Group{ranks: []int32{7, 4}}
	got := g.TranslateRanks([]int{2, 0, 1, ProcNull, 9}, h)
	if want := []int{0, 1, Undefined, ProcNull, Undefined}; !slices.Equal(got, want) {
		t.Errorf("ranks %v, want %v", got, want)
	}
	if v := LibraryVersion(); !strings.HasPrefix(v, "weft ") {
		t.Errorf("library %q", v)
	}
}

// TestNeighborAlltoallw exchanges columns and rows of a matrix in a ring, with
// the blocking, the nonblocking and the persistent form, and the persistent
// forms of the other neighbour collectives.
func TestNeighborAlltoallw(t *testing.T) {
	const p = 4
	local(t, p, func(ctx context.Context, c *Comm) error {
		g, err := NewCart(ctx, c, []int{p}, []bool{true})
		if err != nil {
			return err
		}
		integer, err := TypeOf[int]()
		if err != nil {
			return err
		}
		column, err := TypeVector(3, 1, 3, integer) // of a 3×3 matrix
		if err != nil {
			return err
		}
		row, err := TypeContiguous(3, integer)
		if err != nil {
			return err
		}
		me := c.Rank()
		a, b := make([]int, 9), make([]int, 9)
		fill := func() {
			for i := range a {
				a[i], b[i] = 100*me+i, -1
			}
		}
		// The first column goes down, the last row up; they come as row 0 and column 2.
		ones, sd, rd := []int{1, 1}, []int{0, 6 * integer.Size()}, []int{0, 2 * integer.Size()}
		st, rt := []*Datatype{column, row}, []*Datatype{row, column}
		check := func(what string, err error) error {
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			// From below came its upward block, from above its downward one.
			below, above := 100*((me+p-1)%p), 100*((me+1)%p)
			want := []int{below + 6, below + 7, above, -1, -1, above + 3, -1, -1, above + 6}
			if !slices.Equal(b, want) {
				return fmt.Errorf("%s: %v, want %v", what, b, want)
			}
			return nil
		}
		fill()
		if err := check("blocking", NeighborAlltoallw(ctx, g, a, ones, sd, st, b, ones, rd, rt)); err != nil {
			return err
		}
		fill()
		r, err := IneighborAlltoallw(g, a, ones, sd, st, b, ones, rd, rt)
		if err != nil {
			return err
		}
		_, err = r.Wait(ctx)
		if err := check("nonblocking", err); err != nil {
			return err
		}
		all := make([]int, 2)
		two := make([]int, 2)
		ps := make([]*Persistent, 5)
		var errs [5]error
		ps[0], errs[0] = NeighborAlltoallwInit(g, a, ones, sd, st, b, ones, rd, rt)
		ps[1], errs[1] = NeighborAllgatherInit(g, a[:1], all)
		ps[2], errs[2] = NeighborAllgathervInit(g, a[:1], two, ones, nil)
		x, y := make([]int, 2), make([]int, 2)
		ps[3], errs[3] = NeighborAlltoallInit(g, a[:2], x)
		ps[4], errs[4] = NeighborAlltoallvInit(g, a[:2], ones, nil, y, ones, nil)
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		for range 3 {
			fill()
			// In an order of their own on each rank.
			reqs, err := Startall(slices.Concat(ps[me:], ps[:me])...)
			if err != nil {
				return err
			}
			_, err = Waitall(ctx, reqs...)
			if err := check("persistent", err); err != nil {
				return err
			}
			below, above := 100*((me+p-1)%p), 100*((me+1)%p)
			want, cross := []int{below, above}, []int{below + 1, above}
			if !slices.Equal(all, want) || !slices.Equal(two, want) || !slices.Equal(x, cross) || !slices.Equal(y, cross) {
				return fmt.Errorf("gathered %v, %v, want %v; exchanged %v, %v, want %v", all, two, want, x, y, cross)
			}
		}
		for _, q := range ps {
			q.Free()
		}
		if err := NeighborAlltoallw(ctx, g, a, ones[:1], sd, st, b, ones, rd, rt); !errors.Is(err, ErrCount) {
			return fmt.Errorf("too few counts: %w", err)
		}
		return Barrier(ctx, c)
	})
}

func TestAlltoallwInit(t *testing.T) {
	const p = 3
	local(t, p, func(ctx context.Context, c *Comm) error {
		integer, err := TypeOf[int]()
		if err != nil {
			return err
		}
		types := slices.Repeat([]*Datatype{integer}, p)
		ones, at := slices.Repeat([]int{1}, p), []int{0, integer.Size(), 2 * integer.Size()}
		a, b := make([]int, p), make([]int, p)
		q, err := AlltoallwInit(c, a, ones, at, types, b, ones, at, types)
		if err != nil {
			return err
		}
		for round := range 3 {
			for i := range a {
				a[i] = 100*round + 10*c.Rank() + i
			}
			r, err := q.Start()
			if err != nil {
				return err
			}
			if _, err := r.Wait(ctx); err != nil {
				return err
			}
			for i, x := range b {
				if want := 100*round + 10*i + c.Rank(); x != want {
					return fmt.Errorf("block %d is %d, want %d", i, x, want)
				}
			}
		}
		return nil
	})
}

func TestMoreGraphs(t *testing.T) {
	const p = 4
	local(t, p, func(ctx context.Context, c *Comm) error {
		me := c.Rank()
		// Rank r gives the edges of rank r+1: to all with a higher number.
		s := (me + 1) % p
		var to []int
		for r := s + 1; r < p; r++ {
			to = append(to, r)
		}
		g, err := NewDistGraph(ctx, c, []int{s}, [][]int{to})
		if err != nil {
			return err
		}
		sources, targets := g.Neighbors()
		slices.Sort(sources)
		if len(sources) != me || len(targets) != p-1-me || me > 0 && sources[me-1] != me-1 {
			return fmt.Errorf("rank %d has sources %v and targets %v", me, sources, targets)
		}
		got := make([]int, len(sources))
		if err := NeighborAllgather(ctx, g, []int{me}, got); err != nil {
			return err
		}
		if in, _ := g.Neighbors(); !slices.Equal(got, in) {
			return fmt.Errorf("rank %d got %v from %v", me, got, in)
		}
		star, err := NewFullGraph(ctx, c, [][]int{{1, 2}, {0}, {0}})
		if err != nil {
			return err
		}
		if (star == nil) != (me == 3) {
			return fmt.Errorf("rank %d in the star: %v", me, star)
		}
		if star != nil {
			all := make([]int, len(star.NeighborsOf(me)))
			if err := NeighborAllgather(ctx, star, []int{me}, all); err != nil {
				return err
			}
			if !slices.Equal(all, star.NeighborsOf(me)) || !slices.Equal(star.NeighborsOf(0), []int{1, 2}) || star.NeighborsOf(3) != nil {
				return fmt.Errorf("rank %d got %v", me, all)
			}
		}
		if _, err := NewDistGraph(ctx, c, []int{0}, nil); !errors.Is(err, ErrTopology) {
			return fmt.Errorf("without targets: %w", err)
		}
		if _, err := NewDistGraph(ctx, c, []int{p}, [][]int{{0}}); !errors.Is(err, ErrRank) {
			return fmt.Errorf("source outside: %w", err)
		}
		if _, err := NewFullGraph(ctx, c, make([][]int, p+1)); !errors.Is(err, ErrTopology) {
			return fmt.Errorf("too many nodes: %w", err)
		}
		if _, err := NewFullGraph(ctx, c, [][]int{{1}}); !errors.Is(err, ErrRank) {
			return fmt.Errorf("neighbour outside: %w", err)
		}
		return Barrier(ctx, c)
	})
}
