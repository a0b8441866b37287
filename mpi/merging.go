package mpi

import (
	"unsafe"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/op"
)

// merging is what a receive does with what comes instead of storing it: it combines
// it, element by element as it comes, with an operand that is there. The result
// does not depend on the pieces it comes in.
type merging struct {
	red   op.Reducer // nil: what comes is stored; never one of the user
	mine  []byte     // the operand that is there, as long as the buffer; may be the buffer
	lower bool       // what comes is from lower ranks
	elem  int        // bytes of an element, up to maxMerged
	part  [maxMerged / 8]uint64
	npart int // bytes of an element in part, the rest of which is to come
}

// maxMerged is the length of the longest elements of predefined operators.
const maxMerged = 16

// mergeBlock is how much is copied at a time where it has to, because what came
// lies where elements cannot.
const mergeBlock = 4 << 10

// take combines b, which came for dst[off:].
func (m *merging) take(dst []byte, off int, b []byte) {
	b = b[:min(len(b), len(dst)-off)]
	if n := off % m.elem; n > 0 && n == m.npart {
		part := unsafe.Slice((*byte)(unsafe.Pointer(&m.part[0])), m.elem)
		k := copy(part[n:], b)
		if m.npart += k; m.npart < m.elem {
			return
		}
		m.combine(dst, off-n, part)
		off, b = off+k, b[k:]
	}
	m.npart = len(b) % m.elem
	rest := b[len(b)-m.npart:]
	b = b[:len(b)-m.npart]
	if misaligned(b, m.elem) {
		s := bufpool.Get(mergeBlock)
		for tmp := s.Bytes(mergeBlock); len(b) > 0; {
			n := copy(tmp, b)
			m.combine(dst, off, tmp[:n])
			off, b = off+n, b[n:]
		}
		s.Put()
	} else {
		m.combine(dst, off, b)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&m.part[0])), maxMerged), rest)
}

// combine combines whole elements.
func (m *merging) combine(dst []byte, off int, b []byte) {
	if len(b) == 0 {
		return
	}
	dst, mine := dst[off:off+len(b)], m.mine[off:off+len(b)]
	if m.lower {
		m.red.Combine(dst, b, mine)
	} else {
		m.red.Combine(dst, mine, b)
	}
}

// misaligned reports whether elements of a size may not lie at b.
func misaligned(b []byte, elem int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(min(elem, 8)) != 0
}

// SendrecvReduce implements coll.Comm.
func (m *collComm) SendrecvReduce(sb []byte, dst int, acc, mine []byte, src int, lower bool) error {
	st, err := m.sendrecvMerge(sb, dst, acc, src, merging{red: m.red, mine: mine, lower: lower, elem: m.elem})
	return m.expect(st, err, src, len(acc))
}

// sendrecvMerge sends and receives at the same time; the receive combines.
func (m *collComm) sendrecvMerge(sb []byte, dst int, rb []byte, src int, merge merging) (Status, error) {
	if err := m.c.checkSource(m.slot, src); err != nil {
		return Status{}, err
	}
	r := newRequest(m.c.w.eng)
	r.merge = merge
	return m.c.sendWith(m.ctx, r, m.slot, sb, dst, m.tag, m.slot, rb, src, m.tag)
}
