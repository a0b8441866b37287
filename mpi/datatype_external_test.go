package mpi

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// extPart is a struct with padding, an array and a complex number.
type extPart struct {
	A int8
	B int32
	C [2]uint16
	D complex64
	E bool
	F float64
}

func mustType(t *testing.T) func(*Datatype, error) *Datatype {
	return func(d *Datatype, err error) *Datatype {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// TestExternalIsBigEndian compares with bytes written by hand (MPI-4.1, Section
// 14.5.2).
func TestExternalIsBigEndian(t *testing.T) {
	must := mustType(t)
	v := []extPart{{-2, 0x01020304, [2]uint16{0x0506, 0x0708}, complex(1, -2), true, math.Pi}}
	d := must(TypeOf[extPart]())
	want := "fe" + "01020304" + "0506" + "0708" + "3f800000" + "c0000000" + "01" + "400921fb54442d18"
	b, err := AppendExternal([]byte{0x99}, v, 1, d)
	if err != nil || hex.EncodeToString(b) != "99"+want || d.ExternalSize() != len(want)/2 {
		t.Fatalf("external %x (%d bytes), %v; want 99%s", b, d.ExternalSize(), err, want)
	}
	var back [1]extPart
	rest, err := UnpackExternal(append(b[1:], 7), back[:], 1, d)
	if err != nil || back[0] != v[0] || !bytes.Equal(rest, []byte{7}) {
		t.Errorf("back %+v, rest %v, %v", back, rest, err)
	}
	if _, err := UnpackExternal(b[:5], back[:], 1, d); !errors.Is(err, ErrCount) {
		t.Errorf("too short: %v", err)
	}
	if _, err := AppendExternal(nil, v, 2, d); !errors.Is(err, ErrCount) {
		t.Errorf("too many items: %v", err)
	}
}

// TestExternalRoundTrip packs random datatypes, and unpacks them elsewhere.
func TestExternalRoundTrip(t *testing.T) {
	must := mustType(t)
	i16, f64, part := must(TypeOf[int16]()), must(TypeOf[float64]()), must(TypeOf[extPart]())
	types := []*Datatype{
		must(TypeVector(3, 2, 4, i16)),
		must(TypeStruct([]int{2, 1, 2}, []int{0, 8, 24}, []*Datatype{i16, f64, part})),
		must(TypeIndexed([]int{2, 0, 1}, []int{4, 9, 0}, part)),
		must(TypeContiguous(3, must(TypeStruct([]int{1, 1}, []int{8, 0}, []*Datatype{i16, f64})))),
		must(TypeSubarray([]int{4, 5}, []int{2, 3}, []int{1, 1}, RowMajor, f64)),
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, d := range types {
		_, extent := d.Extent()
		src := make([]byte, 2*extent+64)
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		ext, err := AppendExternal(nil, src, 2, d)
		if err != nil || len(ext) != 2*d.ExternalSize() {
			t.Fatalf("%v: %d bytes, %v", d.Signature(), len(ext), err)
		}
		dst := make([]byte, len(src))
		if _, err := UnpackExternal(ext, dst, 2, d); err != nil {
			t.Fatal(err)
		}
		again, _ := AppendExternal(nil, dst, 2, d)
		if !bytes.Equal(again, ext) {
			t.Errorf("%v: another representation after a round trip", d.Signature())
		}
	}
}

func TestSignaturesMatch(t *testing.T) {
	must := mustType(t)
	i32, f64 := must(TypeOf[int32]()), must(TypeOf[float64]())
	pair := must(TypeStruct([]int{1, 1}, []int{0, 8}, []*Datatype{i32, f64}))
	same := []struct {
		a, b *Datatype
		want bool
	}{
		{must(TypeContiguous(6, i32)), must(TypeVector(3, 2, 9, i32)), true},
		{must(TypeContiguous(6, i32)), must(TypeContiguous(5, i32)), false},
		{i32, must(TypeOf[uint32]()), false},
		{must(TypeContiguous(2, pair)), must(TypeIndexedBlock(1, []int{3, 0}, pair)), true},
		{must(TypeContiguous(2, pair)), must(TypeStruct([]int{1, 1, 1, 1}, []int{0, 8, 16, 24}, []*Datatype{i32, f64, i32, f64})), true},
		{must(TypeContiguous(2, pair)), must(TypeStruct([]int{2, 2}, []int{0, 8}, []*Datatype{i32, f64})), false},
		{must(TypeResized(i32, -8, 64)), i32, true},
		{i32, nil, false},
	}
	for _, s := range same {
		if got := s.a.Matches(s.b); got != s.want {
			t.Errorf("%q matches %q: %v", s.a.Signature(), s.b.Signature(), got)
		}
	}
	if got, want := must(TypeVector(2, 3, 5, pair)).Signature(), "6×(int32 float64)"; got != want {
		t.Errorf("signature %q, want %q", got, want)
	}
}
