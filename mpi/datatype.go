package mpi

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// MaxTypeDepth bounds how deep datatypes may be nested.
const MaxTypeDepth = 64

// A Datatype says where the parts of an item lie in memory, in bytes from the
// beginning of a buffer (MPI-4.1, Chapter 5). It is made with TypeOf and the
// constructors, is never changed, and needs no commit. Two items in a row lie
// Extent bytes apart.
type Datatype struct {
	root   typeNode
	size   int // bytes of data
	lb, ub int // bounds
	// marked is true if TypeResized has set the bounds of the datatype or of a part of
	// it: then only such parts count for the bounds of what is made of them.
	marked bool
	tlb    int // true bounds: those of the data
	tub    int
	align  int // for the padding of structs
	depth  int
	sig    signature
	// values is the signature of the values in messages; datatype.SigAny if they are of several types.
	values datatype.Sig
	own    labels
	made   *Contents // how it was made
}

// Size returns the bytes of data in an item: its length when packed
// (MPI_Type_size).
func (t *Datatype) Size() int { return t.size }

// Extent returns the lower bound and the extent of an item
// (MPI_Type_get_extent).
func (t *Datatype) Extent() (lb, extent int) { return t.lb, t.ub - t.lb }

// extent returns the extent; 0 for nil, which the constructors refuse later.
func (t *Datatype) extent() int {
	if t == nil {
		return 0
	}
	return t.ub - t.lb
}

// TrueExtent returns the lower bound and the extent of the data of an item,
// without gaps at its ends (MPI_Type_get_true_extent).
func (t *Datatype) TrueExtent() (lb, extent int) { return t.tlb, t.tub - t.tlb }

// String describes t.
func (t *Datatype) String() string {
	if t == nil {
		return "no datatype"
	}
	return fmt.Sprintf("datatype of %d bytes in [%d, %d)", t.size, t.lb, t.ub)
}

// dense reports whether count items are one run of bytes from the beginning.
func (t *Datatype) dense(count int) bool {
	return t.tlb == 0 && t.tub == t.size && (count <= 1 || t.lb == 0 && t.ub == t.size) &&
		len(t.root.kids) == 0 && t.root.count <= 1
}

// TypeOf returns the datatype of one T (MPI-4.1, Section 3.2.2). It returns
// ErrType if T holds pointers.
func TypeOf[T Element]() (*Datatype, error) {
	sig, err := datatype.ElementSig[T]()
	if err != nil {
		return nil, err
	}
	var v T
	n := int(unsafe.Sizeof(v))
	t := &Datatype{root: run(0, n), size: n, ub: n, tub: n, align: int(unsafe.Alignof(v)),
		sig: basicSignature(layoutOf(reflect.TypeFor[T]())), values: sig}
	t.made = &Contents{Combiner: CombinerNamed, Go: reflect.TypeFor[T](), named: t}
	return t, nil
}

// MustType returns t, for datatypes whose arguments are right for sure, so that
// they can be made within one another. It panics if err is not nil.
func MustType(t *Datatype, err error) *Datatype {
	if err != nil {
		panic(err)
	}
	return t
}

// TypeContiguous is count items in a row (MPI-4.1, Section 5.1.2).
func TypeContiguous(count int, t *Datatype) (*Datatype, error) {
	r, err := repeated(count, t.extent(), 1, t)
	return r.madeBy(err, CombinerContiguous, []int{count}, t)
}

// TypeVector is count blocks of blocklen items, which begin stride items apart
// (MPI-4.1, Section 5.1.2).
func TypeVector(count, blocklen, stride int, t *Datatype) (*Datatype, error) {
	bytes, ok := mul2(stride, t.extent())
	if !ok {
		return nil, fmt.Errorf("%w: stride of %d items", ErrDatatype, stride)
	}
	r, err := repeated(count, bytes, blocklen, t)
	return r.madeBy(err, CombinerVector, []int{count, blocklen, stride}, t)
}

// TypeHvector is TypeVector with a stride in bytes (MPI_Type_create_hvector).
func TypeHvector(count, blocklen, stride int, t *Datatype) (*Datatype, error) {
	r, err := repeated(count, stride, blocklen, t)
	return r.madeBy(err, CombinerHvector, []int{count, blocklen, stride}, t)
}

// repeated makes count blocks, stride bytes apart, of blocklen items.
func repeated(count, stride, blocklen int, t *Datatype) (*Datatype, error) {
	b := builder{}
	if count < 0 || blocklen < 0 {
		return nil, fmt.Errorf("%w: %d blocks of %d items", ErrDatatype, count, blocklen)
	}
	if count == 0 || blocklen == 0 {
		return b.done()
	}
	block, err := b.block(blocklen, t)
	if err != nil {
		return nil, err
	}
	last, ok := mul2(stride, count-1)
	if !ok || !b.place(0, block) || !b.place(last, block) {
		return nil, fmt.Errorf("%w: %d blocks %d bytes apart", ErrDatatype, count, stride)
	}
	if b.t.size, ok = mul2(block.size, count); !ok {
		return nil, fmt.Errorf("%w: %d blocks of %d bytes", ErrDatatype, count, block.size)
	}
	b.add(block.root.repeat(count, stride), b.t.size)
	b.t.sig = block.sig.repeat(count)
	return b.done()
}

// TypeIndexed is blocks of lens[i] items, at displs[i] items from the beginning
// (MPI-4.1, Section 5.1.2).
func TypeIndexed(lens, displs []int, t *Datatype) (*Datatype, error) {
	r, err := listed(len(displs), func(i int) int { return at(lens, i) }, displs, t.extent(),
		func(int) *Datatype { return t }, len(lens) == len(displs))
	return r.madeBy(err, CombinerIndexed, slices.Concat([]int{len(displs)}, lens, displs), t)
}

// TypeIndexedBlock is TypeIndexed with blocks of the same length
// (MPI_Type_create_indexed_block).
func TypeIndexedBlock(blocklen int, displs []int, t *Datatype) (*Datatype, error) {
	r, err := listed(len(displs), func(int) int { return blocklen }, displs, t.extent(),
		func(int) *Datatype { return t }, true)
	return r.madeBy(err, CombinerIndexedBlock, slices.Concat([]int{len(displs), blocklen}, displs), t)
}

// TypeHindexed is TypeIndexed with displacements in bytes
// (MPI_Type_create_hindexed).
func TypeHindexed(lens, displs []int, t *Datatype) (*Datatype, error) {
	r, err := listed(len(displs), func(i int) int { return at(lens, i) }, displs, 1,
		func(int) *Datatype { return t }, len(lens) == len(displs))
	return r.madeBy(err, CombinerHindexed, slices.Concat([]int{len(displs)}, lens, displs), t)
}

// TypeHindexedBlock is TypeHindexed with blocks of the same length
// (MPI_Type_create_hindexed_block).
func TypeHindexedBlock(blocklen int, displs []int, t *Datatype) (*Datatype, error) {
	r, err := listed(len(displs), func(int) int { return blocklen }, displs, 1,
		func(int) *Datatype { return t }, true)
	return r.madeBy(err, CombinerHindexedBlock, slices.Concat([]int{len(displs), blocklen}, displs), t)
}

// TypeStruct is blocks of lens[i] items of types[i], at displs[i] bytes from
// the beginning (MPI-4.1, Section 5.1.2). As in a Go struct, the end is padded
// to the alignment of the strictest part, unless the bounds are those of a part made by
// TypeResized.
func TypeStruct(lens, displs []int, types []*Datatype) (*Datatype, error) {
	t, err := listed(len(displs), func(i int) int { return at(lens, i) }, displs, 1,
		func(i int) *Datatype { return types[i] }, len(lens) == len(displs) && len(types) == len(displs))
	if err != nil {
		return nil, err
	}
	if over := (t.ub - t.lb) % max(t.align, 1); over > 0 && !t.marked {
		t.ub += t.align - over
	}
	return t.madeBy(nil, CombinerStruct, slices.Concat([]int{len(displs)}, lens, displs), types...)
}

func at(v []int, i int) int {
	if i < len(v) {
		return v[i]
	}
	return 0
}

// listed makes n blocks of len(i) items of kind(i) at displs[i]*unit bytes.
func listed(n int, length func(int) int, displs []int, unit int, kind func(int) *Datatype, ok bool) (*Datatype, error) {
	if !ok {
		return nil, fmt.Errorf("%w: lists of different lengths", ErrDatatype)
	}
	var b builder
	for i := range n {
		count, t := length(i), kind(i)
		if count < 0 {
			return nil, fmt.Errorf("%w: block of %d items", ErrDatatype, count)
		}
		if count == 0 {
			continue
		}
		block, err := b.block(count, t)
		if err != nil {
			return nil, err
		}
		off, ok := mul2(displs[i], unit)
		if !ok || !b.place(off, block) {
			return nil, fmt.Errorf("%w: block at %d", ErrDatatype, displs[i])
		}
		if b.t.size, ok = add2(b.t.size, block.size); !ok {
			return nil, fmt.Errorf("%w: size", ErrDatatype)
		}
		node := block.root
		node.off += off
		b.add(node, block.size)
		b.t.sig = b.t.sig.join(block.sig)
	}
	return b.done()
}

// TypeResized is t with other bounds, to place items that follow one another
// (MPI-4.1, Section 5.1.7). A datatype that is made of it and of others has the bounds
// of the resized parts alone (Section 5.1.6: lb_marker and ub_marker); TypeSubarray and
// TypeDarray set bounds in this way too.
func TypeResized(t *Datatype, lb, extent int) (*Datatype, error) {
	if t == nil {
		return nil, fmt.Errorf("%w: nil", ErrDatatype)
	}
	r := t.like()
	ub, ok := add2(lb, extent)
	if !ok {
		return nil, fmt.Errorf("%w: extent %d from %d", ErrDatatype, extent, lb)
	}
	r.lb, r.ub, r.marked = lb, ub, true
	return r.madeBy(nil, CombinerResized, []int{lb, extent}, t)
}

// Order is the order of the dimensions of an array in memory (MPI_ORDER_C).
type Order int

// Orders of TypeSubarray.
const (
	RowMajor    Order = iota // MPI_ORDER_C: the last index varies fastest, as in Go
	ColumnMajor              // MPI_ORDER_FORTRAN: the first index varies fastest, as in Fortran
)

// TypeSubarray is the part of an array of items with the given sizes that
// begins at starts and has subsizes items in each dimension. Its extent is that
// of the whole array (MPI-4.1, Section 5.1.3).
func TypeSubarray(sizes, subsizes, starts []int, order Order, t *Datatype) (*Datatype, error) {
	d := len(sizes)
	if d == 0 || len(subsizes) != d || len(starts) != d || order != RowMajor && order != ColumnMajor {
		return nil, fmt.Errorf("%w: %d sizes, %d subsizes, %d starts", ErrDatatype, d, len(subsizes), len(starts))
	}
	extent := t.extent()
	out, stride, off := t, extent, 0
	var err error
	for k := range d {
		i := d - 1 - k // fastest first
		if order == ColumnMajor {
			i = k
		}
		if sizes[i] < 1 || subsizes[i] < 1 || starts[i] < 0 || starts[i] > sizes[i]-subsizes[i] {
			return nil, fmt.Errorf("%w: %d items from %d of %d", ErrDatatype, subsizes[i], starts[i], sizes[i])
		}
		if out, err = repeated(subsizes[i], stride, 1, out); err != nil {
			return nil, err
		}
		skip, ok1 := mul2(starts[i], stride)
		sum, ok2 := add2(off, skip)
		next, ok3 := mul2(stride, sizes[i])
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("%w: array of %v", ErrDatatype, sizes)
		}
		off, stride = sum, next
	}
	if out, err = TypeHindexedBlock(1, []int{off}, out); err != nil {
		return nil, err
	}
	out, err = TypeResized(out, 0, stride)
	return out.madeBy(err, CombinerSubarray, slices.Concat([]int{d}, sizes, subsizes, starts, []int{int(order)}), t)
}

// builder collects the blocks of a datatype.
type builder struct {
	t     Datatype
	nodes []typeNode
	some  bool // there are bounds
	data  bool // there is data in them
}

// block is n items of t in a row, without checking n.
func (b *builder) block(n int, t *Datatype) (*Datatype, error) {
	if t == nil {
		return nil, fmt.Errorf("%w: nil", ErrDatatype)
	}
	if t.depth >= MaxTypeDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d", ErrDatatype, MaxTypeDepth)
	}
	b.t.depth = max(b.t.depth, t.depth+1)
	b.t.align = max(b.t.align, t.align)
	if n == 1 {
		return t, nil
	}
	extent := t.ub - t.lb
	r := &Datatype{values: t.values, lb: t.lb, ub: t.ub, marked: t.marked, tlb: t.tlb, tub: t.tub}
	last, ok := mul2(extent, n-1)
	var ok1, ok2, ok3, ok4, ok5 bool
	if r.size, ok5 = mul2(t.size, n); last < 0 {
		r.lb, ok1 = add2(t.lb, last)
		r.tlb, ok2 = add2(t.tlb, last)
		ok3, ok4 = true, true
	} else {
		r.ub, ok3 = add2(t.ub, last)
		r.tub, ok4 = add2(t.tub, last)
		ok1, ok2 = true, true
	}
	if !(ok && ok1 && ok2 && ok3 && ok4 && ok5) {
		return nil, fmt.Errorf("%w: block of %d items of %d bytes", ErrDatatype, n, extent)
	}
	r.root = t.root.repeat(n, extent)
	r.sig = t.sig.repeat(n)
	return r, nil
}

// place widens the bounds for a block at off. MPI-4.1, Section 5.1.6: the bounds are
// those of the parts with markers, if there are any; a part without data and markers
// has none.
func (b *builder) place(off int, t *Datatype) bool {
	lb, ok1 := add2(t.lb, off)
	ub, ok2 := add2(t.ub, off)
	tlb, ok3 := add2(t.tlb, off)
	tub, ok4 := add2(t.tub, off)
	switch {
	case t.marked && !b.t.marked, !b.some && (t.marked || t.size > 0):
		b.t.lb, b.t.ub, b.t.marked, b.some = lb, ub, t.marked, true
	case t.marked == b.t.marked && (t.marked || t.size > 0):
		b.t.lb, b.t.ub = min(b.t.lb, lb), max(b.t.ub, ub)
	}
	if t.size > 0 {
		if !b.data {
			b.t.tlb, b.t.tub, b.t.values, b.data = tlb, tub, t.values, true
		}
		if b.t.values != t.values {
			b.t.values = datatype.SigAny
		}
		b.t.tlb, b.t.tub = min(b.t.tlb, tlb), max(b.t.tub, tub)
	}
	return ok1 && ok2 && ok3 && ok4
}

// add appends a node with size bytes of data, joined with the one before if
// they are one run.
func (b *builder) add(n typeNode, size int) {
	if size == 0 {
		return
	}
	if k := len(b.nodes) - 1; k >= 0 {
		last := &b.nodes[k]
		if last.count == 1 && n.count == 1 && len(last.kids)+len(n.kids) == 0 && last.off+last.n == n.off {
			last.n += n.n
			return
		}
	}
	b.nodes = append(b.nodes, n)
}

func (b *builder) done() (*Datatype, error) {
	switch len(b.nodes) {
	case 0:
	case 1:
		b.t.root = b.nodes[0]
	default:
		b.t.root = typeNode{count: 1, kids: b.nodes}
	}
	return &b.t, nil
}

// maxTypeBytes bounds sizes, bounds and displacements, so that sums of two of
// them fit an int.
const maxTypeBytes = math.MaxInt / 4

// mul2 and add2 report whether the result is within bounds.
func mul2(a, b int) (int, bool) {
	hi, lo := bits.Mul64(uint64(abs(a)), uint64(abs(b)))
	return a * b, hi == 0 && lo <= maxTypeBytes
}

func add2(a, b int) (int, bool) {
	s := a + b
	return s, abs(a) <= 2*maxTypeBytes && abs(b) <= 2*maxTypeBytes && abs(s) <= maxTypeBytes
}

// abs returns the absolute value, and MaxInt for MinInt.
func abs(a int) int {
	switch {
	case a == math.MinInt:
		return math.MaxInt
	case a < 0:
		return -a
	}
	return a
}
