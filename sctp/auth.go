package sctp

import (
	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/wire"
)

// AuthConfig asks for the authentication of chunks (RFC 4895). It is in use if
// both ends ask for it: see Association.Authenticated.
type AuthConfig struct {
	// Chunks are the types that are accepted only if they are authenticated, DATA
	// and I-DATA for example. INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH cannot be
	// among them.
	Chunks []wire.ChunkType
	// HMACs are the identifiers of the algorithms that the peer may use, the
	// preferred one first: 3 is SHA-256, the default, 1 is SHA-1, which is always
	// among them.
	HMACs []uint16
	// Keys are the endpoint pair shared keys; without any there is the empty key
	// 0. Active is the ID of the key to send with.
	Keys   []AuthKey
	Active uint16
}

// AuthKey is an endpoint pair shared key (RFC 4895, Section 6.1).
type AuthKey struct {
	ID     uint16
	Secret []byte
}

func (c *AuthConfig) core() *auth.Config {
	if c == nil {
		return nil
	}
	d := &auth.Config{Chunks: c.Chunks, HMACs: c.HMACs, Active: c.Active}
	for _, k := range c.Keys {
		d.Keys = append(d.Keys, auth.Key{ID: k.ID, Secret: k.Secret})
	}
	return d
}

// Authenticated reports whether both ends authenticate chunks.
func (a *Association) Authenticated() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.Authenticated()
}

// AuthChunks returns the types of the chunks that this end accepts only if they
// are authenticated, and those that the peer does (RFC 6458, Sections 8.2.3 and
// 8.2.4); none without Authenticated.
func (a *Association) AuthChunks() (local, peer []wire.ChunkType) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.AuthChunks()
}

// SetAuthKey adds or replaces an endpoint pair shared key; secret is copied. It
// returns ErrLimit for too long a secret or too many keys, ErrNotSupported
// without Config.Auth.
func (a *Association) SetAuthKey(id uint16, secret []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return coreError(a.core.SetAuthKey(id, secret))
}

// UseAuthKey makes the key the one to send with from now on. The peer is
// notified with NotifyAuthKey. It returns ErrNoKey if there is no such key, or it is
// deactivated.
func (a *Association) UseAuthKey(id uint16) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return coreError(a.core.UseAuthKey(id))
}

// DeactivateAuthKey has no message sent with a key any more but those that name it
// already (RFC 6458, Section 8.3.4): NotifyAuthKeyFree tells when the last of them is
// acknowledged or abandoned. What the peer sends with it is accepted until
// DeleteAuthKey. It returns ErrNoKey if there is no such key or it is the one to send
// with; SetAuthKey activates it again.
func (a *Association) DeactivateAuthKey(id uint16) error {
	a.mu.Lock()
	err := a.core.DeactivateAuthKey(id)
	a.goCallbacks(a.drainAndUnlock())
	return coreError(err)
}

// DeleteAuthKey removes a key: what the peer sends with it is not accepted any
// more. It returns ErrNoKey if there is no such key, if messages that name it are
// not acknowledged (SendOptions.Key), or if it is the one to send
// with.
func (a *Association) DeleteAuthKey(id uint16) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return coreError(a.core.DeleteAuthKey(id))
}
