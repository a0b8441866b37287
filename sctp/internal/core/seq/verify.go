package seq

import (
	"fmt"
	"math/bits"
)

// Verify checks the invariants of m. It is for tests, and takes time linear in the window.
func (m *Map) Verify() error {
	span := m.high.Sub(m.cum)
	if span < 0 || span > MaxWindow || span > 64*len(m.ring) || len(m.dups) > maxDuplicates {
		return fmt.Errorf("cumulative TSN %d, highest %d, ring of %d", m.cum, m.high, 64*len(m.ring))
	}
	if span > 0 && (m.get(m.cum+1) || !m.get(m.high)) {
		return fmt.Errorf("TSN %d received %v, %d %v", m.cum+1, m.get(m.cum+1), m.high, m.get(m.high))
	}
	set, want := 0, 0
	for _, w := range m.ring {
		set += bits.OnesCount64(w)
	}
	for t := m.cum + 1; t.LessEq(m.high); t++ {
		if m.get(t) {
			want++
		}
	}
	if set != want {
		return fmt.Errorf("%d TSNs are set beyond the cumulative one, %d within the window", set, want)
	}
	return nil
}
