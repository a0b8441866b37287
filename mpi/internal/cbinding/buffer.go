package cbinding

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// LowestAddress is below all memory that a program may have: the first page is never mapped.
const LowestAddress = 4096

// BufferOf returns what C calls a buffer, a count and a datatype. buf may be MPI_BOTTOM, which is the
// null pointer; callers deal with MPI_IN_PLACE.
func BufferOf(buf uintptr, count int, datatype abi.Handle) (b mpi.Buffer, err error) {
	err = SetBuffer(&b, buf, count, datatype)
	return b, err
}

// SetBuffer is BufferOf without copies of the result, which is long.
func SetBuffer(b *mpi.Buffer, buf uintptr, count int, datatype abi.Handle) error {
	t, err := CommittedType(datatype)
	if err != nil {
		return err
	}
	if count < 0 {
		return Negative("count", count)
	}
	if buf != 0 && buf < LowestAddress && count > 0 && t.Size() > 0 {
		return BadAddress(buf)
	}
	if buf < LowestAddress {
		buf = 0 // no data, or MPI_BOTTOM: a small value is no pointer of Go
	}
	*b = mpi.ItemsAt(Pointer(buf), count, t.Datatype)
	return nil
}

// BufferAt is BufferOf with the items off bytes from buf, as the blocks of a collective are. From MPI_BOTTOM that may
// be no address yet, only what the datatype adds to it makes one. Then the bytes become part of the datatype.
func BufferAt(buf uintptr, off, count int, datatype abi.Handle) (mpi.Buffer, error) {
	at := buf + uintptr(off)
	if buf != 0 || off == 0 || int(at) >= LowestAddress || count <= 0 {
		return BufferOf(at, count, datatype)
	}
	t, err := CommittedType(datatype)
	if err != nil {
		return mpi.Buffer{}, err
	}
	moved, err := mpi.TypeHindexedBlock(1, []int{off}, t.Datatype)
	if err != nil {
		return mpi.Buffer{}, err
	}
	return mpi.ItemsAt(nil, count, moved), nil
}

// BadAddress returns the error of a buffer that is at no address.
func BadAddress(buf uintptr) error {
	if buf == abi.InPlace {
		return ArgError(abi.ErrBuffer, "buffer", "MPI_IN_PLACE", "is not allowed here")
	}
	return ArgError(abi.ErrBuffer, "buffer", buf, "is no address")
}
