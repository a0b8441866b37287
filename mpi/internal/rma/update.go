package rma

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/op"
)

// apply combines src into mem, and stores the old elements to old if that is not nil. Words are
// updated by processor atomics, so they are atomic with respect to RDMA atomics, too.
func (w *Window) apply(mem, src, old []byte, e *Elem, red op.Reducer) {
	w.hold()
	defer w.release()
	if e.word {
		updateWords(mem, src, old, red)
		return
	}
	if e.gap != nil {
		e.applyGap(mem, src, old, red)
		return
	}
	copy(old, mem)
	if red.Code() != op.CodeNoOp { // NoOp must not write
		red.Combine(mem, mem, src)
	}
}

// applyGap is apply to one element with gaps. src and old are packed.
func (e *Elem) applyGap(mem, src, old []byte, red op.Reducer) {
	if len(src) == 0 {
		return
	}
	s := bufpool.Get(e.size)
	defer s.Put()
	b := s.Bytes(e.size)
	e.gap.Pack(b, mem, 1)
	copy(old, b)
	if red.Code() != op.CodeNoOp {
		red.Combine(b, b, src)
		e.gap.Unpack(mem, b, 1)
	}
}

// updateWords is apply to words, in any memory that is mapped here.
func updateWords(mem, src, old []byte, red op.Reducer) {
	if red.Code() == op.CodeNoOp && old == nil {
		return
	}
	var s *bufpool.Buffer // operands in memory, for operators without a processor atomic
	for i := 0; i+8 <= len(mem); i += 8 {
		p := (*uint64)(unsafe.Pointer(&mem[i]))
		var was uint64
		switch v := binary.NativeEndian.Uint64(src[i:]); red.Code() {
		case op.CodeNoOp: // must not write
			was = atomic.LoadUint64(p)
		case op.CodeReplace:
			was = atomic.SwapUint64(p, v)
		case op.CodeSum:
			was = atomic.AddUint64(p, v) - v
		default:
			if s == nil {
				s = bufpool.Get(16)
			}
			for {
				s.Words[0] = atomic.LoadUint64(p)
				red.Combine(datatype.Bytes(s.Words[1:2]), datatype.Bytes(s.Words[:1]), src[i:i+8])
				if atomic.CompareAndSwapUint64(p, s.Words[0], s.Words[1]) {
					break
				}
			}
			was = s.Words[0]
		}
		if old != nil {
			binary.NativeEndian.PutUint64(old[i:], was)
		}
	}
	s.Put()
}

// applySwap stores the second half of operands to mem if mem is equal to the first half, and the
// old element to old.
func (w *Window) applySwap(mem, operands, old []byte, e *Elem) {
	w.hold()
	defer w.release()
	if e.word {
		casWord(mem, operands, old)
		return
	}
	compare, swap := operands[:len(mem)], operands[len(mem):]
	copy(old, mem)
	if bytes.Equal(mem, compare) {
		copy(mem, swap)
	}
}

// casWord is applySwap to a word, in any memory that is mapped here.
func casWord(mem, operands, old []byte) {
	p := (*uint64)(unsafe.Pointer(&mem[0]))
	compare, swap := binary.NativeEndian.Uint64(operands), binary.NativeEndian.Uint64(operands[8:])
	for {
		was := atomic.LoadUint64(p)
		if was != compare || atomic.CompareAndSwapUint64(p, was, swap) {
			binary.NativeEndian.PutUint64(old, was)
			return
		}
	}
}
