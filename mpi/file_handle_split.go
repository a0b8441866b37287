package mpi

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/fileio"
)

// splitOp is a split collective operation that has begun.
type splitOp struct {
	end string // the name of its end
	r   *Request
}

// ReadAtAllBegin begins [FileHandle.ReadAtAll] (MPI_File_read_at_all_begin). It does not block. A file has one
// split operation at a time; until [FileHandle.ReadAtAllEnd] has returned, the memory of b belongs to it.
func (f *FileHandle) ReadAtAllBegin(offset int64, b Buffer) error {
	return f.beginSplit("ReadAtAllEnd", fileio.Op{Name: "File.ReadAtAllBegin", At: fileio.AtOffset, Pos: offset, All: true}, b)
}

// ReadAtAllEnd ends [FileHandle.ReadAtAllBegin] (MPI_File_read_at_all_end). It blocks until that is done. It
// returns ErrFile if it was not begun, and the errors of [FileHandle.ReadAtAll].
func (f *FileHandle) ReadAtAllEnd(ctx context.Context) (Status, error) {
	return f.endSplit(ctx, "ReadAtAllEnd")
}

// WriteAtAllBegin begins [FileHandle.WriteAtAll] (MPI_File_write_at_all_begin). It does not block. A file has one
// split operation at a time; until [FileHandle.WriteAtAllEnd] has returned, the memory of b belongs to it.
func (f *FileHandle) WriteAtAllBegin(offset int64, b Buffer) error {
	return f.beginSplit("WriteAtAllEnd", fileio.Op{Name: "File.WriteAtAllBegin", At: fileio.AtOffset, Pos: offset, Write: true, All: true}, b)
}

// WriteAtAllEnd ends [FileHandle.WriteAtAllBegin] (MPI_File_write_at_all_end). It blocks until that is done. It
// returns ErrFile if it was not begun, and the errors of [FileHandle.WriteAtAll].
func (f *FileHandle) WriteAtAllEnd(ctx context.Context) (Status, error) {
	return f.endSplit(ctx, "WriteAtAllEnd")
}

// ReadAllBegin begins [FileHandle.ReadAll] (MPI_File_read_all_begin). It does not block. A file has one
// split operation at a time; until [FileHandle.ReadAllEnd] has returned, the memory of b belongs to it.
func (f *FileHandle) ReadAllBegin(b Buffer) error {
	return f.beginSplit("ReadAllEnd", fileio.Op{Name: "File.ReadAllBegin", At: fileio.AtPointer, All: true}, b)
}

// ReadAllEnd ends [FileHandle.ReadAllBegin] (MPI_File_read_all_end). It blocks until that is done. It
// returns ErrFile if it was not begun, and the errors of [FileHandle.ReadAll].
func (f *FileHandle) ReadAllEnd(ctx context.Context) (Status, error) {
	return f.endSplit(ctx, "ReadAllEnd")
}

// WriteAllBegin begins [FileHandle.WriteAll] (MPI_File_write_all_begin). It does not block. A file has one
// split operation at a time; until [FileHandle.WriteAllEnd] has returned, the memory of b belongs to it.
func (f *FileHandle) WriteAllBegin(b Buffer) error {
	return f.beginSplit("WriteAllEnd", fileio.Op{Name: "File.WriteAllBegin", At: fileio.AtPointer, Write: true, All: true}, b)
}

// WriteAllEnd ends [FileHandle.WriteAllBegin] (MPI_File_write_all_end). It blocks until that is done. It
// returns ErrFile if it was not begun, and the errors of [FileHandle.WriteAll].
func (f *FileHandle) WriteAllEnd(ctx context.Context) (Status, error) {
	return f.endSplit(ctx, "WriteAllEnd")
}

// ReadOrderedBegin begins [FileHandle.ReadOrdered] (MPI_File_read_ordered_begin). It does not block. A file has one
// split operation at a time; until [FileHandle.ReadOrderedEnd] has returned, the memory of b belongs to it.
func (f *FileHandle) ReadOrderedBegin(b Buffer) error {
	return f.beginSplit("ReadOrderedEnd", fileio.Op{Name: "File.ReadOrderedBegin", At: fileio.AtShared, All: true}, b)
}

// ReadOrderedEnd ends [FileHandle.ReadOrderedBegin] (MPI_File_read_ordered_end). It blocks until that is done. It
// returns ErrFile if it was not begun, and the errors of [FileHandle.ReadOrdered].
func (f *FileHandle) ReadOrderedEnd(ctx context.Context) (Status, error) {
	return f.endSplit(ctx, "ReadOrderedEnd")
}

// WriteOrderedBegin begins [FileHandle.WriteOrdered] (MPI_File_write_ordered_begin). It does not block. A file has one
// split operation at a time; until [FileHandle.WriteOrderedEnd] has returned, the memory of b belongs to it.
func (f *FileHandle) WriteOrderedBegin(b Buffer) error {
	return f.beginSplit("WriteOrderedEnd", fileio.Op{Name: "File.WriteOrderedBegin", At: fileio.AtShared, Write: true, All: true}, b)
}

// WriteOrderedEnd ends [FileHandle.WriteOrderedBegin] (MPI_File_write_ordered_end). It blocks until that is done. It
// returns ErrFile if it was not begun, and the errors of [FileHandle.WriteOrdered].
func (f *FileHandle) WriteOrderedEnd(ctx context.Context) (Status, error) {
	return f.endSplit(ctx, "WriteOrderedEnd")
}

// beginSplit begins a split operation, which the method end ends. With a bad buffer there is nothing to
// end: the other ranks get an error when they end it.
func (f *FileHandle) beginSplit(end string, op fileio.Op, b Buffer) error {
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
	r, err := f.start(op, b)
	if err == nil && b.err != nil {
		r.Free() // it goes on
		err = b.err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.r = r; err != nil {
		f.split = nil
	}
	return err
}

// endSplit waits for a split operation.
func (f *FileHandle) endSplit(ctx context.Context, name string) (Status, error) {
	f.mu.Lock()
	s := f.split
	ok := s != nil && s.end == name && s.r != nil
	f.mu.Unlock()
	if !ok {
		return Status{}, fmt.Errorf("%w: %s without its beginning", ErrFile, name)
	}
	t := f.of.enter()
	st, err := s.r.request.Wait(ctx)
	f.of.leave(t, "File."+name, NoPeer, 0, st.Bytes, err)
	if err != nil && !s.r.request.Finished.Load() {
		return Status{}, err // it goes on
	}
	f.mu.Lock()
	f.split = nil
	f.mu.Unlock()
	return Status(st), err
}
