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

// init prepares for the association to be negotiated; random is ours.
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

// learn takes in the peer's key vector, empty if it has none; negotiated tells whether both
// ends have the extension.
func (m *authState) learn(negotiated bool, theirs authVector) {
	m.on = negotiated && len(theirs) > 0 && len(m.mine) > 0
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

// chunkLen returns the length of an AUTH chunk.
func (m *authState) chunkLen() int { return wire.AuthHeaderLen + hashLen(m.hmac) }

// index returns the place of a key, -1 if there is none with this ID.
func (m *authState) index(id uint16) int {
	return slices.IndexFunc(m.keys, func(k authKey) bool { return k.ID == id })
}

// set adds or replaces a key. It returns false for too long a secret or too many keys.
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

// activeKey returns the ID of the key to send with.
func (m *authState) activeKey() uint16 { return m.keys[m.active].ID }

// usable reports whether messages may be sent with the key.
func (m *authState) usable(id uint16) bool {
	i := m.index(id)
	return i >= 0 && !m.keys[i].off
}

// place returns the place of a key, that of the active one if there is none with this ID.
func (m *authState) place(id uint16) int {
	if i := m.index(id); i >= 0 {
		return i
	}
	return m.active
}

// activePlace returns the place of the active key.
func (m *authState) activePlace() int { return m.active }

// use makes the key the active one. It returns false if there is no such key, or it is
// deactivated.
func (m *authState) use(id uint16) bool {
	i := m.index(id)
	if i < 0 || m.keys[i].off {
		return false
	}
	m.active = i
	return true
}

// deactivate has nothing new sent with the key. It returns false if there is no such key,
// or it is the active one.
func (m *authState) deactivate(id uint16) bool {
	i := m.index(id)
	if i < 0 || i == m.active {
		return false
	}
	m.keys[i].off = true
	return true
}

// freed calls tell, once for each, with the deactivated keys that no message uses; uses has
// the number of messages by key.
func (m *authState) freed(uses map[uint16]int, tell func(id uint16)) {
	for i := range m.keys {
		if k := &m.keys[i]; k.off && !k.told && uses[k.ID] == 0 {
			k.told = true
			tell(k.ID)
		}
	}
}

// delete removes a key. It returns false if there is no such key, or it is the active one.
func (m *authState) delete(id uint16) bool {
	i := m.index(id)
	if i < 0 || i == m.active {
		return false
	}
	m.keys = slices.Delete(m.keys, i, i+1)
	if m.active > i {
		m.active--
	}
	return true
}
