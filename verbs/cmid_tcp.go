package verbs

import (
	"context"
	"io"
	"net"
	"net/netip"
	"time"
)

// ResolveTCP resolves the TCP address of a peer, "host:port", within a time as
// ResolveAddr does: the connection will be one over TCP, with MPA. CMAddrResolved or CMAddrError
// follows. Of several addresses the first is taken.
func (id *CMID) ResolveTCP(addr string, timeout time.Duration) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if err := id.enter(cmBusy, cmIdle); err != nil {
		return err
	}
	id.run(timeout, func(ctx context.Context) (CMEvent, cmState) {
		t := attemptAt(addr)
		a, err := resolveTCP(ctx, addr)
		if err != nil {
			return CMEvent{Type: CMAddrError, Err: t.failed("address", err)}, cmIdle
		}
		id.mu.Lock()
		id.tcp = a
		id.mu.Unlock()
		return CMEvent{Type: CMAddrResolved}, cmAddr
	})
	return nil
}

func resolveTCP(ctx context.Context, addr string) (net.Addr, error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(ips[0].Unmap(), uint16(port))), nil
}

// ListenTCP is Listen at a TCP address, as Device.ListenTCP takes it. A device
// may have many such listeners.
func (id *CMID) ListenTCP(addr string, backlog int) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.listen(backlog, func() (io.Closer, error) {
		return id.ch.dev.listenTCP(context.Background(), addr, id.backlog, id.requestedTCP)
	})
}

// requestedTCP takes a request to an identifier that listens at a TCP address.
// The listener bounds those that are not answered.
func (id *CMID) requestedTCP(t *tcpRequest) bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.raise(newTCPRequest(t))
}

// RemoteTCP returns the TCP address of the peer of a connection over TCP, once it
// is known, or nil.
func (id *CMID) RemoteTCP() net.Addr {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.tcp
}

// ListenAddr returns the TCP address that ListenTCP listens at, or nil.
func (id *CMID) ListenAddr() net.Addr {
	id.mu.Lock()
	defer id.mu.Unlock()
	if l, ok := id.listener.(*TCPListener); ok {
		return l.Addr()
	}
	return nil
}
