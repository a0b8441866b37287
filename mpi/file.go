package mpi

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"sync"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/fileio"
)

// FileMode says how a file is opened: one of the first three, with any of the
// others (MPI-4.1, Section 14.2.1).
type FileMode uint16

// Modes of FileOpen.
const (
	FileRead          = FileMode(fileio.ReadOnly)      // MPI_MODE_RDONLY
	FileWrite         = FileMode(fileio.WriteOnly)     // MPI_MODE_WRONLY
	FileReadWrite     = FileMode(fileio.ReadWrite)     // MPI_MODE_RDWR
	FileCreate        = FileMode(fileio.Create)        // MPI_MODE_CREATE: make the file if there is none
	FileExclusive     = FileMode(fileio.Exclusive)     // MPI_MODE_EXCL: with FileCreate: fail if there is one
	FileAppend        = FileMode(fileio.Append)        // MPI_MODE_APPEND: begin with all pointers at the end
	FileSequential    = FileMode(fileio.Sequential)    // MPI_MODE_SEQUENTIAL: shared pointers only
	FileUnique        = FileMode(fileio.Unique)        // MPI_MODE_UNIQUE_OPEN: no other job has it open
	FileDeleteOnClose = FileMode(fileio.DeleteOnClose) // MPI_MODE_DELETE_ON_CLOSE: remove it when it is closed
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

// file is a File without its element type.
type file struct {
	of   *Comm // what it was opened by: its profiler records the calls
	c    *Comm // of the file alone
	io   *fileio.File
	elem *datatype.Layout

	mu    sync.Mutex // guards what follows
	info  Info
	view  fileView
	split *splitOp
}

// fileView is the arguments of SetView.
type fileView struct {
	disp     int64
	filetype *Datatype // nil: everything
	rep      string
}

// FileOpen opens a file on all ranks of c, which all must call it with the same name, mode and
// hints; it blocks until all have (MPI-4.1, Section 14.2.1). The view is the whole file. If it
// fails on one rank it fails on all, with errors of the same class: a file that does not exist is
// fs.ErrNotExist everywhere. Names, modes, hints and element sizes that differ give ErrNotSame.
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

// openFile is FileOpen; bad is what is wrong with the elements.
func openFile(
	ctx context.Context, c *Comm, name string, mode FileMode, info Info, elem *datatype.Layout, bad error,
) (*file, error) {
	own, err := c.private(ctx)
	if err != nil {
		return nil, err
	}
	f := &file{of: c, c: own, elem: elem, view: fileView{rep: Native}}
	h, badHints := readFileHints(info, own.Size())
	f.io, err = fileio.Open(ctx, &fileio.Config{
		Comm: fileComm{own}, Name: name, Mode: fileio.Mode(mode), Elem: elem.Size,
		Native: fileio.NativeDatarep(elem), Hints: h, Bad: bad, BadHints: badHints,
		NewPointer: func(ctx context.Context) (fileio.SharedPointer, error) { return newFilePointer(ctx, own) },
	})
	if err != nil {
		return nil, err
	}
	f.setInfo(h, info)
	return f, nil
}

// Close closes the file (MPI-4.1, Section 14.2.2). All ranks must call it; it blocks until all
// have. The program must have waited for its operations before. It returns ErrFile for a file that
// is closed already, and the errors of the system for data that could not be written.
func (f *File[T]) Close(ctx context.Context) error {
	return f.f.recorded("File.Close", func() error { return f.f.io.Close(ctx) })
}

// Name returns the name that the file was opened by (MPI_File_open).
func (f *File[T]) Name() string { return f.f.io.Name() }

// Mode returns the mode that the file was opened with (MPI_File_get_amode).
func (f *File[T]) Mode() FileMode { return FileMode(f.f.io.Mode()) }

// Group returns the ranks that have the file open (MPI_File_get_group).
func (f *File[T]) Group() Group { return f.f.c.Group() }

// Size returns the length of the file in bytes (MPI_File_get_size).
func (f *File[T]) Size() (int64, error) { return f.f.io.Size() }

// SetSize makes the file that many bytes long. All ranks must call it, with the same size (MPI-4.1,
// Section 14.2.4); it blocks until all have. An error of one rank is one of all. Errors to test
// for: ErrFile, ErrMode for a file opened with [FileRead], ErrCount for a negative size,
// ErrNotSame, and those of package io/fs.
func (f *File[T]) SetSize(ctx context.Context, bytes int64) error {
	return f.f.recorded("File.SetSize", func() error { return f.f.io.SetSize(ctx, bytes) })
}

// Preallocate reserves room for that many bytes in the file system, and makes the file longer if it
// is shorter (MPI_File_preallocate; MPI-4.1, Section 14.2.5). Where the system has no call for it,
// the file is only made longer, with zeros. All ranks must call it with the same size; it blocks
// until all have. An error of one rank is one of all. Errors to test for: those of [File.SetSize].
func (f *File[T]) Preallocate(ctx context.Context, bytes int64) error {
	return f.f.recorded("File.Preallocate", func() error { return f.f.io.Preallocate(ctx, bytes) })
}

// recorded performs a call that the profiler is told of.
func (f *file) recorded(name string, do func() error) error {
	t := f.of.enter()
	err := do()
	f.of.leave(t, name, NoPeer, 0, 0, err)
	return err
}

// Sync writes the data of the ranks to the storage device, and makes it visible to all of them
// (MPI-4.1, Section 14.6.1). All ranks must call it; it blocks until all have. An error of one rank
// is one of all. Errors to test for: ErrFile, and those of package io/fs.
func (f *File[T]) Sync(ctx context.Context) error {
	return f.f.recorded("File.Sync", func() error { return f.f.io.Sync(ctx) })
}

// SetAtomicity sets atomic mode: overlapping operations of the ranks then take effect one after the
// other (MPI_File_set_atomicity; MPI-4.1, Section 14.6.1). It is off at first. All ranks must call
// it with the same value, else they get ErrNotSame; it blocks until all have. It returns ErrFile
// after [File.Close].
func (f *File[T]) SetAtomicity(ctx context.Context, on bool) error {
	return f.f.io.SetAtomicity(ctx, on)
}

// Atomicity reports whether atomic mode is on (MPI_File_get_atomicity).
func (f *File[T]) Atomicity() bool { return f.f.io.Atomicity() }
