package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

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

// setRoute notes what m demands.
func (a *Assoc) setRoute(m *Message) error {
	if m.Remote.IsValid() {
		i := a.pathByAddr(unmap(m.Remote))
		if i < 0 {
			return ErrPath
		}
		m.route = routeVia(i)
	}
	if m.Keyed {
		if !a.auth.On || !a.auth.Must.Has(a.dataType()) {
			return ErrNotSupported
		}
		if !a.auth.Usable(m.Key) {
			return ErrNoKey
		}
		m.route |= routeKeyed | route(m.Key)<<routeKeyShift
	}
	return nil
}

// dataType returns the type of the chunks that carry user data.
func (a *Assoc) dataType() wire.ChunkType {
	if a.tx.q.interleave {
		return wire.ChunkIData
	}
	return wire.ChunkData
}

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

// pickKey chooses the key of the next packet with data: that of the chunk to be
// retransmitted first, or else of the message to be sent first, as RFC 6458, Section
// 5.3.8, has it: "the SCTP implementation must not bundle user messages that need
// to be authenticated using different shared key identifiers". newDataPath was
// called before.
func (a *Assoc) pickKey() {
	q, sb := a.tx.q, a.tx.sb
	if q.key = 0; len(q.keyUse) == 0 {
		return
	}
	if sb.HasRtx() {
		q.key = sb.rtxKey()
	} else if q.routed > 0 {
		q.key = q.route.key()
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

// head returns the message to continue or begin now, nil if there is none. It
// drops messages that expired before they were begun.
func (q *SendQueue) head(now clock.Time) *outMsg {
	for {
		m := q.cur
		if m == nil {
			if q.stalled {
				return nil
			}
			sid, found := q.sched.next()
			if !found {
				return nil
			}
			m = q.streams[sid].head
		}
		if m.expires == 0 || now < m.expires {
			return m
		}
		// RFC 3758, Section 4.1: when "the lifetime of the message has expired"
		// it "MUST be treated as abandoned" before it is transmitted.
		if m.sent == 0 {
			q.dropUnsent(m)
			continue
		}
		if q.sb == nil || !q.partial || !q.sb.abandon(m) {
			return m
		}
	}
}

// newDataPath returns the path of the next packet with new data, and whether it is
// the one that the message to be sent first names: RFC 9260, Section 6.4, "By
// default, an endpoint SHOULD always transmit to the primary path, unless the SCTP
// user explicitly specifies the destination transport address". Otherwise it is d:
// also when that path cannot be used, because the endpoint "SHOULD try to send the
// data to an alternate active destination transport address if one exists".
func (a *Assoc) newDataPath(now clock.Time, d int) (i int, named bool) {
	q := a.tx.q
	if q.routed == 0 {
		return d, false
	}
	q.route = 0
	m := q.head(now)
	if m == nil {
		return d, false
	}
	q.route = m.route
	if i := m.route.path(); i >= 0 && a.paths[i].usable() {
		return i, true
	}
	return d, false
}

// takesNew reports whether the new data that is sent first may go to path i.
func (a *Assoc) takesNew(now clock.Time, i int) bool {
	d, named := a.newDataPath(now, a.dataPath())
	return i == d || !named && a.carries(i, d)
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

// keyOf returns the place of the key of a route, that of the active one if it names
// none.
func (a *Assoc) keyOf(r route) int {
	if r != 0 {
		return a.auth.Place(uint16(r >> routeKeyShift))
	}
	return a.auth.ActivePlace()
}
