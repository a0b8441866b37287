package abi

import (
	"testing"
	"unsafe"
)

func TestStatusLayout(t *testing.T) {
	var s Status
	if got := unsafe.Sizeof(s); got != 4*StatusSize {
		t.Errorf("a status has %d bytes, want %d", got, 4*StatusSize)
	}
	for name, at := range map[string][2]uintptr{
		"MPI_SOURCE": {unsafe.Offsetof(s.Source), 4 * FSource},
		"MPI_TAG":    {unsafe.Offsetof(s.Tag), 4 * FTag},
		"MPI_ERROR":  {unsafe.Offsetof(s.Error), 4 * FError},
	} {
		if at[0] != at[1] {
			t.Errorf("%s lies at %d, want %d", name, at[0], at[1])
		}
	}
}
