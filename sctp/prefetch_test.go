package sctp

import (
	"testing"
	"unsafe"

	"github.com/weftstack/weft/sctp/internal/core"
)

// TestAssociationIsInOnePlace checks that an association takes no more than two
// pages of memory, at their beginning: the runtime aligns objects of this size
// class to its size and puts a word of its own in front. With more, or with parts elsewhere, packets of many
// associations spend their time waiting for memory.
func TestAssociationIsInOnePlace(t *testing.T) {
	const class, header = 8 << 10, 8
	e := &Endpoint{t: &Transport{}}
	a := newAssociation(e, true)
	if n := unsafe.Sizeof(*a); n > class-header {
		t.Errorf("an association takes %d bytes, the size class has room for %d", n, class-header)
	}
	if a.core != &a.body {
		t.Error("the core is elsewhere")
	}
	if off := uintptr(unsafe.Pointer(a)) % 4096; off > header {
		t.Errorf("it begins %d bytes behind the beginning of a page", off)
	}
	if n := unsafe.Sizeof(core.Assoc{}); unsafe.Offsetof(a.writers) < n {
		t.Errorf("%d bytes are fetched ahead, the core alone takes %d", unsafe.Offsetof(a.writers), n)
	}
}
