package timerqueue

import (
	"math/rand/v2"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// TestTimerHeap adds, moves and removes at random, checks after each step that no
// entry is earlier than the one above it, and at last takes all out in order.
func TestTimerHeap(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		h := heap[owner]{which: int(seed % 2)}
		var slots [100]Slot[owner]
		want := map[*Slot[owner]]clock.Time{}
		for range 3000 {
			s := &slots[rnd.IntN(len(slots))]
			if rnd.IntN(3) == 0 {
				h.remove(s)
				delete(want, s)
			} else {
				at := clock.Time(1 + rnd.IntN(1<<rnd.IntN(16)))
				h.add(s, at)
				want[s] = at
			}
			if len(h.list) != len(want) {
				t.Fatalf("seed %d: %d entries, want %d", seed, len(h.list), len(want))
			}
			for i, e := range h.list {
				if e.at != want[e.slot] || e.slot.place[h.which] != int32(i+1) || e.slot.place[1-h.which] != 0 {
					t.Fatalf("seed %d: entry %d at %d, want %d; its slot has place %v", seed, i, e.at, want[e.slot], e.slot.place)
				}
				if i > 0 && h.list[(i-1)/4].at > e.at {
					t.Fatalf("seed %d: entry %d is earlier than the one above it", seed, i)
				}
			}
		}
		for last := clock.Time(0); len(h.list) > 0; {
			e := h.list[0]
			if e.at < last {
				t.Fatalf("seed %d: %d comes after %d", seed, e.at, last)
			}
			last = e.at
			h.remove(e.slot)
		}
	}
}
