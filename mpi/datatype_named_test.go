package mpi

import (
	"errors"
	"testing"
)

// TestNamedType looks predefined datatypes up, those also that Go has no type for.
func TestNamedType(t *testing.T) {
	for _, tt := range []struct {
		name                string
		size, extent, elems int
	}{
		{"MPI_INT", 4, 4, 1},
		{"MPI_LONG_DOUBLE", 16, 16, 1},
		{"MPI_DOUBLE_INT", 12, 16, 2},
		{"MPI_SHORT_INT", 6, 8, 2},
		{"MPI_LONG_LONG_INT", 8, 8, 1},
		{"MPI_COMPLEX32", 32, 32, 1},
	} {
		d, err := NamedType(tt.name)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		_, extent := d.Extent()
		if d.Size() != tt.size || extent != tt.extent {
			t.Errorf("%s: size %d, extent %d, want %d and %d", tt.name, d.Size(), extent, tt.size, tt.extent)
		}
		if n, ok := d.ElementsIn(5 * tt.size); n != 5*tt.elems || !ok {
			t.Errorf("%s: %d elements in 5 items, %v, want %d", tt.name, n, ok, 5*tt.elems)
		}
		if again, _ := NamedType(tt.name); again != d {
			t.Errorf("%s: not the same the second time", tt.name)
		}
	}
	long := MustType(NamedType("MPI_LONG_LONG_INT"))
	if got := long.Predefined(); got != "MPI_LONG_LONG" || long.Name() != got {
		t.Errorf("MPI_LONG_LONG_INT is called %q and %q", got, long.Name())
	}
	if dup := MustType(long.Dup()); dup.Predefined() != "MPI_LONG_LONG" || dup == long || dup.Name() != "" {
		t.Errorf("a duplicate is called %q and %q", dup.Predefined(), dup.Name())
	}
	if got := MustType(TypeContiguous(1, long)).Predefined(); got != "" {
		t.Errorf("a derived datatype is predefined: %q", got)
	}
	if _, err := NamedType("MPI_NOTHING"); !errors.Is(err, ErrDatatype) {
		t.Errorf("unknown name: %v, want %v", err, ErrDatatype)
	}
}
