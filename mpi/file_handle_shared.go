package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/fileio"
)

// ReadShared reads from the shared pointer on, and moves it by what it was asked for (MPI_File_read_shared).
// It blocks, and returns errors, as [FileHandle.ReadAt], and [RankError] if the rank that keeps the pointer
// has failed.
func (f *FileHandle) ReadShared(ctx context.Context, b Buffer) (Status, error) {
	return f.do(ctx, fileio.Op{Name: "File.ReadShared", At: fileio.AtShared}, b)
}

// WriteShared writes from the shared pointer on, and moves it by what it was asked for (MPI_File_write_shared).
// It blocks, and returns errors, as [FileHandle.WriteAt], and [RankError] if the rank that keeps the pointer
// has failed.
func (f *FileHandle) WriteShared(ctx context.Context, b Buffer) (Status, error) {
	return f.do(ctx, fileio.Op{Name: "File.WriteShared", At: fileio.AtShared, Write: true}, b)
}

// IreadShared starts [FileHandle.ReadShared] (MPI_File_iread_shared). It does not block. The pointer it uses is
// moved behind what it was asked for at once.
func (f *FileHandle) IreadShared(b Buffer) (*Request, error) {
	return f.start(fileio.Op{Name: "File.IreadShared", At: fileio.AtShared}, b)
}

// IwriteShared starts [FileHandle.WriteShared] (MPI_File_iwrite_shared). It does not block. The pointer it uses is
// moved behind what it was asked for at once.
func (f *FileHandle) IwriteShared(b Buffer) (*Request, error) {
	return f.start(fileio.Op{Name: "File.IwriteShared", At: fileio.AtShared, Write: true}, b)
}

// ReadOrdered is [FileHandle.ReadShared] that all ranks call: their data follows one another in the order
// of the ranks (MPI_File_read_ordered). It blocks until the part of this rank is done; until then the
// memory of b belongs to the call. It returns the errors of [FileHandle.ReadShared].
func (f *FileHandle) ReadOrdered(ctx context.Context, b Buffer) (Status, error) {
	return f.do(ctx, fileio.Op{Name: "File.ReadOrdered", At: fileio.AtShared, All: true}, b)
}

// WriteOrdered is [FileHandle.WriteShared] that all ranks call: their data follows one another in the order
// of the ranks (MPI_File_write_ordered). It blocks until the part of this rank is done; until then the
// memory of b belongs to the call. It returns the errors of [FileHandle.WriteShared].
func (f *FileHandle) WriteOrdered(ctx context.Context, b Buffer) (Status, error) {
	return f.do(ctx, fileio.Op{Name: "File.WriteOrdered", At: fileio.AtShared, Write: true, All: true}, b)
}

// SeekShared moves the shared pointer, as [FileHandle.Seek] does the individual one
// (MPI_File_seek_shared). All ranks must call it with the same arguments; it blocks until all have.
// An error of one rank is one of all. Errors to test for: ErrFile, ErrMode for a file opened with
// [FileSequential], ErrOption for another whence, ErrView for a place before the beginning, and
// [RankError].
func (f *FileHandle) SeekShared(ctx context.Context, offset int64, whence int) error {
	return f.recorded("File.SeekShared", func() error { return f.io.SeekShared(ctx, offset, whence) })
}

// PositionShared returns the shared pointer, in etypes (MPI_File_get_position_shared). It blocks
// until the rank that keeps the pointer has answered. Errors to test for: ErrFile, and [RankError]
// if that rank has failed.
func (f *FileHandle) PositionShared(ctx context.Context) (int64, error) {
	return f.io.PositionShared(ctx)
}
