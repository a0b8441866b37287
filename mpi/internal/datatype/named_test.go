package datatype

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

func named(t *testing.T, name string) *Named {
	t.Helper()
	for _, n := range Predefined() {
		if n.Name == name {
			return n
		}
	}
	t.Fatalf("no %s", name)
	return nil
}

// TestNamedSizes compares sizes with the handles of the ABI, which tell those of types of a fixed
// size, and with C.
func TestNamedSizes(t *testing.T) {
	names, handles := make(map[string]bool), make(map[int]bool)
	for _, n := range Predefined() {
		if names[n.Name] || handles[n.ABI] {
			t.Errorf("%s (%d) is there twice", n.Name, n.ABI)
		}
		names[n.Name], handles[n.ABI] = true, true
		if n.Type.Named() != n || n.Type.Size() != n.Size() || n.Type.Contents().Named != n.Type {
			t.Errorf("%s: named %v, size %d and %d", n.Name, n.Type.Named(), n.Type.Size(), n.Size())
		}
		if fixed := n.ABI >= 576; fixed && n.Size() != 1<<(n.ABI>>3&7) {
			t.Errorf("%s: %d bytes, want %d", n.Name, n.Size(), 1<<(n.ABI>>3&7))
		}
		if k, ok := n.Type.Elements(2 * n.Size()); n.Group == GroupPair && k != 4 || n.Group != GroupPair && k != 2 || !ok {
			t.Errorf("two %s are %d elements", n.Name, k)
		}
	}
	for _, tt := range []struct {
		name         string
		size, extent int
		ext          int // in external32
	}{
		{"MPI_LONG_DOUBLE", 16, 16, 16},
		{"MPI_C_LONG_DOUBLE_COMPLEX", 32, 32, 32},
		{"MPI_LONG", 8, 8, 4},
		{"MPI_WCHAR", 4, 4, 2},
		{"MPI_FLOAT_INT", 8, 8, 8},
		{"MPI_DOUBLE_INT", 12, 16, 12},
		{"MPI_LONG_INT", 12, 16, 8},
		{"MPI_2INT", 8, 8, 8},
		{"MPI_SHORT_INT", 6, 8, 6},
		{"MPI_LONG_DOUBLE_INT", 20, 32, 20},
		{"MPI_2REAL", 8, 8, 8},
		{"MPI_2DOUBLE_PRECISION", 16, 16, 16},
		{"MPI_2INTEGER", 8, 8, 8},
		{"MPI_LOGICAL", 4, 4, 4},
		{"MPI_CHARACTER", 1, 1, 1},
	} {
		d := named(t, tt.name).Type
		if d.Size() != tt.size || d.Extent() != tt.extent || d.ExternalSize() != tt.ext {
			t.Errorf("%s: size %d, extent %d, in external32 %d, want %d, %d, %d",
				tt.name, d.Size(), d.Extent(), d.ExternalSize(), tt.size, tt.extent, tt.ext)
		}
	}
	c := must(Struct([]int{1, 1}, []int{0, 16}, []*Type{named(t, "MPI_CHAR").Type, named(t, "MPI_LONG_DOUBLE").Type}))
	if c.Extent() != 32 {
		t.Errorf("struct {char; long double} is %d bytes, want 32", c.Extent())
	}
	if d := must(named(t, "MPI_INT").Type.Dup()); d.Named() == nil || must(Resized(d, 0, 8)).Named() != nil {
		t.Error("a duplicate has a name, a resized datatype has none")
	}
}

// TestNamedSignatures checks which predefined datatypes a receive takes for one another.
func TestNamedSignatures(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"MPI_INT", "MPI_INTEGER", true},
		{"MPI_INT", "MPI_INT32_T", true},
		{"MPI_LONG", "MPI_LONG_LONG", true},
		{"MPI_INT", "MPI_UNSIGNED", false},
		{"MPI_INT", "MPI_FLOAT", false},
		{"MPI_INT", "MPI_LOGICAL", false},
		{"MPI_LONG_DOUBLE", "MPI_REAL16", false},
		{"MPI_LONG_DOUBLE", "MPI_C_DOUBLE_COMPLEX", false},
		{"MPI_C_LONG_DOUBLE_COMPLEX", "MPI_COMPLEX32", false},
		{"MPI_C_DOUBLE_COMPLEX", "MPI_DOUBLE_COMPLEX", true},
		{"MPI_CHAR", "MPI_CHARACTER", true},
		{"MPI_CHAR", "MPI_WCHAR", false},
		{"MPI_CHAR", "MPI_C_BOOL", false},
		{"MPI_INTEGER16", "MPI_LOGICAL16", false},
		{"MPI_DOUBLE_INT", "MPI_LONG_INT", false},
		{"MPI_DOUBLE_INT", "MPI_FLOAT_INT", false},
		{"MPI_2INT", "MPI_2INTEGER", true},
		{"MPI_2INT", "MPI_INT", true}, // a pair is two integers
		{"MPI_BYTE", "MPI_DOUBLE_INT", true},
		{"MPI_PACKED", "MPI_LONG_DOUBLE", true},
	} {
		a, b := named(t, tt.a).Type.Values(), named(t, tt.b).Type.Values()
		if a.Matches(b) != tt.want {
			t.Errorf("%s (%v) and %s (%v) match: %v, want %v", tt.a, a, tt.b, b, !tt.want, tt.want)
		}
	}
	if s := named(t, "MPI_LONG_DOUBLE").Type.Values().String(); s != "long double" {
		t.Errorf("long double is called %q", s)
	}
	if s := named(t, "MPI_DOUBLE_INT").Type.Values().String(); s != "MPI_DOUBLE_INT" {
		t.Errorf("MPI_DOUBLE_INT is called %q", s)
	}
	if a, b := named(t, "MPI_INT").Type, must(Of[int32]()); !a.Matches(b) {
		t.Error("MPI_INT and Go's int32 do not match")
	}
}

// TestNamedExternal converts values to external32 and back.
func TestNamedExternal(t *testing.T) {
	for _, n := range Predefined() {
		mem := make([]byte, 3*n.Type.Extent())
		for i := range mem {
			mem[i] = byte(i%3 + 1) // long doubles are subnormal or small
			if i%n.Type.Extent() >= 2 && n.ext < n.size {
				mem[i] = 0
			}
		}
		if n.Format == Extended || n.Value != nil && n.Value.Format == Extended {
			for i := 0; i+16 <= len(mem); i += 16 { // the integer bit, and no padding
				mem[i+7] |= 0x80
				clear(mem[i+10 : i+16])
			}
		}
		var packed []byte
		packed, err := n.Type.AppendPacked(packed, mem, 3)
		if err != nil {
			t.Fatal(err)
		}
		ext, err := n.Type.AppendExternal(nil, mem, 3)
		if err != nil || len(ext) != 3*n.Type.ExternalSize() {
			t.Errorf("%s: %d bytes, %v", n.Name, len(ext), err)
			continue
		}
		back := make([]byte, len(mem))
		if rest, err := n.Type.UnpackExternal(ext, back, 3); err != nil || len(rest) > 0 {
			t.Errorf("%s: %d bytes left, %v", n.Name, len(rest), err)
		}
		again, _ := n.Type.AppendPacked(nil, back, 3)
		if !bytes.Equal(again, packed) {
			t.Errorf("%s: %x came back as %x", n.Name, packed, again)
		}
	}
	long, ulong := named(t, "MPI_LONG").Type, named(t, "MPI_UNSIGNED_LONG").Type
	for _, tt := range []struct {
		t    *Type
		v    int64
		want []byte // nil: it does not fit
	}{
		{long, -2, []byte{0xff, 0xff, 0xff, 0xfe}},
		{long, 1<<31 - 1, []byte{0x7f, 0xff, 0xff, 0xff}},
		{long, -1 << 31, []byte{0x80, 0, 0, 0}},
		{long, 1 << 31, nil},
		{long, -1<<31 - 1, nil},
		{ulong, 1<<32 - 1, []byte{0xff, 0xff, 0xff, 0xff}},
		{ulong, 1 << 32, nil},
		{ulong, -1, nil},
	} {
		b, err := tt.t.AppendExternal([]byte{7}, Bytes([]int64{tt.v}), 1)
		if !bytes.Equal(b, append([]byte{7}, tt.want...)) || (err != nil) != (tt.want == nil) ||
			err != nil && !errors.Is(err, mpierr.ErrConversion) {
			t.Errorf("%d in external32: %x, %v, want %x", tt.v, b, err, tt.want)
		}
	}
	one := make([]byte, 16)
	binary.LittleEndian.PutUint64(one, 1<<63)
	binary.LittleEndian.PutUint16(one[8:], 0xbfff)
	ext, err := named(t, "MPI_LONG_DOUBLE").Type.AppendExternal(nil, one, 1)
	if want := append([]byte{0xbf, 0xff}, make([]byte, 14)...); err != nil || !bytes.Equal(ext, want) {
		t.Errorf("-1 in external32: %x, %v, want %x", ext, err, want)
	}
}
