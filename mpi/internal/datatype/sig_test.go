package datatype

import (
	"reflect"
	"testing"
)

type (
	kelvin float64
	pair   struct{ A, B float64 }
	mixed  struct {
		N int32
		X float64
	}
	mixedTwice struct {
		A mixed
		B [3]mixed
	}
	spread struct {
		A, B, C int32
		X       float64
	}
	grouped struct {
		A [3]int32
		X kelvin
	}
	vast struct {
		N int32
		X [maxSigWords]float64
	}
)

// TestSig compares types: those match whose values are of the same kind and
// size in the same order.
func TestSig(t *testing.T) {
	of := func(v any) Sig { return SigOf(reflect.TypeOf(v)) }
	for _, tt := range []struct {
		a, b any
		want bool
	}{
		{float64(0), kelvin(0), true},
		{float64(0), [7]float64{}, true},
		{float64(0), pair{}, true},
		{float64(0), [2]pair{}, true},
		{float64(0), float32(0), false},
		{float64(0), int64(0), false},
		{int64(0), uint64(0), false},
		{int32(0), int64(0), false},
		{int16(0), int8(0), false},
		{int8(0), false, false},
		{complex128(0), pair{}, false},
		{complex64(0), float64(0), false},
		{mixed{}, float64(0), false},
		{mixed{}, int32(0), false},
		{mixed{}, [5]mixed{}, true},
		{mixed{}, mixedTwice{}, true},
		{mixed{}, spread{}, false},
		{spread{}, grouped{}, true},
		{spread{}, struct{ A, B, C uint32 }{}, false},
		{byte(0), float64(0), true},
		{byte(0), mixed{}, true},
		{[16]byte{}, int32(0), true},
		{struct{ A, B byte }{}, int32(0), true},
		{vast{}, int8(0), true}, // too much to look at
		{struct{}{}, int8(0), true},
	} {
		a, b := of(tt.a), of(tt.b)
		if a.Matches(b) != tt.want || b.Matches(a) != tt.want {
			t.Errorf("%T (%v) and %T (%v) match: %v, want %v", tt.a, a, tt.b, b, !tt.want, tt.want)
		}
		if SigFailed.Matches(a) || a.Matches(SigFailed) {
			t.Errorf("%T matches what has failed", tt.a)
		}
	}
	if of(int(0)) != of(int64(0)) && of(int(0)) != of(int32(0)) {
		t.Error("int is unlike int64 and int32")
	}
	for _, tt := range []struct {
		s    Sig
		want string
	}{{of(kelvin(0)), "float64"}, {of(false), "bool"}, {of(complex64(0)), "complex64"}, {of(uint16(0)), "uint16"}, {of(mixed{}), "datatype.mixed"}, {SigAny, "bytes"}} {
		if got := tt.s.String(); got != tt.want {
			t.Errorf("signature %#x is called %q, want %q", uint16(tt.s), got, tt.want)
		}
	}
	// ElementSig has cases for the basic types.
	if s, err := ElementSig[uint32](); err != nil || s != of(uint32(0)) {
		t.Errorf("uint32: %v, %v", s, err)
	}
	if s, err := ElementSig[complex128](); err != nil || s != of(complex128(0)) {
		t.Errorf("complex128: %v, %v", s, err)
	}
	if s, err := ElementSig[mixed](); err != nil || s != of(mixed{}) {
		t.Errorf("mixed: %v, %v", s, err)
	}
}
