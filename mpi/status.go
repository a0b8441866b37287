package mpi

import (
	"fmt"
	"math"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Wildcards and special values (MPI-4.1, Sections 3.2.4 and 3.10).
const (
	// AnySource as the source of a receive or probe matches every rank.
	AnySource = -1
	// AnyTag as the tag of a receive or probe matches every tag.
	AnyTag = -1
	// ProcNull as a peer makes a send or receive complete at once, without data.
	ProcNull = -2
	// Root, as the root of a collective on an intercommunicator, is what the
	// root itself gives; the other ranks of its group give ProcNull, those of
	// the other group its rank (MPI_ROOT).
	Root = -3
	// Undefined as the color of Split asks for no communicator.
	Undefined = math.MinInt32
	// TagUB is the largest tag a program may use.
	TagUB = math.MaxInt32
)

// A Status describes a received (or probed) message (MPI_Status).
type Status struct {
	Source int // rank of the sender in the communicator; ProcNull if there was none
	Tag    int // tag of the message
	Bytes  int // bytes received; for a truncated message, bytes stored
	// Canceled is true for an operation that [Request.Cancel] has withdrawn (MPI_Test_cancelled).
	Canceled bool
}

// Count returns how many whole elements of type T the message of st holds. If its length is no
// multiple of the data of a T, which is its size without padding, err is ErrCount (MPI: MPI_UNDEFINED).
func Count[T Element](st Status) (n int, err error) {
	size := datatype.DataSize[T]()
	if size == 0 {
		return 0, nil
	}
	if st.Bytes%size != 0 {
		return 0, fmt.Errorf("%w: %d bytes hold no whole number of %d-byte elements", ErrCount, st.Bytes, size)
	}
	return st.Bytes / size, nil
}

// Items returns how many whole items of t the message of st holds (MPI_Get_count). If it holds a part
// of one too, err is ErrCount (MPI: MPI_UNDEFINED); if t is nil, ErrDatatype.
func (st Status) Items(t *Datatype) (n int, err error) {
	if t == nil {
		return 0, fmt.Errorf("%w: nil", ErrDatatype)
	}
	n, whole := t.rt.Items(st.Bytes)
	if !whole {
		return 0, fmt.Errorf("%w: %d bytes hold no whole number of items of %v", ErrCount, st.Bytes, t)
	}
	return n, nil
}

// Elements returns how many basic elements, of which t is made, the message of st holds: numbers and
// bools, those in structs and arrays too, and those of an item of which only a part came
// (MPI_Get_elements). If it ends within an element, err is ErrCount; if t is nil, ErrDatatype.
func (st Status) Elements(t *Datatype) (n int, err error) {
	if t == nil {
		return 0, fmt.Errorf("%w: nil", ErrDatatype)
	}
	n, whole := t.rt.Elements(st.Bytes)
	if !whole {
		return 0, fmt.Errorf("%w: %d bytes of %v end within an element", ErrCount, st.Bytes, t)
	}
	return n, nil
}

// SetElements makes st that of a message of n elements of Go types, of which t is made: the opposite of
// [Status.Elements] (MPI_Status_set_elements). It serves generalized requests. If n is negative, or t has
// no elements and n is not 0, err is ErrCount; if t is nil, ErrDatatype.
func (st *Status) SetElements(t *Datatype, n int) error {
	if t == nil {
		return fmt.Errorf("%w: nil", ErrDatatype)
	}
	size, ok := t.rt.ElementsSize(n)
	if !ok {
		return fmt.Errorf("%w: %d elements of %v", ErrCount, n, t)
	}
	st.Bytes = size
	return nil
}

func checkTag(tag int) error {
	if tag < 0 || tag > TagUB {
		return fmt.Errorf("%w: %d", ErrTag, tag)
	}
	return nil
}

// Compile-time checks: the engine means the same by the special values.
var (
	_ = [1]struct{}{}[AnySource-p2p.AnySource]
	_ = [1]struct{}{}[AnyTag-p2p.AnyTag]
	_ = [1]struct{}{}[ProcNull-p2p.ProcNull]
	_ = [1]struct{}{}[MaxRanks-p2p.FirstRemoteHandle]
)
