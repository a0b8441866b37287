package mpi

import (
	"context"
	"fmt"
	"reflect"

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

// A File is a [FileHandle] for elements of one Go type (MPI-4.1, Chapter 14). T is its elementary
// type: offsets, and the individual and the shared file pointer, count elements of T, in the rank's
// view of the file. Operations read or write len(buf) elements, and return how many they have.
type File[T Element] struct {
	*FileHandle
	elem *datatype.Layout
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
	h, badHints := fileio.ReadHints(info, c.Size(), true)
	f, err := openFile(ctx, c, &fileio.Config{Name: name, Mode: fileio.Mode(mode),
		Etype: datatype.OfBytes(elem.Size), Bad: bad, Hints: h, BadHints: badHints}, info)
	c.leave(t, "FileOpen", NoPeer, 0, 0, err)
	if err != nil {
		return nil, fmt.Errorf("opening file: %w", err)
	}
	f.view = fileView{rep: Native}
	return &File[T]{f, elem}, nil
}

// FileDelete removes a file. It is local; it returns an error that is
// fs.ErrNotExist if there is none, and ErrFile if it is a directory (MPI-4.1, Section 14.2.3).
func FileDelete(name string) error { return fileio.Delete(name) }
