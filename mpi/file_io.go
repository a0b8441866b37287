package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// ReadAt reads elements of the view from offset on (MPI-4.1, Section 14.4.2). It blocks until the
// elements have been read; until then buf belongs to the call. Errors to test for: ErrMode,
// ErrFile, ErrView for an offset that is negative or too large, those of package io/fs, and in
// atomic mode [RankError].
func (f *File[T]) ReadAt(ctx context.Context, offset int64, buf []T) (int, error) {
	return f.count(f.FileHandle.ReadAt(ctx, offset, f.items(buf)))
}

// WriteAt writes elements of the view from offset on (MPI_File_write_at). It blocks until the
// system has taken the elements; until then buf belongs to the call, which does not change it.
// Errors to test for: those of [File.ReadAt].
func (f *File[T]) WriteAt(ctx context.Context, offset int64, buf []T) (int, error) {
	return f.count(f.FileHandle.WriteAt(ctx, offset, f.items(buf)))
}

// Read reads from the individual pointer on, and moves it behind what it read. Nonblocking and
// collective forms move it behind what they were asked for, at once (MPI-4.1, Section 14.4.3). It
// blocks until the elements have been read; until then buf belongs to the call. Errors to test for:
// those of [File.ReadAt].
func (f *File[T]) Read(ctx context.Context, buf []T) (int, error) {
	return f.count(f.FileHandle.Read(ctx, f.items(buf)))
}

// Write writes from the individual pointer on, and moves it (MPI_File_write). It blocks until the
// system has taken the elements; until then buf belongs to the call, which does not change it.
// Errors to test for: those of [File.ReadAt].
func (f *File[T]) Write(ctx context.Context, buf []T) (int, error) {
	return f.count(f.FileHandle.Write(ctx, f.items(buf)))
}

// ReadAtAll is [File.ReadAt] that all ranks call, each with its own offset and buffer
// (MPI_File_read_at_all). What they access together is read in large pieces by some of them: see
// InfoNodes. It blocks until this rank has its elements; until then buf belongs to the call. Errors
// to test for: those of [File.ReadAt], and [RankError].
func (f *File[T]) ReadAtAll(ctx context.Context, offset int64, buf []T) (int, error) {
	return f.count(f.FileHandle.ReadAtAll(ctx, offset, f.items(buf)))
}

// WriteAtAll is [File.WriteAt] that all ranks call (MPI_File_write_at_all). It blocks until all
// elements of this rank are written; until then buf belongs to the call. Errors to test for: those
// of [File.WriteAt], and [RankError].
func (f *File[T]) WriteAtAll(ctx context.Context, offset int64, buf []T) (int, error) {
	return f.count(f.FileHandle.WriteAtAll(ctx, offset, f.items(buf)))
}

// ReadAll is [File.Read] that all ranks call (MPI_File_read_all). It blocks until this rank has its
// elements; until then buf belongs to the call. Errors to test for: those of [File.ReadAt], and
// [RankError].
func (f *File[T]) ReadAll(ctx context.Context, buf []T) (int, error) {
	return f.count(f.FileHandle.ReadAll(ctx, f.items(buf)))
}

// WriteAll is [File.Write] that all ranks call (MPI_File_write_all). It blocks until all elements
// of this rank are written; until then buf belongs to the call. Errors to test for: those of
// [File.WriteAt], and [RankError].
func (f *File[T]) WriteAll(ctx context.Context, buf []T) (int, error) {
	return f.count(f.FileHandle.WriteAll(ctx, f.items(buf)))
}

// IreadAt starts [File.ReadAt] (MPI_File_iread_at).
func (f *File[T]) IreadAt(offset int64, buf []T) (*Request, error) {
	return f.FileHandle.IreadAt(offset, f.items(buf))
}

// IwriteAt starts [File.WriteAt] (MPI_File_iwrite_at).
func (f *File[T]) IwriteAt(offset int64, buf []T) (*Request, error) {
	return f.FileHandle.IwriteAt(offset, f.items(buf))
}

// Iread starts [File.Read] (MPI_File_iread).
func (f *File[T]) Iread(buf []T) (*Request, error) {
	return f.FileHandle.Iread(f.items(buf))
}

// Iwrite starts [File.Write] (MPI_File_iwrite).
func (f *File[T]) Iwrite(buf []T) (*Request, error) {
	return f.FileHandle.Iwrite(f.items(buf))
}

// IreadAtAll starts [File.ReadAtAll] (MPI_File_iread_at_all).
func (f *File[T]) IreadAtAll(offset int64, buf []T) (*Request, error) {
	return f.FileHandle.IreadAtAll(offset, f.items(buf))
}

// IwriteAtAll starts [File.WriteAtAll] (MPI_File_iwrite_at_all).
func (f *File[T]) IwriteAtAll(offset int64, buf []T) (*Request, error) {
	return f.FileHandle.IwriteAtAll(offset, f.items(buf))
}

// IreadAll starts [File.ReadAll] (MPI_File_iread_all).
func (f *File[T]) IreadAll(buf []T) (*Request, error) {
	return f.FileHandle.IreadAll(f.items(buf))
}

// IwriteAll starts [File.WriteAll] (MPI_File_iwrite_all).
func (f *File[T]) IwriteAll(buf []T) (*Request, error) {
	return f.FileHandle.IwriteAll(f.items(buf))
}

// ReadAtType is [File.ReadAt] into count items of t in buf (MPI_File_read_at). It
// returns the bytes read. It blocks until that is done; until then buf belongs
// to the call. It returns ErrCount for items outside buf.
func (f *File[T]) ReadAtType(ctx context.Context, offset int64, buf []T, count int, t *Datatype) (int, error) {
	st, err := f.FileHandle.ReadAt(ctx, offset, Items(buf, count, t))
	return st.Bytes, err
}

// WriteAtType is [File.WriteAt] of count items of t in buf (MPI_File_write_at). It
// returns the bytes written. It blocks until that is done; until then buf
// belongs to the call. It returns ErrCount for items outside buf.
func (f *File[T]) WriteAtType(ctx context.Context, offset int64, buf []T, count int, t *Datatype) (int, error) {
	st, err := f.FileHandle.WriteAt(ctx, offset, Items(buf, count, t))
	return st.Bytes, err
}

// ReadAtAllType is [File.ReadAtType] that all ranks call (MPI_File_read_at_all). It
// blocks until this rank's part is done; until then buf belongs to the call.
func (f *File[T]) ReadAtAllType(ctx context.Context, offset int64, buf []T, count int, t *Datatype) (int, error) {
	st, err := f.FileHandle.ReadAtAll(ctx, offset, Items(buf, count, t))
	return st.Bytes, err
}

// WriteAtAllType is [File.WriteAtType] that all ranks call (MPI_File_write_at_all). It
// blocks until this rank's part is done; until then buf belongs to the call.
func (f *File[T]) WriteAtAllType(ctx context.Context, offset int64, buf []T, count int, t *Datatype) (int, error) {
	st, err := f.FileHandle.WriteAtAll(ctx, offset, Items(buf, count, t))
	return st.Bytes, err
}

// items returns the elements of buf as a Buffer.
func (f *File[T]) items(buf []T) Buffer {
	return Buffer{items: datatype.Items{Mem: datatype.Bytes(buf), Elem: f.elem.Size}}
}

// count returns how many elements an operation was about.
func (f *File[T]) count(st Status, err error) (int, error) { return st.Bytes / f.elem.Size, err }
