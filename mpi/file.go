package mpi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// FileMode says how a file is opened: one of the first three, with any of the
// others (MPI-4.1, Section 14.2.1).
type FileMode uint16

// Modes of FileOpen.
const (
	FileRead          FileMode = 1 << iota // MPI_MODE_RDONLY
	FileWrite                              // MPI_MODE_WRONLY
	FileReadWrite                          // MPI_MODE_RDWR
	FileCreate                             // MPI_MODE_CREATE: make the file if there is none
	FileExclusive                          // MPI_MODE_EXCL: with FileCreate: fail if there is one
	FileAppend                             // MPI_MODE_APPEND: begin with all pointers at the end
	FileSequential                         // MPI_MODE_SEQUENTIAL: shared pointers only
	FileUnique                             // MPI_MODE_UNIQUE_OPEN: no other job has it open
	FileDeleteOnClose                      // MPI_MODE_DELETE_ON_CLOSE: remove it when it is closed
	fileModes         = 1<<iota - 1
)

// A File is a file that the ranks of a communicator have opened together
// (MPI-4.1, Chapter 14). T is its elementary type: offsets, and the individual
// and the shared file pointer, count elements of T, in the rank's view of the
// file. The file is one that all ranks reach by its name, on a shared file
// system if they are on several hosts.
//
// Operations read or write len(buf) elements, and return how many they have;
// a read that ends at the end of the file is no error. Nonblocking ones return
// a Request whose Status tells the bytes. Methods may be called from several
// goroutines at a time, except that collective ones must be called in the same
// order on all ranks.
type File[T Element] struct {
	f *file
}

// file is a File to code that knows elements as bytes only.
type file struct {
	of, c *Comm // what it was opened by, and a communicator of its own
	os    *os.File
	name  string
	mode  FileMode
	elem  *datatype.Layout
	hints atomic.Pointer[fileHints]

	// The shared pointer, in elements, and a lock for atomic mode are at rank 0.
	shared *Win[int64]
	turn   ctxMutex // held by the goroutine of this rank that has the lock

	atomic atomic.Bool
	closed atomic.Bool

	mu    sync.Mutex // guards what follows
	info  Info
	view  *fileView
	pos   int64         // individual pointer, in elements
	last  chan struct{} // closed when the last collective started has ended
	split *splitOp
}

// FileOpen opens a file on all ranks of c, which all must call it with the same
// name, mode and hints; it blocks until they do (MPI-4.1, Section 14.2.1). The
// view is the whole file. If it fails on one rank it fails on all, with errors of the
// same class: a file that is not there is fs.ErrNotExist everywhere. Names, modes, hints
// and element sizes that differ give ErrNotSame.
func FileOpen[T Element](ctx context.Context, c *Comm, name string, mode FileMode, info Info) (*File[T], error) {
	t := c.enter()
	bad := datatype.CheckElement[T]()
	elem := &datatype.Layout{}
	if bad == nil {
		elem = datatype.LayoutOf(reflect.TypeFor[T]())
	}
	f, err := openFile(ctx, c, name, mode, info, elem, bad)
	c.leave(t, "FileOpen", NoPeer, 0, 0, err)
	if err != nil {
		return nil, fmt.Errorf("opening file: %w", err)
	}
	return &File[T]{f}, nil
}

// FileDelete removes a file. It is local; it returns an error that is
// fs.ErrNotExist if there is none (MPI-4.1, Section 14.2.3).
func FileDelete(name string) error { return os.Remove(name) }

func (m FileMode) check() error {
	switch m & (FileRead | FileWrite | FileReadWrite) {
	case FileRead:
		if m&(FileCreate|FileExclusive) != 0 {
			return fmt.Errorf("%w: FileCreate with FileRead", ErrMode)
		}
	case FileWrite, FileReadWrite:
	default:
		return fmt.Errorf("%w: want one of FileRead, FileWrite and FileReadWrite", ErrMode)
	}
	if m&^fileModes != 0 {
		return fmt.Errorf("%w: %#x", ErrMode, uint16(m))
	}
	if m&FileReadWrite != 0 && m&FileSequential != 0 {
		return fmt.Errorf("%w: FileSequential with FileReadWrite", ErrMode)
	}
	return nil
}

// flags returns the mode for os.OpenFile.
func (m FileMode) flags() int {
	switch {
	case m&FileRead != 0:
		return os.O_RDONLY
	case m&FileWrite != 0:
		return os.O_WRONLY
	}
	return os.O_RDWR
}

// openFile is FileOpen; bad is what is wrong with the elements.
func openFile(ctx context.Context, c *Comm, name string, mode FileMode, info Info, elem *datatype.Layout, bad error) (*file, error) {
	f := &file{of: c, name: name, mode: mode, elem: elem, turn: newCtxMutex()}
	var err error
	if f.c, err = c.private(ctx); err != nil {
		return nil, err
	}
	if err = orFirst(bad, mode.check()); err == nil && elem.Size == 0 {
		err = fmt.Errorf("%w: elements of no size", ErrType)
	}
	var h *fileHints
	if err = f.agree(ctx, err, name, mode, elem.Size); err == nil {
		h, err = f.agreeHints(ctx, info)
	}
	if err != nil {
		f.c.Free()
		return nil, err
	}
	// Rank 0 goes first: it makes the file.
	if f.c.rank == 0 {
		flags := mode.flags()
		if mode&FileCreate != 0 {
			flags |= os.O_CREATE
		}
		if mode&FileExclusive != 0 {
			flags |= os.O_EXCL
		}
		f.os, err = os.OpenFile(name, flags, h.perm)
	}
	if err = f.agree(ctx, err); err == nil {
		if f.c.rank != 0 {
			f.os, err = os.OpenFile(name, mode.flags(), 0)
		}
		err = f.agree(ctx, err)
	}
	if err == nil {
		f.shared, err = WinAllocate[int64](ctx, f.c, 1)
	}
	if err == nil {
		f.setHints(h, info)
		err = f.begin(ctx)
	}
	if err != nil {
		if f.os != nil {
			f.os.Close()
		}
		if f.shared != nil {
			err = errors.Join(err, f.shared.Free(ctx))
		}
		f.c.Free()
		return nil, err
	}
	return f, nil
}

// begin sets the first view and pointers.
func (f *file) begin(ctx context.Context) error {
	f.view = wholeFile(nativeRep(f.elem, Native))
	if f.mode&FileAppend == 0 {
		return nil
	}
	size, err := f.size()
	if err = f.agree(ctx, err); err != nil {
		return err
	}
	f.pos = size / int64(f.elem.Size)
	if f.c.rank == 0 {
		f.shared.Buf()[0] = f.pos
		f.shared.Sync()
	}
	return Barrier(ctx, f.c)
}

// agree returns err, or an error of its class if another rank has one, or other args:
// see Comm.consent.
func (f *file) agree(ctx context.Context, err error, args ...any) error {
	err = f.c.consent(ctx, err, args...)
	var told *mpierr.RemoteError
	if errors.As(err, &told) {
		err = fmt.Errorf("%s: %w", f.name, err)
	}
	return err
}

// Close closes the file. All ranks must call it; it blocks until they do.
// Operations that are not done must be waited for before (MPI-4.1, Section
// 14.2.2).
func (f *File[T]) Close(ctx context.Context) error {
	t := f.f.of.enter()
	err := f.f.close(ctx)
	f.f.of.leave(t, "File.Close", NoPeer, 0, 0, err)
	return err
}

func (f *file) close(ctx context.Context) error {
	if err := f.usable(); err != nil {
		return err
	}
	if err := f.inTurn(ctx, func() error { return nil }); err != nil {
		return err
	}
	if !f.closed.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: closed", ErrFile)
	}
	var err error
	if f.mode&FileRead == 0 && f.mode&FileDeleteOnClose == 0 {
		err = f.os.Sync()
	}
	err = errors.Join(err, f.os.Close())
	err = f.agree(ctx, err)
	if f.mode&FileDeleteOnClose != 0 { // all have closed it
		var e error
		if f.c.rank == 0 {
			if e = os.Remove(f.name); errors.Is(e, fs.ErrNotExist) {
				e = nil
			}
		}
		err = errors.Join(err, f.agree(ctx, e))
	}
	err = errors.Join(err, f.shared.Free(ctx))
	f.c.Free()
	return err
}

func (f *file) usable() error {
	if f.closed.Load() {
		return fmt.Errorf("%w: closed", ErrFile)
	}
	return f.c.usable()
}

// Name returns the name that the file was opened by (MPI_File_open).
func (f *File[T]) Name() string { return f.f.name }

// Mode returns the mode that the file was opened with (MPI_File_get_amode).
func (f *File[T]) Mode() FileMode { return f.f.mode }

// Group returns the ranks that have the file open (MPI_File_get_group).
func (f *File[T]) Group() Group { return f.f.c.Group() }

// Size returns the length of the file in bytes (MPI_File_get_size).
func (f *File[T]) Size() (int64, error) {
	if err := f.f.usable(); err != nil {
		return 0, err
	}
	return f.f.size()
}

func (f *file) size() (int64, error) {
	st, err := f.os.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// SetSize makes the file that many bytes long. All ranks must call it, with the
// same size (MPI-4.1, Section 14.2.4). It blocks until all have. An error of
// one rank is one of all; errors.Is tells ErrFile, ErrMode and those of package
// io/fs.
func (f *File[T]) SetSize(ctx context.Context, bytes int64) error {
	return f.f.alter(ctx, "File.SetSize", bytes, func() error { return f.f.os.Truncate(bytes) })
}

// Preallocate makes sure that the file system has room for that many bytes, and
// makes the file longer if it is shorter (MPI_File_preallocate). All ranks must
// call it (MPI-4.1, Section 14.2.5). Where the system has no call for it, the
// file is only made longer, with zeros. It blocks until all have. An error of
// one rank is one of all; errors.Is tells ErrFile, ErrMode and those of package
// io/fs.
func (f *File[T]) Preallocate(ctx context.Context, bytes int64) error {
	return f.f.alter(ctx, "File.Preallocate", bytes, func() error { return preallocate(f.f.os, bytes) })
}

// alter lets rank 0 change the file.
func (f *file) alter(ctx context.Context, name string, bytes int64, do func() error) error {
	t := f.of.enter()
	err := f.usable()
	if err == nil {
		err = f.inTurn(ctx, func() error {
			var err error
			switch {
			case f.mode&FileRead != 0:
				err = fmt.Errorf("%w: opened with FileRead", ErrMode)
			case bytes < 0:
				err = fmt.Errorf("%w: size %d", ErrCount, bytes)
			case f.c.rank == 0:
				err = do()
			}
			return f.agree(ctx, err, bytes)
		})
	}
	f.of.leave(t, name, NoPeer, 0, 0, err)
	return err
}

// Sync brings what the ranks wrote to the storage, and makes it visible to all
// of them. All ranks must call it (MPI-4.1, Section 14.6.1). It blocks until
// all have. An error of one rank is one of all; errors.Is tells ErrFile,
// ErrMode and those of package io/fs.
func (f *File[T]) Sync(ctx context.Context) error {
	t := f.f.of.enter()
	err := f.f.usable()
	if err == nil {
		err = f.f.inTurn(ctx, func() error {
			var err error
			if f.f.mode&FileRead == 0 {
				err = f.f.os.Sync()
			}
			return f.f.agree(ctx, err)
		})
	}
	f.f.of.leave(t, "File.Sync", NoPeer, 0, 0, err)
	return err
}

// SetAtomicity says whether operations of the ranks that overlap are as if one
// came after the other (MPI_File_set_atomicity). It is off at first. All ranks
// must call it (MPI-4.1, Section 14.6.1). It blocks until all have. An error of
// one rank is one of all; errors.Is tells ErrFile, ErrMode and those of package
// io/fs.
func (f *File[T]) SetAtomicity(ctx context.Context, on bool) error {
	if err := f.f.usable(); err != nil {
		return err
	}
	return f.f.inTurn(ctx, func() error {
		if err := f.f.agree(ctx, nil, on); err != nil {
			return err
		}
		f.f.atomic.Store(on)
		return Barrier(ctx, f.f.c) // nobody goes on before all know of it
	})
}

// Atomicity tells what SetAtomicity set (MPI_File_get_atomicity).
func (f *File[T]) Atomicity() bool { return f.f.atomic.Load() }

// inTurn runs a collective operation after those that were started before.
func (f *file) inTurn(ctx context.Context, do func() error) error {
	before, done := f.queue()
	if err := awaitTurn(ctx, before, done); err != nil {
		return err
	}
	defer close(done)
	return do()
}

// awaitTurn waits for the operations before one. When ctx ends first it returns an error,
// and leaves the place: those behind still wait for those before.
func awaitTurn(ctx context.Context, before, done chan struct{}) error {
	select {
	case <-before:
		return nil
	case <-ctx.Done():
		go func() {
			<-before
			close(done)
		}()
		return ctx.Err()
	}
}

// queue takes a place behind the collective operations that were started.
func (f *file) queue() (before, done chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, done = f.last, make(chan struct{})
	f.last = done
	if before == nil {
		before = make(chan struct{})
		close(before)
	}
	return before, done
}

// lengthen makes a file at least n bytes long.
func lengthen(f *os.File, n int64) error {
	st, err := f.Stat()
	if err != nil || st.Size() >= n {
		return err
	}
	return f.Truncate(n)
}
