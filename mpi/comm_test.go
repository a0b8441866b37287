package mpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestCommunicators(t *testing.T) {
	runRanks(t, 6, func(ctx context.Context, w *World) error {
		c := w.Comm()
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		// The same tag on two communicators does not mix.
		right, left := (c.Rank()+1)%6, (c.Rank()+5)%6
		if err := Send(ctx, d, []int{1000 + c.Rank()}, right, 0); err != nil {
			return err
		}
		if err := Send(ctx, c, []int{c.Rank()}, right, 0); err != nil {
			return err
		}
		var x [1]int
		if _, err := Recv(ctx, c, x[:], AnySource, AnyTag); err != nil || x[0] != left {
			return fmt.Errorf("world: %d, %v", x[0], err)
		}
		if _, err := Recv(ctx, d, x[:], AnySource, AnyTag); err != nil || x[0] != 1000+left {
			return fmt.Errorf("dup: %d, %v", x[0], err)
		}
		// Odd and even ranks, in reverse order.
		s, err := d.Split(ctx, c.Rank()%2, -c.Rank())
		if err != nil {
			return err
		}
		if s.Size() != 3 || s.Rank() != 2-c.Rank()/2 || s.Group().WorldRank(s.Rank()) != c.Rank() {
			return fmt.Errorf("split: rank %d of %d", s.Rank(), s.Size())
		}
		st, err := Sendrecv(ctx, s, []int{c.Rank()}, (s.Rank()+1)%3, 0, x[:], AnySource, 0)
		if err != nil || st.Source != (s.Rank()+2)%3 || x[0] != s.Group().WorldRank(st.Source) {
			return fmt.Errorf("split: %+v, %d, %v", st, x[0], err)
		}
		color := Undefined
		if c.Rank() == 3 {
			color = 0
		}
		u, err := c.Split(ctx, color, 0)
		if err != nil || (u != nil) != (c.Rank() == 3) {
			return fmt.Errorf("split with one member: %v, %v", u, err)
		}
		g, err := c.Group().Incl(5, 1)
		if err != nil {
			return err
		}
		p, err := c.Create(ctx, g)
		if err != nil || (p != nil) != (c.Rank() == 5 || c.Rank() == 1) {
			return fmt.Errorf("create: %v, %v", p, err)
		}
		if p != nil {
			if _, err := Sendrecv(ctx, p, []int{c.Rank()}, 1-p.Rank(), 0, x[:], 1-p.Rank(), 0); err != nil || x[0] != 6-c.Rank() {
				return fmt.Errorf("create: %d, %v", x[0], err)
			}
		}
		if err := c.barrier(ctx); err != nil {
			return err
		}
		r, err := Irecv(d, x[:], AnySource, AnyTag)
		if err != nil {
			return err
		}
		d.Free()
		if !r.Cancel() {
			return errors.New("a receive that waits on a freed communicator cannot be cancelled")
		}
		if _, err := r.Wait(ctx); !errors.Is(err, ErrCanceled) {
			return fmt.Errorf("receive on a freed communicator: %v", err)
		}
		if err := Send(ctx, d, x[:], 0, 0); !errors.Is(err, ErrFreed) {
			return fmt.Errorf("send on a freed communicator: %v", err)
		}
		return nil
	})
}

func TestGroups(t *testing.T) {
	g := Group{ranks: []int32{4, 2, 7, 0}}
	h := Group{ranks: []int32{7, 1, 4}}
	for _, tt := range []struct {
		name string
		got  Group
		want []int32
	}{
		{"union", g.Union(h), []int32{4, 2, 7, 0, 1}},
		{"intersection", g.Intersection(h), []int32{4, 7}},
		{"difference", g.Difference(h), []int32{2, 0}},
	} {
		if !slices.Equal(tt.got.ranks, tt.want) {
			t.Errorf("%s = %v, want %v", tt.name, tt.got.ranks, tt.want)
		}
	}
	if x, err := g.Excl(0, 3); err != nil || !slices.Equal(x.ranks, []int32{2, 7}) {
		t.Errorf("Excl = %v, %v", x, err)
	}
	if _, err := g.Incl(0, 0); !errors.Is(err, ErrRank) {
		t.Errorf("Incl twice: %v", err)
	}
	if _, err := g.Excl(4); !errors.Is(err, ErrRank) {
		t.Errorf("Excl outside: %v", err)
	}
	if g.Translate(0, h) != 2 || g.Translate(1, h) != Undefined || g.Rank(7) != 2 || g.Equal(h) || !g.Equal(g) {
		t.Error("translation")
	}
}

func TestMoreCommunicators(t *testing.T) {
	runRanks(t, 5, func(ctx context.Context, w *World) error {
		c := w.Comm()
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		rev, err := c.Split(ctx, 0, -c.Rank())
		if err != nil {
			return err
		}
		for _, tt := range []struct {
			d    *Comm
			want Comparison
		}{{c, Identical}, {d, Congruent}, {rev, Similar}, {w.Self(), Unequal}} {
			if got := c.Compare(tt.d); got != tt.want {
				return fmt.Errorf("world and %v are %v, want %v", tt.d, got, tt.want)
			}
		}
		s, err := c.SplitShared(ctx, 0)
		if err != nil || c.Compare(s) != Congruent {
			return fmt.Errorf("shared: %v, %v", s, err)
		}
		// Two groups that overlap in rank 2, made in any order.
		g, err := c.Group().RangeIncl(Range{4, 2, -1})
		if err != nil {
			return err
		}
		h, err := c.Group().RangeExcl(Range{3, 4, 1})
		if err != nil {
			return err
		}
		for i, x := range []Group{g, h} {
			if x.Rank(c.Rank()) == Undefined {
				continue
			}
			p, err := c.CreateGroup(ctx, x, 7+i)
			if err != nil {
				return err
			}
			var got [1]int
			if _, err := Sendrecv(ctx, p, []int{c.Rank()}, (p.Rank()+1)%3, 0, got[:], (p.Rank()+2)%3, 0); err != nil {
				return err
			}
			if want := x.WorldRank((p.Rank() + 2) % 3); got[0] != want {
				return fmt.Errorf("group %d: %d, want %d", i, got[0], want)
			}
		}
		if _, err := c.Group().RangeIncl(Range{0, 5, 1}); !errors.Is(err, ErrRank) {
			return fmt.Errorf("range outside: %v", err)
		}
		if _, err := c.Group().RangeIncl(Range{0, 4, 0}); !errors.Is(err, ErrRank) {
			return fmt.Errorf("range without stride: %v", err)
		}
		_, err = c.CreateGroup(ctx, Group{}, 0)
		if !errors.Is(err, ErrRank) {
			return fmt.Errorf("group without the caller: %v", err)
		}
		return nil
	})
}

// The members of a group in different orders do not wait for each other.
func TestCreateGroupOrders(t *testing.T) {
	for _, orders := range [][][]int{{{0, 1}, {1, 0}}, {{0, 1, 2}, {0, 1, 2}, {2, 1, 0}}, {{1, 2, 0}, {1, 2, 0}, {1, 2, 0}}} {
		runRanks(t, len(orders), func(ctx context.Context, w *World) error {
			c := w.Comm()
			order := orders[c.Rank()]
			g, err := c.Group().Incl(order...)
			if err != nil {
				return err
			}
			d, err := c.CreateGroup(ctx, g, 1)
			if !slices.Equal(orders[0], orders[len(orders)-1]) {
				if !errors.Is(err, ErrNotSame) {
					return fmt.Errorf("orders %v: %w", orders, cmp.Or(err, errors.New("no error")))
				}
				return nil
			}
			if err != nil {
				return err
			}
			if want := slices.Index(order, c.Rank()); d.Rank() != want {
				return fmt.Errorf("rank %d, want %d", d.Rank(), want)
			}
			return d.barrier(ctx)
		})
	}
}
