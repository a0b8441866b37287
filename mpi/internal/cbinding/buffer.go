package cbinding

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// lowestAddress is below all memory that a program may have: the first page is never mapped.
const lowestAddress = 4096

// bufferOf returns what C calls a buffer, a count and a datatype. buf may be MPI_BOTTOM, which is the
// null pointer; callers deal with MPI_IN_PLACE.
func bufferOf(buf uintptr, count int, datatype Handle) (b mpi.Buffer, err error) {
	err = setBuffer(&b, buf, count, datatype)
	return b, err
}

// setBuffer is bufferOf without copies of the result, which is long.
func setBuffer(b *mpi.Buffer, buf uintptr, count int, datatype Handle) error {
	t, err := committedType(datatype)
	if err != nil {
		return err
	}
	if count < 0 {
		return negative("count", count)
	}
	if buf != 0 && buf < lowestAddress && count > 0 && t.Size() > 0 {
		return badAddress(buf)
	}
	if buf < lowestAddress {
		buf = 0 // no data, or MPI_BOTTOM: a small value is no pointer of Go
	}
	*b = mpi.ItemsAt(pointer(buf), count, t.Datatype)
	return nil
}

// badAddress returns the error of a buffer that is at no address.
func badAddress(buf uintptr) error {
	if buf == abi.InPlace {
		return argError(abi.ErrBuffer, "buffer", "MPI_IN_PLACE", "is not allowed here")
	}
	return argError(abi.ErrBuffer, "buffer", buf, "is no address")
}
