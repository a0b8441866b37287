package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/fileio"
)

// ReadAt reads what b describes from etype offset of the view on (MPI_File_read_at). It blocks until
// it has been read; until then the memory of b belongs to the call. Errors to test for: ErrMode, ErrFile,
// ErrView for an offset that is negative or too large, ErrCount for data that is no whole number of
// etypes, ErrConversion, those of package io/fs, and in atomic mode [RankError].
func (f *FileHandle) ReadAt(ctx context.Context, offset int64, b Buffer) (Status, error) {
	return f.do(ctx, fileio.Op{Name: "File.ReadAt", At: fileio.AtOffset, Pos: offset}, b)
}

// WriteAt writes what b describes from etype offset of the view on (MPI_File_write_at). It blocks until
// the system has taken it; until then the memory of b belongs to the call. Errors to test for: ErrMode, ErrFile,
// ErrView for an offset that is negative or too large, ErrCount for data that is no whole number of
// etypes, ErrConversion, those of package io/fs, and in atomic mode [RankError].
func (f *FileHandle) WriteAt(ctx context.Context, offset int64, b Buffer) (Status, error) {
	return f.do(ctx, fileio.Op{Name: "File.WriteAt", At: fileio.AtOffset, Pos: offset, Write: true}, b)
}

// Read reads from the individual pointer on, and moves it behind what it read (MPI_File_read). It
// blocks, and returns errors, as [FileHandle.ReadAt].
func (f *FileHandle) Read(ctx context.Context, b Buffer) (Status, error) {
	return f.do(ctx, fileio.Op{Name: "File.Read", At: fileio.AtPointer}, b)
}

// Write writes from the individual pointer on, and moves it behind what it wrote (MPI_File_write). It
// blocks, and returns errors, as [FileHandle.WriteAt].
func (f *FileHandle) Write(ctx context.Context, b Buffer) (Status, error) {
	return f.do(ctx, fileio.Op{Name: "File.Write", At: fileio.AtPointer, Write: true}, b)
}

// ReadAtAll is [FileHandle.ReadAt] that all ranks call, each with its own arguments (MPI_File_read_at_all).
// It blocks until the part of this rank is done; until then the memory of b belongs to the call. Errors
// to test for: those of [FileHandle.ReadAt], and [RankError].
func (f *FileHandle) ReadAtAll(ctx context.Context, offset int64, b Buffer) (Status, error) {
	return f.do(ctx, fileio.Op{Name: "File.ReadAtAll", At: fileio.AtOffset, Pos: offset, All: true}, b)
}

// WriteAtAll is [FileHandle.WriteAt] that all ranks call, each with its own arguments (MPI_File_write_at_all).
// It blocks until the part of this rank is done; until then the memory of b belongs to the call. Errors
// to test for: those of [FileHandle.WriteAt], and [RankError].
func (f *FileHandle) WriteAtAll(ctx context.Context, offset int64, b Buffer) (Status, error) {
	return f.do(ctx, fileio.Op{Name: "File.WriteAtAll", At: fileio.AtOffset, Pos: offset, Write: true, All: true}, b)
}

// ReadAll is [FileHandle.Read] that all ranks call, each with its own arguments (MPI_File_read_all).
// It blocks until the part of this rank is done; until then the memory of b belongs to the call. Errors
// to test for: those of [FileHandle.Read], and [RankError].
func (f *FileHandle) ReadAll(ctx context.Context, b Buffer) (Status, error) {
	return f.do(ctx, fileio.Op{Name: "File.ReadAll", At: fileio.AtPointer, All: true}, b)
}

// WriteAll is [FileHandle.Write] that all ranks call, each with its own arguments (MPI_File_write_all).
// It blocks until the part of this rank is done; until then the memory of b belongs to the call. Errors
// to test for: those of [FileHandle.Write], and [RankError].
func (f *FileHandle) WriteAll(ctx context.Context, b Buffer) (Status, error) {
	return f.do(ctx, fileio.Op{Name: "File.WriteAll", At: fileio.AtPointer, Write: true, All: true}, b)
}

// IreadAt starts [FileHandle.ReadAt] (MPI_File_iread_at). It does not block.
func (f *FileHandle) IreadAt(offset int64, b Buffer) (*Request, error) {
	return f.start(fileio.Op{Name: "File.IreadAt", At: fileio.AtOffset, Pos: offset}, b)
}

// IwriteAt starts [FileHandle.WriteAt] (MPI_File_iwrite_at). It does not block.
func (f *FileHandle) IwriteAt(offset int64, b Buffer) (*Request, error) {
	return f.start(fileio.Op{Name: "File.IwriteAt", At: fileio.AtOffset, Pos: offset, Write: true}, b)
}

// Iread starts [FileHandle.Read] (MPI_File_iread). It does not block. The pointer it uses is
// moved behind what it was asked for at once.
func (f *FileHandle) Iread(b Buffer) (*Request, error) {
	return f.start(fileio.Op{Name: "File.Iread", At: fileio.AtPointer}, b)
}

// Iwrite starts [FileHandle.Write] (MPI_File_iwrite). It does not block. The pointer it uses is
// moved behind what it was asked for at once.
func (f *FileHandle) Iwrite(b Buffer) (*Request, error) {
	return f.start(fileio.Op{Name: "File.Iwrite", At: fileio.AtPointer, Write: true}, b)
}

// IreadAtAll starts [FileHandle.ReadAtAll] (MPI_File_iread_at_all). It does not block.
func (f *FileHandle) IreadAtAll(offset int64, b Buffer) (*Request, error) {
	return f.start(fileio.Op{Name: "File.IreadAtAll", At: fileio.AtOffset, Pos: offset, All: true}, b)
}

// IwriteAtAll starts [FileHandle.WriteAtAll] (MPI_File_iwrite_at_all). It does not block.
func (f *FileHandle) IwriteAtAll(offset int64, b Buffer) (*Request, error) {
	return f.start(fileio.Op{Name: "File.IwriteAtAll", At: fileio.AtOffset, Pos: offset, Write: true, All: true}, b)
}

// IreadAll starts [FileHandle.ReadAll] (MPI_File_iread_all). It does not block. The pointer it uses is
// moved behind what it was asked for at once.
func (f *FileHandle) IreadAll(b Buffer) (*Request, error) {
	return f.start(fileio.Op{Name: "File.IreadAll", At: fileio.AtPointer, All: true}, b)
}

// IwriteAll starts [FileHandle.WriteAll] (MPI_File_iwrite_all). It does not block. The pointer it uses is
// moved behind what it was asked for at once.
func (f *FileHandle) IwriteAll(b Buffer) (*Request, error) {
	return f.start(fileio.Op{Name: "File.IwriteAll", At: fileio.AtPointer, Write: true, All: true}, b)
}

// do performs an operation on what b describes.
func (f *FileHandle) do(ctx context.Context, op fileio.Op, b Buffer) (Status, error) {
	t := f.of.enter()
	op.Data, op.Bad = b.items, b.err
	n, err := f.io.Do(ctx, op)
	f.of.leave(t, op.Name, NoPeer, 0, n, err)
	return Status{Source: f.c.comm.Rank, Bytes: n}, err
}

// start starts an operation on what b describes.
func (f *FileHandle) start(op fileio.Op, b Buffer) (*Request, error) {
	t := f.of.enter()
	op.Data, op.Bad = b.items, b.err
	run, err := f.io.Start(op)
	f.of.leave(t, op.Name, NoPeer, 0, b.Len(), err)
	if err != nil {
		return nil, err
	}
	return goRequest(f.c.w, func() (Status, error) {
		n, err := run()
		return Status{Source: f.c.comm.Rank, Bytes: n}, err
	}), nil
}
