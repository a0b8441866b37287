package mpi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
)

// matrixTypes returns the datatypes of the elements of a matrix of n by n, of its
// columns, and of as many elements in pairs with gaps of one element.
func matrixTypes[T Element](t *testing.T, n int) (elem, column, pairs *Datatype) {
	t.Helper()
	elem, err := TypeOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	if column, err = TypeVector(n, 1, n, elem); err == nil {
		column, err = TypeResized(column, 0, elem.Size())
	}
	if err != nil {
		t.Fatal(err)
	}
	if pairs, err = TypeVector(n*n/2, 2, 3, elem); err != nil {
		t.Fatal(err)
	}
	return elem, column, pairs
}

// TestWinType puts the columns of a matrix as rows of the target's, and gets
// them back as a block with gaps.
func TestWinType(t *testing.T) {
	const n = 40
	f, column, pairs := matrixTypes[float32](t, n)
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[float32](ctx, c, 5+n*n)
		if err != nil {
			return err
		}
		a := make([]float32, n*n)
		for i := range a {
			a[i] = float32(c.Rank()*n*n + i)
		}
		peer := 1 - c.Rank()
		if err := w.PutType(ctx, a, n, column, peer, 5, n*n, f); err != nil {
			return err
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		for i, v := range w.Buf()[5:] {
			if want := float32(peer*n*n + i%n*n + i/n); v != want {
				return fmt.Errorf("element %d = %v, want %v", i, v, want)
			}
		}
		back := make([]float32, n*n/2*3)
		for i := range back {
			back[i] = -1
		}
		if err := w.GetType(ctx, back, 1, pairs, peer, 5, n, column); err != nil {
			return err
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		for i, v := range back {
			want := float32(-1)
			if i%3 < 2 { // transposed twice
				want = a[i/3*2+i%3]
			}
			if v != want {
				return fmt.Errorf("got %v at %d, want %v", v, i, want)
			}
		}
		for name, err := range map[string]error{
			"target":        w.PutType(ctx, a, n, column, peer, 6, n*n, f),
			"target number": w.PutType(ctx, a, 1, f, peer, 0, math.MaxInt, f),
			"place":         w.PutType(ctx, a, 1, f, peer, -1, 1, f),
			"no type":       w.PutType(ctx, a, 1, f, peer, 0, 1, nil),
		} {
			if !errors.Is(err, ErrRange) {
				return fmt.Errorf("%s: %v, want %v", name, err, ErrRange)
			}
		}
		for name, err := range map[string]error{
			"sizes":  w.PutType(ctx, a, 1, column, peer, 0, n+1, f),
			"origin": w.GetType(ctx, a, n+1, column, peer, 0, n*n, f),
		} {
			if !errors.Is(err, ErrCount) {
				return fmt.Errorf("%s: %v, want %v", name, err, ErrCount)
			}
		}
		if err := w.PutType(ctx, a, 1, f, ProcNull, 0, 1, f); err != nil {
			return err
		}
		return w.Free(ctx)
	})
}
