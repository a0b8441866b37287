package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestWinUpdateType adds the columns of a matrix to the rows of the target's,
// and fetches what was there before, to places with gaps.
func TestWinUpdateType(t *testing.T) {
	const n = 20
	f, column, pairs := matrixTypes[int32](t, n)
	half, err := TypeOf[int16]()
	if err != nil {
		t.Fatal(err)
	}
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int32](ctx, c, 5+n*n)
		if err != nil {
			return err
		}
		a := make([]int32, n*n)
		for i := range a {
			a[i] = int32(c.Rank()*n*n + i)
		}
		me, peer := c.Rank(), 1-c.Rank()
		sum := func(i, times int) int32 { // of element i of the window here, or at the peer
			return int32(times * (me*n*n + i%n*n + i/n))
		}
		if err := w.AccumulateType(ctx, a, n, column, peer, 5, n*n, f, Sum); err != nil {
			return err
		}
		r, err := w.RaccumulateType(ctx, a, n, column, peer, 5, n*n, f, Sum)
		if err != nil {
			return err
		}
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
		old := make([]int32, n*n/2*3)
		for i := range old {
			old[i] = -1
		}
		check := func(what string, times int) error {
			for i, v := range old {
				want := int32(-1)
				if i%3 < 2 {
					want = sum(i/3*2+i%3, times)
				}
				if v != want {
					return fmt.Errorf("%s: %d at %d, want %d", what, v, i, want)
				}
			}
			return nil
		}
		// The window holds the sums of this rank only: rows, as columns here.
		r, err = w.RgetAccumulateType(ctx, a, n, column, old, 1, pairs, peer, 5, n*n, f, Sum)
		if err != nil {
			return err
		}
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
		if err := check("old", 2); err != nil {
			return err
		}
		// An atomic Get, without operands.
		if err := w.GetAccumulateType(ctx, nil, 0, nil, old, 1, pairs, peer, 5, n*n, f, NoOp); err != nil {
			return err
		}
		if err := w.FlushLocal(ctx, peer); err != nil {
			return err
		}
		if err := check("now", 3); err != nil {
			return err
		}
		// The same through a plain Get of a transposed view, as a request.
		got := make([]int32, n*n)
		if r, err = w.RgetType(ctx, got, n, column, peer, 5, n*n, f); err != nil {
			return err
		}
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
		for i, v := range got {
			if want := 3 * a[i]; v != want {
				return fmt.Errorf("got %d at %d, want %d", v, i, want)
			}
		}
		if r, err = w.RputType(ctx, a, n, column, peer, 5, n*n, f); err != nil {
			return err
		}
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		for i, v := range w.Buf()[5:] {
			if want := int32(peer*n*n + i%n*n + i/n); v != want {
				return fmt.Errorf("put %d at %d, want %d", v, i, want)
			}
		}
		own := NewOp(func(a, b int32) int32 { return a }, false)
		for _, tt := range []struct {
			name string
			want error
			err  error
		}{
			{"outside", ErrRange, w.AccumulateType(ctx, a, n, column, peer, 6, n*n, f, Sum)},
			{"lengths", ErrCount, w.AccumulateType(ctx, a, 1, column, peer, 0, n+1, f, Sum)},
			{"source", ErrCount, w.AccumulateType(ctx, a[1:], n, column, peer, 0, n*n, f, Sum)},
			{"result", ErrCount, w.GetAccumulateType(ctx, a, n, column, old, 2, pairs, peer, 0, n*n, f, Sum)},
			{"half elements", ErrDatatype, w.AccumulateType(ctx, a, 2, half, peer, 0, 2, half, Sum)},
			{"half elements at the target", ErrDatatype, w.AccumulateType(ctx, a, 1, f, peer, 0, 2, half, Sum)},
			{"no type", ErrDatatype, w.AccumulateType(ctx, a, 1, f, peer, 0, 1, nil, Sum)},
			{"operator", ErrOp, w.AccumulateType(ctx, a, 1, f, peer, 0, 1, f, own)},
			{"rank", ErrRank, w.AccumulateType(ctx, a, 1, f, 2, 0, 1, f, Sum)},
			{"nobody", nil, w.AccumulateType(ctx, a, 1, f, ProcNull, 0, 1, f, Sum)},
		} {
			if !errors.Is(tt.err, tt.want) {
				return fmt.Errorf("%s: %w", tt.name, tt.err)
			}
		}
		// To itself.
		if err := w.AccumulateType(ctx, a[:1], 1, f, me, 0, 1, f, Replace); err != nil || w.Buf()[0] != a[0] {
			return fmt.Errorf("to itself: %d, %w", w.Buf()[0], err)
		}
		return w.Free(ctx)
	})
}

// TestWinUpdateTypePadding updates elements with padding by their datatype, whose fields leave a gap, and by a vector.
func TestWinUpdateTypePadding(t *testing.T) {
	type pair = ValLoc[int32]
	elem := MustType(TypeOf[pair]())
	apart := MustType(TypeVector(2, 1, 2, elem))
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[pair](ctx, c, 4)
		if err != nil {
			return err
		}
		for i := range w.Buf() {
			w.Buf()[i] = pair{5, i}
		}
		to, old := 1-c.Rank(), make([]pair, 4)
		src := []pair{{3, 10}, {7, 11}}
		if err := errors.Join(
			w.Fence(ctx),
			w.AccumulateType(ctx, src, 2, elem, to, 0, 1, apart, MinLoc),
			w.GetAccumulateType(ctx, src, 2, elem, old, 1, apart, to, 1, 2, elem, MaxLoc),
			w.Fence(ctx),
		); err != nil {
			return err
		}
		if want := []pair{{3, 10}, {5, 1}, {7, 11}, {5, 3}}; !slices.Equal(w.Buf(), want) {
			return fmt.Errorf("elements %v, want %v", w.Buf(), want)
		}
		if want := []pair{{5, 1}, {}, {5, 2}, {}}; !slices.Equal(old, want) {
			return fmt.Errorf("old elements %v, want %v", old, want)
		}
		return w.Free(ctx)
	})
}
