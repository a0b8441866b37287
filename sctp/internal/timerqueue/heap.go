package timerqueue

import "github.com/weftstack/weft/sctp/internal/core/clock"

// heap is a heap of deadlines with four children each, the earliest at the
// top. Slots know where their entries are.
type heap[T any] struct {
	which int // index of the place in a slot
	list  []entry[T]
}

// entry is one deadline in a heap, which may have become a later one.
type entry[T any] struct {
	at   clock.Time
	slot *Slot[T]
}

// add puts s into the heap, or moves it there.
func (h *heap[T]) add(s *Slot[T], at clock.Time) {
	i := int(s.place[h.which]) - 1
	if i < 0 {
		i = len(h.list)
		h.list = append(h.list, entry[T]{})
	}
	h.fix(i, entry[T]{at, s})
}

// remove takes s out of the heap if it is there.
func (h *heap[T]) remove(s *Slot[T]) {
	i := int(s.place[h.which]) - 1
	if i < 0 {
		return
	}
	s.place[h.which] = 0
	last := len(h.list) - 1
	e := h.list[last]
	h.list[last] = entry[T]{}
	if h.list = h.list[:last]; i < last {
		h.fix(i, e)
	}
}

// fix puts e at i, above or below.
func (h *heap[T]) fix(i int, e entry[T]) {
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

func (h *heap[T]) put(i int, e entry[T]) {
	h.list[i] = e
	e.slot.place[h.which] = int32(i + 1)
}
