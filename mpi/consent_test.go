package mpi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// TestConsent lets random ranks fail in different ways: all get an error of the class of
// the lowest of them, or none.
func TestConsent(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	errs := []error{ErrView, ErrOption, ErrCount, fs.ErrNotExist, &fs.PathError{Op: "open", Path: "x", Err: errors.New("odd")},
		errors.New("of no class"), AddErrorCode(AddErrorClass("ours"), "an error of the program"),
		fmt.Errorf("%w: %s", ErrRank, strings.Repeat("long ", 1000))}
	for p := 1; p <= 9; p++ {
		local(t, p, func(ctx context.Context, c *Comm) error {
			rng := rand.New(rand.NewPCG(seed, uint64(p))) // the same on all ranks
			for range 60 {
				fails := make([]error, p)
				first := -1
				if rng.IntN(3) > 0 {
					for r := range fails {
						if rng.IntN(p) == 0 {
							fails[r] = errs[rng.IntN(len(errs))]
						}
					}
				}
				for r := p - 1; r >= 0; r-- {
					if fails[r] != nil {
						first = r
					}
				}
				odd := -1
				if first < 0 && rng.IntN(3) == 0 {
					odd = rng.IntN(p)
				}
				err := c.consent(ctx, fails[c.Rank()], "the same", c.Rank() == odd)
				switch {
				case odd >= 0 && p > 1:
					if !errors.Is(err, ErrNotSame) || ErrorClass(err) != ClassNotSame {
						return fmt.Errorf("rank %d gives something else: %w", odd, err)
					}
				case first < 0:
					if err != nil {
						return fmt.Errorf("nobody fails: %w", err)
					}
				default:
					want := fails[first]
					if err == nil || ErrorClass(err) != ErrorClass(want) {
						return fmt.Errorf("class %v of %w, want that of %w", ErrorClass(err), err, want)
					}
					if ErrorClass(fails[c.Rank()]) == ErrorClass(want) && err != fails[c.Rank()] {
						return fmt.Errorf("%w instead of the rank's own %w", err, fails[c.Rank()])
					}
					for _, x := range errs[:4] {
						if fails[c.Rank()] == nil && errors.Is(err, x) != errors.Is(want, x) {
							return fmt.Errorf("%w is not like %w", err, want)
						}
					}
				}
			}
			return nil
		})
	}
}

// sameClass returns an error unless err is want on all ranks, with the same class.
func sameClass(ctx context.Context, c *Comm, what string, err, want error, class Class) error {
	if e := Barrier(ctx, c); e != nil {
		return fmt.Errorf("%s: %w", what, e)
	}
	if !errors.Is(err, want) || ErrorClass(err) != class {
		return fmt.Errorf("%s: class %v of %w, want %v of %w", what, ErrorClass(err), err, class, want)
	}
	return nil
}

// TestCollectivesFailAlike calls what is collective with something that is wrong on one
// rank only, and goes on afterwards.
func TestCollectivesFailAlike(t *testing.T) {
	for _, tr := range fileTransports {
		t.Run(tr, func(t *testing.T) {
			dir := t.TempDir()
			const p = 3
			local(t, p, func(ctx context.Context, c *Comm) error {
				one := func(bad, good int) int {
					if c.Rank() == 1 {
						return bad
					}
					return good
				}
				name := func(s string) string { return filepath.Join(dir, s) }
				open := func(name string, mode FileMode) error {
					f, err := FileOpen[int32](ctx, c, name, mode, nil)
					if err == nil {
						err = errors.Join(errors.New("it is open"), f.Close(ctx))
					}
					return err
				}
				for _, tt := range []struct {
					what  string
					want  error
					class Class
					call  func() error
				}{
					{"no such file", fs.ErrNotExist, ClassNoSuchFile, func() error { return open(name("none"), FileReadWrite) }},
					{"no such directory", fs.ErrNotExist, ClassNoSuchFile, func() error { return open(name("none/none"), FileReadWrite|FileCreate) }},
					{"two names", ErrNotSame, ClassNotSame, func() error { return open(name(fmt.Sprint("x", one(1, 2))), FileWrite|FileCreate) }},
					{"two modes", ErrNotSame, ClassNotSame, func() error { return open(name("y"), FileMode(one(int(FileWrite), int(FileReadWrite)))|FileCreate) }},
					{"mode", ErrMode, ClassMode, func() error { return open(name("y"), FileMode(one(0, int(FileReadWrite)))) }},
					{"elements with pointers", ErrType, ClassType, func() (err error) {
						if c.Rank() == 1 {
							_, err = FileOpen[*int](ctx, c, name("z"), FileWrite|FileCreate, nil)
						} else {
							_, err = FileOpen[int](ctx, c, name("z"), FileWrite|FileCreate, nil)
						}
						return err
					}},
					{"hints", ErrOption, ClassArg, func() error {
						_, err := FileOpen[int](ctx, c, name("z"), FileWrite|FileCreate, Info{InfoNodes: fmt.Sprint(one(-1, 2))})
						return err
					}},
					{"window", ErrCount, ClassCount, func() error { _, err := WinAllocate[int](ctx, c, one(-1, 1)); return err }},
					{"window of pointers", ErrType, ClassType, func() (err error) {
						if c.Rank() == 1 {
							_, err = WinCreate(ctx, c, []*int{nil})
						} else {
							_, err = WinCreate(ctx, c, []int{0})
						}
						return err
					}},
					{"shared window of pointers", ErrType, ClassType, func() (err error) {
						if c.Rank() == 1 {
							_, err = WinAllocateShared[string](ctx, c, 1)
						} else {
							_, err = WinAllocateShared[int](ctx, c, 1)
						}
						return err
					}},
					{"color", ErrOption, ClassArg, func() error { _, err := c.Split(ctx, one(-7, 0), 0); return err }},
					{"kind of split", ErrOption, ClassArg, func() error { _, err := c.SplitType(ctx, SplitKind(one(99, 1)), 0, nil); return err }},
					{"group", ErrNotSame, ClassNotSame, func() error {
						g, _ := c.Group().Incl(0, one(1, 2))
						_, err := c.Create(ctx, g)
						return err
					}},
					{"foreign group", ErrRank, ClassRank, func() error {
						g := c.Group()
						if c.Rank() == 1 {
							g = Group{ranks: []int32{77}}
						}
						_, err := c.Create(ctx, g)
						return err
					}},
					{"grid", ErrTopology, ClassTopology, func() error { _, err := NewCart(ctx, c, []int{one(9, 3)}, []bool{true}); return err }},
					{"grids that differ", ErrNotSame, ClassNotSame, func() error { _, err := NewCart(ctx, c, []int{3}, []bool{one(0, 1) == 0}); return err }},
					{"neighbours", ErrRank, ClassRank, func() error { _, err := NewGraph(ctx, c, []int{one(5, 0)}, nil); return err }},
					{"reordered neighbours", ErrRank, ClassRank, func() error { _, err := NewGraph(ctx, c, []int{one(5, 0)}, nil, Reorder()); return err }},
					{"edges", ErrRank, ClassRank, func() error { _, err := NewDistGraph(ctx, c, []int{0}, [][]int{{one(5, 0)}}); return err }},
					{"graph", ErrNotSame, ClassNotSame, func() error { _, err := NewFullGraph(ctx, c, [][]int{{0}, {one(1, 0)}}); return err }},
					{"leader", ErrRank, ClassRank, func() error { _, err := IntercommCreate(ctx, c, one(-1, 0), c, 0, 0); return err }},
				} {
					if err := sameClass(ctx, c, tt.what, tt.call(), tt.want, tt.class); err != nil {
						return err
					}
				}
				grid, err := NewCart(ctx, c, []int{p}, []bool{true})
				if err != nil {
					return err
				}
				_, err = grid.Sub(ctx, make([]bool, one(2, 1))...)
				if err := sameClass(ctx, c, "Sub", err, ErrTopology, ClassTopology); err != nil {
					return err
				}
				// If it is not there, make it.
				f, err := FileOpen[int32](ctx, c, name("data"), FileReadWrite, nil)
				if errors.Is(err, fs.ErrNotExist) {
					f, err = FileOpen[int32](ctx, c, name("data"), FileReadWrite|FileCreate, nil)
				}
				if err != nil {
					return err
				}
				rep := Native
				if c.Rank() == 1 {
					rep = "esperanto"
				}
				if err := sameClass(ctx, c, "view", f.SetView(ctx, 0, nil, rep), ErrView, ClassDatarep); err != nil {
					return err
				}
				if rep = Native; c.Rank() == 1 {
					rep = External32
				}
				if err := sameClass(ctx, c, "representations", f.SetView(ctx, 0, nil, rep), ErrNotSame, ClassNotSame); err != nil {
					return err
				}
				if err := sameClass(ctx, c, "size", f.SetSize(ctx, int64(one(5, 6))), ErrNotSame, ClassNotSame); err != nil {
					return err
				}
				if err := sameClass(ctx, c, "atomicity", f.SetAtomicity(ctx, c.Rank() == 1), ErrNotSame, ClassNotSame); err != nil {
					return err
				}
				num := MustType(TypeOf[int32]())
				_, err = f.WriteAtAllType(ctx, 0, make([]int32, 1), one(7, 1), num)
				if err := sameClass(ctx, c, "items", err, ErrCount, ClassCount); err != nil {
					return err
				}
				_, err = f.ReadOrdered(ctx, make([]int32, 1))
				if err := errors.Join(err, f.SeekShared(ctx, datatype.MaxBytes/4+1, 0)); err != nil {
					return err
				}
				_, err = f.WriteOrdered(ctx, make([]int32, 1))
				if err := sameClass(ctx, c, "place", err, ErrView, ClassArg); err != nil {
					return err
				}
				if err := f.Close(ctx); err != nil {
					return err
				}
				// What was refused has made no file.
				left, err := os.ReadDir(dir)
				if err != nil || len(left) != 1 {
					return fmt.Errorf("files %v, %w", left, err)
				}
				d, err := c.Dup(ctx)
				if err != nil {
					return err
				}
				return Barrier(ctx, d)
			}, overTransport(tr))
		})
	}
}
