package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/wire"
)

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
			return requests.ErrNotSupported
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

// keyOf returns the place of the key of a route, that of the active one if it names
// none.
func (a *Assoc) keyOf(r route) int {
	if r != 0 {
		return a.auth.Place(uint16(r >> routeKeyShift))
	}
	return a.auth.ActivePlace()
}
