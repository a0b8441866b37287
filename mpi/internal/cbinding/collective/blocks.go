package collective

import (
	"fmt"
	"math"
	"slices"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// A block is what one rank sends or receives, as the arguments sendbuf, sendcount and sendtype say it, or what
// each of several does, one after the other.
type block struct {
	buf      uintptr
	count    int
	datatype abi.Handle
}

// blocks are what several ranks send or receive, with the arguments sendcounts and sdispls.
type blocks struct {
	buf, counts, displs uintptr
	datatype            abi.Handle
	large               bool // counts and displacements are of the _c form
}

// typedBlocks are blocks of different datatypes.
type typedBlocks struct {
	buf, counts, displs, types uintptr
	large                      bool
}

// What the parameters of blocks are called: in collectives with a root and of all ranks, and in those in which all
// ranks send to all.
var (
	recvNames   = [2]string{"recvcounts", "displs"}
	sendNames   = [2]string{"sendcounts", "displs"}
	toRecvNames = [2]string{"recvcounts", "rdispls"}
	toSendNames = [2]string{"sendcounts", "sdispls"}
)

func (b block) buffer() (mpi.Buffer, error) { return cbinding.BufferOf(b.buf, b.count, b.datatype) }

// times returns n such blocks that follow one another. name is that of the count.
func (b block) times(name string, n int) (mpi.Buffer, error) {
	all, err := times(name, b.count, n)
	if err != nil {
		return mpi.Buffer{}, err
	}
	return cbinding.BufferOf(b.buf, all, b.datatype)
}

// times returns how many items n blocks of count items are.
func times(name string, count, n int) (int, error) {
	if count < 0 {
		return 0, cbinding.Negative(name, count)
	}
	if n > 0 && count > math.MaxInt/n {
		return 0, cbinding.ArgError(abi.ErrCount, name, count, fmt.Sprintf("is too much for %d blocks", n))
	}
	return count * n, nil
}

// among returns the buffers of a collective with a root, whose blocks of all ranks are all: that of the caller's
// own block, and on the root that of all. name is that of the count.
func (b block) among(c *cbinding.Communicator, all block, name string, root int) (own, of mpi.Buffer, err error) {
	switch {
	case collects(c, root):
		if of, err = all.times(name, c.Peers()); err == nil {
			own, err = ownBlock(c, b, all, root*all.count)
		}
	case root != mpi.ProcNull:
		own, err = b.buffer()
	}
	return own, of, err
}

// amongVector is among for blocks of different lengths.
func (b block) amongVector(
	c *cbinding.Communicator, all blocks, names [2]string, root int,
) (own mpi.Buffer, of vector, err error) {
	switch {
	case collects(c, root):
		if of, err = all.vector(names, c.Peers()); err == nil && root >= 0 {
			own, err = ownOf(c, b, all, names, of.counts[root])
		}
	case root != mpi.ProcNull:
		own, err = b.buffer()
	}
	return own, of, err
}

// ownBlock returns the buffer of the caller's own block, of the root or of MPI_Allgather: if it is MPI_IN_PLACE, that
// is the block that begins at item at of all. On an intercommunicator it is not significant.
func ownBlock(c *cbinding.Communicator, own, all block, at int) (mpi.Buffer, error) {
	if c.IsInter() {
		return mpi.Buffer{}, nil
	}
	off, err := offsetOf(at, all.datatype)
	if err != nil {
		return mpi.Buffer{}, err
	}
	if mayInPlace(c, own.buf) {
		return cbinding.BufferAt(all.buf, off, all.count, all.datatype)
	}
	place := all.buf + uintptr(off)
	b, err := own.buffer()
	if err == nil && own.datatype == all.datatype && own.buf == place && own.count == all.count && b.Len() > 0 {
		err = aliasError(own.buf)
	}
	return b, err
}

// ownOf is ownBlock among blocks, where it has count items.
func ownOf(c *cbinding.Communicator, own block, all blocks, names [2]string, count int) (mpi.Buffer, error) {
	at, err := intAt(names[1], all.displs, c.Rank(), all.large)
	if err != nil {
		return mpi.Buffer{}, err
	}
	return ownBlock(c, own, block{all.buf, count, all.datatype}, at)
}

// offsetOf returns how many bytes item i is from the beginning of an array.
func offsetOf(i int, datatype abi.Handle) (int, error) {
	t, err := cbinding.CommittedType(datatype)
	if err != nil {
		return 0, err
	}
	_, extent := t.Extent()
	return i * extent, nil
}

// A vector is the blocks of the ranks in a buffer with counts and displacements.
type vector struct {
	mpi.Buffer
	counts, displs []int   // in the Buffer
	at             uintptr // where the Buffer begins
}

// vector returns blocks of counts[i] items at displs[i] items from the address, for n ranks. The Buffer begins
// with the lowest of them, and ends with the highest.
func (b blocks) vector(names [2]string, n int) (vector, error) {
	var v vector
	var err error
	if v.counts, err = cbinding.Ints(names[0], b.counts, n, b.large); err != nil {
		return v, err
	}
	if v.displs, err = cbinding.Ints(names[1], b.displs, n, b.large); err != nil {
		return v, err
	}
	lo, hi := math.MaxInt, math.MinInt
	for i, count := range v.counts {
		switch at := v.displs[i]; {
		case count < 0:
			return v, cbinding.Negative(fmt.Sprintf("%s[%d]", names[0], i), count)
		case count > 0 && at > math.MaxInt-count:
			return v, cbinding.ArgError(abi.ErrCount, fmt.Sprintf("%s[%d]", names[0], i), count, fmt.Sprintf("is too much at %d", at))
		case count > 0:
			lo, hi = min(lo, at), max(hi, at+count)
		}
	}
	if lo > hi {
		lo, hi = 0, 0
	}
	if lo < 0 && hi > math.MaxInt+lo {
		return v, cbinding.ArgError(abi.ErrCount, names[1], lo, fmt.Sprintf("is too far from %d", hi))
	}
	for i, count := range v.counts {
		if v.displs[i] -= lo; count == 0 {
			v.displs[i] = 0
		}
	}
	off := 0
	if b.buf != abi.InPlace || hi == lo {
		if off, err = offsetOf(lo, b.datatype); err != nil {
			return v, err
		}
	}
	v.at = b.buf + uintptr(off)
	v.Buffer, err = cbinding.BufferAt(b.buf, off, hi-lo, b.datatype)
	return v, err
}

// intAt returns element i of an array of integers.
func intAt(name string, p uintptr, i int, large bool) (int, error) {
	size := uintptr(4)
	if large {
		size = 8
	}
	var one [1]int
	list, err := cbinding.AppendInts(one[:0], name, p+uintptr(i)*size, 1, large)
	if err != nil {
		return 0, err
	}
	return list[0], nil
}

// buffers returns counts[i] items of types[i] at displs[i] bytes from the address, for n ranks. side is "send" or
// "recv". The displacements are ints, or with far MPI_Aint.
func (b typedBlocks) buffers(side string, n int, far bool) ([]mpi.Buffer, error) {
	list := make([]mpi.Buffer, n)
	c, err := cbinding.Ints(side+"counts", b.counts, n, b.large)
	if err != nil {
		return nil, err
	}
	d, err := cbinding.Ints(side[:1]+"displs", b.displs, n, far)
	if err != nil {
		return nil, err
	}
	t, err := cbinding.Handles(side+"types", b.types, n)
	if err != nil {
		return nil, err
	}
	if b.buf == abi.InPlace && slices.Max(append(c, 0)) > 0 {
		return nil, cbinding.BadAddress(b.buf)
	}
	for i := range list {
		if list[i], err = cbinding.BufferAt(b.buf, d[i], c[i], t[i]); err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
	}
	return list, nil
}
