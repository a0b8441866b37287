package p2p

import (
	"unsafe"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/op"
)

// A ReceiveReduce fuses a receive with a reduction: the receive combines the message with
// a local operand while its bytes arrive, instead of storing it. That saves a pass over the
// message. The result does not depend on how the transport cuts the message into fragments.
type ReceiveReduce struct {
	Reducer op.Reducer // nil: the message is stored; never a function of the program
	Mine    []byte     // the local operand, as long as the buffer; may be the buffer
	Lower   bool       // the message comes from lower ranks: it is the left operand
	Elem    int        // bytes of an element, at most MaxReduceElem
	// part holds the first npart bytes of an element that a fragment has cut.
	part  [MaxReduceElem / 8]uint64
	npart int
}

// MaxReduceElem is the length of the longest elements that a receive combines, those of Go types.
// Longer ones (complex long double, pairs with a long double) are received first, then combined.
const MaxReduceElem = 16

// reduceBlock is how many bytes are copied at a time from fragments that are not aligned for
// their elements.
const reduceBlock = 4 << 10

// take combines the fragment b, which belongs at dst[off:]. Fragments come in order.
func (m *ReceiveReduce) take(dst []byte, off int, b []byte) {
	b = b[:min(len(b), len(dst)-off)]
	if n := off % m.Elem; n > 0 && n == m.npart {
		part := unsafe.Slice((*byte)(unsafe.Pointer(&m.part[0])), m.Elem)
		k := copy(part[n:], b)
		if m.npart += k; m.npart < m.Elem {
			return
		}
		m.combine(dst, off-n, part)
		off, b = off+k, b[k:]
	}
	m.npart = len(b) % m.Elem
	rest := b[len(b)-m.npart:]
	b = b[:len(b)-m.npart]
	if misaligned(b, m.Elem) {
		s := bufpool.Get(reduceBlock)
		for tmp := s.Bytes(reduceBlock / m.Elem * m.Elem); len(b) > 0; {
			n := copy(tmp, b)
			m.combine(dst, off, tmp[:n])
			off, b = off+n, b[n:]
		}
		s.Put()
	} else {
		m.combine(dst, off, b)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&m.part[0])), MaxReduceElem), rest)
}

// combine stores the combination of b, whole elements, and the local operand at dst[off:].
func (m *ReceiveReduce) combine(dst []byte, off int, b []byte) {
	if len(b) == 0 {
		return
	}
	dst, mine := dst[off:off+len(b)], m.Mine[off:off+len(b)]
	if m.Lower {
		m.Reducer.Combine(dst, b, mine)
	} else {
		m.Reducer.Combine(dst, mine, b)
	}
}

// misaligned reports whether b is not aligned for elements of elem bytes. Packed pairs, of which none has
// a power of two of bytes unless its parts are as long, need no alignment.
func misaligned(b []byte, elem int) bool {
	if elem&(elem-1) != 0 {
		return false
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(min(elem, 8)) != 0
}
