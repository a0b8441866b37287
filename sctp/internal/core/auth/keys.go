package auth

import (
	"bytes"
	gohash "hash"
	"slices"

	"github.com/weftstack/weft/sctp/wire"
)

// State is the authentication of an association's chunks (RFC 4895).
type State struct {
	On           bool // negotiated
	Random       [RandomLen]byte
	Mine, theirs Vector
	Need         ChunkSet // accepted only authenticated
	Must         ChunkSet // the peer wants them so
	Always       bool     // Must has types that any packet may carry
	HMAC         uint16   // to send with
	keys         []keyState
	active       int    // in keys
	heard        uint16 // the key the peer used last
	hasHeard     bool
	zero         [32]byte
	sum          []byte
}

// keyState is a shared key with the HMACs under the association shared keys it
// makes, by algorithm; they are nil until used.
type keyState struct {
	Key
	macs [4]gohash.Hash
	off  bool // nothing new is sent with it
	told bool // that nothing will be
}

// Init prepares for the association to be negotiated; random is ours.
func (m *State) Init(c *Config, random [RandomLen]byte) {
	if m.keys == nil {
		for _, k := range c.Keys[:min(len(c.Keys), MaxKeys)] {
			m.Set(k.ID, k.Secret)
		}
		if len(m.keys) == 0 {
			// "If there is no endpoint pair shared key, only one association
			// shared key is computed by using an empty byte vector".
			m.Set(0, nil)
		}
		m.active = max(m.index(c.Active), 0)
	}
	m.Random, m.Mine = random, NewVector(random, c)
	m.Need = m.Mine.Chunks()
	m.theirs, m.On = nil, false
}

// Learn takes in the peer's key vector, empty if it has none; negotiated tells whether both
// ends have the extension.
func (m *State) Learn(negotiated bool, theirs Vector) {
	m.On = negotiated && len(theirs) > 0 && len(m.Mine) > 0
	if !m.On {
		m.Need, m.Must, m.Always = ChunkSet{}, ChunkSet{}, false
	} else {
		m.theirs, m.Must, m.HMAC = slices.Clone(theirs), theirs.Chunks(), theirs.hmac()
		rest := m.Must
		for _, t := range [...]wire.ChunkType{wire.ChunkAsconf, wire.ChunkAsconfAck, wire.ChunkAbort, wire.ChunkCookieEcho,
			wire.ChunkCookieAck} {
			rest[t>>6] &^= 1 << (t & 63)
		}
		m.Always = !rest.Empty()
	}
	for i := range m.keys {
		m.keys[i].macs = [4]gohash.Hash{}
	}
}

// Reserve returns the room to keep free for an AUTH chunk in all packets.
func (m *State) Reserve() int {
	if !m.Always {
		return 0
	}
	return m.ChunkLen()
}

// ChunkLen returns the length of an AUTH chunk.
func (m *State) ChunkLen() int { return wire.AuthHeaderLen + hashLen(m.HMAC) }

// index returns the place of a key, -1 if there is none with this ID.
func (m *State) index(id uint16) int {
	return slices.IndexFunc(m.keys, func(k keyState) bool { return k.ID == id })
}

// Set adds or replaces a key. It returns false for too long a secret or too many keys.
func (m *State) Set(id uint16, secret []byte) bool {
	if len(secret) > MaxSecret {
		return false
	}
	k := keyState{Key: Key{ID: id, Secret: bytes.Clone(secret)}}
	if i := m.index(id); i >= 0 {
		m.keys[i] = k
	} else if len(m.keys) == MaxKeys {
		return false
	} else {
		m.keys = append(m.keys, k)
	}
	return true
}

// mac returns the HMAC of an algorithm under a key, reset.
func (m *State) mac(k *keyState, id uint16) gohash.Hash {
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
func (m *State) sharedKey(secret []byte) []byte {
	if m.Mine.less(m.theirs) {
		return slices.Concat(secret, m.Mine, m.theirs)
	}
	return slices.Concat(secret, m.theirs, m.Mine)
}

// ActiveKey returns the ID of the key to send with.
func (m *State) ActiveKey() uint16 { return m.keys[m.active].ID }

// Usable reports whether messages may be sent with the key.
func (m *State) Usable(id uint16) bool {
	i := m.index(id)
	return i >= 0 && !m.keys[i].off
}

// Place returns the place of a key, that of the active one if there is none with this ID.
func (m *State) Place(id uint16) int {
	if i := m.index(id); i >= 0 {
		return i
	}
	return m.active
}

// ActivePlace returns the place of the active key.
func (m *State) ActivePlace() int { return m.active }

// Use makes the key the active one. It returns false if there is no such key, or it is
// deactivated.
func (m *State) Use(id uint16) bool {
	i := m.index(id)
	if i < 0 || m.keys[i].off {
		return false
	}
	m.active = i
	return true
}

// Deactivate has nothing new sent with the key. It returns false if there is no such key,
// or it is the active one.
func (m *State) Deactivate(id uint16) bool {
	i := m.index(id)
	if i < 0 || i == m.active {
		return false
	}
	m.keys[i].off = true
	return true
}

// Freed calls tell, once for each, with the deactivated keys that no message uses; uses has
// the number of messages by key.
func (m *State) Freed(inUse func(id uint16) bool, tell func(id uint16)) {
	for i := range m.keys {
		if k := &m.keys[i]; k.off && !k.told && !inUse(k.ID) {
			k.told = true
			tell(k.ID)
		}
	}
}

// Delete removes a key. It returns false if there is no such key, or it is the active one.
func (m *State) Delete(id uint16) bool {
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
