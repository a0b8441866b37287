package file

import (
	"context"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// Reads and writes at offsets, at the individual pointer and at the shared pointer. A rank whose
// arguments are bad takes part in a collective operation all the same, so that the others, which wait for
// it, get an error instead.

type (
	fileOp   func(*mpi.FileHandle, context.Context, mpi.Buffer) (mpi.Status, error)
	fileOpAt func(*mpi.FileHandle, context.Context, int64, mpi.Buffer) (mpi.Status, error)

	fileStart   func(*mpi.FileHandle, mpi.Buffer) (*mpi.Request, error)
	fileStartAt func(*mpi.FileHandle, int64, mpi.Buffer) (*mpi.Request, error)
)

// badBuffer is one that all operations refuse.
var badBuffer = mpi.Items([]byte(nil), -1, nil)

// fileTransfer performs an operation.
func fileTransfer(
	proc string, fh abi.Handle, buf uintptr, count int, datatype abi.Handle, status uintptr, op fileOp,
) int {
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	b, err := cbinding.BufferOf(buf, count, datatype)
	if err != nil {
		b = badBuffer
	}
	return f.transferred(proc, status, err)(op(f.FileHandle, cbinding.Background, b))
}

// fileTransferAt performs an operation at an offset.
func fileTransferAt(
	proc string, fh abi.Handle, offset int, buf uintptr, count int, datatype abi.Handle, status uintptr, op fileOpAt,
) int {
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	b, err := cbinding.BufferOf(buf, count, datatype)
	if err != nil {
		b = badBuffer
	}
	return f.transferred(proc, status, err)(op(f.FileHandle, cbinding.Background, int64(offset), b))
}

// transferred ends an operation, unless the buffer was bad.
func (f *file) transferred(proc string, status uintptr, bad error) func(mpi.Status, error) int {
	return func(st mpi.Status, err error) int {
		if bad != nil {
			err = bad
		}
		if err == nil {
			cbinding.SetStatus(status, st)
		}
		return f.Done(proc, err)
	}
}

// startFile starts an operation.
func startFile(
	proc string, fh abi.Handle, buf uintptr, count int, datatype abi.Handle, request uintptr, op fileStart,
) int {
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.begin(proc, buf, count, datatype, request, func(b mpi.Buffer) (*mpi.Request, error) {
		return op(f.FileHandle, b)
	})
}

// startFileAt starts an operation at an offset.
func startFileAt(
	proc string, fh abi.Handle, offset int, buf uintptr, count int, datatype abi.Handle, request uintptr,
	op fileStartAt,
) int {
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.begin(proc, buf, count, datatype, request, func(b mpi.Buffer) (*mpi.Request, error) {
		return op(f.FileHandle, int64(offset), b)
	})
}

func (f *file) begin(
	proc string, buf uintptr, count int, datatype abi.Handle, request uintptr,
	op func(mpi.Buffer) (*mpi.Request, error),
) int {
	b, err := cbinding.BufferOf(buf, count, datatype)
	if err == nil {
		err = cbinding.RequestRoom(request)
	}
	if err != nil {
		if r, e := op(badBuffer); e == nil {
			r.Free()
		}
		return f.Done(proc, err)
	}
	r, err := op(b)
	return f.NewRequest(proc, request, r, err)
}

// FileReadAt is MPI_File_read_at.
func FileReadAt(fh abi.Handle, offset int, buf uintptr, count int, datatype abi.Handle, status uintptr) int {
	return fileTransferAt("MPI_File_read_at", fh, offset, buf, count, datatype, status, (*mpi.FileHandle).ReadAt)
}

// FileReadAtAll is MPI_File_read_at_all.
func FileReadAtAll(fh abi.Handle, offset int, buf uintptr, count int, datatype abi.Handle, status uintptr) int {
	return fileTransferAt("MPI_File_read_at_all", fh, offset, buf, count, datatype, status, (*mpi.FileHandle).ReadAtAll)
}

// FileRead is MPI_File_read.
func FileRead(fh abi.Handle, buf uintptr, count int, datatype abi.Handle, status uintptr) int {
	return fileTransfer("MPI_File_read", fh, buf, count, datatype, status, (*mpi.FileHandle).Read)
}

// FileReadAll is MPI_File_read_all.
func FileReadAll(fh abi.Handle, buf uintptr, count int, datatype abi.Handle, status uintptr) int {
	return fileTransfer("MPI_File_read_all", fh, buf, count, datatype, status, (*mpi.FileHandle).ReadAll)
}

// FileReadShared is MPI_File_read_shared.
func FileReadShared(fh abi.Handle, buf uintptr, count int, datatype abi.Handle, status uintptr) int {
	return fileTransfer("MPI_File_read_shared", fh, buf, count, datatype, status, (*mpi.FileHandle).ReadShared)
}

// FileReadOrdered is MPI_File_read_ordered.
func FileReadOrdered(fh abi.Handle, buf uintptr, count int, datatype abi.Handle, status uintptr) int {
	return fileTransfer("MPI_File_read_ordered", fh, buf, count, datatype, status, (*mpi.FileHandle).ReadOrdered)
}

// FileWriteAt is MPI_File_write_at.
func FileWriteAt(fh abi.Handle, offset int, buf uintptr, count int, datatype abi.Handle, status uintptr) int {
	return fileTransferAt("MPI_File_write_at", fh, offset, buf, count, datatype, status, (*mpi.FileHandle).WriteAt)
}

// FileWriteAtAll is MPI_File_write_at_all.
func FileWriteAtAll(fh abi.Handle, offset int, buf uintptr, count int, datatype abi.Handle, status uintptr) int {
	return fileTransferAt("MPI_File_write_at_all", fh, offset, buf, count, datatype, status, (*mpi.FileHandle).WriteAtAll)
}

// FileWrite is MPI_File_write.
func FileWrite(fh abi.Handle, buf uintptr, count int, datatype abi.Handle, status uintptr) int {
	return fileTransfer("MPI_File_write", fh, buf, count, datatype, status, (*mpi.FileHandle).Write)
}

// FileWriteAll is MPI_File_write_all.
func FileWriteAll(fh abi.Handle, buf uintptr, count int, datatype abi.Handle, status uintptr) int {
	return fileTransfer("MPI_File_write_all", fh, buf, count, datatype, status, (*mpi.FileHandle).WriteAll)
}

// FileWriteShared is MPI_File_write_shared.
func FileWriteShared(fh abi.Handle, buf uintptr, count int, datatype abi.Handle, status uintptr) int {
	return fileTransfer("MPI_File_write_shared", fh, buf, count, datatype, status, (*mpi.FileHandle).WriteShared)
}

// FileWriteOrdered is MPI_File_write_ordered.
func FileWriteOrdered(fh abi.Handle, buf uintptr, count int, datatype abi.Handle, status uintptr) int {
	return fileTransfer("MPI_File_write_ordered", fh, buf, count, datatype, status, (*mpi.FileHandle).WriteOrdered)
}

// FileIreadAt is MPI_File_iread_at.
func FileIreadAt(fh abi.Handle, offset int, buf uintptr, count int, datatype abi.Handle, request uintptr) int {
	return startFileAt("MPI_File_iread_at", fh, offset, buf, count, datatype, request, (*mpi.FileHandle).IreadAt)
}

// FileIreadAtAll is MPI_File_iread_at_all.
func FileIreadAtAll(fh abi.Handle, offset int, buf uintptr, count int, datatype abi.Handle, request uintptr) int {
	return startFileAt("MPI_File_iread_at_all", fh, offset, buf, count, datatype, request,
		(*mpi.FileHandle).IreadAtAll)
}

// FileIread is MPI_File_iread.
func FileIread(fh abi.Handle, buf uintptr, count int, datatype abi.Handle, request uintptr) int {
	return startFile("MPI_File_iread", fh, buf, count, datatype, request, (*mpi.FileHandle).Iread)
}

// FileIreadAll is MPI_File_iread_all.
func FileIreadAll(fh abi.Handle, buf uintptr, count int, datatype abi.Handle, request uintptr) int {
	return startFile("MPI_File_iread_all", fh, buf, count, datatype, request, (*mpi.FileHandle).IreadAll)
}

// FileIreadShared is MPI_File_iread_shared.
func FileIreadShared(fh abi.Handle, buf uintptr, count int, datatype abi.Handle, request uintptr) int {
	return startFile("MPI_File_iread_shared", fh, buf, count, datatype, request, (*mpi.FileHandle).IreadShared)
}

// FileIwriteAt is MPI_File_iwrite_at.
func FileIwriteAt(fh abi.Handle, offset int, buf uintptr, count int, datatype abi.Handle, request uintptr) int {
	return startFileAt("MPI_File_iwrite_at", fh, offset, buf, count, datatype, request, (*mpi.FileHandle).IwriteAt)
}

// FileIwriteAtAll is MPI_File_iwrite_at_all.
func FileIwriteAtAll(fh abi.Handle, offset int, buf uintptr, count int, datatype abi.Handle, request uintptr) int {
	return startFileAt("MPI_File_iwrite_at_all", fh, offset, buf, count, datatype, request,
		(*mpi.FileHandle).IwriteAtAll)
}

// FileIwrite is MPI_File_iwrite.
func FileIwrite(fh abi.Handle, buf uintptr, count int, datatype abi.Handle, request uintptr) int {
	return startFile("MPI_File_iwrite", fh, buf, count, datatype, request, (*mpi.FileHandle).Iwrite)
}

// FileIwriteAll is MPI_File_iwrite_all.
func FileIwriteAll(fh abi.Handle, buf uintptr, count int, datatype abi.Handle, request uintptr) int {
	return startFile("MPI_File_iwrite_all", fh, buf, count, datatype, request, (*mpi.FileHandle).IwriteAll)
}

// FileIwriteShared is MPI_File_iwrite_shared.
func FileIwriteShared(fh abi.Handle, buf uintptr, count int, datatype abi.Handle, request uintptr) int {
	return startFile("MPI_File_iwrite_shared", fh, buf, count, datatype, request, (*mpi.FileHandle).IwriteShared)
}
