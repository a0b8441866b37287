package mpi

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// ReadShared reads from the shared pointer on, and moves it by len(buf): what
// several ranks read with it at a time is apart (MPI-4.1, Section 14.4.4). It
// blocks until the elements have been read; until then buf belongs to the call.
// Errors to test for: ErrMode, ErrFile, those of package io/fs.
func (f *File[T]) ReadShared(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx, fileOp{name: "File.ReadShared", at: atShared, b: datatype.Bytes(buf)})
}

// WriteShared writes from the shared pointer on, and moves it
// (MPI_File_write_shared). It blocks until the system has taken the elements;
// until then buf belongs to the call, which does not change it. Errors to test
// for: ErrMode, ErrFile, those of package io/fs.
func (f *File[T]) WriteShared(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx, fileOp{name: "File.WriteShared", at: atShared, b: datatype.Bytes(buf), write: true})
}

// IreadShared starts ReadShared (MPI_File_iread_shared).
func (f *File[T]) IreadShared(buf []T) (*Request, error) {
	return f.f.start(fileOp{name: "File.IreadShared", at: atShared, b: datatype.Bytes(buf)})
}

// IwriteShared starts WriteShared (MPI_File_iwrite_shared).
func (f *File[T]) IwriteShared(buf []T) (*Request, error) {
	return f.f.start(fileOp{name: "File.IwriteShared", at: atShared, b: datatype.Bytes(buf), write: true})
}

// ReadOrdered is ReadShared that all ranks call: what they read lies in the
// file in the order of the ranks (MPI_File_read_ordered). It blocks until this
// rank has its elements; until then buf belongs to the call. Errors are those
// of ReadAt, and RankError.
func (f *File[T]) ReadOrdered(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx, fileOp{name: "File.ReadOrdered", at: atShared, b: datatype.Bytes(buf), all: true})
}

// WriteOrdered is WriteShared that all ranks call, in the order of the ranks
// (MPI_File_write_ordered). It blocks until all elements of this rank are
// written; until then buf belongs to the call. Errors are those of WriteAt, and
// RankError.
func (f *File[T]) WriteOrdered(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx, fileOp{name: "File.WriteOrdered", at: atShared, b: datatype.Bytes(buf), write: true, all: true})
}

// SeekShared moves the shared pointer, as Seek does the individual one
// (MPI_File_seek_shared). All ranks must call it with the same arguments. It
// waits for the rank that keeps the pointer: RankError if that is gone.
func (f *File[T]) SeekShared(ctx context.Context, offset int64, whence int) error {
	t := f.f.of.enter()
	err := f.f.seekShared(ctx, offset, whence)
	f.f.of.leave(t, "File.SeekShared", NoPeer, 0, 0, err)
	return err
}

func (f *file) seekShared(ctx context.Context, offset int64, whence int) error {
	if err := f.usable(); err != nil {
		return err
	}
	return f.inTurn(ctx, func() error {
		var err error
		if f.c.rank == 0 {
			var pos int64
			if pos, err = f.shared.FetchAndOp(ctx, 0, 0, 0, NoOp); err == nil {
				v, _ := f.now()
				if pos, err = f.seek(v, offset, whence, pos); err == nil {
					_, err = f.shared.FetchAndOp(ctx, pos, 0, 0, Replace)
				}
			}
		}
		return f.agree(ctx, err)
	})
}

// PositionShared returns the shared pointer, in elements
// (MPI_File_get_position_shared). It waits for the rank that keeps the pointer:
// RankError if that is gone.
func (f *File[T]) PositionShared(ctx context.Context) (int64, error) {
	if err := f.f.usable(); err != nil {
		return 0, err
	}
	return f.f.shared.FetchAndOp(ctx, 0, 0, 0, NoOp)
}

// splitOp is a split collective operation that has begun.
type splitOp struct {
	end string // the name of its end
	r   *Request
}

// Split collective operations: Begin starts one, and the method without a
// buffer ends it (MPI-4.1, Section 14.4.5). A file has one at a time; the
// buffer must not be touched between.

// ReadAtAllBegin begins ReadAtAll (MPI_File_read_at_all_begin).
func (f *File[T]) ReadAtAllBegin(offset int64, buf []T) error {
	return f.f.beginSplit("ReadAtAllEnd", fileOp{name: "File.ReadAtAllBegin", at: atOffset, pos: offset, b: datatype.Bytes(buf), all: true})
}

// ReadAtAllEnd ends it and returns the number of elements read
// (MPI_File_read_at_all_end). It blocks until they are there; until then the
// buffer of the begin call belongs to the operation.
func (f *File[T]) ReadAtAllEnd(ctx context.Context) (int, error) {
	return f.f.endSplit(ctx, "ReadAtAllEnd")
}

// WriteAtAllBegin begins WriteAtAll (MPI_File_write_at_all_begin).
func (f *File[T]) WriteAtAllBegin(offset int64, buf []T) error {
	return f.f.beginSplit("WriteAtAllEnd", fileOp{name: "File.WriteAtAllBegin", at: atOffset, pos: offset, b: datatype.Bytes(buf), write: true, all: true})
}

// WriteAtAllEnd ends it (MPI_File_write_at_all_end). It blocks until all is
// written; until then the buffer of the begin call belongs to the operation.
func (f *File[T]) WriteAtAllEnd(ctx context.Context) (int, error) {
	return f.f.endSplit(ctx, "WriteAtAllEnd")
}

// ReadAllBegin begins ReadAll (MPI_File_read_all_begin).
func (f *File[T]) ReadAllBegin(buf []T) error {
	return f.f.beginSplit("ReadAllEnd", fileOp{name: "File.ReadAllBegin", at: atPointer, b: datatype.Bytes(buf), all: true})
}

// ReadAllEnd ends it (MPI_File_read_all_end). It blocks until they are there;
// until then the buffer of the begin call belongs to the operation.
func (f *File[T]) ReadAllEnd(ctx context.Context) (int, error) {
	return f.f.endSplit(ctx, "ReadAllEnd")
}

// WriteAllBegin begins WriteAll (MPI_File_write_all_begin).
func (f *File[T]) WriteAllBegin(buf []T) error {
	return f.f.beginSplit("WriteAllEnd", fileOp{name: "File.WriteAllBegin", at: atPointer, b: datatype.Bytes(buf), write: true, all: true})
}

// WriteAllEnd ends it (MPI_File_write_all_end). It blocks until all is written;
// until then the buffer of the begin call belongs to the operation.
func (f *File[T]) WriteAllEnd(ctx context.Context) (int, error) {
	return f.f.endSplit(ctx, "WriteAllEnd")
}

// ReadOrderedBegin begins ReadOrdered (MPI_File_read_ordered_begin).
func (f *File[T]) ReadOrderedBegin(buf []T) error {
	return f.f.beginSplit("ReadOrderedEnd", fileOp{name: "File.ReadOrderedBegin", at: atShared, b: datatype.Bytes(buf), all: true})
}

// ReadOrderedEnd ends it (MPI_File_read_ordered_end). It blocks until they are
// there; until then the buffer of the begin call belongs to the operation.
func (f *File[T]) ReadOrderedEnd(ctx context.Context) (int, error) {
	return f.f.endSplit(ctx, "ReadOrderedEnd")
}

// WriteOrderedBegin begins WriteOrdered (MPI_File_write_ordered_begin).
func (f *File[T]) WriteOrderedBegin(buf []T) error {
	return f.f.beginSplit("WriteOrderedEnd", fileOp{name: "File.WriteOrderedBegin", at: atShared, b: datatype.Bytes(buf), write: true, all: true})
}

// WriteOrderedEnd ends it (MPI_File_write_ordered_end). It blocks until all is
// written; until then the buffer of the begin call belongs to the operation.
func (f *File[T]) WriteOrderedEnd(ctx context.Context) (int, error) {
	return f.f.endSplit(ctx, "WriteOrderedEnd")
}

func (f *file) beginSplit(end string, op fileOp) error {
	s := &splitOp{end: end}
	f.mu.Lock()
	busy := f.split
	if busy == nil {
		f.split = s
	}
	f.mu.Unlock()
	if busy != nil {
		return fmt.Errorf("%w: %s has not been called", ErrFile, busy.end)
	}
	r, err := f.start(op)
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.r = r; err != nil {
		f.split = nil
	}
	return err
}

func (f *file) endSplit(ctx context.Context, name string) (int, error) {
	f.mu.Lock()
	s := f.split
	ok := s != nil && s.end == name && s.r != nil
	f.mu.Unlock()
	if !ok {
		return 0, fmt.Errorf("%w: %s without its beginning", ErrFile, name)
	}
	t := f.of.enter()
	st, err := s.r.wait(ctx)
	f.of.leave(t, "File."+name, NoPeer, 0, st.Bytes, err)
	if err != nil && !s.r.done.Load() {
		return 0, err // it goes on
	}
	f.mu.Lock()
	f.split = nil
	f.mu.Unlock()
	return st.Bytes / f.elem.Size, err
}
