package datatype

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// MaxDepth bounds how deep datatypes may be nested.
const MaxDepth = 64

// A Type is a datatype (MPI-4.1, Chapter 5): it says where the parts of an item lie in
// memory, in bytes from the beginning of a buffer. It is made by Of and the
// constructors and is never changed. Two items in a row lie Extent bytes apart. Methods
// that say so take a nil *Type, which the checks of the caller refuse later.
type Type struct {
	// Handle is what the caller knows the datatype by. The constructors leave it to the
	// caller, who sets it before others use the datatype.
	Handle any

	root   loop
	size   int // bytes of data
	lb, ub int // bounds
	// marked is true if Resized has set the bounds of the datatype or of a part of
	// it: then only such parts count for the bounds of what is made of them.
	marked bool
	tlb    int // true bounds: those of the data
	tub    int
	align  int // for the padding of structs
	depth  int
	sig    signature
	// values is the signature of the values in messages; SigAny if they are of several types.
	values Sig
	made   *Contents // how it was made
	named  *Named    // the predefined datatype of C or Fortran that it is
	base   *Type     // the predefined datatype of all its elements; nil for several
}

// OfBytes is n bytes in a row.
func OfBytes(n int) *Type {
	return &Type{root: run(0, n), size: n, ub: n, tub: n, sig: byteSignature.repeat(n)}
}

var byteSignature = basicSignature(LayoutOf(reflect.TypeFor[byte]()))

// Size returns the bytes of data in an item: its length when packed. It is 0 for nil.
func (t *Type) Size() int {
	if t == nil {
		return 0
	}
	return t.size
}

// Extent returns the distance of an item from the next. It is 0 for nil.
func (t *Type) Extent() int {
	if t == nil {
		return 0
	}
	return t.ub - t.lb
}

// Bounds returns the lower and the upper bound of an item.
func (t *Type) Bounds() (lb, ub int) { return t.lb, t.ub }

// TrueBounds returns where the data of an item begins and ends.
func (t *Type) TrueBounds() (lb, ub int) { return t.tlb, t.tub }

// Align returns the alignment of the strictest element of an item, at least 1.
func (t *Type) Align() int { return max(t.align, 1) }

// Base returns the predefined datatype, or that of a Go type, of which all elements of t are; nil if there are
// several, or t is (MPI-4.1, Section 12.3.4: what a derived datatype of an update consists of).
func (t *Type) Base() *Type {
	if t == nil {
		return nil
	}
	return t.base
}

// Values returns the signature of the values of an item, in messages.
func (t *Type) Values() Sig { return t.values }

// Signature lists the elements of an item in the order in which they are
// packed, for people, as "2×int32 float64". It is empty for nil.
func (t *Type) Signature() string {
	if t == nil {
		return ""
	}
	return t.sig.String()
}

// Matches reports whether items of t and u have the same elements in the same
// order. It is false if one is nil.
func (t *Type) Matches(u *Type) bool { return t != nil && u != nil && t.sig.equal(u.sig) }

// String describes t, which may be nil.
func (t *Type) String() string {
	if t == nil {
		return "no datatype"
	}
	if t.named != nil {
		return t.named.Name
	}
	return fmt.Sprintf("datatype of %d bytes in [%d, %d)", t.size, t.lb, t.ub)
}

// Dense reports whether count items are one run of bytes from the beginning.
func (t *Type) Dense(count int) bool {
	off, _, ok := t.OneRun(count)
	return ok && off == 0
}

// OneRun reports whether the data of count items is one run of bytes in the order in which
// it is packed, where the run begins, and how long it is. Items without data are a run of
// no bytes at 0.
func (t *Type) OneRun(count int) (off, n int, ok bool) {
	switch {
	case count <= 0 || t.size == 0:
		return 0, 0, true
	case len(t.root.kids) > 0 || t.root.count > 1 || count > 1 && t.ub-t.lb != t.size:
		return 0, 0, false
	}
	return t.root.off, t.size * count, true
}

// Dup returns a datatype with the layout of t.
func (t *Type) Dup() (*Type, error) {
	u := t.like()
	u.named = t.named
	return u.madeBy(nil, CombinerDup, nil, t)
}

// like returns a datatype with the layout of t, without a handle, a name and contents.
func (t *Type) like() *Type {
	u := *t
	u.Handle, u.made, u.named = nil, nil, nil
	return &u
}

// Span checks that count items of t lie within a buffer of length bytes, from its beginning,
// and returns how long they are packed.
func (t *Type) Span(count, length int) (int, error) {
	size, lo, hi, err := t.reach(count)
	if err == nil && (lo < 0 || hi > length) && size > 0 {
		return 0, fmt.Errorf("%w: %d items of %v reach outside %d bytes", mpierr.ErrCount, count, t, length)
	}
	return size, err
}

// Items returns how many items of t are in n bytes of packed data (MPI_Get_count), and false if
// that is not a whole number (MPI_UNDEFINED).
func (t *Type) Items(n int) (int, bool) {
	if t.size == 0 {
		return 0, n == 0
	}
	return n / t.size, n%t.size == 0
}

// Elements returns how many basic elements are in n bytes of packed data of items of t
// (MPI_Get_elements), and false if that is not a whole number (MPI_UNDEFINED).
func (t *Type) Elements(n int) (int, bool) {
	if t.size == 0 {
		return 0, n == 0
	}
	k := n / t.size * t.sig.sums().elems
	more, left := t.sig.within(n % t.size)
	return k + more, left == 0
}

// ElementsSize returns how long the first n basic elements of items of t are when packed: the
// opposite of Elements. It reports false if there is no such number of elements.
func (t *Type) ElementsSize(n int) (int, bool) {
	each := t.sig.sums().elems
	if n < 0 || each == 0 {
		return 0, n == 0
	}
	// A status may have any length that fits an int, also one that no message has.
	hi, size := bits.Mul64(uint64(n/each), uint64(t.size))
	size, more := bits.Add64(size, uint64(t.sig.first(n%each)), 0)
	return int(size), hi == 0 && more == 0 && size <= math.MaxInt
}
