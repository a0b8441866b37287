package fileio

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// A File is one rank's part of a file that the ranks of a communicator have opened together.
type File struct {
	c     Comm
	os    *os.File
	name  string
	mode  Mode
	hints atomic.Pointer[Hints]

	pointer SharedPointer // counts etypes

	atomic atomic.Bool
	closed atomic.Bool

	mu   sync.Mutex // guards what follows
	view *View
	pos  int64         // individual pointer, in etypes
	last chan struct{} // closed when the collective operation that was started last has ended
}

// Config is the arguments of Open.
type Config struct {
	Comm  Comm // Open frees it if it fails, else Close does
	Name  string
	Mode  Mode
	Etype *datatype.Type // of the first view, which is everything in the native representation
	Hints *Hints
	// Bad and BadHints are errors in the arguments of this rank, and in its hints: Open then fails
	// on all ranks.
	Bad, BadHints error
	// NewPointer makes the shared pointer, with value 0. All ranks call it.
	NewPointer func(ctx context.Context) (SharedPointer, error)
}

// Open opens a file on all ranks of a communicator. If it fails on one rank it fails on all, with
// errors of the same class. The view is the whole file.
func Open(ctx context.Context, cfg *Config) (*File, error) {
	f := &File{c: cfg.Comm, name: cfg.Name, mode: cfg.Mode}
	err := f.open(ctx, cfg)
	if err != nil {
		if f.os != nil {
			f.os.Close()
		}
		if f.pointer != nil {
			err = errors.Join(err, f.pointer.Free(ctx))
		}
		f.c.Free()
		return nil, err
	}
	return f, nil
}

func (f *File) open(ctx context.Context, cfg *Config) error {
	err := cfg.Bad
	if err == nil {
		err = f.mode.check()
	}
	if err == nil {
		err = checkName(f.name)
	}
	if err == nil && cfg.Etype.Size() == 0 {
		err = fmt.Errorf("%w: elements of no size", mpierr.ErrType)
	}
	if err = f.agree(ctx, err, f.name, f.mode, cfg.Etype.Size()); err != nil {
		return err
	}
	if err = f.agreeHints(ctx, cfg.Hints, cfg.BadHints); err != nil {
		return err
	}
	// Rank 0 goes first: it makes the file.
	if f.c.Rank() == 0 {
		f.os, err = openFile(f.name, f.mode.createFlags(), cfg.Hints.Perm)
	}
	if err = f.agree(ctx, err); err != nil {
		return err
	}
	if f.c.Rank() != 0 {
		f.os, err = openFile(f.name, f.mode.flags(), 0)
	}
	if err = f.agree(ctx, err); err != nil {
		return err
	}
	if f.pointer, err = cfg.NewPointer(ctx); err != nil {
		return err
	}
	f.hints.Store(cfg.Hints)
	advise(f.os, cfg.Hints)
	return f.begin(ctx, cfg.Etype)
}

// checkName returns the error of a name that is none, or nil.
func checkName(name string) error {
	if name == "" || strings.ContainsRune(name, 0) {
		return mpierr.WithClass(mpierr.ClassBadFile, fmt.Errorf("%w: name %.100q", mpierr.ErrFile, name))
	}
	return nil
}

// openFile opens what is no directory.
func openFile(name string, flags int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flags, perm)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = mpierr.WithClass(mpierr.ClassBadFile, fmt.Errorf("%w: %.100q is a directory", mpierr.ErrFile, name))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Delete removes a file.
func Delete(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if st, err := os.Lstat(name); err == nil && st.IsDir() {
		return mpierr.WithClass(mpierr.ClassBadFile, fmt.Errorf("%w: %.100q is a directory", mpierr.ErrFile, name))
	}
	return os.Remove(name)
}

// begin sets the first view and pointers.
func (f *File) begin(ctx context.Context, etype *datatype.Type) error {
	var err error
	if f.view, err = firstView(etype); err != nil {
		return err
	}
	if f.mode&Append == 0 {
		return nil
	}
	size, err := f.size()
	if err = f.agree(ctx, err); err != nil {
		return err
	}
	f.pos = size / f.view.unit
	if f.c.Rank() == 0 {
		if err := f.pointer.Store(ctx, f.pos); err != nil {
			return err
		}
	}
	return f.c.Barrier(ctx)
}

// agree returns err, or an error of its class if another rank has one, or ErrNotSame if the ranks
// have different args: see Comm.Agree.
func (f *File) agree(ctx context.Context, err error, args ...any) error {
	err = f.c.Agree(ctx, err, args...)
	var remote *mpierr.RemoteError
	if errors.As(err, &remote) {
		err = fmt.Errorf("%s: %w", f.name, err)
	}
	return err
}

// Close closes the file on all ranks.
func (f *File) Close(ctx context.Context) error {
	if err := f.Usable(); err != nil {
		return err
	}
	if err := f.InOrder(ctx, func() error { return nil }); err != nil {
		return err
	}
	if !f.closed.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: closed", mpierr.ErrFile)
	}
	var err error
	if f.mode&ReadOnly == 0 && f.mode&DeleteOnClose == 0 {
		err = f.os.Sync()
	}
	err = errors.Join(err, f.os.Close())
	err = f.agree(ctx, err)
	if f.mode&DeleteOnClose != 0 { // all have closed it
		var e error
		if f.c.Rank() == 0 {
			if e = os.Remove(f.name); errors.Is(e, fs.ErrNotExist) {
				e = nil
			}
		}
		err = errors.Join(err, f.agree(ctx, e))
	}
	err = errors.Join(err, f.pointer.Free(ctx))
	f.c.Free()
	return err
}

// Usable returns why the file cannot be used, or nil.
func (f *File) Usable() error {
	if f.closed.Load() {
		return fmt.Errorf("%w: closed", mpierr.ErrFile)
	}
	return f.c.Usable()
}

// Name returns the name that the file was opened by.
func (f *File) Name() string { return f.name }

// Mode returns the mode that the file was opened with.
func (f *File) Mode() Mode { return f.mode }

// Size returns the length of the file in bytes.
func (f *File) Size() (int64, error) {
	if err := f.Usable(); err != nil {
		return 0, err
	}
	return f.size()
}

func (f *File) size() (int64, error) {
	st, err := f.os.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// SetSize makes the file that many bytes long. All ranks call it, with the same size.
func (f *File) SetSize(ctx context.Context, bytes int64) error {
	return f.alter(ctx, bytes, func() error { return f.os.Truncate(bytes) })
}

// Preallocate reserves room for that many bytes in the file system, and makes the file longer if it is
// shorter. All ranks call it.
func (f *File) Preallocate(ctx context.Context, bytes int64) error {
	return f.alter(ctx, bytes, func() error { return preallocate(f.os, bytes) })
}

// alter has rank 0 change the file. All ranks call it, with the same size.
func (f *File) alter(ctx context.Context, bytes int64, do func() error) error {
	if err := f.Usable(); err != nil {
		return err
	}
	return f.InOrder(ctx, func() error {
		var err error
		switch {
		case f.mode&ReadOnly != 0:
			err = readOnly("changing the size")
		case bytes < 0:
			err = mpierr.WithClass(mpierr.ClassArg, fmt.Errorf("%w: size %d", mpierr.ErrCount, bytes))
		case f.c.Rank() == 0:
			err = do()
		}
		return f.agree(ctx, err, bytes)
	})
}

// Sync writes the data of the ranks to the storage device, and makes it visible to all of them.
func (f *File) Sync(ctx context.Context) error {
	if err := f.Usable(); err != nil {
		return err
	}
	return f.InOrder(ctx, func() error {
		var err error
		if f.mode&ReadOnly == 0 {
			err = f.os.Sync()
		}
		return f.agree(ctx, err)
	})
}

// SetAtomicity sets atomic mode: overlapping operations of the ranks then take effect one after the
// other. It is off at first.
func (f *File) SetAtomicity(ctx context.Context, on bool) error {
	if err := f.Usable(); err != nil {
		return err
	}
	return f.InOrder(ctx, func() error {
		if err := f.agree(ctx, nil, on); err != nil {
			return err
		}
		f.atomic.Store(on)
		return f.c.Barrier(ctx) // no rank goes on before all ranks have set it
	})
}

// Atomicity reports whether the file is in atomic mode.
func (f *File) Atomicity() bool { return f.atomic.Load() }

// lengthen makes a file at least n bytes long.
func lengthen(f *os.File, n int64) error {
	st, err := f.Stat()
	if err != nil || st.Size() >= n {
		return err
	}
	return f.Truncate(n)
}
