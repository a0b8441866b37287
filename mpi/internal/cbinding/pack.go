package cbinding

import (
	"math"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	layouts "github.com/weftstack/weft/mpi/internal/datatype"
)

// packBuffer is the memory that MPI_Pack fills, or that MPI_Unpack reads, and the place in it.
type packBuffer struct {
	rest     []byte // from the position on
	position uintptr
	at       int
	large    bool
}

// packBufferOf checks the memory of size bytes at buf, and the position in it.
func packBufferOf(buf uintptr, size int, position uintptr, large bool) (p packBuffer, err error) {
	if position == 0 {
		return p, nullError("position")
	}
	from := loadInt(position, large)
	switch {
	case size < 0:
		return p, argError(abi.ErrArg, "size", size, "is negative")
	case from < 0 || from > size:
		return p, argError(abi.ErrArg, "position", from, "is not within the buffer")
	case buf < lowestAddress && size > 0:
		return p, badAddress(buf)
	}
	return packBuffer{array[byte](buf, size)[from:], position, from, large}, nil
}

// advance stores the position n bytes on.
func (p *packBuffer) advance(n int) error {
	if p.at += n; !p.large && p.at > math.MaxInt32 {
		return argError(abi.ErrArg, "position", p.at, "does not fit an int")
	}
	storeInt(p.position, p.at, p.large)
	return nil
}

// pack appends the data of b to what is in p.
func (p *packBuffer) pack(b mpi.Buffer, external bool) (err error) {
	n := b.Len()
	if external {
		n = b.ExternalLen()
	}
	switch {
	case n > len(p.rest):
		return argError(abi.ErrTruncate, "outsize", len(p.rest)+p.at, "leaves no room for the data")
	case external:
		_, err = b.AppendExternal(p.rest[:0:n])
	default:
		_, err = b.AppendPacked(p.rest[:0:n])
	}
	if err != nil {
		return err
	}
	return p.advance(n)
}

// unpack stores what is next in p in b.
func (p *packBuffer) unpack(b mpi.Buffer, external bool) (err error) {
	n := b.Len()
	if external {
		n = b.ExternalLen()
	}
	switch {
	case n > len(p.rest):
		return argError(abi.ErrTruncate, "insize", len(p.rest)+p.at, "holds less than the data")
	case external:
		_, err = b.UnpackExternal(p.rest[:n])
	default:
		_, err = b.Unpack(p.rest[:n])
	}
	if err != nil {
		return err
	}
	return p.advance(n)
}

// Pack is MPI_Pack.
func Pack(inbuf uintptr, incount int, datatype Handle, outbuf uintptr, outsize int, position uintptr,
	comm Handle, large bool) int {
	const proc = "MPI_Pack"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	b, err := bufferOf(inbuf, incount, datatype)
	if err != nil {
		return c.done(proc, err)
	}
	p, err := packBufferOf(outbuf, outsize, position, large)
	if err == nil {
		err = p.pack(b, false)
	}
	return c.done(proc, err)
}

// Unpack is MPI_Unpack.
func Unpack(inbuf uintptr, insize int, position, outbuf uintptr, outcount int, datatype, comm Handle,
	large bool) int {
	const proc = "MPI_Unpack"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	b, err := bufferOf(outbuf, outcount, datatype)
	if err != nil {
		return c.done(proc, err)
	}
	p, err := packBufferOf(inbuf, insize, position, large)
	if err == nil {
		err = p.unpack(b, false)
	}
	return c.done(proc, err)
}

// PackSize is MPI_Pack_size. A size that does not fit an int becomes MPI_UNDEFINED.
func PackSize(incount int, datatype, comm Handle, size uintptr, large bool) int {
	const proc = "MPI_Pack_size"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	return c.done(proc, storePackSize(incount, datatype, size, large, (*mpi.Datatype).Size))
}

// storePackSize stores how long items are when packed, by the length of one.
func storePackSize(incount int, datatype Handle, size uintptr, large bool, length func(*mpi.Datatype) int) error {
	t, err := committedType(datatype)
	if err == nil {
		err = negative("incount", incount)
	}
	if err != nil {
		return err
	}
	n, ok := layouts.Mul(incount, length(t.Datatype))
	if !ok {
		return argError(abi.ErrCount, "incount", incount, "makes a size that does not fit MPI_Count")
	}
	return setInt(size, n, large)
}

// PackExternal is MPI_Pack_external.
func PackExternal(datarep, inbuf uintptr, incount int, datatype Handle, outbuf uintptr, outsize int,
	position uintptr) int {
	const proc = "MPI_Pack_external"
	if err := external32(datarep); err != nil {
		return fail(proc, err)
	}
	b, err := bufferOf(inbuf, incount, datatype)
	if err != nil {
		return fail(proc, err)
	}
	p, err := packBufferOf(outbuf, outsize, position, true)
	if err == nil {
		err = p.pack(b, true)
	}
	return fail(proc, err)
}

// UnpackExternal is MPI_Unpack_external.
func UnpackExternal(datarep, inbuf uintptr, insize int, position, outbuf uintptr, outcount int, datatype Handle) int {
	const proc = "MPI_Unpack_external"
	if err := external32(datarep); err != nil {
		return fail(proc, err)
	}
	b, err := bufferOf(outbuf, outcount, datatype)
	if err != nil {
		return fail(proc, err)
	}
	p, err := packBufferOf(inbuf, insize, position, true)
	if err == nil {
		err = p.unpack(b, true)
	}
	return fail(proc, err)
}

// PackExternalSize is MPI_Pack_external_size.
func PackExternalSize(datarep uintptr, incount int, datatype Handle, size uintptr) int {
	const proc = "MPI_Pack_external_size"
	err := external32(datarep)
	if err == nil {
		err = storePackSize(incount, datatype, size, true, (*mpi.Datatype).ExternalSize)
	}
	return fail(proc, err)
}

// external32 checks the name of a data representation: there is one that is portable.
func external32(datarep uintptr) error {
	name, err := str("datarep", datarep, abi.MaxDatarepString)
	if err == nil && name != "external32" {
		err = argError(abi.ErrArg, "datarep", name, "is not external32")
	}
	return err
}

// loadInt returns the integer at p: an MPI_Count if large, else an int.
func loadInt(p uintptr, large bool) int {
	if large {
		return int(*at[int64](p))
	}
	return int(*at[int32](p))
}

// GetAddress is MPI_Get_address.
func GetAddress(location, address uintptr) int {
	err := out("address", address)
	if err == nil {
		storeInt(address, int(location), true)
	}
	return fail("MPI_Get_address", err)
}
