package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// fileViews are ways to divide a file between ranks.
var fileViews = []struct {
	name string
	make func(rank, p int, elem *Datatype) (disp int64, t *Datatype, err error)
}{
	{"whole blocks", func(rank, _ int, _ *Datatype) (int64, *Datatype, error) { return int64(rank * 4 * 600), nil, nil }},
	{"cyclic", func(rank, p int, e *Datatype) (int64, *Datatype, error) {
		t, err := TypeResized(e, 0, 4*p)
		return int64(4 * rank), t, err
	}},
	{"blocks with gaps", func(rank, p int, e *Datatype) (int64, *Datatype, error) {
		t, err := TypeVector(3, 5, 7*p, e)
		if err != nil {
			return 0, nil, err
		}
		t, err = TypeResized(t, 0, 4*7*p*4)
		return int64(8 + 4*7*rank), t, err
	}},
	{"columns", func(rank, p int, e *Datatype) (int64, *Datatype, error) {
		t, err := TypeSubarray([]int{20, 6 * p}, []int{20, 6}, []int{0, 6 * rank}, RowMajor, e)
		return 12, t, err
	}},
	{"darray", func(rank, p int, e *Datatype) (int64, *Datatype, error) {
		t, err := TypeDarray(rank, []int{90}, []Dist{DistCyclic(4)}, []int{p}, RowMajor, e)
		return 0, t, err
	}},
	{"irregular", func(rank, p int, e *Datatype) (int64, *Datatype, error) {
		t, err := TypeIndexed([]int{1, 3, 2}, []int{rank, 10*p + 3*rank, 20*p + 2*rank}, e)
		if err != nil {
			return 0, nil, err
		}
		t, err = TypeResized(t, 0, 4*40*p)
		return 4, t, err
	}},
}

// TestFileViews writes through views, collectively in both ways and not, to a
// file that has data already, and compares every byte of it with what a loop
// over the elements gives.
func TestFileViews(t *testing.T) {
	const p, n, skip = 3, 600, 7
	old := bytes.Repeat([]byte{0xa5}, 40_000)
	modes := []Info{
		{InfoCollective: "disable"}, {InfoCollective: "enable", InfoBuffer: "1000", InfoNodes: "2"},
		{InfoCollective: "enable", InfoBuffer: "333", InfoNodes: "3"}, {InfoNodes: "1"}, nil,
	}
	value := func(rank, i int) int32 { return int32(rank<<20 + i + 1) }
	elem, err := TypeOf[int32]()
	if err != nil {
		t.Fatal(err)
	}
	for _, view := range fileViews {
		want := bytes.Clone(old)
		for rank := range p {
			disp, ft, err := view.make(rank, p, elem)
			if err != nil {
				t.Fatal(err)
			}
			var offs []int // of the elements of a tile
			extent := 4
			if ft == nil {
				offs = []int{0}
			} else {
				_, extent = ft.Extent()
				for off, n := range ft.rt.Runs(1) {
					for k := 0; k < n; k += 4 {
						offs = append(offs, off+k)
					}
				}
			}
			for i := range n - skip {
				j := i + skip
				at := int(disp) + j/len(offs)*extent + offs[j%len(offs)]
				if at+4 > len(want) {
					want = append(want, make([]byte, at+4-len(want))...)
				}
				binary.NativeEndian.PutUint32(want[at:], uint32(value(rank, i)))
			}
		}
		for m, info := range modes {
			t.Run(fmt.Sprintf("%s/%d", view.name, m), func(t *testing.T) {
				name := filepath.Join(t.TempDir(), "file")
				if err := os.WriteFile(name, old, 0o666); err != nil {
					t.Fatal(err)
				}
				err := RunLocal(t.Context(), p, func(ctx context.Context, w *World) error {
					c := w.Comm()
					f, err := FileOpen[int32](ctx, c, name, FileReadWrite, info)
					if err != nil {
						return err
					}
					disp, ft, err := view.make(c.Rank(), p, elem)
					if err != nil {
						return err
					}
					if err := f.SetView(ctx, disp, ft, Native); err != nil {
						return err
					}
					buf := make([]int32, n-skip)
					for i := range buf {
						buf[i] = value(c.Rank(), i)
					}
					var k int
					if m%2 == 0 {
						if _, err := f.Seek(skip, io.SeekStart); err != nil {
							return err
						}
						k, err = f.WriteAll(ctx, buf)
						if pos := f.Position(); pos != n && err == nil {
							err = fmt.Errorf("pointer at %d", pos)
						}
					} else {
						k, err = f.WriteAtAll(ctx, skip, buf)
					}
					if err := wantN(k, err, len(buf)); err != nil {
						return err
					}
					back := make([]int32, len(buf))
					if k, err = f.ReadAtAll(ctx, skip, back); err != nil || k != len(buf) || !slices.Equal(back, buf) {
						return fmt.Errorf("read collectively: %d elements, equal %v, %w", k, slices.Equal(back, buf), err)
					}
					clear(back)
					if k, err = f.ReadAt(ctx, skip, back); err != nil || k != len(buf) || !slices.Equal(back, buf) {
						return fmt.Errorf("read alone: %d elements, equal %v, %w", k, slices.Equal(back, buf), err)
					}
					return f.Close(ctx)
				})
				if err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					i := 0
					for i < min(len(got), len(want)) && got[i] == want[i] {
						i++
					}
					t.Errorf("files of %d and %d bytes differ from byte %d on", len(got), len(want), i)
				}
			})
		}
	}
}

// TestFileTypes reads and writes items of datatypes in memory.
func TestFileTypes(t *testing.T) {
	eachFile(t, 2, Info{InfoCollective: "enable"}, func(ctx context.Context, c *Comm, f *File[int32], _ string) error {
		e, _ := TypeOf[int32]()
		col, err := TypeVector(3, 1, 4, e)
		if err != nil {
			return err
		}
		m := []int32{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}
		if k, err := f.WriteAtAllType(ctx, int64(3*c.Rank()), m, 1, col); k != 12 || err != nil {
			return fmt.Errorf("%d bytes, %w", k, err)
		}
		back := make([]int32, 12)
		if k, err := f.ReadAtAllType(ctx, 3, back, 1, col); k != 12 || err != nil || back[4] != 10 || back[8] != 20 || back[1] != 0 {
			return fmt.Errorf("%d bytes, %v, %w", k, back, err)
		}
		if k, err := f.WriteAtType(ctx, int64(10+3*c.Rank()), m, 1, col); k != 12 || err != nil {
			return fmt.Errorf("%d bytes, %w", k, err)
		}
		if k, err := f.ReadAtType(ctx, int64(10+3*c.Rank()), back, 1, col); k != 12 || err != nil {
			return fmt.Errorf("%d bytes, %w", k, err)
		}
		if _, err := f.WriteAtAllType(ctx, 0, m[:1+c.Rank()*11], 1, col); err == nil {
			return errors.New("items outside the buffer of one rank were written")
		}
		return nil
	})
}

// TestFileExternal compares the bytes in the file.
func TestFileExternal(t *testing.T) {
	eachFile(t, 2, nil, func(ctx context.Context, c *Comm, f *File[uint32], name string) error {
		if err := f.SetView(ctx, 4, nil, External32); err != nil {
			return err
		}
		buf := []uint32{0x01020304 + uint32(c.Rank()), 5}
		if k, err := f.WriteAtAll(ctx, int64(2*c.Rank()), buf); k != 2 || err != nil {
			return fmt.Errorf("%d, %w", k, err)
		}
		if k, err := f.WriteAt(ctx, int64(4+c.Rank()), buf[1:]); k != 1 || err != nil {
			return fmt.Errorf("%d, %w", k, err)
		}
		if err := f.Sync(ctx); err != nil {
			return err
		}
		got, err := os.ReadFile(name)
		want := []byte{0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 5, 1, 2, 3, 5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 5}
		if err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("file %x, %w", got, err)
		}
		for _, read := range []func(context.Context, int64, []uint32) (int, error){f.ReadAt, f.ReadAtAll} {
			back := make([]uint32, 2)
			if k, err := read(ctx, int64(2*c.Rank()), back); k != 2 || err != nil || !slices.Equal(back, buf) {
				return fmt.Errorf("%d: %x, %w", k, back, err)
			}
		}
		return nil
	})
}
