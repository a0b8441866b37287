package tx

import "github.com/weftstack/weft/sctp/internal/core/clock"

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
func (q *Queue) useKey(r route, n int) {
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

// ForgetPath lets the messages that were to go by a path take any: its address is
// not the peer's any more.
func (q *Queue) ForgetPath(i int) {
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
func (q *Queue) goesWith(m *outMsg) bool {
	return (q.routed == 0 || m.route == q.route) && m.route.key() == q.key
}

// KeyInUse reports whether a message that is not acknowledged or abandoned names a key.
func (q *Queue) KeyInUse(id uint16) bool { return q.keyUse[id] > 0 }

// KeysFreed reports, once, that the last message that named some key was acknowledged or
// abandoned, or that NoteKeysFreed was called.
func (q *Queue) KeysFreed() bool {
	f := q.keyFreed
	q.keyFreed = false
	return f
}

// NoteKeysFreed has KeysFreed report true: the messages of a queue before this one are gone.
func (q *Queue) NoteKeysFreed() { q.keyFreed = true }

// Routed reports whether a message with bytes to send demands a path or a key.
func (q *Queue) Routed() bool { return q.routed > 0 }

// PickKey chooses the key of the next packet with data: that of the chunk to be
// retransmitted first, or else of the message to be sent first, as RFC 6458, Section
// 5.3.8, has it: "the SCTP implementation must not bundle user messages that need
// to be authenticated using different shared key identifiers". NextRoute was called before.
func (q *Queue) PickKey() {
	if q.key = 0; len(q.keyUse) == 0 {
		return
	}
	if q.sb.HasRtx() {
		q.key = q.sb.rtxKey()
	} else if q.routed > 0 {
		q.key = q.route.key()
	}
}

// Key returns the key of the packet that is being built; ok is false for the active one.
func (q *Queue) Key() (id uint16, ok bool) {
	return uint16(q.key >> routeKeyShift), q.key != 0
}

// NextRoute has the next packet carry new messages that demand what the one to be sent first
// does. It returns the path that this one names, -1 for none.
func (q *Queue) NextRoute(now clock.Time) int {
	if q.routed == 0 {
		return -1
	}
	q.route = 0
	m := q.head(now)
	if m == nil {
		return -1
	}
	q.route = m.route
	return m.route.path()
}

// SendAnywhere has the next packet carry messages that demand neither a path nor a key, in
// chunks of any size.
func (q *Queue) SendAnywhere() { q.key, q.maxChunk = 0, 0 }

// LimitChunks has no chunk be made larger than n bytes, header included; 0 means no bound
// besides the packet.
func (q *Queue) LimitChunks(n int) { q.maxChunk = n }
