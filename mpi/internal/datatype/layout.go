package datatype

import (
	"reflect"
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
	ext    int // bytes in external32
	conv   conversion
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
		l.Ext += w.ext
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
		n := int(t.Size() / 2)
		l.words = append(l.words, elemWord{off: off, n: n, ext: n}, elemWord{off: off + n, n: n, ext: n})
	default:
		n := int(t.Size())
		l.words = append(l.words, elemWord{off: off, n: n, ext: n})
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
// both. It returns mpierr.ErrConversion for a value that external32 cannot hold.
func (e *Layout) ToExternal(dst, src []byte, n int) (d, s []byte, err error) {
	for range n {
		for i := range e.words {
			w := &e.words[i]
			if err := w.to(dst, src[w.off:]); err != nil {
				return dst, src, err
			}
			dst = dst[w.ext:]
		}
		src = src[e.Size:]
	}
	return dst, src, nil
}

// FromExternal is the reverse of ToExternal. Padding is not changed.
func (e *Layout) FromExternal(dst, src []byte, n int) (d, s []byte) {
	for range n {
		for i := range e.words {
			w := &e.words[i]
			w.from(dst[w.off:], src)
			src = src[w.ext:]
		}
		dst = dst[e.Size:]
	}
	return dst, src
}
