package mpi

import (
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// A Buffer is memory with a description of what is in it, as the triple of buffer, count and
// datatype in MPI (MPI-4.1, Section 3.2.2): what the methods of [Comm] send and receive. The generic
// functions are those methods with the elements of a slice. A Buffer refers to the memory of the
// slice, which belongs to an operation as long as its generic form says. The zero Buffer is an empty
// message.
type Buffer struct {
	items datatype.Items
	of    any   // the *datatype.Type of the items, or a nil pointer to the type of elements; nil: there are none
	err   error // why it describes nothing; returned by the call that it is used in
}

// Elements returns all elements of buf as a Buffer (MPI-4.1, Section 3.2.2). The padding of structs is
// neither sent nor stored: elements are the items of [TypeOf]. Calls with it return ErrType if T is no
// element type.
func Elements[T Element](buf []T) Buffer {
	sig, gaps, err := datatype.Element[T]()
	if err != nil {
		return Buffer{err: err}
	}
	if gaps != nil {
		b := padded(datatype.Bytes(buf), len(buf), gaps)
		b.of = (*T)(nil)
		return b
	}
	return Buffer{items: datatype.Items{Mem: datatype.Bytes(buf), Elem: datatype.SizeOf[T](), Sig: sig}, of: (*T)(nil)}
}

// padded returns count elements in mem as a Buffer. Their datatype t has gaps.
func padded(mem []byte, count int, t *datatype.Type) (b Buffer) {
	b.items, b.err = datatype.ItemsOf(datatype.Buffer{Mem: datatype.In(mem), Count: count, Type: t})
	return b
}

// Items returns count items of t in buf as a Buffer. Calls with it return ErrDatatype if t is nil or
// count negative, ErrCount if an item reaches outside buf, and ErrType if T is no element type. Only
// the data of items travels, so sender and receiver may use datatypes of different layouts; a
// message that is shorter than the items of the receiver fills the first part of them (MPI-4.1,
// Section 5.1.11). Items that are not one run of memory are sent from a packed copy; what comes is
// placed in them as it comes.
func Items[T Element](buf []T, count int, t *Datatype) Buffer {
	mem, err := datatype.CheckedBytes(buf)
	if err != nil {
		return Buffer{err: err}
	}
	b := Buffer{of: t.typ()}
	b.items, b.err = datatype.ItemsOf(datatype.Buffer{Mem: datatype.In(mem), Count: count, Type: t.typ()})
	return b
}

// ItemsAt returns count items of t at an address as a Buffer, for memory that is no Go slice, such as that
// of a C library: displacements of t, also negative ones, count from base. A nil base stands for address 0:
// displacements are addresses (MPI-4.1, Section 5.1.11: MPI_BOTTOM). All memory that t describes must be
// the caller's and stay in place until the operation is over; it is not checked. Go memory must be of one
// heap object, and base point into it. Calls with it return ErrDatatype if t is nil or count negative, and
// ErrBuffer if base is nil and there is data in the first 4096 bytes of memory.
func ItemsAt(base unsafe.Pointer, count int, t *Datatype) (b Buffer) {
	b.of = t.typ()
	if !b.items.SetRun(base, count, t.typ()) {
		b.items, b.err = datatype.ItemsAt(base, count, t.typ())
	}
	return b
}

// Len returns how many bytes of data there are: the length of a message with it (MPI_Type_size,
// times the count). It is 0 for a Buffer that calls refuse.
func (b Buffer) Len() int { return b.items.Len() }

// elementTypes holds the datatypes of the elements of Buffers that reductions have asked for.
var elementTypes sync.Map // reflect.Type → *datatype.Type

// datatype returns the datatype of the items, or of the elements.
func (b *Buffer) datatype() (*datatype.Type, error) {
	if b.err != nil {
		return nil, b.err
	}
	if t, ok := b.of.(*datatype.Type); ok {
		return t, nil
	}
	elem := reflect.TypeOf(b.of).Elem()
	t, ok := elementTypes.Load(elem)
	if !ok {
		made, err := datatype.OfGo(elem)
		if err != nil {
			return nil, err
		}
		t, _ = elementTypes.LoadOrStore(elem, made)
	}
	return t.(*datatype.Type), nil
}

// check returns why the Buffer cannot be sent with the tag, or nil.
func (b *Buffer) check(tag int) error {
	if b.err != nil {
		return b.err
	}
	return checkTag(tag)
}

// String describes b, not what is in it (MPI-4.1, Section 3.2.2).
func (b Buffer) String() string {
	switch x := &b.items; {
	case b.err != nil:
		return fmt.Sprintf("no buffer: %v", b.err)
	case x.Dense():
		return fmt.Sprintf("buffer of %d bytes", len(x.Mem))
	default:
		return fmt.Sprintf("buffer of %d items of %v", x.Gaps.Count, x.Gaps.Type)
	}
}
