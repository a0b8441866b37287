// Package tagtable finds associations by their local verification tag (RFC 9260, Section 8.5).
package tagtable

import (
	"iter"
	"sync/atomic"
	"unsafe"

	"github.com/weftstack/weft/sctp/internal/prefetch"
)

// Table maps tags to associations. As tags are random, chosen here, they need no hashing, and a
// look usually touches one line of the cache. The zero Table is empty. Its lock is the caller's,
// but for Len.
type Table[A any] struct {
	slots []slot[A] // a power of two of them, at most half of them in use
	n     atomic.Int32
}

// slot is free if a is nil. An association is in the slot that its tag says or in one that
// follows it without a free one between.
type slot[A any] struct {
	tag uint32
	a   *A
}

// minSlots is how many slots a table begins with.
const minSlots = 16

// Len returns the number of associations.
func (t *Table[A]) Len() int { return int(t.n.Load()) }

// find returns the slot of a tag, or the free one where it would go. There are slots.
func (t *Table[A]) find(tag uint32) uint32 {
	mask := uint32(len(t.slots) - 1)
	i := tag & mask
	for t.slots[i].a != nil && t.slots[i].tag != tag {
		i = (i + 1) & mask
	}
	return i
}

// Get returns the association with a tag, nil if there is none.
func (t *Table[A]) Get(tag uint32) *A {
	if len(t.slots) == 0 {
		return nil
	}
	return t.slots[t.find(tag)].a
}

// All returns the associations, in no order.
func (t *Table[A]) All() iter.Seq[*A] {
	return func(yield func(*A) bool) {
		for i := range t.slots {
			if a := t.slots[i].a; a != nil && !yield(a) {
				return
			}
		}
	}
}

// Prefetch prefetches the slot where a tag is looked for.
func (t *Table[A]) Prefetch(tag uint32) {
	if n := len(t.slots); n > 0 {
		prefetch.Range(unsafe.Pointer(&t.slots[tag&uint32(n-1)]), 1)
	}
}

// Put adds an association under a tag that none has.
func (t *Table[A]) Put(tag uint32, a *A) {
	n := t.Len() + 1
	if 2*n > len(t.slots) {
		old := t.slots
		t.slots = make([]slot[A], max(minSlots, 2*len(old)))
		for _, s := range old {
			if s.a != nil {
				t.slots[t.find(s.tag)] = s
			}
		}
	}
	t.slots[t.find(tag)] = slot[A]{tag, a}
	t.n.Store(int32(n))
}

// Remove takes out the association with a tag, and reports whether there was one.
func (t *Table[A]) Remove(tag uint32) bool {
	if t.Get(tag) == nil {
		return false
	}
	mask := uint32(len(t.slots) - 1)
	free := t.find(tag)
	for i := (free + 1) & mask; t.slots[i].a != nil; i = (i + 1) & mask {
		// What is not past its own slot, as seen from there, fills the gap.
		if (i-t.slots[i].tag)&mask >= (i-free)&mask {
			t.slots[free] = t.slots[i]
			free = i
		}
	}
	t.slots[free] = slot[A]{}
	t.n.Add(-1)
	return true
}
