package core

import (
	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// setRoute notes what m demands.
func (a *Assoc) setRoute(m *tx.Message) error {
	if m.Remote.IsValid() {
		i := a.pathByAddr(address.Unmap(m.Remote))
		if i < 0 {
			return ErrPath
		}
		m.Via(i)
	}
	if m.Keyed {
		if !a.auth.On || !a.auth.Must.Has(a.tx.dataType()) {
			return requests.ErrNotSupported
		}
		if !a.auth.Usable(m.Key) {
			return ErrNoKey
		}
		m.WithKey(m.Key)
	}
	return nil
}

// dataType returns the type of the chunks that carry user data.
func (t *sender) dataType() wire.ChunkType {
	if t.q.Interleaving() {
		return wire.ChunkIData
	}
	return wire.ChunkData
}

// newDataPath returns the path of the next packet with new data, and whether it is
// the one that the message to be sent first names: RFC 9260, Section 6.4, "By
// default, an endpoint SHOULD always transmit to the primary path, unless the SCTP
// user explicitly specifies the destination transport address". Otherwise it is d:
// also when that path cannot be used, because the endpoint "SHOULD try to send the
// data to an alternate active destination transport address if one exists".
func (t *sender) newDataPath(now clock.Time, d int) (i int, named bool) {
	if i := t.q.NextRoute(now); i >= 0 && t.path(i).usable() {
		return i, true
	}
	return d, false
}

// takesNew reports whether the new data that is sent first may go to path i; d is the data
// path.
func (t *sender) takesNew(now clock.Time, i, d int) bool {
	to, named := t.newDataPath(now, d)
	return i == to || !named && t.carries(i, to)
}

// dataKey returns the place of the key that authenticates the packet being built.
func (a *Assoc) dataKey() int {
	if id, named := a.tx.q.Key(); named {
		return a.auth.Place(id)
	}
	return a.auth.ActivePlace()
}
