package p2p

import "sync"

// idTable gives requests ids for messages to peers. An id holds the index of a slot plus one and,
// in the upper half, the generation of the slot, so that a late or forged id refers to nothing. The
// zero table is empty.
type idTable struct {
	mu    sync.Mutex
	slots []idSlot
	free  []uint32
}

type idSlot struct {
	r   *Request
	p   *Peer
	gen uint32
}

// Add returns an id for r, which only p may use.
func (t *idTable) Add(r *Request, p *Peer) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, idSlot{})
	}
	s := &t.slots[i]
	s.r, s.p = r, p
	return uint64(s.gen)<<32 | uint64(i+1)
}

// Remove removes and returns the request with an id that p may use, or returns nil if there is
// none.
func (t *idTable) remove(id uint64, p *Peer) *Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := uint32(id) - 1
	if uint64(i) >= uint64(len(t.slots)) {
		return nil
	}
	s := &t.slots[i]
	if s.r == nil || s.p != p || s.gen != uint32(id>>32) {
		return nil
	}
	r := s.r
	t.clear(i)
	return r
}

func (t *idTable) clear(i uint32) {
	s := &t.slots[i]
	s.r, s.p = nil, nil
	s.gen++
	t.free = append(t.free, i)
}

// removeAll removes and returns the requests with ids that p may use.
func (t *idTable) removeAll(p *Peer) []*Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*Request
	for i := range t.slots {
		if s := &t.slots[i]; s.r != nil && s.p == p {
			out = append(out, s.r)
			t.clear(uint32(i))
		}
	}
	return out
}

// Len returns the number of ids in use.
func (t *idTable) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.slots) - len(t.free)
}
