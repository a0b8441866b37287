package ddp

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
)

const (
	// MaxRegions bounds the regions of a table.
	MaxRegions = 1 << 22
	// quarantine is how many removed STags are kept from being used again: 4 bytes
	// each, and a slot of the table.
	quarantine = 4096
	// minSlots is the size of an empty table.
	minSlots = 64
)

// Table maps STags to regions: an open-addressing hash table that is read
// without locks, with room to spare, so that a lookup takes a probe or two.
// STags are random 32-bit numbers from the system's generator, so they are
// sparse and hard to predict (RFC 5040, Section 8.1.1, item 8), and serve as
// their own hash. It is safe for concurrent use.
type Table struct {
	slots atomic.Pointer[[]slot]

	mu     sync.Mutex
	live   int      // guarded by mu: regions
	used   int      // guarded by mu: slots that have an STag
	old    []uint32 // guarded by mu: removed STags, a ring of at most quarantine
	oldest int      // guarded by mu: index of the oldest one of a full ring
	random []byte   // guarded by mu: random bytes not used yet
}

// slot is one place of the hash table. An STag stays in its slot when its region is
// removed, so that probing goes on past it and the STag is not drawn again; the
// region does not, nor does what it refers to.
type slot struct {
	stag   atomic.Uint32          // 0: free
	region atomic.Pointer[Region] // nil: removed
}

// NewTable returns an empty table.
func NewTable() *Table {
	t := &Table{}
	s := make([]slot, minSlots)
	t.slots.Store(&s)
	return t
}

// Lookup returns the region named by stag, or nil. It neither locks nor
// allocates.
func (t *Table) Lookup(stag uint32) *Region {
	if sl := t.find(stag); sl != nil {
		return sl.region.Load()
	}
	return nil
}

// find returns the slot of an STag that is in use or was lately, or nil.
func (t *Table) find(stag uint32) *slot {
	s := *t.slots.Load()
	mask := uint32(len(s) - 1)
	for i := stag & mask; ; i = (i + 1) & mask {
		switch s[i].stag.Load() {
		case 0:
			return nil
		case stag:
			return &s[i]
		}
	}
}

// Add registers mem with tagged offsets from base on. scope, if not nil, limits remote use
// to one stream (RFC 5042, Section 6.1.1). It returns [ErrRegion] or [ErrTableFull].
func (t *Table) Add(mem []byte, base uint64, access Access, domain *Domain, scope *Scope) (*Region, error) {
	if !fits(mem, base) {
		return nil, fmt.Errorf("%w: %d bytes at tagged offset %#x: at most %d, and offsets below 1<<64", ErrRegion, len(mem),
			base, int64(MaxRegion))
	}
	r := &Region{mem: mem, base: base, access: access, domain: domain, scope: scope}
	if err := t.add(r); err != nil {
		return nil, err
	}
	return r, nil
}

// Reserve makes a region without memory and rights; [Region.Bind] grants them. It returns
// [ErrTableFull] if there are too many regions.
func (t *Table) Reserve(domain *Domain) (*Region, error) {
	r := &Region{domain: domain, bindable: true}
	r.users.Store(revoked)
	if err := t.add(r); err != nil {
		return nil, err
	}
	return r, nil
}

// add gives a region an STag.
func (t *Table) add(r *Region) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live == MaxRegions {
		return ErrTableFull
	}
	for r.stag = t.draw(); r.stag == 0 || t.find(r.stag) != nil; {
		r.stag = t.draw()
	}
	if s := *t.slots.Load(); 2*(t.used+1) > len(s) {
		t.rebuild()
	}
	t.insert(*t.slots.Load(), r.stag, r)
	t.live++
	return nil
}

// Remove revokes r and frees its STag, which is not used again until a large number of
// others have been removed. Of r the table keeps only the number of the STag. It waits only
// for placements that are being copied.
func (t *Table) Remove(r *Region) {
	r.retired()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live--
	t.find(r.stag).region.Store(nil)
	if len(t.old) < quarantine {
		t.old = append(t.old, r.stag)
		return
	}
	t.old[t.oldest] = r.stag
	t.oldest = (t.oldest + 1) % quarantine
}

// Len returns the number of regions.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// Probes returns the most slots that any Lookup looks at now: one more than the
// longest run of used ones.
func (t *Table) Probes() int {
	s := *t.slots.Load()
	longest, run := 0, 0
	for i := range 2 * len(s) { // twice around, for a run across the end
		if run++; s[i%len(s)].stag.Load() == 0 {
			run = 0
		}
		longest = max(longest, min(run, len(s)))
	}
	return longest + 1
}

// rebuild makes a table of the regions and the STags of the quarantine that is at
// most a quarter full.
func (t *Table) rebuild() { // mu is held
	n := minSlots
	for n < 4*(t.live+len(t.old)+1) {
		n *= 2
	}
	s := make([]slot, n)
	was := *t.slots.Load()
	t.used = 0
	for i := range was {
		if r := was[i].region.Load(); r != nil {
			t.insert(s, r.stag, r)
		}
	}
	for _, stag := range t.old {
		t.insert(s, stag, nil)
	}
	t.slots.Store(&s)
}

// insert puts an STag into a free slot. Lookups may be running: they see the region
// as soon as they see the STag.
func (t *Table) insert(s []slot, stag uint32, r *Region) { // mu is held
	mask := uint32(len(s) - 1)
	for i := stag & mask; ; i = (i + 1) & mask {
		if s[i].stag.Load() == 0 {
			s[i].region.Store(r)
			s[i].stag.Store(stag)
			t.used++
			return
		}
	}
}

// draw returns a random number.
func (t *Table) draw() uint32 { // mu is held
	if len(t.random) < 4 {
		t.random = make([]byte, 1024)
		rand.Read(t.random) // never returns an error
	}
	v := binary.LittleEndian.Uint32(t.random)
	t.random = t.random[4:]
	return v
}
