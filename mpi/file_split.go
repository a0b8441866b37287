package mpi

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/fileio"
)

// splitOp is a split collective operation that has begun.
type splitOp struct {
	end string // the name of its end
	r   *Request
}

// Split collective operations: Begin starts one, and the method without a
// buffer ends it (MPI-4.1, Section 14.4.5). A file has one at a time; the
// buffer must not be touched between.

// ReadAtAllBegin begins [File.ReadAtAll] (MPI_File_read_at_all_begin). It does not block.
func (f *File[T]) ReadAtAllBegin(offset int64, buf []T) error {
	return f.f.beginSplit("ReadAtAllEnd", fileio.Op{Name: "File.ReadAtAllBegin", At: fileio.AtOffset, Pos: offset, Buf: datatype.Bytes(buf), All: true})
}

// ReadAtAllEnd ends [File.ReadAtAllBegin] and returns the number of elements read
// (MPI_File_read_at_all_end). It blocks until they are there; until then the
// buffer of the begin call belongs to the operation.
func (f *File[T]) ReadAtAllEnd(ctx context.Context) (int, error) {
	return f.f.endSplit(ctx, "ReadAtAllEnd")
}

// WriteAtAllBegin begins [File.WriteAtAll] (MPI_File_write_at_all_begin). It does not block.
func (f *File[T]) WriteAtAllBegin(offset int64, buf []T) error {
	return f.f.beginSplit("WriteAtAllEnd", fileio.Op{Name: "File.WriteAtAllBegin", At: fileio.AtOffset, Pos: offset, Buf: datatype.Bytes(buf), Write: true, All: true})
}

// WriteAtAllEnd ends [File.WriteAtAllBegin] (MPI_File_write_at_all_end). It blocks until all is
// written; until then the buffer of the begin call belongs to the operation.
func (f *File[T]) WriteAtAllEnd(ctx context.Context) (int, error) {
	return f.f.endSplit(ctx, "WriteAtAllEnd")
}

// ReadAllBegin begins [File.ReadAll] (MPI_File_read_all_begin). It does not block.
func (f *File[T]) ReadAllBegin(buf []T) error {
	return f.f.beginSplit("ReadAllEnd", fileio.Op{Name: "File.ReadAllBegin", At: fileio.AtPointer, Buf: datatype.Bytes(buf), All: true})
}

// ReadAllEnd ends [File.ReadAllBegin] (MPI_File_read_all_end). It blocks until they are there;
// until then the buffer of the begin call belongs to the operation.
func (f *File[T]) ReadAllEnd(ctx context.Context) (int, error) {
	return f.f.endSplit(ctx, "ReadAllEnd")
}

// WriteAllBegin begins [File.WriteAll] (MPI_File_write_all_begin). It does not block.
func (f *File[T]) WriteAllBegin(buf []T) error {
	return f.f.beginSplit("WriteAllEnd", fileio.Op{Name: "File.WriteAllBegin", At: fileio.AtPointer, Buf: datatype.Bytes(buf), Write: true, All: true})
}

// WriteAllEnd ends [File.WriteAllBegin] (MPI_File_write_all_end). It blocks until all is written;
// until then the buffer of the begin call belongs to the operation.
func (f *File[T]) WriteAllEnd(ctx context.Context) (int, error) {
	return f.f.endSplit(ctx, "WriteAllEnd")
}

// ReadOrderedBegin begins [File.ReadOrdered] (MPI_File_read_ordered_begin). It does not block.
func (f *File[T]) ReadOrderedBegin(buf []T) error {
	return f.f.beginSplit("ReadOrderedEnd", fileio.Op{Name: "File.ReadOrderedBegin", At: fileio.AtShared, Buf: datatype.Bytes(buf), All: true})
}

// ReadOrderedEnd ends [File.ReadOrderedBegin] (MPI_File_read_ordered_end). It blocks until they are
// there; until then the buffer of the begin call belongs to the operation.
func (f *File[T]) ReadOrderedEnd(ctx context.Context) (int, error) {
	return f.f.endSplit(ctx, "ReadOrderedEnd")
}

// WriteOrderedBegin begins [File.WriteOrdered] (MPI_File_write_ordered_begin). It does not block.
func (f *File[T]) WriteOrderedBegin(buf []T) error {
	return f.f.beginSplit("WriteOrderedEnd", fileio.Op{Name: "File.WriteOrderedBegin", At: fileio.AtShared, Buf: datatype.Bytes(buf), Write: true, All: true})
}

// WriteOrderedEnd ends [File.WriteOrderedBegin] (MPI_File_write_ordered_end). It blocks until all is
// written; until then the buffer of the begin call belongs to the operation.
func (f *File[T]) WriteOrderedEnd(ctx context.Context) (int, error) {
	return f.f.endSplit(ctx, "WriteOrderedEnd")
}

func (f *file) beginSplit(end string, op fileio.Op) error {
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
	st, err := s.r.request.Wait(ctx)
	f.of.leave(t, "File."+name, NoPeer, 0, st.Bytes, err)
	if err != nil && !s.r.request.Finished.Load() {
		return 0, err // it goes on
	}
	f.mu.Lock()
	f.split = nil
	f.mu.Unlock()
	return st.Bytes / f.elem.Size, err
}
