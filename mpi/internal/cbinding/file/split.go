package file

import (
	"context"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// Split collective operations (MPI-4.1, Section 14.4.5). The buffer that their ends have too is that of
// the beginning, and not looked at.

// beginSplit begins an operation.
func beginSplit(
	proc string, fh abi.Handle, buf uintptr, count int, datatype abi.Handle, op func(*mpi.FileHandle, mpi.Buffer) error,
) int {
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	b, err := cbinding.BufferOf(buf, count, datatype)
	if err != nil {
		b = badBuffer
	}
	if e := op(f.FileHandle, b); err == nil {
		err = e
	}
	return f.Done(proc, err)
}

// endSplit ends an operation.
func endSplit(
	proc string, fh abi.Handle, status uintptr, op func(*mpi.FileHandle, context.Context) (mpi.Status, error),
) int {
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.transferred(proc, status, nil)(op(f.FileHandle, cbinding.Background))
}

// FileReadAtAllBegin is MPI_File_read_at_all_begin.
func FileReadAtAllBegin(fh abi.Handle, offset int, buf uintptr, count int, datatype abi.Handle) int {
	return beginSplit("MPI_File_read_at_all_begin", fh, buf, count, datatype,
		func(f *mpi.FileHandle, b mpi.Buffer) error { return f.ReadAtAllBegin(int64(offset), b) })
}

// FileReadAtAllEnd is MPI_File_read_at_all_end.
func FileReadAtAllEnd(fh abi.Handle, buf, status uintptr) int {
	return endSplit("MPI_File_read_at_all_end", fh, status, (*mpi.FileHandle).ReadAtAllEnd)
}

// FileReadAllBegin is MPI_File_read_all_begin.
func FileReadAllBegin(fh abi.Handle, buf uintptr, count int, datatype abi.Handle) int {
	return beginSplit("MPI_File_read_all_begin", fh, buf, count, datatype, (*mpi.FileHandle).ReadAllBegin)
}

// FileReadAllEnd is MPI_File_read_all_end.
func FileReadAllEnd(fh abi.Handle, buf, status uintptr) int {
	return endSplit("MPI_File_read_all_end", fh, status, (*mpi.FileHandle).ReadAllEnd)
}

// FileReadOrderedBegin is MPI_File_read_ordered_begin.
func FileReadOrderedBegin(fh abi.Handle, buf uintptr, count int, datatype abi.Handle) int {
	return beginSplit("MPI_File_read_ordered_begin", fh, buf, count, datatype, (*mpi.FileHandle).ReadOrderedBegin)
}

// FileReadOrderedEnd is MPI_File_read_ordered_end.
func FileReadOrderedEnd(fh abi.Handle, buf, status uintptr) int {
	return endSplit("MPI_File_read_ordered_end", fh, status, (*mpi.FileHandle).ReadOrderedEnd)
}

// FileWriteAtAllBegin is MPI_File_write_at_all_begin.
func FileWriteAtAllBegin(fh abi.Handle, offset int, buf uintptr, count int, datatype abi.Handle) int {
	return beginSplit("MPI_File_write_at_all_begin", fh, buf, count, datatype,
		func(f *mpi.FileHandle, b mpi.Buffer) error { return f.WriteAtAllBegin(int64(offset), b) })
}

// FileWriteAtAllEnd is MPI_File_write_at_all_end.
func FileWriteAtAllEnd(fh abi.Handle, buf, status uintptr) int {
	return endSplit("MPI_File_write_at_all_end", fh, status, (*mpi.FileHandle).WriteAtAllEnd)
}

// FileWriteAllBegin is MPI_File_write_all_begin.
func FileWriteAllBegin(fh abi.Handle, buf uintptr, count int, datatype abi.Handle) int {
	return beginSplit("MPI_File_write_all_begin", fh, buf, count, datatype, (*mpi.FileHandle).WriteAllBegin)
}

// FileWriteAllEnd is MPI_File_write_all_end.
func FileWriteAllEnd(fh abi.Handle, buf, status uintptr) int {
	return endSplit("MPI_File_write_all_end", fh, status, (*mpi.FileHandle).WriteAllEnd)
}

// FileWriteOrderedBegin is MPI_File_write_ordered_begin.
func FileWriteOrderedBegin(fh abi.Handle, buf uintptr, count int, datatype abi.Handle) int {
	return beginSplit("MPI_File_write_ordered_begin", fh, buf, count, datatype, (*mpi.FileHandle).WriteOrderedBegin)
}

// FileWriteOrderedEnd is MPI_File_write_ordered_end.
func FileWriteOrderedEnd(fh abi.Handle, buf, status uintptr) int {
	return endSplit("MPI_File_write_ordered_end", fh, status, (*mpi.FileHandle).WriteOrderedEnd)
}
