package mpi

import (
	"context"
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/fileio"
)

// A FileHandle is a file that the ranks of a communicator have opened together (MPI-4.1, Chapter
// 14: MPI_File). The file is one that all ranks reach by its name, on a shared file system if they
// are on several hosts. Its elementary datatype, the etype, is that of the view: offsets, and the
// individual and the shared file pointer, count etypes.
//
// Operations read or write what a [Buffer] describes, which must be a whole number of etypes, and
// return a Status whose Bytes tell how much that was; a read that ends at the end of the file is no
// error. Methods may be called from several goroutines at a time, except that collective ones must
// be called in the same order on all ranks.
type FileHandle struct {
	of *Comm // what it was opened by: its profiler records the calls
	c  *Comm // of the file alone
	io *fileio.File

	lenient bool // hints that make no sense are ignored

	mu    sync.Mutex // guards what follows
	info  Info
	view  fileView
	split *splitOp
}

// fileView is the arguments of SetView.
type fileView struct {
	disp            int64
	etype, filetype *Datatype // filetype nil: everything
	rep             string
}

// OpenFile opens a file on all ranks of c, which all must call it with the same name, mode and
// hints; it blocks until all have (MPI-4.1, Section 14.2.1). The view is all bytes of the file. If it
// fails on one rank it fails on all, with errors of the same class: a file that does not exist is
// fs.ErrNotExist everywhere. Names, modes and hints that differ give ErrNotSame. Hints that make no
// sense are ignored.
func (c *Comm) OpenFile(ctx context.Context, name string, mode FileMode, info Info) (*FileHandle, error) {
	t := c.enter()
	h, _ := fileio.ReadHints(info, c.Size(), false)
	f, err := openFile(ctx, c,
		&fileio.Config{Name: name, Mode: fileio.Mode(mode), Etype: datatype.OfBytes(1), Hints: h}, info)
	c.leave(t, "Comm.OpenFile", NoPeer, 0, 0, err)
	if err != nil {
		return nil, fmt.Errorf("opening file: %w", err)
	}
	f.lenient = true
	return f, nil
}

// openFile opens a file as cfg says, which it completes.
func openFile(ctx context.Context, c *Comm, cfg *fileio.Config, info Info) (*FileHandle, error) {
	own, err := c.private(ctx, "file")
	if err != nil {
		return nil, err
	}
	bytes, err := TypeOf[byte]()
	if err != nil {
		return nil, err
	}
	f := &FileHandle{of: c, c: own, view: fileView{etype: bytes, filetype: bytes, rep: Native}}
	cfg.Comm = fileComm{own}
	cfg.NewPointer = func(ctx context.Context) (fileio.SharedPointer, error) { return newFilePointer(ctx, own) }
	if f.io, err = fileio.Open(ctx, cfg); err != nil {
		return nil, err
	}
	f.setInfo(cfg.Hints, info)
	return f, nil
}

// Close closes the file (MPI-4.1, Section 14.2.2). All ranks must call it; it blocks until all
// have. The program must have waited for its operations before. It returns ErrFile for a file that
// is closed already, and the errors of the system for data that could not be written.
func (f *FileHandle) Close(ctx context.Context) error {
	return f.recorded("File.Close", func() error { return f.io.Close(ctx) })
}

// Name returns the name that the file was opened by (MPI_File_open).
func (f *FileHandle) Name() string { return f.io.Name() }

// Mode returns the mode that the file was opened with (MPI_File_get_amode).
func (f *FileHandle) Mode() FileMode { return FileMode(f.io.Mode()) }

// Group returns the ranks that have the file open (MPI_File_get_group).
func (f *FileHandle) Group() Group { return f.c.Group() }

// Size returns the length of the file in bytes (MPI_File_get_size).
func (f *FileHandle) Size() (int64, error) { return f.io.Size() }

// SetSize makes the file that many bytes long. All ranks must call it, with the same size (MPI-4.1,
// Section 14.2.4); it blocks until all have. An error of one rank is one of all. Errors to test
// for: ErrFile, ErrMode for a file opened with [FileRead], ErrCount for a negative size,
// ErrNotSame, and those of package io/fs.
func (f *FileHandle) SetSize(ctx context.Context, bytes int64) error {
	return f.recorded("File.SetSize", func() error { return f.io.SetSize(ctx, bytes) })
}

// Preallocate reserves room for that many bytes in the file system, and makes the file longer if it
// is shorter (MPI_File_preallocate; MPI-4.1, Section 14.2.5). Where the system has no call for it,
// the file is only made longer, with zeros. All ranks must call it with the same size; it blocks
// until all have. An error of one rank is one of all. Errors to test for: those of [FileHandle.SetSize].
func (f *FileHandle) Preallocate(ctx context.Context, bytes int64) error {
	return f.recorded("File.Preallocate", func() error { return f.io.Preallocate(ctx, bytes) })
}

// recorded performs a call that the profiler is told of.
func (f *FileHandle) recorded(name string, do func() error) error {
	t := f.of.enter()
	err := do()
	f.of.leave(t, name, NoPeer, 0, 0, err)
	return err
}

// Sync writes the data of the ranks to the storage device, and makes it visible to all of them
// (MPI-4.1, Section 14.6.1). All ranks must call it; it blocks until all have. An error of one rank
// is one of all. Errors to test for: ErrFile, and those of package io/fs.
func (f *FileHandle) Sync(ctx context.Context) error {
	return f.recorded("File.Sync", func() error { return f.io.Sync(ctx) })
}

// SetAtomicity sets atomic mode: overlapping operations of the ranks then take effect one after the
// other (MPI_File_set_atomicity; MPI-4.1, Section 14.6.1). It is off at first. All ranks must call
// it with the same value, else they get ErrNotSame; it blocks until all have. It returns ErrFile
// after [FileHandle.Close].
func (f *FileHandle) SetAtomicity(ctx context.Context, on bool) error {
	return f.io.SetAtomicity(ctx, on)
}

// Atomicity reports whether atomic mode is on (MPI_File_get_atomicity).
func (f *FileHandle) Atomicity() bool { return f.io.Atomicity() }
