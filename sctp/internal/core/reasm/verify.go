package reasm

import (
	"fmt"

	"github.com/weftstack/weft/sctp/internal/slab"
)

// What follows is for tests of associations.

// Verify checks the invariants of r: what it accounts for is what it holds.
func (r *Queue) Verify() error {
	held, frags, payload := 0, 0, 0
	pins := map[*pin]int{} // with the payload that is in them
	count := func(f *frag) {
		for ; f != nil; f = f.next {
			held += f.charge
			payload += int(f.size)
			if f.pin != nil {
				pins[f.pin] += int(f.size)
			}
			frags++
		}
	}
	msgs := map[*message]bool{}
	add := func(m *message) {
		if !msgs[m] {
			msgs[m] = true
			held += messageRecord
			count(m.head)
			count(m.loose.head)
		}
	}
	for _, st := range r.streams {
		if st == nil {
			continue
		}
		for m := st.ready.head; m != nil; m = m.links[linkReady].next {
			add(m)
		}
		for u := range st.pending {
			for m := st.pending[u].head; m != nil; m = m.links[linkPending].next {
				add(m)
			}
		}
		if st.current != nil {
			add(st.current)
		}
		count(st.held.head)
		if want := !st.paused && st.deliverable(); want != st.queued {
			return fmt.Errorf("incoming stream %d: deliverable %v, queued %v", st.sid, want, st.queued)
		}
	}
	for _, t := range []*msgTable{&r.numbered, &r.open} {
		for _, m := range t.appendAll(nil) {
			add(m)
		}
	}
	if r.last != nil {
		add(r.last)
	}
	if r.edge != nil {
		add(r.edge)
	}
	if !r.cfg.Interleaved {
		count(r.looseList.head)
	}
	count(r.unfragmented.head)
	unfragmented := map[uint16]int{}
	for f := r.unfragmented.head; f != nil; f = f.next {
		unfragmented[f.sid]++
	}
	for _, st := range r.streams {
		if st != nil && (st.unfragmented != unfragmented[st.sid] || st.unfragmented > 0 && st.paused) {
			return fmt.Errorf("stream %d (paused: %v) has %d unfragmented, counted %d", st.sid, st.paused, st.unfragmented, unfragmented[st.sid])
		}
	}
	w := &r.window
	if !r.cfg.Pieces && (held != w.held || frags != r.frags || payload != w.payload) || held > w.held ||
		frags > r.frags || payload > w.payload {
		return fmt.Errorf("%d bytes (%d of payload) held in %d fragments, counted %d (%d) in %d", w.held, w.payload, r.frags, held, payload, frags)
	}
	idle := len(pins) * slab.Size
	for _, n := range pins {
		idle -= n
	}
	if !r.cfg.Pieces && (idle != w.idle || len(pins) != r.mem.pinned) || w.idle < 0 {
		return fmt.Errorf("%d bytes of %d receive buffers pinned for nothing, counted %d of %d", w.idle, r.mem.pinned, idle, len(pins))
	}
	if len(msgs) != r.msgs {
		return fmt.Errorf("%d messages held, counted %d", r.msgs, len(msgs))
	}
	if w.held > w.most() || int(w.open()) > w.limit {
		return fmt.Errorf("%d bytes held of %d, %d offered", w.held, w.limit, w.open())
	}
	return nil
}

// HasStream reports whether anything was received on stream sid.
func (r *Queue) HasStream(sid uint16) bool {
	return int(sid) < len(r.streams) && r.streams[sid] != nil
}

// HasUnfragmented reports whether unordered messages of one fragment are held.
func (r *Queue) HasUnfragmented() bool { return r.unfragmented.head != nil }

// Held returns how many bytes of memory the fragments and messages that are held take,
// most how many they may, and how many fragments and messages there are.
func (r *Queue) Held() (bytes, most, frags, msgs int) {
	w := &r.window
	return w.held, w.most(), r.frags, r.msgs
}

// SetNext makes num the SSN or MID of the next message of stream sid.
func (r *Queue) SetNext(sid uint16, num uint32) { r.stream(sid).next = num }
