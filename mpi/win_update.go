package mpi

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/weftstack/weft/internal/bufpool"
)

// isWord reports whether elements of type t are 64-bit integers, which RDMA
// atomics can update.
func isWord(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Int64, reflect.Uint64:
		return true
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		return t.Size() == 8
	}
	return false
}

// apply combines src into mem, and stores what was there to old if that is not
// nil. Words are updated atomically also with respect to RDMA atomics.
func (w *window) apply(mem, src, old []byte, red reducer) {
	w.hold()
	defer w.release()
	if w.word {
		updateWords(mem, src, old, red)
		return
	}
	copy(old, mem)
	if red.code() != opNoOp { // which must not write
		red.combine(mem, mem, src)
	}
}

// updateWords is apply to words, wherever they are.
func updateWords(mem, src, old []byte, red reducer) {
	if red.code() == opNoOp && old == nil {
		return
	}
	var s *bufpool.Buffer // for operators that want operands in memory
	for i := 0; i+8 <= len(mem); i += 8 {
		p := (*uint64)(unsafe.Pointer(&mem[i]))
		var was uint64
		switch v := binary.NativeEndian.Uint64(src[i:]); red.code() {
		case opNoOp: // which must not write
			was = atomic.LoadUint64(p)
		case opReplace:
			was = atomic.SwapUint64(p, v)
		case opSum:
			was = atomic.AddUint64(p, v) - v
		default:
			if s == nil {
				s = bufpool.Get(16)
			}
			for {
				s.Words[0] = atomic.LoadUint64(p)
				red.combine(viewBytes(s.Words[1:2]), viewBytes(s.Words[:1]), src[i:i+8])
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

// applySwap stores the second half of operands to mem if that is equal to the
// first, and what was there to old.
func (w *window) applySwap(mem, operands, old []byte) {
	w.hold()
	defer w.release()
	if w.word {
		casWord(mem, operands, old)
		return
	}
	compare, swap := operands[:len(mem)], operands[len(mem):]
	copy(old, mem)
	if bytes.Equal(mem, compare) {
		copy(mem, swap)
	}
}

// casWord is applySwap to a word, wherever it is.
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

// reducersOf returns the operators that updates of elements of type T, of the
// given kind, may use (MPI-4.1, Section 12.3.4: the predefined ones).
func reducersOf[T Element](kind reflect.Kind) (ops [opCodes]reducer) {
	switch kind {
	case reflect.Int8:
		ops = integerOps[int8]()
	case reflect.Int16:
		ops = integerOps[int16]()
	case reflect.Int32:
		ops = integerOps[int32]()
	case reflect.Int64:
		ops = integerOps[int64]()
	case reflect.Int:
		ops = integerOps[int]()
	case reflect.Uint8:
		ops = integerOps[uint8]()
	case reflect.Uint16:
		ops = integerOps[uint16]()
	case reflect.Uint32:
		ops = integerOps[uint32]()
	case reflect.Uint64:
		ops = integerOps[uint64]()
	case reflect.Uint:
		ops = integerOps[uint]()
	case reflect.Uintptr:
		ops = integerOps[uintptr]()
	case reflect.Float32:
		ops = orderedOps[float32]()
	case reflect.Float64:
		ops = orderedOps[float64]()
	case reflect.Complex64:
		ops = numberOps[complex64]()
	case reflect.Complex128:
		ops = numberOps[complex128]()
	case reflect.Bool:
		ops = logicalOps[bool](ops)
	case reflect.Struct:
		var v T
		if p, ok := any(v).(interface{ locOps() (mn, mx reducer) }); ok {
			ops[opMinLoc], ops[opMaxLoc] = p.locOps()
		}
	}
	ops[opReplace], ops[opNoOp] = replaceOp[T]{}, noOp[T]{}
	return ops
}

func numberOps[T Number]() (ops [opCodes]reducer) {
	ops[opSum], ops[opProd] = sumOp[T]{}, prodOp[T]{}
	return ops
}

func orderedOps[T Ordered]() [opCodes]reducer {
	ops := numberOps[T]()
	ops[opMin], ops[opMax] = minOp[T]{}, maxOp[T]{}
	return ops
}

func logicalOps[T Logical](ops [opCodes]reducer) [opCodes]reducer {
	ops[opLand], ops[opLor], ops[opLxor] = landOp[T]{}, lorOp[T]{}, lxorOp[T]{}
	return ops
}

func integerOps[T Integer]() [opCodes]reducer {
	ops := logicalOps[T](orderedOps[T]())
	ops[opBand], ops[opBor], ops[opBxor] = bandOp[T]{}, borOp[T]{}, bxorOp[T]{}
	return ops
}

// locOps returns the operators on pairs.
func (ValLoc[V]) locOps() (mn, mx reducer) { return minLocOp[V]{}, maxLocOp[V]{} }
