package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
)

var fileTransports = []string{TransportInproc, TransportTCP, TransportHybrid}

// eachFile opens a new file of T on p ranks, over each transport.
func eachFile[T Element](t *testing.T, p int, info Info, f func(ctx context.Context, c *Comm, f *File[T], name string) error) {
	t.Helper()
	for _, tr := range fileTransports {
		t.Run(tr, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "file")
			local(t, p, func(ctx context.Context, c *Comm) error {
				file, err := FileOpen[T](ctx, c, name, FileReadWrite|FileCreate, info)
				if err != nil {
					return err
				}
				if err := f(ctx, c, file, name); err != nil {
					return err
				}
				return file.Close(ctx)
			}, WithTransport(tr))
		})
	}
}

func wantN(n int, err error, want int) error {
	if err == nil && n != want {
		err = fmt.Errorf("%d elements, want %d", n, want)
	}
	return err
}

// TestFileReadWriteAt lets every rank write a block and read those of others.
func TestFileReadWriteAt(t *testing.T) {
	const p, n = 3, 1000
	eachFile(t, p, nil, func(ctx context.Context, c *Comm, f *File[int32], name string) error {
		buf := make([]int32, n)
		for i := range buf {
			buf[i] = int32(c.Rank()*n + i)
		}
		k, err := f.WriteAt(ctx, int64(c.Rank()*n), buf)
		if err := wantN(k, err, n); err != nil {
			return err
		}
		if err := f.Sync(ctx); err != nil {
			return err
		}
		all := make([]int32, p*n+5)
		r, err := f.IreadAt(0, all)
		if err != nil {
			return err
		}
		st, err := r.Wait(ctx)
		if err := wantN(st.Bytes/4, err, p*n); err != nil { // ends at the end of the file
			return err
		}
		for i, v := range all[:p*n] {
			if v != int32(i) {
				return fmt.Errorf("element %d is %d", i, v)
			}
		}
		if k, err := f.ReadAt(ctx, p*n, all); k != 0 || err != nil {
			return fmt.Errorf("%d elements behind the end, %w", k, err)
		}
		if size, err := f.Size(); size != 4*p*n || err != nil {
			return fmt.Errorf("size %d, %w", size, err)
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if err := f.SetSize(ctx, 40); err != nil {
			return err
		}
		if k, err = f.ReadAt(ctx, 5, all[:7]); k != 5 || err != nil {
			return fmt.Errorf("%d elements of a shorter file, %w", k, err)
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if err := f.Preallocate(ctx, 5000); err != nil {
			return err
		}
		if size, err := f.Size(); size != 5000 || err != nil {
			return fmt.Errorf("size %d, %w", size, err)
		}
		if _, err := f.WriteAt(ctx, -1, buf); !errors.Is(err, ErrView) {
			return fmt.Errorf("a negative offset: %w", err)
		}
		if _, err := f.ReadAt(ctx, 1<<62, buf); !errors.Is(err, ErrView) {
			return fmt.Errorf("an offset without end: %w", err)
		}
		if f.Name() != name || f.Mode() != FileReadWrite|FileCreate || f.Group().Size() != p || f.Info()[InfoNodes] != "3" {
			return fmt.Errorf("name %q, mode %v, info %v", f.Name(), f.Mode(), f.Info())
		}
		return nil
	})
}

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
				for off, n := range ft.runs(1) {
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

// TestFileViewLength compares lengths and places with a loop over the bytes.
func TestFileViewLength(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	e := layoutOf(reflect.TypeFor[byte]())
	for range 300 {
		var lens, displs []int
		at := rng.IntN(4)
		for range 1 + rng.IntN(4) {
			n := 1 + rng.IntN(5)
			lens, displs = append(lens, n), append(displs, at)
			at += n + rng.IntN(4)
		}
		b, _ := TypeOf[byte]()
		ft, err := TypeIndexed(lens, displs, b)
		if err != nil {
			t.Fatal(err)
		}
		if ft, err = TypeResized(ft, 0, at-displs[0]+rng.IntN(5)); err != nil {
			t.Fatal(err)
		}
		v, err := newView(e, int64(rng.IntN(9)), ft, nativeRep(e, Native))
		if err != nil {
			t.Fatal(err)
		}
		size := int64(rng.IntN(120))
		want := int64(0)
		for v.offset(want) < size {
			want++
		}
		if got := v.length(size); got != want {
			t.Fatalf("%v at %d, lens %v, displs %v: length %d of %d bytes, want %d", ft, v.disp, lens, displs, got, size, want)
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

// TestFileAtomicity lets ranks overwrite the same scattered place all the time:
// readers must see the data of one write only.
func TestFileAtomicity(t *testing.T) {
	const p, n, rounds = 3, 64, 15
	eachFile(t, p, nil, func(ctx context.Context, c *Comm, f *File[int32], _ string) error {
		e, _ := TypeOf[int32]()
		ft, err := TypeResized(e, 0, 40)
		if err != nil {
			return err
		}
		if err := f.SetView(ctx, 0, ft, Native); err != nil {
			return err
		}
		if _, err := f.WriteAtAll(ctx, 0, make([]int32, n)); err != nil {
			return err
		}
		if err := f.SetAtomicity(ctx, true); err != nil || !f.Atomicity() {
			return fmt.Errorf("atomicity %v, %w", f.Atomicity(), err)
		}
		buf := make([]int32, n)
		for i := range rounds {
			if c.Rank() > 0 {
				for j := range buf {
					buf[j] = int32(c.Rank()*1000 + i)
				}
				if _, err := f.WriteAt(ctx, 0, buf); err != nil {
					return err
				}
				continue
			}
			if k, err := f.ReadAt(ctx, 0, buf); k != n || err != nil {
				return fmt.Errorf("%d, %w", k, err)
			}
			for _, v := range buf {
				if v != buf[0] {
					return fmt.Errorf("data of two writes: %v", buf)
				}
			}
		}
		_, err = f.WriteAtAll(ctx, int64(c.Rank()), buf) // also under the lock
		return err
	})
}

// TestFileModes opens files in all the ways that work and do not.
func TestFileModes(t *testing.T) {
	dir := t.TempDir()
	local(t, 2, func(ctx context.Context, c *Comm) error {
		name := filepath.Join(dir, "a")
		open := func(mode FileMode, info Info) (*File[byte], error) { return FileOpen[byte](ctx, c, name, mode, info) }
		for _, bad := range []struct {
			mode FileMode
			info Info
			err  error
		}{
			{FileRead, nil, fs.ErrNotExist}, {0, nil, ErrMode}, {FileRead | FileWrite, nil, ErrMode}, {FileRead | FileCreate, nil, ErrMode},
			{FileReadWrite | FileSequential, nil, ErrMode}, {FileWrite | 1<<15, nil, ErrMode},
			{FileWrite | FileCreate, Info{InfoNodes: "0"}, ErrOption}, {FileWrite | FileCreate, Info{InfoCollective: "so"}, ErrOption},
			{FileWrite | FileCreate, Info{InfoBuffer: "1e9"}, ErrOption},
		} {
			_, err := open(bad.mode, bad.info)
			if !errors.Is(err, bad.err) && !(errors.Is(bad.err, fs.ErrNotExist) && c.Rank() != 0 && errors.Is(err, ErrFile)) {
				return fmt.Errorf("mode %v, info %v: error %w", bad.mode, bad.info, err)
			}
		}
		f, err := open(FileWrite|FileCreate|FileExclusive, nil)
		if err != nil {
			return err
		}
		if _, err := f.Read(ctx, []byte{0}); !errors.Is(err, ErrMode) {
			return fmt.Errorf("reading with FileWrite: %w", err)
		}
		if _, err := f.WriteAtAll(ctx, int64(c.Rank()), []byte{byte(c.Rank())}); err != nil {
			return err
		}
		if err := f.Close(ctx); err != nil {
			return err
		}
		if err := f.Close(ctx); !errors.Is(err, ErrFile) {
			return fmt.Errorf("closing twice: %w", err)
		}
		if _, err := f.Write(ctx, nil); !errors.Is(err, ErrFile) {
			return fmt.Errorf("writing after Close: %w", err)
		}
		if _, err := open(FileWrite|FileCreate|FileExclusive, nil); err == nil {
			return errors.New("FileExclusive opened a file that was there")
		}
		if f, err = open(FileWrite|FileAppend, nil); err != nil {
			return err
		}
		if pos, err := f.PositionShared(ctx); pos != 2 || f.Position() != 2 || err != nil {
			return fmt.Errorf("appending at %d and %d, %w", pos, f.Position(), err)
		}
		if _, err := f.WriteOrdered(ctx, []byte{byte(8 + c.Rank())}); err != nil {
			return err
		}
		if err := f.Close(ctx); err != nil {
			return err
		}
		if f, err = open(FileRead|FileSequential, nil); err != nil {
			return err
		}
		buf := make([]byte, 2)
		if k, err := f.ReadOrdered(ctx, buf); k != 2 || err != nil || !bytes.Equal(buf, [][]byte{{0, 1}, {8, 9}}[c.Rank()]) {
			return fmt.Errorf("%d: %v, %w", k, buf, err)
		}
		for _, err := range []error{
			errorOf(f.Seek(0, io.SeekStart)), errorOf(f.ReadAt(ctx, 0, buf)), errorOf(f.ReadAll(ctx, buf)), f.SetView(ctx, 0, nil, Native),
			f.SetSize(ctx, 1),
		} {
			if !errors.Is(err, ErrMode) {
				return fmt.Errorf("with FileSequential: %w", err)
			}
		}
		if err := f.Close(ctx); err != nil {
			return err
		}
		if f, err = open(FileReadWrite|FileDeleteOnClose|FileUnique, nil); err != nil {
			return err
		}
		if err := f.Close(ctx); err != nil {
			return err
		}
		if err := FileDelete(name); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("deleting what is deleted: %w", err)
		}
		return Barrier(ctx, c)
	})
}

func errorOf[A any](_ A, err error) error { return err }

// TestFileErrorsReachAllRanks lets one rank's part be wrong.
func TestFileErrorsReachAllRanks(t *testing.T) {
	eachFile(t, 3, Info{InfoCollective: "enable"}, func(ctx context.Context, c *Comm, f *File[int16], _ string) error {
		e, _ := TypeOf[int16]()
		backwards, err := TypeIndexed([]int{1, 1}, []int{4, 0}, e)
		if err != nil {
			return err
		}
		overlap, err := TypeResized(e, 0, 1)
		if err != nil {
			return err
		}
		odd, _ := TypeOf[byte]()
		for _, ft := range []*Datatype{backwards, overlap, odd} {
			if c.Rank() != 1 {
				ft = nil
			}
			if err := f.SetView(ctx, 0, ft, Native); err == nil || c.Rank() == 1 != errors.Is(err, ErrView) {
				return fmt.Errorf("view of %v on rank 1: %w", ft, err)
			}
		}
		if err := f.SetView(ctx, -1, nil, Native); !errors.Is(err, ErrView) {
			return err
		}
		if err := f.SetView(ctx, 0, nil, "esperanto"); !errors.Is(err, ErrView) || !errors.Is(err, ErrDatarep) {
			return err
		}
		off := int64(0)
		if c.Rank() == 2 {
			off = -5
		}
		if _, err := f.WriteAtAll(ctx, off, make([]int16, 4)); err == nil || c.Rank() == 2 != errors.Is(err, ErrView) {
			return fmt.Errorf("offset %d: %w", off, err)
		}
		if size, err := f.Size(); size != 0 || err != nil {
			return fmt.Errorf("%d bytes were written, %w", size, err)
		}
		// And then all goes on.
		k, err := f.WriteAtAll(ctx, int64(4*c.Rank()), make([]int16, 4))
		return wantN(k, err, 4)
	})
	local(t, 1, func(ctx context.Context, c *Comm) error {
		type padded struct {
			A int8
			B int32
		}
		f, err := FileOpen[padded](ctx, c, filepath.Join(t.TempDir(), "x"), FileWrite|FileCreate, nil)
		if err != nil {
			return err
		}
		if _, err := FileOpen[*int](ctx, c, "x", FileRead, nil); !errors.Is(err, ErrType) {
			return fmt.Errorf("a file of pointers: %w", err)
		}
		return f.Close(ctx)
	})
}

// TestFileRequestsThatAreDamaged gives nodes what no rank sends.
func TestFileRequestsThatAreDamaged(t *testing.T) {
	p := &phases{h: &fileHints{room: 100}, write: true, b: []byte("hello")}
	good := p.request([]fileRun{{3, 5, 0}})
	if runs, data, err := p.parse(good); err != nil || len(runs) != 1 || runs[0] != (fileRun{3, 5, 0}) || string(data) != "hello" {
		t.Fatalf("runs %v, data %q, %v", runs, data, err)
	}
	for i := 1; i < len(good); i++ {
		if _, _, err := p.parse(good[:i]); !errors.Is(err, ErrProtocol) {
			t.Errorf("%d bytes of %d: %v", i, len(good), err)
		}
	}
	for _, at := range []int{0, 8, 16} {
		bad := bytes.Clone(good)
		bad[at] = 0xff
		if _, _, err := p.parse(bad); !errors.Is(err, ErrProtocol) {
			t.Errorf("byte %d changed: %v", at, err)
		}
	}
}

// TestFileFromManyGoroutines uses one file from several goroutines of each rank.
func TestFileFromManyGoroutines(t *testing.T) {
	const p, per, n = 2, 4, 10
	eachFile(t, p, nil, func(ctx context.Context, c *Comm, f *File[int32], _ string) error {
		var wg sync.WaitGroup
		errs := make([]error, per)
		for g := range per {
			wg.Go(func() {
				for i := range n {
					at := int64((c.Rank()*per+g)*n + i)
					_, err := f.WriteAt(ctx, at, []int32{int32(at)})
					back := []int32{0}
					if err == nil {
						_, err = f.ReadAt(ctx, at, back)
					}
					if err == nil && back[0] != int32(at) {
						err = fmt.Errorf("element %d is %d", at, back[0])
					}
					if err == nil {
						_, err = f.ReadShared(ctx, back)
					}
					errs[g] = errors.Join(errs[g], err)
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}
