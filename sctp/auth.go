package sctp

import (
	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/wire"
)

// AuthConfig asks for the authentication of chunks (RFC 4895). It takes effect if both ends
// ask for it: see [Association.Authenticated].
type AuthConfig struct {
	// Chunks are the types that are accepted only if they are authenticated, DATA
	// and I-DATA for example. INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH among them are
	// refused with ErrConfig.
	Chunks []wire.ChunkType
	// HMACs are the identifiers of the algorithms that the peer may use, the
	// preferred one first: 3 is SHA-256, the default, 1 is SHA-1, which is always
	// among them.
	HMACs []uint16
	// Keys are the endpoint pair shared keys, at most 64 of at most 1,024 bytes, with
	// different IDs; without any there is the empty key with ID 0. Active is the ID of
	// the key to send with, which must be among them. Others are refused with ErrConfig.
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

// SetAuthKey adds or replaces an endpoint pair shared key (RFC 6458, Section 8.3.3); secret
// is copied. It returns ErrLimit for a secret of more than 1,024 bytes or a 65th key, and
// ErrNotSupported without Config.Auth.
func (a *Association) SetAuthKey(id uint16, secret []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return coreError(a.core.SetAuthKey(id, secret))
}

// UseAuthKey makes the key the one to send with from now on (RFC 6458, Section 8.1.18). It
// does not change messages that name a key by SendOptions.AuthKey. The peer's program is
// notified by NotifyAuthKey. It returns ErrNoKey if there is no such key, or it is deactivated.
func (a *Association) UseAuthKey(id uint16) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return coreError(a.core.UseAuthKey(id))
}

// DeactivateAuthKey ends the use of a key for new messages (RFC 6458, Section 8.3.4). Messages
// that name it already are still sent with it: NotifyAuthKeyFree tells when the last of them is
// acknowledged or abandoned. What the peer sends with the key is accepted until DeleteAuthKey;
// SetAuthKey activates it again. It returns ErrNoKey if there is no such key or it is the one
// to send with.
func (a *Association) DeactivateAuthKey(id uint16) error {
	a.mu.Lock()
	err := a.core.DeactivateAuthKey(id)
	a.goCallbacks(a.drainAndUnlock())
	return coreError(err)
}

// DeleteAuthKey removes a key (RFC 6458, Section 8.3.5): what the peer sends with it is not
// accepted any more. It returns ErrNoKey if there is no such key, if it is the one to send
// with, or while a message that names it by SendOptions.AuthKey is neither acknowledged nor
// abandoned.
func (a *Association) DeleteAuthKey(id uint16) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return coreError(a.core.DeleteAuthKey(id))
}
