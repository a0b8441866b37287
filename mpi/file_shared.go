package mpi

import "context"

// ReadShared reads from the shared pointer on, and moves it by len(buf): reads of several ranks at
// a time do not overlap (MPI-4.1, Section 14.4.4). It blocks until the elements have been read;
// until then buf belongs to the call. Errors to test for: ErrMode, ErrFile, those of package io/fs,
// and [RankError] if the rank that keeps the pointer has failed.
func (f *File[T]) ReadShared(ctx context.Context, buf []T) (int, error) {
	return f.count(f.FileHandle.ReadShared(ctx, f.items(buf)))
}

// WriteShared writes from the shared pointer on, and moves it by len(buf) (MPI_File_write_shared).
// It blocks until the system has taken the elements; until then buf belongs to the call, which does
// not change it. Errors to test for: those of [File.ReadShared].
func (f *File[T]) WriteShared(ctx context.Context, buf []T) (int, error) {
	return f.count(f.FileHandle.WriteShared(ctx, f.items(buf)))
}

// IreadShared starts [File.ReadShared] (MPI_File_iread_shared). It does not block.
func (f *File[T]) IreadShared(buf []T) (*Request, error) {
	return f.FileHandle.IreadShared(f.items(buf))
}

// IwriteShared starts [File.WriteShared] (MPI_File_iwrite_shared). It does not block.
func (f *File[T]) IwriteShared(buf []T) (*Request, error) {
	return f.FileHandle.IwriteShared(f.items(buf))
}

// ReadOrdered is [File.ReadShared] that all ranks call: their elements follow one another in the
// file in the order of the ranks (MPI_File_read_ordered). It blocks until this rank has its
// elements; until then buf belongs to the call. Errors to test for: those of [File.ReadAt], and
// [RankError].
func (f *File[T]) ReadOrdered(ctx context.Context, buf []T) (int, error) {
	return f.count(f.FileHandle.ReadOrdered(ctx, f.items(buf)))
}

// WriteOrdered is [File.WriteShared] that all ranks call, in the order of the ranks
// (MPI_File_write_ordered). It blocks until all elements of this rank are written; until then buf
// belongs to the call. Errors to test for: those of [File.WriteAt], and [RankError].
func (f *File[T]) WriteOrdered(ctx context.Context, buf []T) (int, error) {
	return f.count(f.FileHandle.WriteOrdered(ctx, f.items(buf)))
}
