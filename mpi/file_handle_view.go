package mpi

import (
	"context"
	"fmt"
	"maps"

	"github.com/weftstack/weft/mpi/internal/fileio"
)

// DisplacementCurrent is the displacement of views of files opened with [FileSequential]: the place of
// the shared pointer (MPI_DISPLACEMENT_CURRENT).
const DisplacementCurrent = fileio.DisplacementCurrent

// SetView changes what this rank sees of the file: from byte disp on, the data of items of filetype,
// one after the other (MPI-4.1, Section 14.3). filetype is etype, or made of it. rep is [Native],
// [Internal], [External32] or the name of a [Datarep] of the elements of etype. If elements have
// another size in it than in memory, displacements of filetype that count items are those of items in
// the file, and those in bytes are taken as they are: [FileHandle.TypeExtent] helps to find them.
// Items of filetype may lie between one another, if its extent is less than its span, and, if the file
// is open for reading only, see the same bytes. Hints in info are put into effect, as [File.SetInfo]
// does. File pointers begin at 0 again.
//
// All ranks must call it, with the same rep and info, and etypes of the same size in the file; they may
// give different displacements and filetypes. It fails on all ranks alike. It blocks until all have
// called it. Errors to test for: ErrView, ErrDatarep, ErrDatatype, ErrNotSame.
func (f *FileHandle) SetView(ctx context.Context, disp int64, etype, filetype *Datatype, rep string, info Info) error {
	return f.recorded("File.SetView", func() error {
		a := &fileio.ViewArgs{Disp: disp, Etype: etype.typ(), Filetype: filetype.typ(), RepName: rep}
		if etype == nil || filetype == nil {
			a.Bad = fmt.Errorf("%w: etype %v, filetype %v", ErrDatatype, etype, filetype)
		} else {
			a.Rep, a.Bad = f.c.w.datareps.Find(rep, nil, a.Etype)
		}
		all := f.Info()
		maps.Copy(all, info)
		a.Hints, _ = fileio.ReadHints(all, f.c.Size(), false)
		err := f.setView(ctx, a, fileView{disp: disp, etype: etype, filetype: filetype})
		if err == nil {
			f.setInfo(a.Hints, all)
		}
		return err
	})
}

// setView sets a view, whose arguments are those of the program in view.
func (f *FileHandle) setView(ctx context.Context, a *fileio.ViewArgs, view fileView) error {
	if err := f.io.SetView(ctx, a); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view = view
	f.view.rep = a.Rep.Name
	return nil
}

// View returns what SetView set: displacement, etype, filetype and data representation
// (MPI_File_get_view). Both datatypes are single bytes at first; of a [File] the etype is nil after
// [File.SetView].
func (f *FileHandle) View() (disp int64, etype, filetype *Datatype, rep string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view.disp, f.view.etype, f.view.filetype, f.view.rep
}

// Seek moves the individual pointer: whence is io.SeekStart, io.SeekCurrent or
// io.SeekEnd, offset counts etypes. It returns the new place. It is local
// (MPI-4.1, Section 14.4.3).
func (f *FileHandle) Seek(offset int64, whence int) (int64, error) { return f.io.Seek(offset, whence) }

// Position returns the individual pointer, in etypes (MPI_File_get_position).
func (f *FileHandle) Position() int64 { return f.io.Position() }

// ByteOffset returns the byte of the file at which etype offset of the view lies (MPI-4.1,
// Section 14.4.3).
func (f *FileHandle) ByteOffset(offset int64) (int64, error) { return f.io.ByteOffset(offset) }
