package sockets

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/weftstack/weft/sctp"
)

// Connect opens an association of a one-to-many socket, as sctp_connectx does (RFC 6458,
// Section 9.9), and returns its ID. It blocks until the association is established or has
// failed, which is also told by an AssocChange, or ctx is done. Errors are those of
// [SocketConfig.Dial], sctp.ErrExists if there is an association with the peer, and
// errors.ErrUnsupported for a one-to-one socket.
func (c *SCTPConn) Connect(ctx context.Context, raddr *SCTPAddr) (SCTPAssocID, error) {
	fail := func(err error) (SCTPAssocID, error) {
		return 0, &net.OpError{Op: "connect", Net: "sctp", Addr: raddr, Err: err}
	}
	switch {
	case raddr == nil:
		return 0, c.opError("connect", withErrno(sctp.ErrAddress, syscall.EINVAL))
	case !c.many:
		return fail(errUnsupported)
	case c.isClosed():
		return fail(errClosed)
	}
	peer, err := c.set.peer(raddr)
	if err != nil {
		return fail(err)
	}
	a, err := c.port.ep.Connect(ctx, peer)
	if err != nil {
		c.mu.Lock()
		c.note(nil, SCTP_EVENT_ASSOCIATION, &AssocChange{State: SCTP_CANT_STR_ASSOC, Error: causeOf(err)})
		c.mu.Unlock()
		return fail(err)
	}
	return a.Value().(*association).id, nil
}

// AssocIDs returns the associations of the socket, in no order (RFC 6458, Section 8.2.6).
func (c *SCTPConn) AssocIDs() []SCTPAssocID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []SCTPAssocID
	for _, as := range c.associations() {
		ids = append(ids, as.id)
	}
	return ids
}

// PeelOff makes a one-to-one socket of an association of a one-to-many socket (RFC 6458, Section
// 9.2). What was received and not read goes with it, in order, as do the options of the
// socket. It does not block. It returns an error that is syscall.EINVAL for a one-to-one
// socket, or if there is no such association.
func (c *SCTPConn) PeelOff(id int) (*SCTPConn, error) {
	c.mu.Lock()
	as := c.assocs[SCTPAssocID(id)]
	if c.closed || as == nil {
		closed := c.closed
		c.mu.Unlock()
		if closed {
			return nil, c.opError("peeloff", errClosed)
		}
		return nil, c.opError("peeloff", fmt.Errorf("association %d: %w", id, errNoAssociation))
	}
	n := newConn(c.set, false)
	n.port, n.waiters.t = c.port, c.waiters.t
	n.events, n.defaults = c.events, c.defaults
	n.readTimeout, n.writeTimeout, n.nonblock = c.readTimeout, c.writeTimeout, c.nonblock
	n.peer = as
	for _, it := range c.queue.take(as) {
		c.notes.taken(it)
		n.notes.bytes += it.note
		n.queue.push(it)
	}
	delete(c.assocs, as.id)
	c.port.retain()
	as.sock.Store(n) // those that lock c now look again
	c.mu.Unlock()
	return n, nil
}

// SCTPLocalAddr returns the local addresses of an association; 0 is that of a one-to-one
// socket.
func (c *SCTPConn) SCTPLocalAddr(id int) (*SCTPAddr, error) {
	return c.addrOf(id, (*sctp.Association).LocalAddr)
}

// SCTPRemoteAddr returns the addresses of the peer of an association; 0 is that of a one-to-one
// socket.
func (c *SCTPConn) SCTPRemoteAddr(id int) (*SCTPAddr, error) {
	return c.addrOf(id, (*sctp.Association).RemoteAddr)
}

// SCTPGetPrimaryPeerAddr returns the primary address of the peer of a one-to-one socket.
func (c *SCTPConn) SCTPGetPrimaryPeerAddr() (*SCTPAddr, error) {
	return c.addrOf(0, func(a *sctp.Association) sctp.Addr {
		addr := a.RemoteAddr()
		addr.Addrs = addr.Addrs[:min(1, len(addr.Addrs))]
		return addr
	})
}

func (c *SCTPConn) addrOf(id int, of func(*sctp.Association) sctp.Addr) (*SCTPAddr, error) {
	as, err := c.find(SCTPAssocID(id))
	if err != nil {
		return nil, c.opError("address", err)
	}
	return fromAddr(of(as.a)), nil
}

// SetPrimaryPeerAddr makes an address the preferred destination (RFC 6458, Section 8.1.9). addr
// has one IP address, which must be a confirmed one of the peer: otherwise the error is
// sctp.ErrAddress. id 0 is the association of a one-to-one socket.
func (c *SCTPConn) SetPrimaryPeerAddr(id int, addr *SCTPAddr) error {
	as, err := c.find(SCTPAssocID(id))
	if err != nil {
		return c.opError("set", err)
	}
	ips, _, err := addr.netips("")
	if err != nil || len(ips) != 1 {
		return c.opError("set", withErrno(fmt.Errorf("primary address %v: %w", addr, sctp.ErrAddress), syscall.EINVAL))
	}
	for _, ap := range as.a.RemoteAddr().Addrs {
		if ap.Addr() == ips[0] {
			return c.opError("set", as.a.SetPrimary(ap))
		}
	}
	return c.opError("set", fmt.Errorf("primary address %v: %w", ips[0], sctp.ErrAddress))
}

// SCTPBind adds addresses of the host to the socket (SCTP_BINDX_ADD_ADDR), or removes them
// (SCTP_BINDX_REM_ADDR), as sctp_bindx does (RFC 6458, Section 9.1), and tells the peers of its
// associations, which needs SocketConfig.ChangeAddrs at both ends. It blocks until the peers
// have answered or ctx is done.
//
// The transport must belong to this socket alone: if others share it the error is
// syscall.EBUSY. After an error the addresses before the one that failed have changed.
func (c *SCTPConn) SCTPBind(ctx context.Context, addr *SCTPAddr, flags int) error {
	if flags != SCTP_BINDX_ADD_ADDR && flags != SCTP_BINDX_REM_ADDR {
		return c.opError("bind", withErrno(fmt.Errorf("flags %#x of SCTPBind", flags), syscall.EINVAL))
	}
	ips, _, err := addr.netips("")
	if err != nil {
		return c.opError("bind", withErrno(err, syscall.EINVAL))
	}
	c.mu.Lock()
	closed, list := c.closed, c.associations()
	c.mu.Unlock()
	if closed {
		return c.opError("bind", errClosed)
	}
	tr := c.port.tr
	transports.mu.Lock()
	shared := tr.refs > 1
	if !shared && transports.m[tr.key] == tr {
		delete(transports.m, tr.key) // its addresses are no longer those of the key
	}
	transports.mu.Unlock()
	if shared {
		return c.opError("bind", withErrno(fmt.Errorf("the transport of %v is shared", tr.LocalAddrs()), syscall.EBUSY))
	}
	for _, ip := range ips {
		if err := c.bindAddr(ctx, list, netip.AddrPortFrom(ip, tr.LocalAddrs()[0].Port()), flags); err != nil {
			return c.opError("bind", fmt.Errorf("address %v: %w", ip, err))
		}
	}
	return nil
}

// bindAddr adds or removes one address.
func (c *SCTPConn) bindAddr(ctx context.Context, list []*association, ap netip.AddrPort, flags int) error {
	tr := c.port.tr
	if flags == SCTP_BINDX_ADD_ADDR {
		if _, err := tr.AddAddr(ap); err != nil {
			return err
		}
		for _, as := range list {
			if err := as.a.AddAddr(ctx, ap); err != nil {
				return err
			}
		}
		return nil
	}
	for _, as := range list {
		if err := as.a.RemoveAddr(ctx, ap); err != nil {
			return err
		}
	}
	return tr.RemoveAddr(ap)
}
