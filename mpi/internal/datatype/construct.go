package datatype

import (
	"fmt"
	"slices"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Contiguous is count items in a row (MPI-4.1, Section 5.1.2).
func Contiguous(count int, t *Type) (*Type, error) {
	r, err := repeated(count, t.Extent(), 1, t)
	return r.madeBy(err, CombinerContiguous, []int{count}, t)
}

// Vector is count blocks of blocklen items, which begin stride items apart
// (MPI-4.1, Section 5.1.2).
func Vector(count, blocklen, stride int, t *Type) (*Type, error) {
	bytes, ok := Mul(stride, t.Extent())
	if !ok {
		return nil, fmt.Errorf("%w: stride of %d items", mpierr.ErrDatatype, stride)
	}
	r, err := repeated(count, bytes, blocklen, t)
	return r.madeBy(err, CombinerVector, []int{count, blocklen, stride}, t)
}

// Hvector is Vector with a stride in bytes (MPI_Type_create_hvector).
func Hvector(count, blocklen, stride int, t *Type) (*Type, error) {
	r, err := repeated(count, stride, blocklen, t)
	return r.madeBy(err, CombinerHvector, []int{count, blocklen, stride}, t)
}

// repeated makes count blocks, stride bytes apart, of blocklen items.
func repeated(count, stride, blocklen int, t *Type) (*Type, error) {
	b := builder{}
	if count < 0 || blocklen < 0 {
		return nil, fmt.Errorf("%w: %d blocks of %d items", mpierr.ErrDatatype, count, blocklen)
	}
	if count == 0 || blocklen == 0 {
		return b.done()
	}
	block, err := b.block(blocklen, t)
	if err != nil {
		return nil, err
	}
	last, ok := Mul(stride, count-1)
	if !ok || !b.place(0, block) || !b.place(last, block) {
		return nil, fmt.Errorf("%w: %d blocks %d bytes apart", mpierr.ErrDatatype, count, stride)
	}
	if b.t.size, ok = Mul(block.size, count); !ok {
		return nil, fmt.Errorf("%w: %d blocks of %d bytes", mpierr.ErrDatatype, count, block.size)
	}
	b.add(block.root.repeat(count, stride), b.t.size)
	b.t.sig = block.sig.repeat(count)
	return b.done()
}

// Indexed is blocks of lens[i] items, at displs[i] items from the beginning
// (MPI-4.1, Section 5.1.2).
func Indexed(lens, displs []int, t *Type) (*Type, error) {
	r, err := listed(len(displs), func(i int) int { return at(lens, i) }, displs, t.Extent(),
		func(int) *Type { return t }, len(lens) == len(displs))
	return r.madeBy(err, CombinerIndexed, slices.Concat([]int{len(displs)}, lens, displs), t)
}

// IndexedBlock is Indexed with blocks of the same length
// (MPI_Type_create_indexed_block).
func IndexedBlock(blocklen int, displs []int, t *Type) (*Type, error) {
	r, err := listed(len(displs), func(int) int { return blocklen }, displs, t.Extent(),
		func(int) *Type { return t }, true)
	return r.madeBy(err, CombinerIndexedBlock, slices.Concat([]int{len(displs), blocklen}, displs), t)
}

// Hindexed is Indexed with displacements in bytes
// (MPI_Type_create_hindexed).
func Hindexed(lens, displs []int, t *Type) (*Type, error) {
	r, err := listed(len(displs), func(i int) int { return at(lens, i) }, displs, 1,
		func(int) *Type { return t }, len(lens) == len(displs))
	return r.madeBy(err, CombinerHindexed, slices.Concat([]int{len(displs)}, lens, displs), t)
}

// HindexedBlock is Hindexed with blocks of the same length
// (MPI_Type_create_hindexed_block).
func HindexedBlock(blocklen int, displs []int, t *Type) (*Type, error) {
	r, err := listed(len(displs), func(int) int { return blocklen }, displs, 1,
		func(int) *Type { return t }, true)
	return r.madeBy(err, CombinerHindexedBlock, slices.Concat([]int{len(displs), blocklen}, displs), t)
}

// Struct is blocks of lens[i] items of types[i], at displs[i] bytes from
// the beginning (MPI-4.1, Section 5.1.2). As in a Go struct, the end is padded
// to the alignment of the strictest part, unless the bounds are those of a part made by
// Resized.
func Struct(lens, displs []int, types []*Type) (*Type, error) {
	t, err := listed(len(displs), func(i int) int { return at(lens, i) }, displs, 1,
		func(i int) *Type { return types[i] }, len(lens) == len(displs) && len(types) == len(displs))
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
func listed(n int, length func(int) int, displs []int, unit int, kind func(int) *Type, ok bool) (*Type, error) {
	if !ok {
		return nil, fmt.Errorf("%w: lists of different lengths", mpierr.ErrDatatype)
	}
	var b builder
	for i := range n {
		count, t := length(i), kind(i)
		if count < 0 {
			return nil, fmt.Errorf("%w: block of %d items", mpierr.ErrDatatype, count)
		}
		if count == 0 {
			continue
		}
		block, err := b.block(count, t)
		if err != nil {
			return nil, err
		}
		off, ok := Mul(displs[i], unit)
		if !ok || !b.place(off, block) {
			return nil, fmt.Errorf("%w: block at %d", mpierr.ErrDatatype, displs[i])
		}
		if b.t.size, ok = Add(b.t.size, block.size); !ok {
			return nil, fmt.Errorf("%w: size", mpierr.ErrDatatype)
		}
		node := block.root
		node.off += off
		b.add(node, block.size)
		b.t.sig = b.t.sig.join(block.sig)
	}
	return b.done()
}

// Resized is t with other bounds, to place items that follow one another
// (MPI-4.1, Section 5.1.7). A datatype that is made of it and of others has the bounds
// of the resized parts alone (Section 5.1.6: lb_marker and ub_marker); Subarray and
// Darray set bounds in this way too.
func Resized(t *Type, lb, extent int) (*Type, error) {
	if t == nil {
		return nil, fmt.Errorf("%w: nil", mpierr.ErrDatatype)
	}
	r := t.like()
	ub, ok := Add(lb, extent)
	if !ok {
		return nil, fmt.Errorf("%w: extent %d from %d", mpierr.ErrDatatype, extent, lb)
	}
	r.lb, r.ub, r.marked = lb, ub, true
	return r.madeBy(nil, CombinerResized, []int{lb, extent}, t)
}
