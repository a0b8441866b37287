package mpi

import (
	"errors"
	"slices"
	"testing"
	"unsafe"
)

// TestBufferPack packs and unpacks buffers in both representations, behind what is there.
func TestBufferPack(t *testing.T) {
	item := MustType(NamedType("MPI_SHORT"))
	mem := []int16{1, 2, 3, 4, 5}
	gaps := Items(mem, 1, MustType(TypeVector(3, 1, 2, item)))
	dense := ItemsAt(unsafe.Pointer(&mem[0]), 2, MustType(TypeIndexed([]int{1}, []int{0}, item)))
	for _, tt := range []struct {
		name     string
		b        Buffer
		external []byte
	}{
		{"gaps", gaps, []byte{0, 1, 0, 3, 0, 5}},
		{"dense", dense, []byte{0, 1, 0, 2}},
		{"nothing", Buffer{}, nil},
	} {
		before := slices.Clone(mem)
		packed, err := tt.b.AppendPacked([]byte{7})
		if err != nil || packed[0] != 7 || len(packed) != 1+tt.b.Len() {
			t.Errorf("%s: packed % x, %v", tt.name, packed, err)
		}
		ext, err := tt.b.AppendExternal([]byte{7})
		if err != nil || !slices.Equal(ext, append([]byte{7}, tt.external...)) || tt.b.ExternalLen() != len(tt.external) {
			t.Errorf("%s: external32 % x, %v, want % x", tt.name, ext, err, tt.external)
		}
		for i, unpack := range []func([]byte) ([]byte, error){tt.b.Unpack, tt.b.UnpackExternal} {
			src := append(packed[1:], 9)
			if i == 1 {
				src = append(ext[1:], 9)
			}
			clear(mem)
			rest, err := unpack(src)
			if err != nil || len(rest) != 1 || rest[0] != 9 {
				t.Errorf("%s: left % x, %v", tt.name, rest, err)
			}
			every, two := tt.b.Len() == 6, tt.b.Len() == 4
			if every && (mem[0] != 1 || mem[2] != 3 || mem[4] != 5) || two && (mem[0] != 1 || mem[1] != 2) {
				t.Errorf("%s: unpacked %v", tt.name, mem)
			}
			copy(mem, before)
			if _, err := unpack(src[:max(len(tt.external)-1, 0)]); (tt.b.Len() > 0) != errors.Is(err, ErrCount) {
				t.Errorf("%s: one byte too few: %v", tt.name, err)
			}
		}
	}
	elements := Elements([]int16{1})
	if _, err := elements.AppendExternal(nil); !errors.Is(err, ErrDatatype) {
		t.Errorf("external32 of elements: %v, want %v", err, ErrDatatype)
	}
	if b, err := elements.AppendPacked(nil); len(b) != 2 || err != nil {
		t.Errorf("packed elements: % x, %v", b, err)
	}
	bad := Items(mem, -1, item)
	for _, err := range []error{
		refusal(bad.AppendPacked(nil)), refusal(bad.Unpack(nil)),
		refusal(bad.AppendExternal(nil)), refusal(bad.UnpackExternal(nil)),
	} {
		if !errors.Is(err, ErrDatatype) {
			t.Errorf("a bad buffer: %v, want %v", err, ErrDatatype)
		}
	}
}

func refusal[T any](_ T, err error) error { return err }
