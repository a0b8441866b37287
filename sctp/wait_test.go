package sctp

import (
	"testing"
	"time"

	"github.com/weftstack/weft/internal/poll"
)

// Goroutines that poll yield to a goroutine that was woken, if it is parked and does not lead.
func TestWakeMakesOthersYield(t *testing.T) {
	const now = int64(time.Hour)
	for _, leads := range []bool{false, true} {
		w := &waiter{ch: make(chan struct{}, 1)}
		w.leading.Store(leads)
		var y poll.Yielder
		y.BeforeBlock(now)
		w.wake()
		if yields := y.Yield(now + 1); yields == leads {
			t.Errorf("leads %v: yields %v", leads, yields)
		}
	}
}
