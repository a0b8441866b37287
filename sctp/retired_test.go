package sctp

import (
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

func TestRetiredTagsAreBounded(t *testing.T) {
	var r retiredTags
	const extra = 1000
	for i := range uint32(maxRetiredTags + extra) {
		r.add(i, clock.Time(1000+i))
		r.add(i, clock.Time(2000+i)) // counts once
	}
	if len(r.until) != maxRetiredTags || len(r.queue) != maxRetiredTags {
		t.Fatalf("%d tags in a queue of %d, want %d", len(r.until), len(r.queue), maxRetiredTags)
	}
	for _, x := range []struct {
		tag  uint32
		now  clock.Time
		want bool
	}{
		{extra - 1, 0, false}, // forgotten
		{extra, 1999 + extra, true},
		{extra, 2000 + extra, false},
		{maxRetiredTags + extra - 1, 0, true},
		{maxRetiredTags + extra, 0, false}, // never there
	} {
		if got := r.has(x.tag, x.now); got != x.want {
			t.Errorf("tag %d is retired at %d: %v, want %v", x.tag, x.now, got, x.want)
		}
	}
}
