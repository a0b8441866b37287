package mpi

import (
	"context"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/fileio"
)

// ReadAt reads elements of the view from offset on (MPI-4.1, Section 14.4.2). It blocks until the
// elements have been read; until then buf belongs to the call. Errors to test for: ErrMode,
// ErrFile, ErrView for an offset that is negative or too large, those of package io/fs, and in
// atomic mode [RankError].
func (f *File[T]) ReadAt(ctx context.Context, offset int64, buf []T) (int, error) {
	return f.f.call(ctx, fileio.Op{Name: "File.ReadAt", At: fileio.AtOffset, Pos: offset, Buf: datatype.Bytes(buf)})
}

// WriteAt writes elements of the view from offset on (MPI_File_write_at). It blocks until the
// system has taken the elements; until then buf belongs to the call, which does not change it.
// Errors to test for: those of [File.ReadAt].
func (f *File[T]) WriteAt(ctx context.Context, offset int64, buf []T) (int, error) {
	return f.f.call(ctx,
		fileio.Op{Name: "File.WriteAt", At: fileio.AtOffset, Pos: offset, Buf: datatype.Bytes(buf), Write: true})
}

// Read reads from the individual pointer on, and moves it behind what it read. Nonblocking and
// collective forms move it behind what they were asked for, at once (MPI-4.1, Section 14.4.3). It
// blocks until the elements have been read; until then buf belongs to the call. Errors to test for:
// those of [File.ReadAt].
func (f *File[T]) Read(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx, fileio.Op{Name: "File.Read", At: fileio.AtPointer, Buf: datatype.Bytes(buf)})
}

// Write writes from the individual pointer on, and moves it (MPI_File_write). It blocks until the
// system has taken the elements; until then buf belongs to the call, which does not change it.
// Errors to test for: those of [File.ReadAt].
func (f *File[T]) Write(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx, fileio.Op{Name: "File.Write", At: fileio.AtPointer, Buf: datatype.Bytes(buf), Write: true})
}

// ReadAtAll is [File.ReadAt] that all ranks call, each with its own offset and buffer
// (MPI_File_read_at_all). What they access together is read in large pieces by some of them: see
// InfoNodes. It blocks until this rank has its elements; until then buf belongs to the call. Errors
// to test for: those of [File.ReadAt], and [RankError].
func (f *File[T]) ReadAtAll(ctx context.Context, offset int64, buf []T) (int, error) {
	return f.f.call(ctx,
		fileio.Op{Name: "File.ReadAtAll", At: fileio.AtOffset, Pos: offset, Buf: datatype.Bytes(buf), All: true})
}

// WriteAtAll is [File.WriteAt] that all ranks call (MPI_File_write_at_all). It blocks until all
// elements of this rank are written; until then buf belongs to the call. Errors to test for: those
// of [File.WriteAt], and [RankError].
func (f *File[T]) WriteAtAll(ctx context.Context, offset int64, buf []T) (int, error) {
	return f.f.call(ctx, fileio.Op{Name: "File.WriteAtAll", At: fileio.AtOffset, Pos: offset, Buf: datatype.Bytes(buf),
		Write: true, All: true})
}

// ReadAll is [File.Read] that all ranks call (MPI_File_read_all). It blocks until this rank has its
// elements; until then buf belongs to the call. Errors to test for: those of [File.ReadAt], and
// [RankError].
func (f *File[T]) ReadAll(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx, fileio.Op{Name: "File.ReadAll", At: fileio.AtPointer, Buf: datatype.Bytes(buf), All: true})
}

// WriteAll is [File.Write] that all ranks call (MPI_File_write_all). It blocks until all elements
// of this rank are written; until then buf belongs to the call. Errors to test for: those of
// [File.WriteAt], and [RankError].
func (f *File[T]) WriteAll(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx,
		fileio.Op{Name: "File.WriteAll", At: fileio.AtPointer, Buf: datatype.Bytes(buf), Write: true, All: true})
}

// IreadAt starts [File.ReadAt] (MPI_File_iread_at).
func (f *File[T]) IreadAt(offset int64, buf []T) (*Request, error) {
	return f.f.start(fileio.Op{Name: "File.IreadAt", At: fileio.AtOffset, Pos: offset, Buf: datatype.Bytes(buf)})
}

// IwriteAt starts [File.WriteAt] (MPI_File_iwrite_at).
func (f *File[T]) IwriteAt(offset int64, buf []T) (*Request, error) {
	return f.f.start(fileio.Op{Name: "File.IwriteAt", At: fileio.AtOffset, Pos: offset, Buf: datatype.Bytes(buf),
		Write: true})
}

// Iread starts [File.Read] (MPI_File_iread).
func (f *File[T]) Iread(buf []T) (*Request, error) {
	return f.f.start(fileio.Op{Name: "File.Iread", At: fileio.AtPointer, Buf: datatype.Bytes(buf)})
}

// Iwrite starts [File.Write] (MPI_File_iwrite).
func (f *File[T]) Iwrite(buf []T) (*Request, error) {
	return f.f.start(fileio.Op{Name: "File.Iwrite", At: fileio.AtPointer, Buf: datatype.Bytes(buf), Write: true})
}

// IreadAtAll starts [File.ReadAtAll] (MPI_File_iread_at_all).
func (f *File[T]) IreadAtAll(offset int64, buf []T) (*Request, error) {
	return f.f.start(fileio.Op{Name: "File.IreadAtAll", At: fileio.AtOffset, Pos: offset, Buf: datatype.Bytes(buf),
		All: true})
}

// IwriteAtAll starts [File.WriteAtAll] (MPI_File_iwrite_at_all).
func (f *File[T]) IwriteAtAll(offset int64, buf []T) (*Request, error) {
	return f.f.start(fileio.Op{Name: "File.IwriteAtAll", At: fileio.AtOffset, Pos: offset, Buf: datatype.Bytes(buf),
		Write: true, All: true})
}

// IreadAll starts [File.ReadAll] (MPI_File_iread_all).
func (f *File[T]) IreadAll(buf []T) (*Request, error) {
	return f.f.start(fileio.Op{Name: "File.IreadAll", At: fileio.AtPointer, Buf: datatype.Bytes(buf), All: true})
}

// IwriteAll starts [File.WriteAll] (MPI_File_iwrite_all).
func (f *File[T]) IwriteAll(buf []T) (*Request, error) {
	return f.f.start(fileio.Op{Name: "File.IwriteAll", At: fileio.AtPointer, Buf: datatype.Bytes(buf), Write: true,
		All: true})
}

// ReadAtType is [File.ReadAt] into count items of t in buf (MPI_File_read_at). It
// returns the bytes read. It blocks until that is done; until then buf belongs
// to the call. It returns ErrCount for items outside buf.
func (f *File[T]) ReadAtType(ctx context.Context, offset int64, buf []T, count int, t *Datatype) (int, error) {
	return f.f.typed(ctx, fileio.Op{Name: "File.ReadAtType", At: fileio.AtOffset, Pos: offset}, datatype.Bytes(buf),
		count, t.typ())
}

// WriteAtType is [File.WriteAt] of count items of t in buf (MPI_File_write_at). It
// returns the bytes written. It blocks until that is done; until then buf
// belongs to the call. It returns ErrCount for items outside buf.
func (f *File[T]) WriteAtType(ctx context.Context, offset int64, buf []T, count int, t *Datatype) (int, error) {
	return f.f.typed(ctx, fileio.Op{Name: "File.WriteAtType", At: fileio.AtOffset, Pos: offset, Write: true},
		datatype.Bytes(buf), count, t.typ())
}

// ReadAtAllType is [File.ReadAtType] that all ranks call (MPI_File_read_at_all). It
// blocks until this rank's part is done; until then buf belongs to the call.
func (f *File[T]) ReadAtAllType(ctx context.Context, offset int64, buf []T, count int, t *Datatype) (int, error) {
	return f.f.typed(ctx, fileio.Op{Name: "File.ReadAtAllType", At: fileio.AtOffset, Pos: offset, All: true},
		datatype.Bytes(buf), count, t.typ())
}

// WriteAtAllType is [File.WriteAtType] that all ranks call (MPI_File_write_at_all). It
// blocks until this rank's part is done; until then buf belongs to the call.
func (f *File[T]) WriteAtAllType(ctx context.Context, offset int64, buf []T, count int, t *Datatype) (int, error) {
	return f.f.typed(ctx, fileio.Op{Name: "File.WriteAtAllType", At: fileio.AtOffset, Pos: offset, Write: true,
		All: true}, datatype.Bytes(buf), count, t.typ())
}

// call performs an operation and returns how many elements it has done.
func (f *file) call(ctx context.Context, op fileio.Op) (int, error) {
	t := f.of.enter()
	n, err := f.io.Do(ctx, op)
	f.of.leave(t, op.Name, NoPeer, 0, n, err)
	return n / f.elem.Size, err
}

// start starts an operation.
func (f *file) start(op fileio.Op) (*Request, error) {
	t := f.of.enter()
	run, err := f.io.Start(op)
	f.of.leave(t, op.Name, NoPeer, 0, len(op.Buf), err)
	if err != nil {
		return nil, err
	}
	return goRequest(f.c.w, func() (Status, error) {
		n, err := run()
		return Status{Source: f.c.comm.Rank, Bytes: n}, err
	}), nil
}

// typed performs an operation on items of a datatype.
func (f *file) typed(ctx context.Context, op fileio.Op, buf []byte, count int, t *datatype.Type) (n int, err error) {
	start := f.of.enter()
	defer func() { f.of.leave(start, op.Name, NoPeer, 0, n, err) }()
	size, err := t.Span(count, len(buf))
	if err != nil {
		if op.All { // the others wait
			op.Bad = err
			_, err = f.io.Do(ctx, op)
		}
		return 0, err
	}
	s := bufpool.Get(size)
	defer s.Put()
	if op.Buf = s.Bytes(size); op.Write {
		t.Pack(op.Buf, buf, count)
	}
	n, err = f.io.Do(ctx, op)
	if !op.Write {
		t.Unpack(buf, op.Buf[:n], count)
	}
	return n, err
}
