package seq

import (
	"math/bits"

	"github.com/weftstack/weft/sctp/wire"
)

// Limits of the receive tracker. A peer can make it hold no more than this.
const (
	// MaxWindow is how far beyond the cumulative TSN a chunk may be: a chunk
	// further away is dropped unseen and must be retransmitted later.
	MaxWindow = 128 << 10
	// minWindow is the capacity the bitmap begins with.
	minWindow = 4 << 10
	// maxDuplicates is how many duplicate TSNs one SACK reports. More of them
	// are counted by the caller but not listed.
	maxDuplicates = 64
	// maxGapOffset is the furthest TSN, counted from the cumulative TSN, that a
	// gap ack block can name (RFC 9260, Section 3.3.4). What lies beyond is kept
	// and reported once the cumulative TSN has come closer.
	maxGapOffset = 1<<16 - 1
)

// Result is what the receive tracker says of a TSN.
type Result uint8

const (
	// New was never received.
	New Result = iota
	// Duplicate was received, and lies beyond the cumulative TSN.
	Duplicate
	// Old is at or before the cumulative TSN: received, or skipped by a
	// FORWARD-TSN (RFC 3758, Section 3.6), so a duplicate too.
	Old
	// OutOfWindow is too far ahead. It must be dropped and not acknowledged.
	OutOfWindow
)

// Map tracks which TSNs were received: the cumulative TSN and, beyond it, a
// bitmap in a ring (RFC 9260, Sections 6.2 and 6.7). Every operation on one TSN
// is O(1) amortised; in-order traffic never touches the bitmap. The zero Map
// is not ready: call Init.
type Map struct {
	cum  TSN      // everything up to here was received or skipped
	high TSN      // largest received or skipped; equals cum when there is no gap
	ring []uint64 // bit t%size is set when cum < t <= high was received; nil until there is a gap
	dups []uint32
}

// Init makes m ready to receive a peer's data that begins at TSN initial.
func (m *Map) Init(initial TSN) {
	*m = Map{cum: initial - 1, high: initial - 1}
}

// CumTSN returns the cumulative TSN ack.
func (m *Map) CumTSN() TSN { return m.cum }

// Highest returns the largest TSN received; it is the cumulative TSN when
// nothing was received out of order.
func (m *Map) Highest() TSN { return m.high }

// HasGaps reports whether a TSN below the highest one is missing.
func (m *Map) HasGaps() bool { return m.high != m.cum }

// Check says what Observe would say, and changes nothing: the caller first
// finds room for the chunk and then observes it.
func (m *Map) Check(t TSN) Result {
	switch d := t.Sub(m.cum); {
	case d <= 0:
		return Old
	case d > MaxWindow:
		return OutOfWindow
	case t.LessEq(m.high) && m.get(t):
		return Duplicate
	}
	return New
}

// Observe records the arrival of t. Duplicates are remembered for the next
// SACK, up to maxDuplicates of them.
func (m *Map) Observe(t TSN) Result {
	if t == m.cum+1 && m.high == m.cum { // the usual case: in order, no gap
		m.cum, m.high = t, t
		return New
	}
	switch r := m.Check(t); r {
	case OutOfWindow:
		return r
	case Old, Duplicate:
		if len(m.dups) < maxDuplicates {
			m.dups = append(m.dups, uint32(t))
		}
		return r
	}
	if t.Sub(m.cum) > 64*len(m.ring) {
		m.grow(t.Sub(m.cum))
	}
	m.set(t)
	if m.high.Less(t) {
		m.high = t
	}
	if t == m.cum+1 {
		m.advance()
	}
	return New
}

// ObserveNext records the arrival of the next n TSNs in order. There must not be a gap.
func (m *Map) ObserveNext(n int) {
	m.cum += TSN(n)
	m.high = m.cum
}

// Forward moves the cumulative TSN to newCum and on over what was received
// beyond it (RFC 3758, Section 3.6). It returns false, and does nothing, when
// newCum is not ahead: such a FORWARD-TSN is out of date, and the caller
// acknowledges again.
func (m *Map) Forward(newCum TSN) bool {
	if newCum.LessEq(m.cum) {
		return false
	}
	if m.high.LessEq(newCum) {
		clear(m.ring)
		m.cum, m.high = newCum, newCum
		return true
	}
	for t := m.cum + 1; t != newCum+1; { // newCum < high, so within the window
		n := min(64-int(t&63), newCum.Sub(t)+1)
		m.ring[m.word(t)] &^= (^uint64(0) >> (64 - n)) << (t & 63)
		t += TSN(n)
	}
	m.cum = newCum
	m.advance()
	return true
}

// Duplicates returns the TSNs received more than once since the last call of
// ClearDuplicates. The slice is valid until the next Observe.
func (m *Map) Duplicates() []uint32 { return m.dups }

// ClearDuplicates forgets the duplicates; a SACK has reported them.
func (m *Map) ClearDuplicates() { m.dups = m.dups[:0] }

// AppendGaps appends up to limit gap ack blocks to dst, lowest TSN first (RFC
// 9260, Section 6.7: "report the Gap Ack Blocks from the lowest to highest TSNs,
// within the size limit"). It does not allocate if dst has the capacity.
func (m *Map) AppendGaps(dst []wire.GapBlock, limit int) []wire.GapBlock {
	if m.high == m.cum {
		return dst
	}
	end := min(m.high.Sub(m.cum), maxGapOffset)
	for off := 1; limit > 0; limit-- {
		start := m.run(off, end, false)
		if start > end {
			break
		}
		off = m.run(start, end, true)
		dst = append(dst, wire.GapBlock{Start: uint16(start), End: uint16(off - 1)})
	}
	return dst
}

// run returns the first offset from the cumulative TSN, at or after off, whose
// bit is not val; end+1 if there is none up to end.
func (m *Map) run(off, end int, val bool) int {
	for off <= end {
		t := m.cum + TSN(off)
		w := m.ring[m.word(t)] >> (t & 63)
		if val {
			w = ^w
		}
		if w != 0 {
			if n := bits.TrailingZeros64(w); n < 64-int(t&63) {
				return min(off+n, end+1)
			}
		}
		off += 64 - int(t&63)
	}
	return end + 1
}

func (m *Map) word(t TSN) int { return int(t>>6) & (len(m.ring) - 1) }

func (m *Map) get(t TSN) bool { return m.ring[m.word(t)]>>(t&63)&1 != 0 }

func (m *Map) set(t TSN) { m.ring[m.word(t)] |= 1 << (t & 63) }

// advance moves cum over the TSNs received next to it and clears their bits.
func (m *Map) advance() {
	for m.cum != m.high {
		t := m.cum + 1
		w := &m.ring[m.word(t)]
		n := bits.TrailingZeros64(^(*w >> (t & 63))) // at most what is left of the word
		if n == 0 {
			return
		}
		*w &^= (^uint64(0) >> (64 - n)) << (t & 63)
		m.cum += TSN(n)
	}
}

// grow makes room for TSNs up to span beyond the cumulative one.
func (m *Map) grow(span int) {
	size := max(len(m.ring), minWindow/64)
	for 64*size < span {
		size *= 2
	}
	old := *m
	m.ring = make([]uint64, size)
	// Bits keep their place in a word, and whole words move; the first and the
	// last one may be the same word of the old ring, so both are copied by bit.
	for t := old.cum + 1; t.LessEq(old.high); {
		if t&63 == 0 && (t + 63).LessEq(old.high) {
			m.ring[m.word(t)] = old.ring[old.word(t)]
			t += 64
			continue
		}
		if old.get(t) {
			m.set(t)
		}
		t++
	}
}
