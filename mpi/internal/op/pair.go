package op

import (
	"encoding/binary"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// pairOps returns MINLOC and MAXLOC on packed pairs of C or Fortran.
func pairOps(n *datatype.Named) Table {
	switch class := n.Index.Class(); {
	case n.Value.Format != nil:
		return extendedPairOps
	case class == "float" && n.Index.Size() == 4:
		return pairTable[float32, float32]()
	case class == "float":
		return pairTable[float64, float64]()
	}
	switch size, float := n.Value.Size(), n.Value.Class() == "float"; {
	case float && size == 4:
		return pairTable[float32, int32]()
	case float:
		return pairTable[float64, int32]()
	case size == 2:
		return pairTable[int16, int32]()
	case size == 4:
		return pairTable[int32, int32]()
	}
	return pairTable[int64, int32]()
}

func pairTable[V, I Ordered]() (ops Table) {
	ops[CodeMinLoc], ops[CodeMaxLoc] = minPair[V, I]{}, maxPair[V, I]{}
	return ops
}

// minPair and maxPair are MINLOC and MAXLOC on a value and an index without padding.
type (
	minPair[V, I Ordered] struct{ builtin }
	maxPair[V, I Ordered] struct{ builtin }
)

func (minPair[V, I]) Name() string { return codeNames[CodeMinLoc] }
func (maxPair[V, I]) Name() string { return codeNames[CodeMaxLoc] }
func (minPair[V, I]) Code() Code   { return CodeMinLoc }
func (maxPair[V, I]) Code() Code   { return CodeMaxLoc }

func (minPair[V, I]) Combine(dst, a, b []byte) { combinePairs[V, I](dst, a, b, false) }
func (maxPair[V, I]) Combine(dst, a, b []byte) { combinePairs[V, I](dst, a, b, true) }

func combinePairs[V, I Ordered](dst, a, b []byte, most bool) {
	v := datatype.SizeOf[V]()
	n := v + datatype.SizeOf[I]()
	for i := 0; i <= len(dst)-n; i += n {
		x, y, from := load[V](a[i:]), load[V](b[i:]), a
		wins := y < x
		if most {
			wins = y > x
		}
		if wins || y == x && load[I](b[i+v:]) < load[I](a[i+v:]) {
			from = b
		}
		copy(dst[i:i+n], from[i:i+n])
	}
}

// load reads a value that need not be aligned.
func load[T any](b []byte) (v T) {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)), b)
	return v
}

var extendedPairOps = func() (ops Table) {
	ops[CodeMinLoc], ops[CodeMaxLoc] = &extendedPair{code: CodeMinLoc}, &extendedPair{code: CodeMaxLoc}
	return ops
}()

// extendedPair is MINLOC or MAXLOC on a long double and an int without padding.
type extendedPair struct {
	builtin
	code Code
}

func (o *extendedPair) Name() string { return o.code.String() }
func (o *extendedPair) Code() Code   { return o.code }
func (o *extendedPair) Combine(dst, a, b []byte) {
	f := datatype.Extended
	n := f.Size + 4
	for i := 0; i <= len(dst)-n; i += n {
		x, y, from := f.Load(a[i:]), f.Load(b[i:]), a
		wins, loses := y.Less(x), x.Less(y)
		if o.code == CodeMaxLoc {
			wins, loses = loses, wins
		}
		j := i + f.Size
		before := int32(binary.NativeEndian.Uint32(b[j:])) < int32(binary.NativeEndian.Uint32(a[j:]))
		if wins || !loses && !x.IsNaN() && !y.IsNaN() && before {
			from = b
		}
		copy(dst[i:i+n], from[i:i+n])
	}
}
