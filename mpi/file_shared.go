package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/fileio"
)

// ReadShared reads from the shared pointer on, and moves it by len(buf): reads of several ranks at
// a time do not overlap (MPI-4.1, Section 14.4.4). It blocks until the elements have been read;
// until then buf belongs to the call. Errors to test for: ErrMode, ErrFile, those of package io/fs,
// and [RankError] if the rank that keeps the pointer has failed.
func (f *File[T]) ReadShared(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx, fileio.Op{Name: "File.ReadShared", At: fileio.AtShared, Buf: datatype.Bytes(buf)})
}

// WriteShared writes from the shared pointer on, and moves it by len(buf) (MPI_File_write_shared).
// It blocks until the system has taken the elements; until then buf belongs to the call, which does
// not change it. Errors to test for: those of [File.ReadShared].
func (f *File[T]) WriteShared(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx, fileio.Op{Name: "File.WriteShared", At: fileio.AtShared, Buf: datatype.Bytes(buf), Write: true})
}

// IreadShared starts [File.ReadShared] (MPI_File_iread_shared). It does not block.
func (f *File[T]) IreadShared(buf []T) (*Request, error) {
	return f.f.start(fileio.Op{Name: "File.IreadShared", At: fileio.AtShared, Buf: datatype.Bytes(buf)})
}

// IwriteShared starts [File.WriteShared] (MPI_File_iwrite_shared). It does not block.
func (f *File[T]) IwriteShared(buf []T) (*Request, error) {
	return f.f.start(fileio.Op{Name: "File.IwriteShared", At: fileio.AtShared, Buf: datatype.Bytes(buf), Write: true})
}

// ReadOrdered is [File.ReadShared] that all ranks call: their elements follow one another in the
// file in the order of the ranks (MPI_File_read_ordered). It blocks until this rank has its
// elements; until then buf belongs to the call. Errors to test for: those of [File.ReadAt], and
// [RankError].
func (f *File[T]) ReadOrdered(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx, fileio.Op{Name: "File.ReadOrdered", At: fileio.AtShared, Buf: datatype.Bytes(buf), All: true})
}

// WriteOrdered is [File.WriteShared] that all ranks call, in the order of the ranks
// (MPI_File_write_ordered). It blocks until all elements of this rank are written; until then buf
// belongs to the call. Errors to test for: those of [File.WriteAt], and [RankError].
func (f *File[T]) WriteOrdered(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx,
		fileio.Op{Name: "File.WriteOrdered", At: fileio.AtShared, Buf: datatype.Bytes(buf), Write: true, All: true})
}

// SeekShared moves the shared pointer, as [File.Seek] does the individual one
// (MPI_File_seek_shared). All ranks must call it with the same arguments; it blocks until all have.
// An error of one rank is one of all. Errors to test for: ErrFile, ErrMode for a file opened with
// [FileSequential], ErrOption for another whence, ErrView for a place before the beginning, and
// [RankError].
func (f *File[T]) SeekShared(ctx context.Context, offset int64, whence int) error {
	return f.f.recorded("File.SeekShared", func() error { return f.f.io.SeekShared(ctx, offset, whence) })
}

// PositionShared returns the shared pointer, in elements (MPI_File_get_position_shared). It blocks
// until the rank that keeps the pointer has answered. Errors to test for: ErrFile, and [RankError]
// if that rank has failed.
func (f *File[T]) PositionShared(ctx context.Context) (int64, error) {
	return f.f.io.PositionShared(ctx)
}
