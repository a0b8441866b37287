package tx

// dropHeap is a heap of the messages that may be abandoned under buffer
// pressure: that of the lowest priority, which is the largest value, and among
// those the oldest, comes first.
type dropHeap struct{ list []*outMsg }

func (h *dropHeap) less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return a.arrival < b.arrival
}

func (h *dropHeap) swap(i, j int) {
	l := h.list
	l[i], l[j] = l[j], l[i]
	l[i].dropIdx, l[j].dropIdx = int32(i), int32(j)
}

func (h *dropHeap) push(m *outMsg) {
	m.dropIdx = int32(len(h.list))
	h.list = append(h.list, m)
	h.up(len(h.list) - 1)
}

func (h *dropHeap) remove(m *outMsg) {
	i, n := int(m.dropIdx), len(h.list)-1
	h.swap(i, n)
	h.list[n] = nil
	h.list = h.list[:n]
	m.dropIdx = -1
	if i < n && !h.up(i) {
		h.down(i)
	}
}

func (h *dropHeap) up(i int) (moved bool) {
	for i > 0 && h.less(i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i, moved = (i-1)/2, true
	}
	return moved
}

func (h *dropHeap) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h.list) {
			return
		}
		if c+1 < len(h.list) && h.less(c+1, c) {
			c++
		}
		if !h.less(c, i) {
			return
		}
		h.swap(i, c)
		i = c
	}
}
