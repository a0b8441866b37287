package collective

import (
	"fmt"
	"math"
	"slices"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// A form is one of the forms that each collective has.
type form uint8

const (
	blocking form = iota
	nonblocking
	persistent
)

// A collCall is a call of a collective.
type collCall struct {
	proc    string
	form    form
	request uintptr    // where the handle of the request is stored; 0 if blocking
	info    abi.Handle // of a persistent one
}

// begin returns the communicator of the call; nil with the code of an error.
func (k collCall) begin(comm abi.Handle) (*cbinding.Communicator, int) {
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return nil, cbinding.Fail(k.proc, err)
	}
	if k.form != blocking {
		err = cbinding.Out("request", k.request)
	}
	if err == nil && k.form == persistent {
		_, err = cbinding.HintsOf(k.info) // there are none for collectives
	}
	if err != nil {
		return nil, c.Done(k.proc, err)
	}
	return c, abi.Success
}

// end makes the call in its form and ends it.
func (k collCall) end(c *cbinding.Communicator, run func() error, start func() (*mpi.Request, error),
	prepare func() (*mpi.Persistent, error)) int {
	switch k.form {
	case blocking:
		return c.Done(k.proc, run())
	case nonblocking:
		r, err := start()
		return c.NewRequest(k.proc, k.request, r, err)
	}
	p, err := prepare()
	return c.NewPersistent(k.proc, k.request, p, err)
}

// mayInPlace reports whether buf is MPI_IN_PLACE, where the collective and c allow that; else
// BufferOf refuses it.
func mayInPlace(c *cbinding.Communicator, buf uintptr) bool {
	return buf == abi.InPlace && !c.IsInter()
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

// blocksOf returns n blocks of count items that follow one another.
func blocksOf(buf uintptr, name string, count, n int, datatype abi.Handle) (mpi.Buffer, error) {
	all, err := times(name, count, n)
	if err != nil {
		return mpi.Buffer{}, err
	}
	return cbinding.BufferOf(buf, all, datatype)
}

// itemAt returns the address of item i of an array.
func itemAt(buf uintptr, i int, datatype abi.Handle) (uintptr, error) {
	t, err := cbinding.CommittedType(datatype)
	if err != nil {
		return 0, err
	}
	_, extent := t.Extent()
	return buf + uintptr(i*extent), nil
}

// aliased returns the error of what is sent being what is received: the same items at the same place.
func aliased(
	send uintptr, sent mpi.Buffer, sendtype abi.Handle, recv uintptr, received mpi.Buffer,
	recvtype abi.Handle,
) error {
	if send == recv && sendtype == recvtype && sent.Len() > 0 && sent.Len() == received.Len() {
		return aliasError(send)
	}
	return nil
}

func aliasError(buf uintptr) error {
	return cbinding.ArgError(abi.ErrBuffer, "sendbuf", fmt.Sprintf("%#x", buf), "is what is received too: pass MPI_IN_PLACE")
}

// A vector is the blocks of the ranks in a buffer with counts and displacements.
type vector struct {
	mpi.Buffer
	counts, displs []int   // in the Buffer
	at             uintptr // where the Buffer begins
}

// vectorOf returns blocks of counts[i] items at displs[i] items from buf. The Buffer begins with the
// lowest of them, and ends with the highest.
func vectorOf(
	buf uintptr, names [2]string, counts, displs uintptr, n int, datatype abi.Handle, large bool,
) (vector, error) {
	var v vector
	var err error
	if v.counts, err = cbinding.Ints(names[0], counts, n, large); err != nil {
		return v, err
	}
	if v.displs, err = cbinding.Ints(names[1], displs, n, large); err != nil {
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
	if buf != abi.InPlace || hi == lo {
		if buf, err = itemAt(buf, lo, datatype); err != nil {
			return v, err
		}
	}
	v.at = buf
	v.Buffer, err = cbinding.BufferOf(buf, hi-lo, datatype)
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

// typedBlocks returns counts[i] items of types[i] at displs[i] bytes from buf. The displacements are ints, or
// with far MPI_Aint.
func typedBlocks(
	buf uintptr, side string, counts, displs, datatypes uintptr, n int, large, far bool,
) ([]mpi.Buffer, error) {
	list := make([]mpi.Buffer, n)
	c, err := cbinding.Ints(side+"counts", counts, n, large)
	if err != nil {
		return nil, err
	}
	d, err := cbinding.Ints(side[:1]+"displs", displs, n, far)
	if err != nil {
		return nil, err
	}
	t, err := cbinding.Handles(side+"types", datatypes, n)
	if err != nil {
		return nil, err
	}
	if buf == abi.InPlace && slices.Max(append(c, 0)) > 0 {
		return nil, cbinding.BadAddress(buf)
	}
	for i := range list {
		if list[i], err = cbinding.BufferOf(buf+uintptr(d[i]), c[i], t[i]); err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
	}
	return list, nil
}
