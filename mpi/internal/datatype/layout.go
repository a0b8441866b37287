package datatype

import (
	"reflect"
	"slices"
	"sync"
)

// A Layout says of what basic values an element consists. There is one for
// each type: the pointers may be compared.
type Layout struct {
	Name  string // of the type
	Size  int    // bytes in memory, with padding
	Ext   int    // bytes in external32, which has no padding
	words []elemWord
}

// elemWord is a basic value in an Element.
type elemWord struct {
	off, n int
	kind   reflect.Kind
}

var elemLayouts sync.Map // reflect.Type → *Layout

// LayoutOf returns the layout of a type without pointers.
func LayoutOf(t reflect.Type) *Layout {
	if l, ok := elemLayouts.Load(t); ok {
		return l.(*Layout)
	}
	l := &Layout{Name: t.String(), Size: int(t.Size())}
	l.add(t, 0)
	for _, w := range l.words {
		l.Ext += w.n
	}
	all, _ := elemLayouts.LoadOrStore(t, l)
	return all.(*Layout)
}

func (l *Layout) add(t reflect.Type, off int) {
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

// The canonical representation external32 (MPI-4.1, Section 14.5.2): values in
// big-endian order, integers in two's complement, floating-point numbers as in
// IEEE 754, without padding. A Go int is an integer of its own size, a complex
// number two of floating point, a bool one byte.

// bigEndianHost reports whether values lie in memory as in external32.
var bigEndianHost = func() bool {
	x := []uint16{1}
	return Bytes(x)[0] == 0
}()

// ToExternal converts n elements from src to dst and returns what is left of
// both.
func (e *Layout) ToExternal(dst, src []byte, n int) (d, s []byte) {
	for range n {
		for _, w := range e.words {
			copy(dst, src[w.off:w.off+w.n])
			swapWord(dst[:w.n])
			dst = dst[w.n:]
		}
		src = src[e.Size:]
	}
	return dst, src
}

// FromExternal is the reverse of ToExternal. Padding is not changed.
func (e *Layout) FromExternal(dst, src []byte, n int) (d, s []byte) {
	for range n {
		for _, w := range e.words {
			b := dst[w.off : w.off+w.n]
			copy(b, src)
			swapWord(b)
			src = src[w.n:]
		}
		dst = dst[e.Size:]
	}
	return dst, src
}

// swapWord changes a value from the order of the machine to big-endian order,
// and back.
func swapWord(b []byte) {
	if !bigEndianHost {
		slices.Reverse(b)
	}
}
