package sctp

import (
	"context"
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// AddAddr tells the peer of another local address of the association (RFC 5061,
// Section 4.2.1): one of the transport's, see Transport.AddAddr, or an
// unspecified one for that which the peer sees, behind a NAT. It is used once the
// peer has agreed. AddAddr blocks until the peer has answered or ctx is done; the
// request goes on then. Both ends need Config.ChangeAddrs. Errors are
// ErrNotSupported, ErrDenied, ErrBusy, ErrAddress, and those of an association
// that ended.
func (a *Association) AddAddr(ctx context.Context, addr netip.AddrPort) error {
	return a.ask(ctx, func(c *core.Assoc, now clock.Time) (uint32, error) { return c.AddLocalAddr(now, addr) })
}

// RemoveAddr takes a local address of the association back (RFC 5061, Section
// 4.2.2); it is not used as a source any more at once. The last one cannot be
// removed. RemoveAddr is like AddAddr else.
func (a *Association) RemoveAddr(ctx context.Context, addr netip.AddrPort) error {
	return a.ask(ctx, func(c *core.Assoc, now clock.Time) (uint32, error) { return c.RemoveLocalAddr(now, addr) })
}

// ReplaceAddr adds one local address, asks the peer to prefer it and removes
// another, in one step: it works even if the old one is the only one and does not
// work any more. ReplaceAddr is like AddAddr else.
func (a *Association) ReplaceAddr(ctx context.Context, from, to netip.AddrPort) error {
	return a.ask(ctx, func(c *core.Assoc, now clock.Time) (uint32, error) { return c.ReplaceLocalAddr(now, from, to) })
}

// SetPeerPrimary asks the peer to prefer one of our addresses as destination (RFC
// 5061, Section 4.2.4). It is like AddAddr else.
func (a *Association) SetPeerPrimary(ctx context.Context, addr netip.AddrPort) error {
	return a.ask(ctx, func(c *core.Assoc, now clock.Time) (uint32, error) { return c.SetPeerPrimary(now, addr) })
}
