package rma

import (
	"fmt"
	"math/bits"
	"reflect"
	"sync"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/op"
)

// namedElems are the element types of the predefined datatypes of C and Fortran, in the order of datatype.Predefined.
// Those that have the representation of a basic type have its code, so that their updates are processor atomics if its
// are.
var namedElems = sync.OnceValue(func() []*Elem {
	all := datatype.Predefined()
	list := make([]*Elem, len(all))
	for i, n := range all {
		e := &Elem{code: elemNamed + elemCode(i), size: n.Type.Size(), align: 1, sig: n.Type.Values()}
		if basic := basicCode(n); basic != elemOther {
			e.code, e.align, e.word = basic, elems[basic].align, elems[basic].word
		}
		for code := range op.Codes {
			if red, err := op.For(code, n.Type); err == nil {
				e.ops[code] = red
			}
		}
		if _, _, one := n.Type.OneRun(1); !one {
			e.gap = n.Type
		}
		list[i] = e
	}
	return list
})

// basicCode returns the basic type with the representation of a predefined datatype, or elemOther if there is none.
func basicCode(n *datatype.Named) elemCode {
	if n.Group == datatype.GroupPair || n.Format != nil {
		return elemOther
	}
	log := elemCode(bits.TrailingZeros(uint(n.Size())))
	switch n.Class() {
	case "float":
		return elemFloat32 + log - 2
	case "complex":
		return elemComplex64 + log - 3
	}
	switch {
	case n.Size() > 8:
		return elemOther
	case n.Class() == "uint":
		return elemUint8 + log
	}
	return elemInt8 + log // also truth values and characters
}

// namedElem returns the element type of a predefined datatype by its code, or nil.
func namedElem(code elemCode) *Elem {
	all := namedElems()
	i := int(code - elemNamed)
	if i >= len(all) || all[i].code != code {
		return nil
	}
	return all[i]
}

// namedIndex gives the place of a predefined datatype in datatype.Predefined.
var namedIndex = sync.OnceValue(func() map[*datatype.Named]int {
	m := make(map[*datatype.Named]int)
	for i, n := range datatype.Predefined() {
		m[n] = i
	}
	return m
})

// goElems caches the element types of Go types.
var goElems sync.Map // reflect.Type → *Elem

// ElemFor returns the element type of an update of items of t: the predefined datatype, or that of a Go type, of which
// t consists (MPI-4.1, Section 12.3.4). Replace and NoOp take items of several types, too, byte by byte: then it
// returns the type of bytes. Otherwise it returns mpierr.ErrDatatype for them.
func ElemFor(t *datatype.Type, code op.Code) (*Elem, error) {
	b := t.Base()
	if b == nil && t != nil && (code == op.CodeReplace || code == op.CodeNoOp) {
		return byteElem, nil
	}
	if b == nil {
		return nil, fmt.Errorf("%w: an update with %v of %v, which is not of one predefined datatype",
			mpierr.ErrDatatype, code, t)
	}
	if n := b.Named(); n != nil {
		return namedElems()[namedIndex()[n]], nil
	}
	rt := b.Contents().Go
	if e, ok := goElems.Load(rt); ok {
		return e.(*Elem), nil
	}
	e, _ := goElems.LoadOrStore(rt, ElemOf(rt))
	return e.(*Elem), nil
}

// byteElem is the type of bytes that are only moved.
var byteElem = ElemOf(reflect.TypeFor[[1]byte]())
