package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/fileio"
)

// Data representations of SetView (MPI-4.1, Section 14.5).
const (
	// Native is the representation in memory.
	Native = fileio.Native
	// Internal is the same here: ranks of one job share an architecture.
	Internal = fileio.Internal
	// External32 is the same on all machines: see AppendExternal.
	External32 = fileio.External32
)

// SetView changes what this rank sees of the file: from byte disp on, the data of
// items of filetype, one after the other, or everything if it is nil. rep is Native,
// Internal, External32 or the name of a Datarep. If elements have another size in it
// than in memory the filetype must consist of whole elements, and is taken to describe
// their places: displacements are multiplied alike. Items of the filetype may lie
// between one another, if its extent is less than its span, and, if the file is open
// for reading only, see the same bytes. File pointers begin at 0 again. All ranks must
// call it, with the same rep; they may give different displacements and filetypes
// (MPI-4.1, Section 14.3). It fails on all ranks alike. It blocks until all have
// called it. Errors to test for: ErrView, ErrDatarep, ErrNotSame.
func (f *File[T]) SetView(ctx context.Context, disp int64, filetype *Datatype, rep string) error {
	return f.f.recorded("File.SetView", func() error { return f.f.setView(ctx, disp, filetype, rep) })
}

func (f *file) setView(ctx context.Context, disp int64, filetype *Datatype, rep string) error {
	r, bad := f.c.w.datareps.Find(rep, f.elem)
	if err := f.io.SetView(ctx, disp, filetype.typ(), r, rep, bad); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view = fileView{disp, filetype, r.Name}
	return nil
}

// View returns what SetView set: displacement, filetype (nil: everything) and
// data representation (MPI_File_get_view).
func (f *File[T]) View() (disp int64, filetype *Datatype, rep string) {
	f.f.mu.Lock()
	defer f.f.mu.Unlock()
	return f.f.view.disp, f.f.view.filetype, f.f.view.rep
}

// Seek moves the individual pointer: whence is io.SeekStart, io.SeekCurrent or
// io.SeekEnd, offset counts elements. It returns the new place. It is local
// (MPI-4.1, Section 14.4.3).
func (f *File[T]) Seek(offset int64, whence int) (int64, error) { return f.f.io.Seek(offset, whence) }

// Position returns the individual pointer, in elements (MPI_File_get_position).
func (f *File[T]) Position() int64 { return f.f.io.Position() }

// ByteOffset returns the byte of the file at which element offset of the view lies (MPI-4.1,
// Section 14.4.3).
func (f *File[T]) ByteOffset(offset int64) (int64, error) { return f.f.io.ByteOffset(offset) }
