package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

var fileTransports = []string{TransportInproc, TransportTCP, TransportHybrid, hybridShared}

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
			}, overTransport(tr))
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
			if err := f.SetView(ctx, 0, ft, Native); !errors.Is(err, ErrView) || ErrorClass(err) != ClassArg {
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
		if _, err := f.WriteAtAll(ctx, off, make([]int16, 4)); !errors.Is(err, ErrView) || ErrorClass(err) != ClassArg {
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

// TestFileReadAllAtEnd reads across the end of the file, in all collective ways and
// independently: what lies behind the end does not change the buffer.
func TestFileReadAllAtEnd(t *testing.T) {
	const p, there, room = 3, 5, 9
	for _, hint := range []string{"enable", "disable", "automatic"} {
		t.Run(hint, func(t *testing.T) {
			eachFile(t, p, Info{InfoCollective: hint}, func(ctx context.Context, c *Comm, f *File[int32], name string) error {
				if c.Rank() == 0 {
					n, err := f.WriteAt(ctx, 0, []int32{1, 2, 3, 4, 5})
					if err := wantN(n, err, there); err != nil {
						return err
					}
				}
				if err := f.Sync(ctx); err != nil {
					return err
				}
				num := MustType(TypeOf[int32]())
				spread := MustType(TypeVector(room, 1, 2, num))
				check := func(what string, n int, err error, buf []int32, step int) error {
					if err := wantN(n, err, there); err != nil {
						return fmt.Errorf("%s: %w", what, err)
					}
					for i, v := range buf {
						want := int32(99)
						if i%step == 0 && i/step < there {
							want = int32(i/step + 1)
						}
						if v != want {
							return fmt.Errorf("%s: buffer %v", what, buf)
						}
					}
					return nil
				}
				fresh := func(n int) []int32 { return slices.Repeat([]int32{99}, n) }
				b := fresh(room)
				n, err := f.ReadAt(ctx, 0, b)
				if err := check("ReadAt", n, err, b, 1); err != nil {
					return err
				}
				b = fresh(room)
				n, err = f.ReadAtAll(ctx, 0, b)
				if err := check("ReadAtAll", n, err, b, 1); err != nil {
					return err
				}
				b = fresh(room)
				r, err := f.IreadAtAll(0, b)
				if err != nil {
					return err
				}
				st, err := r.Wait(ctx)
				if err := check("IreadAtAll", st.Bytes/4, err, b, 1); err != nil {
					return err
				}
				b = fresh(2*room - 1)
				n, err = f.ReadAtAllType(ctx, 0, b, 1, spread)
				if err := check("ReadAtAllType", n/4, err, b, 2); err != nil {
					return err
				}
				if err := f.SetView(ctx, 0, nil, External32); err != nil {
					return err
				}
				if c.Rank() == 0 {
					n, err := f.WriteAt(ctx, 0, []int32{1, 2, 3, 4, 5})
					if err := wantN(n, err, there); err != nil {
						return err
					}
				}
				if err := f.Sync(ctx); err != nil {
					return err
				}
				b = fresh(room)
				n, err = f.ReadAtAll(ctx, 0, b)
				return check("ReadAtAll of external32", n, err, b, 1)
			})
		})
	}
}
