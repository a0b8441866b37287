package datatype

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/bits"
	"reflect"
	"slices"
	"sync"
)

// A Sig tells of what basic values elements consist. It travels with each message, in
// bits that were free. Types match if their values are of the same kind and size in the
// same order, however they are grouped: int and int64, []float64 and [][3]float64.
//
//	0                                   not checked: bytes, and what has no signature
//	class<<4 | log2 of the size         one kind of basic value
//	sigSeveral | hash of the sequence   several; the sequence is its smallest period
type Sig uint16

const (
	SigAny Sig = 0
	// sigSeveral marks signatures of elements with several kinds of values. Two of those
	// are told apart unless their hashes of 15 bits are equal.
	sigSeveral Sig = 1 << 15
	// SigFailed marks data of a collective that has met a mismatch: it Matches nothing, so
	// that all ranks that depend on it hear of that.
	SigFailed Sig = 0xff
	// maxSigWords bounds the basic values of an element with several kinds that is
	// looked into. Larger ones are not checked.
	maxSigWords = 1 << 10
)

// sigClass is a kind of basic values.
type sigClass Sig

const (
	sigBool sigClass = iota + 1
	sigInt
	sigUint
	sigFloat
	sigComplex
	sigLogical         // of Fortran
	sigChar            // of C and Fortran, also wide ones
	sigExtended        // long double
	sigExtendedComplex // complex of it
)

var sigClassNames = [...]string{sigBool: "bool", sigInt: "int", sigUint: "uint", sigFloat: "float", sigComplex: "complex",
	sigLogical: "logical", sigChar: "char", sigExtended: "long double", sigExtendedComplex: "long double complex"}

func (c sigClass) of(size int) Sig {
	return Sig(c)<<4 | Sig(bits.TrailingZeros(uint(size)))
}

// sigByte is that of a byte. Elements that consist of bytes only are not checked.
var sigByte = sigUint.of(1)

// sigNames are the names of types with several kinds of values, by their signatures: those
// that this process has used.
var sigNames sync.Map // Sig → string

// String returns the name of a type with the signature.
func (s Sig) String() string {
	switch {
	case s == SigAny:
		return "bytes"
	case s == SigFailed:
		return "data of a collective that has failed"
	case s&sigSeveral != 0:
		if name, ok := sigNames.Load(s); ok {
			return name.(string)
		}
		return fmt.Sprintf("a struct of several kinds (signature %#04x)", uint16(s))
	}
	c := s >> 4
	if int(c) >= len(sigClassNames) || c == 0 {
		return fmt.Sprintf("signature %#04x", uint16(s))
	}
	switch sigClass(c) {
	case sigBool, sigExtended, sigExtendedComplex: // of one size
		return sigClassNames[c]
	}
	return fmt.Sprintf("%s%d", sigClassNames[c], 8<<(s&15))
}

// Matches reports whether a message of s may be received as r.
func (s Sig) Matches(r Sig) bool {
	if s == SigFailed || r == SigFailed {
		return false
	}
	return s == r || s == SigAny || r == SigAny
}

// SigOf returns the signature of a type without pointers.
func SigOf(t reflect.Type) Sig {
	words, n, ok := sigWords(t)
	switch {
	case !ok || n == 0:
		return SigAny
	case len(words) == 1 && words[0] == sigByte:
		return SigAny
	case len(words) == 1:
		return words[0]
	}
	return severalSig(words, t.String())
}

// severalSig returns the signature of elements with several kinds of values, called name.
func severalSig(words []Sig, name string) Sig {
	h := fnv.New32a()
	for _, w := range words {
		h.Write(binary.BigEndian.AppendUint16(nil, uint16(w)))
	}
	s := sigSeveral | Sig(h.Sum32()^h.Sum32()>>15)
	sigNames.LoadOrStore(s, name)
	return s
}

// sigWords returns the smallest period of the basic values of t, and how often it is
// repeated. It reports false if there are too many.
func sigWords(t reflect.Type) (period []Sig, n int, ok bool) {
	size := int(t.Size())
	one := func(c sigClass) ([]Sig, int, bool) { return []Sig{c.of(size)}, 1, true }
	switch t.Kind() {
	case reflect.Bool:
		return one(sigBool)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return one(sigInt)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return one(sigUint)
	case reflect.Float32, reflect.Float64:
		return one(sigFloat)
	case reflect.Complex64, reflect.Complex128:
		return one(sigComplex)
	case reflect.Array:
		period, n, ok = sigWords(t.Elem())
		return period, n * t.Len(), ok
	case reflect.Struct:
		return sigFields(t)
	}
	return nil, 0, false
}

// sigFields is sigWords for a struct.
func sigFields(t reflect.Type) (period []Sig, n int, ok bool) {
	var all []Sig // of all fields; or
	alike := true // all fields are period, n times in all
	for f := range t.Fields() {
		p, k, ok := sigWords(f.Type)
		if !ok {
			return nil, 0, false
		}
		if k == 0 {
			continue
		}
		if n == 0 {
			period = p
		}
		if alike = alike && slices.Equal(p, period); alike {
			n += k
		}
		if len(all) <= maxSigWords {
			all = append(all, slices.Repeat(p, min(k, maxSigWords+1))...)
		}
	}
	if alike {
		return period, n, true
	}
	if len(all) > maxSigWords {
		return nil, 0, false
	}
	for n := 1; n < len(all); n++ {
		if len(all)%n == 0 && slices.Equal(all[n:], all[:len(all)-n]) {
			return all[:n], len(all) / n, true
		}
	}
	return all, 1, true
}
