package mpi

import (
	"bytes"
	"reflect"
	"sync/atomic"
	"unsafe"
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
	if !w.word {
		copy(old, mem)
		if red.code() != opNoOp { // which must not write
			red.combine(mem, mem, src)
		}
		return
	}
	was, is := viewBytes(w.tmp[:1]), viewBytes(w.tmp[1:])
	for i := 0; i+8 <= len(mem); i += 8 {
		p := (*uint64)(unsafe.Pointer(&mem[i]))
		for {
			w.tmp[0] = atomic.LoadUint64(p)
			red.combine(is, was, src[i:i+8])
			if atomic.CompareAndSwapUint64(p, w.tmp[0], w.tmp[1]) {
				break
			}
		}
		if old != nil {
			copy(old[i:], was)
		}
	}
}

// applySwap stores the second half of operands to mem if that is equal to the
// first, and what was there to old.
func (w *window) applySwap(mem, operands, old []byte) {
	w.hold()
	defer w.release()
	compare, swap := operands[:len(mem)], operands[len(mem):]
	if !w.word {
		copy(old, mem)
		if bytes.Equal(mem, compare) {
			copy(mem, swap)
		}
		return
	}
	p := (*uint64)(unsafe.Pointer(&mem[0]))
	c, s := viewBytes(w.tmp[:1]), viewBytes(w.tmp[1:])
	copy(c, compare)
	copy(s, swap)
	for {
		was := atomic.LoadUint64(p)
		if was != w.tmp[0] || atomic.CompareAndSwapUint64(p, was, w.tmp[1]) {
			w.tmp[0] = was
			copy(old, c)
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
