package sctp

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core"
)

func TestReplyLimits(t *testing.T) {
	var r replyLimit
	now := core.Time(time.Second)
	for i := range 100_000 {
		if !r.allow(now, 100, 300, true) {
			t.Fatalf("answer %d of three times the length was refused", i)
		}
	}
	n := 0
	for r.allow(now, 100, 300+1000, true) {
		n++
	}
	if n != replyBurst/1000 {
		t.Errorf("%d answers with 1000 bytes in excess at once, want %d", n, replyBurst/1000)
	}
	now += core.Time(10 * time.Millisecond)
	n = 0
	for r.allow(now, 100, 300+1000, true) {
		n++
	}
	if want := replyRate / 1000 / 100; n < want || n > want+1 {
		t.Errorf("%d answers with 1000 bytes in excess in 10 ms, want %d", n, want)
	}
	n = 0
	for r.allow(now, 100, 100, false) {
		n++
	}
	if n != ootbBurst {
		t.Errorf("%d answers to strays at once, want %d", n, ootbBurst)
	}
	now += core.Time(time.Hour)
	if r.allow(now, 100, 301, false) {
		t.Error("an answer to a stray of more than three times its length")
	}
}
