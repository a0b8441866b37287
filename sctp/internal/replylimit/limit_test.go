package replylimit

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

func TestReplyLimits(t *testing.T) {
	var r Limit
	now := clock.Time(time.Second)
	for i := range 100_000 {
		if !r.Allow(now, 100, 300, true) {
			t.Fatalf("answer %d of three times the length was refused", i)
		}
	}
	if r.Allow(now, 100, 301, true) {
		t.Error("an answer to an INIT of more than three times its length")
	}
	n := 0
	for r.Allow(now, 100, 100, false) {
		n++
	}
	if n != burst {
		t.Errorf("%d answers to OOTB packets at once, want %d", n, burst)
	}
	now += clock.Time(time.Hour)
	if r.Allow(now, 100, 301, false) {
		t.Error("an answer to an OOTB packet of more than three times its length")
	}
}
