package sctp

import (
	"context"
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// AddAddr tells the peer of another local address of the association (RFC 5061,
// Section 4.2.1): one of the transport's, see Transport.AddAddr, or behind a NAT the
// unspecified address, which stands for the source address that the peer sees. It is
// used once the peer has agreed. Both ends need Config.ChangeAddrs.
//
// AddAddr blocks until the peer has answered or ctx is done, and returns the error of
// ctx then; the request goes on. Other errors are ErrNotSupported, ErrDenied, ErrBusy,
// ErrAddress, ErrRestart if the peer has restarted, ErrClosed after Close, and the reason
// of the end as of [Association.Err].
func (a *Association) AddAddr(ctx context.Context, addr netip.AddrPort) error {
	return a.ask(ctx, func(c *core.Assoc, now clock.Time) (uint32, error) { return c.AddLocalAddr(addr) })
}

// RemoveAddr takes a local address of the association back (RFC 5061, Section
// 4.2.2). Packets stop using it as their source at once. The last one cannot be
// removed. Otherwise it behaves like [Association.AddAddr].
func (a *Association) RemoveAddr(ctx context.Context, addr netip.AddrPort) error {
	return a.ask(ctx, func(c *core.Assoc, now clock.Time) (uint32, error) { return c.RemoveLocalAddr(addr) })
}

// ReplaceAddr adds one local address, asks the peer to prefer it and removes
// another, in one step: it works even if the old one is the only one and does not
// work any more. Otherwise it behaves like [Association.AddAddr].
func (a *Association) ReplaceAddr(ctx context.Context, from, to netip.AddrPort) error {
	return a.ask(ctx, func(c *core.Assoc, now clock.Time) (uint32, error) { return c.ReplaceLocalAddr(from, to) })
}

// SetPeerPrimary asks the peer to prefer one of our addresses as destination (RFC
// 5061, Section 4.2.4). Otherwise it behaves like [Association.AddAddr].
func (a *Association) SetPeerPrimary(ctx context.Context, addr netip.AddrPort) error {
	return a.ask(ctx, func(c *core.Assoc, now clock.Time) (uint32, error) { return c.SetPeerPrimary(addr) })
}
