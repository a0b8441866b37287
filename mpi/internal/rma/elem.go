package rma

import (
	"fmt"
	"math/bits"
	"reflect"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/op"
)

// Elem is the type of the elements of an update, which is atomic for each element: see ElemOf.
type Elem struct {
	code  elemCode
	size  int          // bytes of an element
	align int          // of its address; 1 if elements are only moved
	word  bool         // a 64-bit integer, which processors and RDMA update atomically
	sig   datatype.Sig // type signature
	ops   op.Table     // operators that it has
	// gap is set if the data of an element is not one run of memory: updates of it travel one by one, packed.
	gap *datatype.Type
}

// elemCode is the number of an element type in messages: a basic type; or a pair for MinLoc and MaxLoc, which is
// elemPair plus the type of its value; or elemNamed plus the place of a datatype in datatype.Predefined, for those of
// which a basic type does not have the representation.
type elemCode uint8

const (
	elemOther elemCode = iota // of any size, and only moved
	elemInt8
	elemInt16
	elemInt32
	elemInt64
	elemUint8
	elemUint16
	elemUint32
	elemUint64
	elemFloat32
	elemFloat64
	elemComplex64
	elemComplex128
	elemBool
	elemPair  elemCode = 16
	elemNamed elemCode = 32
)

// elems are the element types of requests, by code. That of elemOther has no size. None has a signature, which
// the origin has checked.
var elems = [2 * elemPair]*Elem{
	elemOther:      {align: 1, ops: op.Predefined(reflect.Invalid)},
	elemInt8:       basicElem[int8](elemInt8),
	elemInt16:      basicElem[int16](elemInt16),
	elemInt32:      basicElem[int32](elemInt32),
	elemInt64:      basicElem[int64](elemInt64),
	elemUint8:      basicElem[uint8](elemUint8),
	elemUint16:     basicElem[uint16](elemUint16),
	elemUint32:     basicElem[uint32](elemUint32),
	elemUint64:     basicElem[uint64](elemUint64),
	elemFloat32:    basicElem[float32](elemFloat32),
	elemFloat64:    basicElem[float64](elemFloat64),
	elemComplex64:  basicElem[complex64](elemComplex64),
	elemComplex128: basicElem[complex128](elemComplex128),
	elemBool:       basicElem[bool](elemBool),

	elemPair + elemInt8:    pairElem[int8](elemInt8),
	elemPair + elemInt16:   pairElem[int16](elemInt16),
	elemPair + elemInt32:   pairElem[int32](elemInt32),
	elemPair + elemInt64:   pairElem[int64](elemInt64),
	elemPair + elemUint8:   pairElem[uint8](elemUint8),
	elemPair + elemUint16:  pairElem[uint16](elemUint16),
	elemPair + elemUint32:  pairElem[uint32](elemUint32),
	elemPair + elemUint64:  pairElem[uint64](elemUint64),
	elemPair + elemFloat32: pairElem[float32](elemFloat32),
	elemPair + elemFloat64: pairElem[float64](elemFloat64),
}

func basicElem[T any](code elemCode) *Elem {
	t := reflect.TypeFor[T]()
	e := &Elem{code: code, size: int(t.Size()), align: t.Align(), ops: op.Predefined(t.Kind())}
	if e.word = code == elemInt64 || code == elemUint64; e.word {
		e.align = 8 // for processor atomics, also where an int64 may lie at a multiple of 4
	}
	return e
}

func pairElem[V op.Ordered](value elemCode) *Elem {
	t := reflect.TypeFor[op.ValLoc[V]]()
	e := &Elem{code: elemPair + value, size: int(t.Size()), align: t.Align(), ops: op.Predefined(t.Kind())}
	e.ops[op.CodeMinLoc], e.ops[op.CodeMaxLoc] = op.MinLoc[V]{}, op.MaxLoc[V]{}
	return e
}

// ElemOf returns the element type of values of type t, which holds no pointers. Numbers and bool have the
// predefined operators (MPI-4.1, Section 12.3.4), and so have pairs of a number and an int. All other types have
// Replace and NoOp only.
func ElemOf(t reflect.Type) *Elem {
	code := codeOf(t)
	e := *elems[code]
	e.sig = datatype.SigOf(t)
	if code == elemOther {
		e.size = max(int(t.Size()), 1)
	}
	return &e
}

// codeOf returns the code of a type.
func codeOf(t reflect.Type) elemCode {
	size := elemCode(bits.TrailingZeros(uint(t.Size())))
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return elemInt8 + size
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return elemUint8 + size
	case reflect.Float32:
		return elemFloat32
	case reflect.Float64:
		return elemFloat64
	case reflect.Complex64:
		return elemComplex64
	case reflect.Complex128:
		return elemComplex128
	case reflect.Bool:
		return elemBool
	case reflect.Struct: // laid out as op.ValLoc
		if t.NumField() == 2 && t.Field(1).Type.Kind() == reflect.Int {
			v := codeOf(t.Field(0).Type)
			if v < elemPair && elems[elemPair+v] != nil {
				return elemPair + v
			}
		}
	}
	return elemOther
}

// elemIn returns the element type that a request names, or nil if there is none of that code and size.
func elemIn(h *amHeader) *Elem {
	var e *Elem
	if h.elem >= elemNamed {
		e = namedElem(h.elem)
	} else if int(h.elem) < len(elems) {
		e = elems[h.elem]
	}
	if e == nil {
		return nil
	}
	if h.elem == elemOther && h.size == 0 || h.elem != elemOther && int(h.size) != e.size {
		return nil
	}
	return e
}

// Size returns the bytes of an element.
func (e *Elem) Size() int { return e.size }

// String returns the name of the type, for people.
func (e *Elem) String() string { return fmt.Sprintf("%v (%d bytes)", e.sig, e.size) }

// span returns how many bytes of memory n bytes of data take: those of elements in a row, or of one with gaps.
func (e *Elem) span(n int) int {
	if e.gap == nil || n == 0 {
		return n
	}
	_, hi := e.gap.TrueBounds()
	return hi
}

// fits reports whether elements may lie at the beginning of mem.
func (e *Elem) fits(mem []byte) bool { return addressOf(mem)%uintptr(e.align) == 0 }

// aligned returns operands at an address where elements may lie: b or a copy of it.
func (e *Elem) aligned(b []byte) []byte {
	if e.fits(b) {
		return b
	}
	c := AlignedBytes(len(b), e.align)
	copy(c, b)
	return c
}

func addressOf(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

// maxAlign bounds the alignment of elements.
const maxAlign = 64

// Operator returns a predefined operator on elements of the type, or nil if they do not have it.
func (e *Elem) Operator(code op.Code) op.Reducer { return e.ops[code] }

// reducer returns the code of an operator, or ErrOp if updates of elements of the type cannot use it.
func (e *Elem) reducer(red op.Reducer) (op.Code, error) {
	if e == nil {
		return 0, fmt.Errorf("%w: an update without an element type", mpierr.ErrDatatype)
	}
	if red == nil || e.ops[red.Code()] == nil {
		return 0, fmt.Errorf("%w: in an update of %v in a window", mpierr.ErrOp, e)
	}
	return red.Code(), nil
}

// locateUpdate is locate for an update of elements.
func (w *Window) locateUpdate(target, disp, n int, e *Elem) (off int, done bool, err error) {
	switch {
	case e == nil:
		return 0, false, fmt.Errorf("%w: an update without an element type", mpierr.ErrDatatype)
	case w.elem != nil && (e.code != w.elem.code || e.size != w.elem.size):
		return 0, false, fmt.Errorf("%w: an update of %v in a window of %v", mpierr.ErrTypeMismatch, e, w.elem)
	case n%e.size != 0:
		return 0, false, fmt.Errorf("%w: %d bytes are no whole number of elements of %v", mpierr.ErrCount, n, e)
	case e.size > MaxChunk:
		return 0, false, fmt.Errorf("%w: elements of %d bytes, more than %d", mpierr.ErrCount, e.size, MaxChunk)
	}
	off, done, err = w.locate(target, disp, n, AccessUpdate)
	if done || err != nil {
		return off, done, err
	}
	return off, false, w.checkPlace(target, off, e)
}

// checkPlace checks that elements may lie at a byte offset in the memory of a target. The target of a dynamic window
// does that itself.
func (w *Window) checkPlace(target, off int, e *Elem) error {
	if w.dynamic != nil {
		return nil
	}
	if over := (off + int(w.remote[target].Skew)) % e.align; over != 0 {
		return fmt.Errorf("%w: %v at %d of rank %d, whose address is %d above a multiple of %d",
			mpierr.ErrDatatype, e, off, target, over, e.align)
	}
	return nil
}

// ownElems returns the caller's own memory for an update.
func (w *Window) ownElems(off, n int, e *Elem) ([]byte, error) {
	mem, err := w.ownAt(off, e.span(n))
	if err == nil && !e.fits(mem) {
		err = fmt.Errorf("%w: %v at %d of the own memory, which is not at a multiple of %d",
			mpierr.ErrDatatype, e, off, e.align)
	}
	return mem, err
}
