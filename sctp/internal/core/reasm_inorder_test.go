package core

import "testing"

// A reader gets a message directly only if nothing else is held or goes on.
func TestDirectDeliveryNeedsAnIdleQueue(t *testing.T) {
	for i, change := range []func(r *reassembly){
		func(r *reassembly) {},
		func(r *reassembly) { r.cfg.pieces = true },
		func(r *reassembly) { r.frags = 1 },
		func(r *reassembly) { r.msgs = 1 },
		func(r *reassembly) { r.last = new(message) },
		func(r *reassembly) { r.current = new(message) },
		func(r *reassembly) { r.deferAll = true },
		func(r *reassembly) { r.window.told = 1 },
		func(r *reassembly) { r.streams = r.streams[:1] },
		func(r *reassembly) { r.streams[1] = nil },
		func(r *reassembly) { r.streams[1].paused = true },
		func(r *reassembly) { r.streams[1].queued = true },
		func(r *reassembly) { r.streams[1].deferred = true },
		func(r *reassembly) { r.streams[1].held.head = new(frag) },
		func(r *reassembly) { r.streams[1].current = new(message) },
	} {
		r := newReassembly(reasmConfig{streams: 2, limit: 1 << 16}, 1)
		r.stream(1)
		change(r)
		if got, want := r.idleStream(1) != nil, i == 0; got != want {
			t.Errorf("change %d: direct delivery %v, want %v", i, got, want)
		}
	}
}
