package datatype

import (
	"math"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
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
		return p, cbinding.NullError("position")
	}
	from := loadInt(position, large)
	switch {
	case size < 0:
		return p, cbinding.ArgError(abi.ErrArg, "size", size, "is negative")
	case from < 0 || from > size:
		return p, cbinding.ArgError(abi.ErrArg, "position", from, "is not within the buffer")
	case buf < cbinding.LowestAddress && size > 0:
		return p, cbinding.BadAddress(buf)
	}
	return packBuffer{cbinding.Array[byte](buf, size)[from:], position, from, large}, nil
}

// advance stores the position n bytes on.
func (p *packBuffer) advance(n int) error {
	if p.at += n; !p.large && p.at > math.MaxInt32 {
		return cbinding.ArgError(abi.ErrArg, "position", p.at, "does not fit an int")
	}
	cbinding.StoreInt(p.position, p.at, p.large)
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
		return cbinding.ArgError(abi.ErrTruncate, "outsize", len(p.rest)+p.at, "leaves no room for the data")
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
		return cbinding.ArgError(abi.ErrTruncate, "insize", len(p.rest)+p.at, "holds less than the data")
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
func Pack(inbuf uintptr, incount int, datatype abi.Handle, outbuf uintptr, outsize int, position uintptr,
	comm abi.Handle, large bool) int {
	const proc = "MPI_Pack"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	b, err := cbinding.BufferOf(inbuf, incount, datatype)
	if err != nil {
		return c.Done(proc, err)
	}
	p, err := packBufferOf(outbuf, outsize, position, large)
	if err == nil {
		err = p.pack(b, false)
	}
	return c.Done(proc, err)
}

// Unpack is MPI_Unpack.
func Unpack(inbuf uintptr, insize int, position, outbuf uintptr, outcount int, datatype, comm abi.Handle,
	large bool) int {
	const proc = "MPI_Unpack"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	b, err := cbinding.BufferOf(outbuf, outcount, datatype)
	if err != nil {
		return c.Done(proc, err)
	}
	p, err := packBufferOf(inbuf, insize, position, large)
	if err == nil {
		err = p.unpack(b, false)
	}
	return c.Done(proc, err)
}

// PackSize is MPI_Pack_size. A size that does not fit an int becomes MPI_UNDEFINED.
func PackSize(incount int, datatype, comm abi.Handle, size uintptr, large bool) int {
	const proc = "MPI_Pack_size"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return c.Done(proc, storePackSize(incount, datatype, size, large, (*mpi.Datatype).Size))
}

// storePackSize stores how long items are when packed, by the length of one.
func storePackSize(
	incount int, datatype abi.Handle, size uintptr, large bool, length func(*mpi.Datatype) int,
) error {
	t, err := cbinding.CommittedType(datatype)
	if err == nil {
		err = cbinding.Negative("incount", incount)
	}
	if err != nil {
		return err
	}
	n, ok := layouts.Mul(incount, length(t.Datatype))
	if !ok {
		return cbinding.ArgError(abi.ErrCount, "incount", incount, "makes a size that does not fit MPI_Count")
	}
	return cbinding.SetInt(size, n, large)
}

// PackExternal is MPI_Pack_external.
func PackExternal(datarep, inbuf uintptr, incount int, datatype abi.Handle, outbuf uintptr, outsize int,
	position uintptr) int {
	const proc = "MPI_Pack_external"
	if err := external32(datarep); err != nil {
		return cbinding.Fail(proc, err)
	}
	b, err := cbinding.BufferOf(inbuf, incount, datatype)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	p, err := packBufferOf(outbuf, outsize, position, true)
	if err == nil {
		err = p.pack(b, true)
	}
	return cbinding.Fail(proc, err)
}

// UnpackExternal is MPI_Unpack_external.
func UnpackExternal(
	datarep, inbuf uintptr, insize int, position, outbuf uintptr, outcount int, datatype abi.Handle,
) int {
	const proc = "MPI_Unpack_external"
	if err := external32(datarep); err != nil {
		return cbinding.Fail(proc, err)
	}
	b, err := cbinding.BufferOf(outbuf, outcount, datatype)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	p, err := packBufferOf(inbuf, insize, position, true)
	if err == nil {
		err = p.unpack(b, true)
	}
	return cbinding.Fail(proc, err)
}

// PackExternalSize is MPI_Pack_external_size.
func PackExternalSize(datarep uintptr, incount int, datatype abi.Handle, size uintptr) int {
	const proc = "MPI_Pack_external_size"
	err := external32(datarep)
	if err == nil {
		err = storePackSize(incount, datatype, size, true, (*mpi.Datatype).ExternalSize)
	}
	return cbinding.Fail(proc, err)
}

// external32 checks the name of a data representation: there is one that is portable.
func external32(datarep uintptr) error {
	name, err := cbinding.Str("datarep", datarep, abi.MaxDatarepString)
	if err == nil && name != "external32" {
		err = cbinding.ArgError(abi.ErrArg, "datarep", name, "is not external32")
	}
	return err
}

// loadInt returns the integer at p: an MPI_Count if large, else an int.
func loadInt(p uintptr, large bool) int {
	if large {
		return int(*cbinding.At[int64](p))
	}
	return int(*cbinding.At[int32](p))
}

// GetAddress is MPI_Get_address.
func GetAddress(location, address uintptr) int {
	err := cbinding.Out("address", address)
	if err == nil {
		cbinding.StoreInt(address, int(location), true)
	}
	return cbinding.Fail("MPI_Get_address", err)
}
