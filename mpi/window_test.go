package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// eachWindow calls f with a window of each flavor, of 256 bytes a rank with the given displacement unit, and with
// where its memory begins on each rank, as a displacement.
func eachWindow(t *testing.T, p, unit int, f func(ctx context.Context, c *Comm, w *Window, at []int, mem []byte) error) {
	const n = 256
	eachTransport(t, p, func(ctx context.Context, c *Comm) error {
		for flavor := range WinFlavorShared + 1 {
			var w *Window
			var err error
			mem := datatype.Bytes(make([]int64, n/8))
			switch flavor {
			case WinFlavorCreate:
				w, err = WindowCreate(ctx, c, mem, unit)
			case WinFlavorAllocate:
				w, err = WindowAllocate(ctx, c, n, unit)
			case WinFlavorShared:
				w, err = WindowAllocateShared(ctx, c, n, unit)
			default:
				w, err = WindowCreateDynamic(ctx, c)
			}
			if err != nil {
				return err
			}
			at := make([]int, p)
			if flavor == WinFlavorDynamic {
				disp, err := w.Attach(mem)
				if err == nil {
					err = Allgather(ctx, c, []int{disp}, at)
				}
				if err != nil {
					return err
				}
			} else if mem = w.Base(); len(mem) != n || w.Size(1) != n || w.Unit(1) != unit || w.Size(p) != 0 || w.Unit(-1) != 0 {
				return fmt.Errorf("flavor %d: %d bytes here, %d there, unit %d", flavor, len(mem), w.Size(1), w.Unit(1))
			}
			if w.Flavor() != flavor {
				return fmt.Errorf("flavor %d, want %d", w.Flavor(), flavor)
			}
			err = f(ctx, c, w, at, mem)
			if err = errors.Join(err, w.Free(ctx)); err != nil {
				return fmt.Errorf("flavor %d: %w", flavor, err)
			}
		}
		return nil
	})
}

// TestWindow does each operation of a Window, with a datatype of its own each time.
func TestWindow(t *testing.T) {
	const p = 2
	i32, f64, pair := MustType(NamedType("MPI_INT")), MustType(NamedType("MPI_DOUBLE")), MustType(NamedType("MPI_DOUBLE_INT"))
	short := MustType(NamedType("MPI_SHORT_INT"))
	column := MustType(TypeVector(3, 1, 2, i32))
	eachWindow(t, p, 8, func(ctx context.Context, c *Comm, w *Window, at []int, mem []byte) error {
		me := c.Rank()
		to := 1 - me
		disp := func(units int) int { // of the target
			if w.Flavor() == WinFlavorDynamic {
				return at[to] + 8*units
			}
			return units
		}
		wait := func(r *Request, err error) error {
			if err != nil {
				return err
			}
			_, err = r.Wait(ctx)
			return err
		}
		doubles := []float64{1.5, 2.5}
		three, gotColumn := []int32{1, 2, 3}, make([]int32, 6)
		old, gotDouble := make([]int32, 3), make([]float64, 2)
		var oldPair, pairs [32]byte
		binary.NativeEndian.PutUint64(pairs[0:], math.Float64bits(-1))
		binary.NativeEndian.PutUint32(pairs[8:], uint32(7+me))
		binary.NativeEndian.PutUint64(pairs[16:], math.Float64bits(1))
		var shorts, oldShort [8]byte
		binary.NativeEndian.PutUint16(shorts[0:], uint16(5))
		binary.NativeEndian.PutUint32(shorts[4:], uint32(me))
		var was, prev int32
		if err := errors.Join(
			w.Fence(ctx),
			w.Put(ctx, Elements(doubles), to, disp(0), 2, f64),
			w.Put(ctx, Elements(three), to, disp(4), 1, column), // 32 to 52
			w.Fence(ctx),
			w.Get(ctx, Elements(gotDouble), to, disp(0), 2, f64),
			w.Get(ctx, Items(gotColumn, 1, column), to, disp(4), 1, column),
			w.Fence(ctx), // a Get and an update of the same memory have no order in one epoch
			w.Accumulate(ctx, Elements(three), to, disp(4), 1, column, OpSum),
			w.GetAccumulate(ctx, Buffer{}, Elements(old), to, disp(4), 1, column, OpNoOp),
			w.GetAccumulate(ctx, Items(pairs[:], 2, pair), Items(oldPair[:], 2, pair), to, disp(8), 2, pair, OpMinLoc),
			w.FetchAndOp(ctx, Items(shorts[:], 1, short), Items(oldShort[:], 1, short), to, disp(12), short, OpMaxLoc),
			w.FetchAndOp(ctx, Elements([]int32{5}), Elements(oneOf(&was)), to, disp(13), i32, OpSum),
			w.CompareAndSwap(ctx, Elements([]int32{9}), Elements([]int32{5}), Elements(oneOf(&prev)), to, disp(13), i32),
			w.Fence(ctx),
		); err != nil {
			return err
		}
		if !slices.Equal(gotDouble, doubles) || !slices.Equal(gotColumn, []int32{1, 0, 2, 0, 3, 0}) {
			return fmt.Errorf("got %v and %v", gotDouble, gotColumn)
		}
		if !slices.Equal(old, []int32{2, 4, 6}) || was != 0 || prev != 5 {
			return fmt.Errorf("old elements %v, fetched %d, compared with %d", old, was, prev)
		}
		if now := datatype.View[int32](mem[32:52]); !slices.Equal(now, []int32{2, 0, 4, 0, 6}) {
			return fmt.Errorf("the column is %v", now)
		}
		if v, loc := math.Float64frombits(binary.NativeEndian.Uint64(mem[64:])), binary.NativeEndian.Uint32(mem[72:]); v != -1 || loc != uint32(7+to) {
			return fmt.Errorf("the pair is %v at %d", v, loc)
		}
		if v, loc := binary.NativeEndian.Uint16(mem[96:]), binary.NativeEndian.Uint32(mem[100:]); v != 5 || loc != uint32(to) {
			return fmt.Errorf("the short pair is %v at %d", v, loc)
		}
		if v := binary.NativeEndian.Uint32(mem[104:]); v != 9 {
			return fmt.Errorf("compared and swapped to %d", v)
		}
		// The forms with requests, in a passive epoch.
		if err := errors.Join(
			w.Fence(ctx),
			w.LockAll(ctx),
			wait(w.Rput(ctx, Elements(doubles), to, disp(20), 2, f64)),
			wait(w.Raccumulate(ctx, Elements(doubles), to, disp(20), 2, f64, OpSum)),
			w.Flush(ctx, to),
			wait(w.RgetAccumulate(ctx, Elements(doubles), Elements(gotDouble), to, disp(20), 2, f64, OpReplace)),
		); err != nil {
			return err
		}
		if !slices.Equal(gotDouble, []float64{3, 5}) {
			return fmt.Errorf("replaced %v", gotDouble)
		}
		if err := errors.Join(wait(w.Rget(ctx, Elements(gotDouble), to, disp(20), 2, f64)), w.UnlockAll(ctx)); err != nil {
			return err
		}
		if !slices.Equal(gotDouble, doubles) {
			return fmt.Errorf("loaded %v", gotDouble)
		}
		for name, tt := range map[string]struct{ err, want error }{
			"no datatype":        {w.Accumulate(ctx, Elements(three), to, disp(0), 3, nil, OpSum), ErrDatatype},
			"operator":           {w.Accumulate(ctx, Elements(doubles), to, disp(0), 2, f64, OpBand), ErrOp},
			"operator of users":  {w.Accumulate(ctx, Elements(doubles), to, disp(0), 2, f64, NewItemOp(func(_, _ []byte, _ int, _ *Datatype) {}, true)), ErrOp},
			"other type":         {w.Accumulate(ctx, Elements(doubles), to, disp(0), 4, i32, OpSum), ErrTypeMismatch},
			"other length":       {w.Put(ctx, Elements(doubles), to, disp(0), 1, f64), ErrCount},
			"buffer":             {w.Get(ctx, Items(doubles, 3, f64), to, disp(0), 3, f64), ErrCount},
			"swapped floats":     {w.CompareAndSwap(ctx, Elements(doubles[:1]), Elements(doubles[:1]), Elements(gotDouble[:1]), to, disp(0), f64), ErrDatatype},
			"swapped two":        {w.CompareAndSwap(ctx, Elements(three[:2]), Elements(three[:1]), Elements(old[:1]), to, disp(0), i32), ErrCount},
			"no process":         {w.Put(ctx, Elements(doubles), ProcNull, 0, 2, f64), nil},
			"rank":               {w.Put(ctx, Elements(doubles), p, 0, 2, f64), ErrRank},
			"negative count":     {w.Put(ctx, Elements(doubles), to, disp(0), -1, f64), ErrDatatype},
			"promise of another": {w.Fence(ctx, AssertNoCheck), ErrOption},
		} {
			if !errors.Is(tt.err, tt.want) {
				return fmt.Errorf("%s: %v, want %v", name, tt.err, tt.want)
			}
		}
		return nil
	})
}

// TestWindowWithoutData updates by items without data: their datatypes may be any.
func TestWindowWithoutData(t *testing.T) {
	i32, f64 := MustType(NamedType("MPI_INT")), MustType(NamedType("MPI_DOUBLE"))
	none := MustType(TypeContiguous(0, i32))
	eachWindow(t, 2, 8, func(ctx context.Context, c *Comm, w *Window, at []int, mem []byte) error {
		to := 1 - c.Rank()
		var x [1]float64
		nothing, one := Items(x[:0], 0, f64), Elements(x[:])
		return errors.Join(
			w.Fence(ctx),
			w.Accumulate(ctx, nothing, to, at[to], 5, none, OpSum),
			w.Accumulate(ctx, nothing, to, at[to], 0, i32, OpBand),
			w.GetAccumulate(ctx, Items(x[:], 3, none), nothing, to, at[to], 0, f64, OpSum),
			w.GetAccumulate(ctx, one, nothing, to, at[to], 0, i32, OpNoOp),
			w.Fence(ctx),
			unwanted(w.Accumulate(ctx, one, to, at[to], 5, none, OpSum)),
			unwanted(w.GetAccumulate(ctx, nothing, one, to, at[to], 0, f64, OpSum)),
			unwanted(w.GetAccumulate(ctx, one, nothing, to, at[to], 1, f64, OpNoOp)),
		)
	})
}

// unwanted returns an error if an update with items of different lengths has returned none.
func unwanted(err error) error {
	if errors.Is(err, ErrCount) || errors.Is(err, ErrTypeMismatch) {
		return nil
	}
	return fmt.Errorf("items of different lengths: %w", err)
}

// TestWindowShared stores to the memory of another rank directly.
func TestWindowShared(t *testing.T) {
	eachWindow(t, 2, 1, func(ctx context.Context, c *Comm, w *Window, _ []int, mem []byte) error {
		if w.Flavor() != WinFlavorShared {
			return nil
		}
		to := 1 - c.Rank()
		there, err := w.SharedQuery(to)
		if err != nil || len(there) != 256 {
			return fmt.Errorf("%d bytes: %w", len(there), err)
		}
		if first, err := w.SharedQuery(ProcNull); err != nil || len(first) != 256 {
			return fmt.Errorf("%d bytes of no process: %w", len(first), err)
		}
		there[3] = byte(to + 1)
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if mem[3] != byte(c.Rank()+1) {
			return fmt.Errorf("the other rank has stored %d", mem[3])
		}
		return nil
	})
}

// TestWindowRefused makes windows that cannot be: all ranks fail, whichever is wrong.
func TestWindowRefused(t *testing.T) {
	local(t, 2, func(ctx context.Context, c *Comm) error {
		bad := c.Rank() == 1
		pick := func(n, m int) int {
			if bad {
				return m
			}
			return n
		}
		for i, f := range []func() (*Window, error){
			func() (*Window, error) { return WindowCreate(ctx, c, make([]byte, 8), pick(1, 0)) },
			func() (*Window, error) { return WindowAllocate(ctx, c, pick(8, -1), 1) },
			func() (*Window, error) { return WindowAllocateShared(ctx, c, pick(8, -1), 1) },
			func() (*Window, error) { return WindowAllocateShared(ctx, c, 8, pick(1, -1)) },
			func() (*Window, error) {
				return WindowCreateDynamic(ctx, c, WithInfo(Info{InfoNoLocks: []string{"true", "maybe"}[c.Rank()]}))
			},
		} {
			if w, err := f(); err == nil {
				return fmt.Errorf("window %d: %v", i, w)
			}
		}
		return nil
	})
}
