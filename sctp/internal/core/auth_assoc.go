package core

import (
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/wire"
)

// initAuth prepares for the association to be negotiated; random is ours.
func (c *situation) initAuth(random [auth.RandomLen]byte) {
	if c.cfg.Auth != nil {
		c.auth.Init(c.cfg.Auth, random)
	}
}

// learnAuth takes in the peer's key vector, empty if it has none, once the
// features are negotiated.
func (r *reachability) learnAuth(theirs auth.Vector) {
	m := &r.auth
	m.Learn(r.peer.features.Has(feature.Auth), theirs)
	for i := range r.paths {
		p := &r.paths[i]
		p.reserve = m.Reserve()
		p.cc.SetMTU(p.pmdcs())
	}
}

// AuthChunks returns the types of chunks that this end accepts only
// authenticated, and those that the peer does.
func (c *situation) AuthChunks() (local, peer []wire.ChunkType) {
	if !c.auth.On {
		return nil, nil
	}
	for t := range 256 {
		typ := wire.ChunkType(t)
		if slices.Contains(c.cfg.Auth.Chunks, typ) {
			local = append(local, typ)
		}
		if c.auth.Must.Has(typ) {
			peer = append(peer, typ)
		}
	}
	return local, peer
}

// Authenticated reports whether both ends authenticate chunks.
func (c *situation) Authenticated() bool { return c.auth.On }

// SetAuthKey adds or replaces an endpoint pair shared key. It copies secret, and
// returns ErrTooMany for too long a secret or too many keys, ErrNotSupported
// without Config.Auth.
func (c *situation) SetAuthKey(id uint16, secret []byte) error {
	if c.cfg.Auth == nil {
		return requests.ErrNotSupported
	}
	if !c.auth.Set(id, secret) {
		return requests.ErrTooMany
	}
	return nil
}

// UseAuthKey makes the key the one to send with. What was sent with another one
// before is not affected. It returns ErrNoKey if there is no such key, or it is
// deactivated.
func (c *situation) UseAuthKey(id uint16) error {
	if !c.auth.Use(id) {
		return ErrNoKey
	}
	return nil
}

// DeactivateAuthKey has no message sent with a key any more but those that name it
// already (RFC 6458, Section 8.3.4). Once they are acknowledged or abandoned
// EventAuthKeyFree comes. It returns ErrNoKey if there is no such key or it is the one
// to send with. SetAuthKey activates it again.
func (a *Assoc) DeactivateAuthKey(id uint16) error {
	if !a.auth.Deactivate(id) {
		return ErrNoKey
	}
	a.tellFreeKeys()
	return nil
}

// tellFreeKeys tells of deactivated keys that no message needs any more.
func (a *Assoc) tellFreeKeys() {
	a.auth.Freed(a.tx.q.KeyInUse, func(id uint16) {
		a.events.push(Event{Kind: EventAuthKeyFree, Key: id})
	})
}

// DeleteAuthKey removes a key. What the peer sends with it is not accepted any
// more. It returns ErrNoKey if there is no such key, if it is the one to send with,
// or one of messages that are not acknowledged.
func (a *Assoc) DeleteAuthKey(id uint16) error {
	if a.tx.q.KeyInUse(id) || !a.auth.Delete(id) {
		return ErrNoKey
	}
	return nil
}

// authDue reports whether the packet to be built for path i has to carry an AUTH
// chunk: it may have chunks that the peer wants authenticated.
func (a *Assoc) authDue(i int) bool {
	m := &a.auth
	if !m.On || m.Must.Empty() {
		return false
	}
	return m.Always || a.hs.sendAck && m.Must.Has(wire.ChunkCookieAck) || a.ctl.wants(i, &m.Must) ||
		a.asc.DueTo(i) && m.Must.Has(wire.ChunkAsconf)
}

// wants reports whether a reply for path i is of a type in s.
func (q *controlQueue) wants(i int, s *auth.ChunkSet) bool {
	for k := range q.n {
		if r := &q.list[k]; r.path == i && s.Has(wire.ChunkType(r.chunk[0])) {
			return true
		}
	}
	return false
}

// checkAuth reports whether the AUTH chunk c of a packet with our tag
// authenticates rest, which is all that follows it (RFC 4895, Section 6.3).
// Nothing is told to the peer but that we do not know the algorithm.
func (r *reachability) checkAuth(c wire.Chunk, rest []byte) bool {
	m := &r.auth
	x, err := wire.ParseAuth(c)
	if !m.On || err != nil {
		return false
	}
	if !m.Accepts(x.HMACID) {
		r.ctl.reply(r.dataPath(), wire.ChunkError, 0, wire.AppendUnsupportedHMAC(nil, x.HMACID))
		return false
	}
	ok, changed := m.Verify(&x, c.Raw[:wire.AuthHeaderLen], rest)
	if changed {
		r.events.push(Event{Kind: EventAuthKey, Key: x.KeyID})
	}
	return ok
}

// authFirst checks the AUTH chunk that a packet begins with and moves it to the
// next chunk. A packet with a foreign tag is only looked at if it may be for us
// all the same (RFC 9260, Section 8.5.1).
func (r *reachability) authFirst(h wire.Header, it *wire.Chunks) bool {
	c, rest := it.Chunk(), it.Rest()
	if len(rest) == 0 {
		return false
	}
	switch wire.ChunkType(rest[0]) {
	case wire.ChunkInit, wire.ChunkInitAck, wire.ChunkAuth:
		return false
	case wire.ChunkCookieEcho:
	default:
		if h.VTag != r.tag && (r.peer.tag == 0 || h.VTag != r.peer.tag) {
			return false
		}
	}
	return r.checkAuth(c, rest) && it.Next()
}
