package core

import (
	"bytes"
	gohash "hash"
	"slices"

	"github.com/weftstack/weft/sctp/wire"
)

// authState is the authentication of an association's chunks (RFC 4895).
type authState struct {
	on           bool // negotiated
	random       [authRandomLen]byte
	mine, theirs authVector
	need         chunkSet // accepted only authenticated
	must         chunkSet // the peer wants them so
	always       bool     // must has types that any packet may carry
	hmac         uint16   // to send with
	keys         []authKey
	active       int    // in keys
	heard        uint16 // the key the peer used last
	hasHeard     bool
	zero         [32]byte
	sum          []byte
}

// authKey is a shared key with the HMACs under the association shared keys it
// makes, by algorithm; they are nil until used.
type authKey struct {
	AuthKey
	macs [4]gohash.Hash
	off  bool // nothing new is sent with it
	told bool // that nothing will be
}

// initAuth prepares for the association to be negotiated; random is ours.
func (a *Assoc) initAuth(random [authRandomLen]byte) {
	if c := a.cfg.Auth; c != nil {
		a.auth.init(c, random)
	}
}

func (m *authState) init(c *AuthConfig, random [authRandomLen]byte) {
	if m.keys == nil {
		for _, k := range c.Keys[:min(len(c.Keys), MaxAuthKeys)] {
			m.set(k.ID, k.Secret)
		}
		if len(m.keys) == 0 {
			// "If there is no endpoint pair shared key, only one association
			// shared key is computed by using an empty byte vector".
			m.set(0, nil)
		}
		m.active = max(m.index(c.Active), 0)
	}
	m.random, m.mine = random, newAuthVector(random, c)
	m.need = m.mine.chunks()
	m.theirs, m.on = nil, false
}

// learnAuth takes in the peer's key vector, empty if it has none, once the
// features are negotiated.
func (a *Assoc) learnAuth(theirs authVector) {
	m := &a.auth
	m.learn(a.peer.features, theirs)
	for i := range a.paths {
		p := &a.paths[i]
		p.reserve = m.reserve()
		p.cc.SetMTU(p.pmdcs())
	}
}

func (m *authState) learn(f features, theirs authVector) {
	m.on = f.has(featAuth) && len(theirs) > 0 && len(m.mine) > 0
	if !m.on {
		m.need, m.must, m.always = chunkSet{}, chunkSet{}, false
	} else {
		m.theirs, m.must, m.hmac = slices.Clone(theirs), theirs.chunks(), theirs.hmac()
		rest := m.must
		for _, t := range [...]wire.ChunkType{wire.ChunkAsconf, wire.ChunkAsconfAck, wire.ChunkAbort, wire.ChunkCookieEcho, wire.ChunkCookieAck} {
			rest[t>>6] &^= 1 << (t & 63)
		}
		m.always = !rest.empty()
	}
	for i := range m.keys {
		m.keys[i].macs = [4]gohash.Hash{}
	}
}

// reserve returns the room to keep free for an AUTH chunk in all packets.
func (m *authState) reserve() int {
	if !m.always {
		return 0
	}
	return m.chunkLen()
}

func (m *authState) chunkLen() int { return wire.AuthHeaderLen + hashLen(m.hmac) }

func (m *authState) index(id uint16) int {
	return slices.IndexFunc(m.keys, func(k authKey) bool { return k.ID == id })
}

func (m *authState) set(id uint16, secret []byte) bool {
	if len(secret) > MaxAuthSecret {
		return false
	}
	k := authKey{AuthKey: AuthKey{ID: id, Secret: bytes.Clone(secret)}}
	if i := m.index(id); i >= 0 {
		m.keys[i] = k
	} else if len(m.keys) == MaxAuthKeys {
		return false
	} else {
		m.keys = append(m.keys, k)
	}
	return true
}

// mac returns the HMAC of an algorithm under a key, reset.
func (m *authState) mac(k *authKey, id uint16) gohash.Hash {
	h := &k.macs[id&3]
	if *h == nil {
		*h = newMAC(id, m.sharedKey(k.Secret))
	}
	(*h).Reset()
	return *h
}

// sharedKey returns the association shared key for an endpoint pair shared key:
// RFC 4895, Section 6.1, "selecting the numerically smaller key vector and
// concatenating it to the endpoint pair shared key, and then concatenating the
// numerically larger key vector to that".
func (m *authState) sharedKey(secret []byte) []byte {
	if m.mine.less(m.theirs) {
		return slices.Concat(secret, m.mine, m.theirs)
	}
	return slices.Concat(secret, m.theirs, m.mine)
}

// AuthChunks returns the types of chunks that this end accepts only
// authenticated, and those that the peer does.
func (a *Assoc) AuthChunks() (local, peer []wire.ChunkType) {
	if !a.auth.on {
		return nil, nil
	}
	for t := range 256 {
		c := wire.ChunkType(t)
		if slices.Contains(a.cfg.Auth.Chunks, c) {
			local = append(local, c)
		}
		if a.auth.must.has(c) {
			peer = append(peer, c)
		}
	}
	return local, peer
}

// Authenticated reports whether both ends authenticate chunks.
func (a *Assoc) Authenticated() bool { return a.auth.on }

// SetAuthKey adds or replaces an endpoint pair shared key. It copies secret, and
// returns ErrTooMany for too long a secret or too many keys, ErrNotSupported
// without Config.Auth.
func (a *Assoc) SetAuthKey(id uint16, secret []byte) error {
	if a.cfg.Auth == nil {
		return ErrNotSupported
	}
	if !a.auth.set(id, secret) {
		return ErrTooMany
	}
	return nil
}

// UseAuthKey makes the key the one to send with. What was sent with another one
// before is not affected. It returns ErrNoKey if there is no such key, or it is
// deactivated.
func (a *Assoc) UseAuthKey(id uint16) error {
	i := a.auth.index(id)
	if i < 0 || a.auth.keys[i].off {
		return ErrNoKey
	}
	a.auth.active = i
	return nil
}

// DeactivateAuthKey has no message sent with a key any more but those that name it
// already (RFC 6458, Section 8.3.4). Once they are acknowledged or abandoned
// EventAuthKeyFree comes. It returns ErrNoKey if there is no such key or it is the one
// to send with. SetAuthKey activates it again.
func (a *Assoc) DeactivateAuthKey(id uint16) error {
	m := &a.auth
	i := m.index(id)
	if i < 0 || i == m.active {
		return ErrNoKey
	}
	m.keys[i].off = true
	a.tellFreeKeys()
	return nil
}

// tellFreeKeys tells of deactivated keys that no message needs any more.
func (a *Assoc) tellFreeKeys() {
	for i := range a.auth.keys {
		if k := &a.auth.keys[i]; k.off && !k.told && a.tx.q.keyUse[k.ID] == 0 {
			k.told = true
			a.events.push(Event{Kind: EventAuthKeyFree, Key: k.ID})
		}
	}
}

// DeleteAuthKey removes a key. What the peer sends with it is not accepted any
// more. It returns ErrNoKey if there is no such key, if it is the one to send with,
// or one of messages that are not acknowledged.
func (a *Assoc) DeleteAuthKey(id uint16) error {
	m := &a.auth
	i := m.index(id)
	if i < 0 || i == m.active || a.tx.q.keyUse[id] > 0 {
		return ErrNoKey
	}
	m.keys = slices.Delete(m.keys, i, i+1)
	if m.active > i {
		m.active--
	}
	return nil
}
