package mpi

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unsafe"
)

// elemLayout says of what basic values an Element consists. There is one for
// each type: the pointers may be compared.
type elemLayout struct {
	name  string
	size  int // bytes in memory, with padding
	ext   int // bytes in external32: without
	words []elemWord
}

// elemWord is a basic value in an Element.
type elemWord struct {
	off, n int
	kind   reflect.Kind
}

var elemLayouts sync.Map // reflect.Type → *elemLayout

// layoutOf returns the layout of a type without pointers.
func layoutOf(t reflect.Type) *elemLayout {
	if l, ok := elemLayouts.Load(t); ok {
		return l.(*elemLayout)
	}
	l := &elemLayout{name: t.String(), size: int(t.Size())}
	l.add(t, 0)
	for _, w := range l.words {
		l.ext += w.n
	}
	all, _ := elemLayouts.LoadOrStore(t, l)
	return all.(*elemLayout)
}

func (l *elemLayout) add(t reflect.Type, off int) {
	switch t.Kind() {
	case reflect.Struct:
		for field := range t.Fields() {
			l.add(field.Type, off+int(field.Offset))
		}
	case reflect.Array:
		for i := range t.Len() {
			l.add(t.Elem(), off+i*int(t.Elem().Size()))
		}
	case reflect.Complex64, reflect.Complex128: // two numbers
		n, kind := int(t.Size()/2), reflect.Float32
		if n == 8 {
			kind = reflect.Float64
		}
		l.words = append(l.words, elemWord{off, n, kind}, elemWord{off + n, n, kind})
	default:
		l.words = append(l.words, elemWord{off, int(t.Size()), t.Kind()})
	}
}

// signature is the sequence of the elements of a datatype, in the order in
// which they are packed (MPI-4.1, Section 5.1: the type signature).
type signature []sigPart

// sigPart is a number of elements, or of signatures.
type sigPart struct {
	count int
	elem  *elemLayout // or nil, and
	kids  signature
}

func basicSignature(e *elemLayout) signature {
	if len(e.words) == 0 {
		return nil
	}
	return signature{{count: 1, elem: e}}
}

// repeat returns s, n times.
func (s signature) repeat(n int) signature {
	switch {
	case n == 0 || len(s) == 0:
		return nil
	case n == 1:
		return s
	case len(s) == 1:
		return signature{{s[0].count * n, s[0].elem, s[0].kids}}
	}
	return signature{{count: n, kids: s}}
}

// join returns s and then t. It may change what lies behind the end of s.
func (s signature) join(t signature) signature {
	for _, p := range t {
		if k := len(s) - 1; k >= 0 && s[k].elem == p.elem && sameSignature(s[k].kids, p.kids) {
			s[k].count += p.count
			continue
		}
		s = append(s, p)
	}
	return s
}

// sameSignature reports whether s and t are the same slice.
func sameSignature(s, t signature) bool {
	return len(s) == len(t) && unsafe.SliceData(s) == unsafe.SliceData(t)
}

// equal reports whether s and t have the same elements in the same order.
func (s signature) equal(t signature) bool {
	type run struct {
		elem *elemLayout
		n    int
	}
	flat := func(s signature) []run {
		var out []run
		s.each(func(e *elemLayout, n int) {
			if k := len(out) - 1; k >= 0 && out[k].elem == e {
				out[k].n += n
			} else {
				out = append(out, run{e, n})
			}
		})
		return out
	}
	a, b := flat(s), flat(t)
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// each calls f for the elements in order, n in a row at a time.
func (s signature) each(f func(e *elemLayout, n int)) {
	for _, p := range s {
		if p.elem != nil {
			f(p.elem, p.count)
			continue
		}
		for range p.count {
			p.kids.each(f)
		}
	}
}

// external returns the bytes of s in external32, which it reports to fit an
// int.
func (s signature) external() (n int, ok bool) {
	for _, p := range s {
		var one int
		if p.elem != nil {
			one = p.elem.ext
		} else if one, ok = p.kids.external(); !ok {
			return 0, false
		}
		all, ok1 := mul2(one, p.count)
		sum, ok2 := add2(n, all)
		if !ok1 || !ok2 {
			return 0, false
		}
		n = sum
	}
	return n, true
}

// String lists the elements, as "2×int32 3×(float64 int8)".
func (s signature) String() string {
	var b strings.Builder
	for i, p := range s {
		if i > 0 {
			b.WriteByte(' ')
		}
		if p.count != 1 {
			fmt.Fprintf(&b, "%d×", p.count)
		}
		if p.elem != nil {
			b.WriteString(p.elem.name)
		} else {
			fmt.Fprintf(&b, "(%v)", p.kids)
		}
	}
	return b.String()
}

// Signature lists the elements of an item in the order in which they are
// packed, for people, as "2×int32 float64" (MPI-4.1, Section 5.1).
func (t *Datatype) Signature() string {
	if t == nil {
		return ""
	}
	return t.sig.String()
}

// Matches reports whether items of t and u have the same elements in the same
// order, which is when one may be sent and the other received (MPI-4.1, Section
// 3.3.1; MPI-4.1, Section 3.3.1). Messages are checked less strictly: see
// ErrTypeMismatch.
func (t *Datatype) Matches(u *Datatype) bool {
	return t != nil && u != nil && t.sig.equal(u.sig)
}
