package mpi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"unsafe"
)

// TestItemsAt sends items of a datatype that begins before its buffer, and receives them by addresses
// alone, as MPI_BOTTOM.
func TestItemsAt(t *testing.T) {
	item := MustType(NamedType("MPI_INT"))
	err := RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
		mem := make([]int32, 10)
		p := unsafe.Pointer(unsafe.SliceData(mem))
		if w.Rank() == 0 {
			for i := range mem {
				mem[i] = int32(i)
			}
			back := MustType(TypeIndexedBlock(1, []int{-2, 3, 0}, item))
			if err := w.Comm().Send(ctx, ItemsAt(unsafe.Add(p, 16), 1, back), 1, 0); err != nil {
				return err
			}
			return w.Comm().Send(ctx, ItemsAt(unsafe.Add(p, 16), 3, item), 1, 0)
		}
		a := int(uintptr(p))
		there := MustType(TypeHindexedBlock(1, []int{a + 36, a, a + 20}, item))
		if _, err := w.Comm().Recv(ctx, ItemsAt(nil, 1, there), 0, 0); err != nil {
			return err
		}
		if got, want := fmt.Sprint(mem), "[7 0 0 0 0 4 0 0 0 2]"; got != want {
			return fmt.Errorf("received %s, want %s", got, want)
		}
		if _, err := w.Comm().Recv(ctx, ItemsAt(p, 3, item), 0, 0); err != nil {
			return err
		}
		if got, want := fmt.Sprint(mem), "[4 5 6 0 0 4 0 0 0 2]"; got != want {
			return fmt.Errorf("received %s, want %s", got, want)
		}
		runtime.KeepAlive(mem)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestItemsAtRefuses makes buffers of nothing.
func TestItemsAtRefuses(t *testing.T) {
	item := MustType(NamedType("MPI_INT"))
	one := unsafe.Pointer(new(int32))
	for name, tt := range map[string]struct {
		b    Buffer
		want error
	}{
		"nil":          {ItemsAt(nil, 1, item), ErrBuffer},
		"nil, gaps":    {ItemsAt(nil, 2, MustType(TypeIndexedBlock(1, []int{5000, 10}, item))), ErrBuffer},
		"nil, empty":   {ItemsAt(nil, 0, item), nil},
		"no datatype":  {ItemsAt(one, 1, nil), ErrDatatype},
		"below 0":      {ItemsAt(one, -1, item), ErrDatatype},
		"more than is": {ItemsAt(one, math.MaxInt, item), ErrDatatype},
	} {
		if !errors.Is(tt.b.err, tt.want) {
			t.Errorf("%s: error %v, want %v", name, tt.b.err, tt.want)
		}
	}
	var b Buffer
	if n := testing.AllocsPerRun(100, func() { b = ItemsAt(one, 1, item) }); n != 0 || b.Len() != 4 {
		t.Errorf("%v allocations for a buffer of %d bytes", n, b.Len())
	}
}
