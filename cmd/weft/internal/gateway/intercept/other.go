//go:build !linux

package intercept

import (
	"context"
	"net"
	"net/netip"
)

// Install returns ErrUnsupported.
func (r *Rules) Install() (remove func() error, err error) { return nil, ErrUnsupported }

// Listen returns ErrUnsupported.
func Listen(ctx context.Context, m Mode, address string) (net.Listener, error) {
	return nil, ErrUnsupported
}

// From returns a dialer for a source address of another host, which only Linux permits: its Dial fails.
func From(a netip.AddrPort) net.Dialer { return net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(a)} }

// OriginalDst returns ErrUnsupported.
func OriginalDst(m Mode, c *net.TCPConn) (netip.AddrPort, error) {
	return netip.AddrPort{}, ErrUnsupported
}
