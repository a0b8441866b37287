package sctp

import (
	"sync/atomic"
	"unsafe"

	"github.com/weftstack/weft/sctp/internal/prefetch"
)

// tagTable finds associations by their local verification tag. As tags are random,
// chosen here, they need no hashing, and a look usually touches one line of the
// cache. The zero tagTable is empty. Its lock is the caller's, but for len.
type tagTable struct {
	slots []tagSlot // a power of two of them, at most half of them in use
	n     atomic.Int32
}

// tagSlot is free if a is nil. An association is in the slot that its tag says or in
// one that follows it without a free one between.
type tagSlot struct {
	tag uint32
	a   *Association
}

// minTagSlots is how many slots a table begins with.
const minTagSlots = 16

func (t *tagTable) len() int { return int(t.n.Load()) }

// find returns the slot of a tag, or the free one where it would go. There are
// slots.
func (t *tagTable) find(tag uint32) uint32 {
	mask := uint32(len(t.slots) - 1)
	i := tag & mask
	for t.slots[i].a != nil && t.slots[i].tag != tag {
		i = (i + 1) & mask
	}
	return i
}

// get returns the association with a tag, nil if there is none.
func (t *tagTable) get(tag uint32) *Association {
	if len(t.slots) == 0 {
		return nil
	}
	return t.slots[t.find(tag)].a
}

// prefetch prefetches the slot where a tag is looked for.
func (t *tagTable) prefetch(tag uint32) {
	if n := len(t.slots); n > 0 {
		prefetch.Range(unsafe.Pointer(&t.slots[tag&uint32(n-1)]), 1)
	}
}

// put adds an association under a tag that none has.
func (t *tagTable) put(tag uint32, a *Association) {
	n := t.len() + 1
	if 2*n > len(t.slots) {
		old := t.slots
		t.slots = make([]tagSlot, max(minTagSlots, 2*len(old)))
		for _, s := range old {
			if s.a != nil {
				t.slots[t.find(s.tag)] = s
			}
		}
	}
	t.slots[t.find(tag)] = tagSlot{tag, a}
	if t.n.Store(int32(n)); n == manyAssociations {
		transportsWithMany.Add(1)
	}
}

// remove takes out the association with a tag, if there is one.
func (t *tagTable) remove(tag uint32) {
	if t.get(tag) == nil {
		return
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
	t.slots[free] = tagSlot{}
	if t.n.Add(-1) == manyAssociations-1 {
		transportsWithMany.Add(-1)
	}
}
