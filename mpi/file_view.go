package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/datatype"
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
	return f.recorded("File.SetView", func() error {
		r, bad := f.c.w.datareps.Find(rep, f.elem, nil)
		return f.setView(ctx, &fileio.ViewArgs{Disp: disp, Etype: datatype.OfBytes(f.elem.Size), Filetype: filetype.typ(),
			Rep: r, RepName: rep, Scaled: true, Bad: bad}, fileView{disp: disp, filetype: filetype})
	})
}

// View returns what SetView set: displacement, filetype (nil: everything) and
// data representation (MPI_File_get_view).
func (f *File[T]) View() (disp int64, filetype *Datatype, rep string) {
	disp, _, filetype, rep = f.FileHandle.View()
	return disp, filetype, rep
}
