package sctp

import "github.com/weftstack/weft/sctp/internal/core/clock"

// timerHeap is a heap of deadlines with four children each, the earliest at the
// top. Slots know where their entries are.
type timerHeap struct {
	which int // index of the place in a slot
	list  []timerEntry
}

// timerEntry is one deadline in a heap, which may have become a later one.
type timerEntry struct {
	at   clock.Time
	slot *timerSlot
}

// add puts s into the heap, or moves it there.
func (h *timerHeap) add(s *timerSlot, at clock.Time) {
	i := int(s.place[h.which]) - 1
	if i < 0 {
		i = len(h.list)
		h.list = append(h.list, timerEntry{})
	}
	h.fix(i, timerEntry{at, s})
}

// remove takes s out of the heap if it is there.
func (h *timerHeap) remove(s *timerSlot) {
	i := int(s.place[h.which]) - 1
	if i < 0 {
		return
	}
	s.place[h.which] = 0
	last := len(h.list) - 1
	e := h.list[last]
	h.list[last] = timerEntry{}
	if h.list = h.list[:last]; i < last {
		h.fix(i, e)
	}
}

// fix puts e at i, above or below.
func (h *timerHeap) fix(i int, e timerEntry) {
	for i > 0 {
		p := (i - 1) / 4
		if h.list[p].at <= e.at {
			break
		}
		h.put(i, h.list[p])
		i = p
	}
	for {
		c := 4*i + 1
		if c >= len(h.list) {
			break
		}
		for k, end := c+1, min(c+4, len(h.list)); k < end; k++ {
			if h.list[k].at < h.list[c].at {
				c = k
			}
		}
		if e.at <= h.list[c].at {
			break
		}
		h.put(i, h.list[c])
		i = c
	}
	h.put(i, e)
}

func (h *timerHeap) put(i int, e timerEntry) {
	h.list[i] = e
	e.slot.place[h.which] = int32(i + 1)
}
