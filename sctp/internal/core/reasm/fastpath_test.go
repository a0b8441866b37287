package reasm

import "testing"

// A reader gets a message directly only if nothing else is held or goes on.
func TestDirectDeliveryNeedsAnIdleQueue(t *testing.T) {
	for i, change := range []func(r *Queue){
		func(r *Queue) {},
		func(r *Queue) { r.cfg.Pieces = true },
		func(r *Queue) { r.frags = 1 },
		func(r *Queue) { r.msgs = 1 },
		func(r *Queue) { r.last = new(message) },
		func(r *Queue) { r.current = new(message) },
		func(r *Queue) { r.deferAll = true },
		func(r *Queue) { r.window.told = 1 },
		func(r *Queue) { r.streams = r.streams[:1] },
		func(r *Queue) { r.streams[1] = nil },
		func(r *Queue) { r.streams[1].paused = true },
		func(r *Queue) { r.streams[1].queued = true },
		func(r *Queue) { r.streams[1].deferred = true },
		func(r *Queue) { r.streams[1].held.head = new(frag) },
		func(r *Queue) { r.streams[1].current = new(message) },
	} {
		r := newQueue(Config{Streams: 2, Limit: 1 << 16}, 1)
		r.stream(1)
		change(r)
		if got, want := r.IdleStream(1) != nil, i == 0; got != want {
			t.Errorf("change %d: direct delivery %v, want %v", i, got, want)
		}
	}
}
