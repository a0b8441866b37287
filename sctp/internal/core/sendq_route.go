package core

// route is what a message demands of the packets that its chunks go in; 0 is
// nothing. All new chunks of a packet demand the same, and all chunks the same key.
type route uint32

// What a route consists of: the path plus one in its low byte, then whether there
// is a key, and the key.
const (
	routeKeyed    route = 1 << 8
	routeKeyShift       = 16
)

// routeVia is the route by a path.
func routeVia(i int) route { return route(i + 1) }

// path returns the path that the route demands, -1 for none.
func (r route) path() int { return int(r&0xff) - 1 }

// key returns the part of the route that is about the key.
func (r route) key() route { return r &^ 0xff }

// useKey counts a message that names a key, or no longer does.
func (q *SendQueue) useKey(r route, n int) {
	if r&routeKeyed == 0 {
		return
	}
	if q.keyUse == nil {
		q.keyUse = map[uint16]int{}
	}
	id := uint16(r >> routeKeyShift)
	if q.keyUse[id] += n; q.keyUse[id] == 0 {
		delete(q.keyUse, id)
		q.keyFreed = true
	}
}

// rtxKey returns the key of the chunk to be retransmitted first.
func (s *Scoreboard) rtxKey() route {
	t, ok := s.marked.Next(s.base, s.next)
	if !ok {
		return 0
	}
	return s.rec(t).msg.route.key()
}

// forgetPath lets the messages that were to go by a path take any: its address is
// not the peer's any more.
func (q *SendQueue) forgetPath(i int) {
	if q.routed == 0 {
		return
	}
	for k := range q.streams {
		for m := q.streams[k].head; m != nil; m = m.next {
			if m.route.path() != i {
				continue
			}
			if m.route -= routeVia(i); m.route == 0 {
				q.routed--
			}
		}
	}
}

// goesWith reports whether m may go into the packet that is being built.
func (q *SendQueue) goesWith(m *outMsg) bool {
	return (q.routed == 0 || m.route == q.route) && m.route.key() == q.key
}
