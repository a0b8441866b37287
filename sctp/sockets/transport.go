package sockets

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"github.com/weftstack/weft/sctp"
)

// transports has the transports that sockets share, by their addresses.
var transports = struct {
	mu sync.Mutex
	m  map[string]*transport
}{m: map[string]*transport{}}

// transport is a transport that sockets of the same addresses share. It is closed with the
// last of them.
type transport struct {
	*sctp.Transport
	key  string        // "" if it is not shared
	refs int           // guarded by transports.mu
	gone chan struct{} // closed when a transport without references is closed
}

// place is where a socket is bound: addresses, none for all, and an SCTP port.
type place struct {
	encap  Encap
	ips    []netip.Addr
	port   uint16
	dial   bool // for a socket that opens associations
	listen func(netip.AddrPort) (net.PacketConn, error)
}

// key names the transport of a place, "" for one that is not shared. Sockets that dial from a
// free UDP port share it; listeners on port 0 with EncapSamePort get ports of their own, and
// share them once they are known.
func (p *place) key(udp uint16) string {
	switch {
	case p.listen != nil:
		return ""
	case p.encap == EncapIP:
		return fmt.Sprint("ip", p.ips)
	case udp == 0 && p.dial:
		return fmt.Sprint("dial", p.ips)
	case udp == 0:
		return ""
	}
	return fmt.Sprint("udp", p.ips, udp)
}

// udp returns the UDP port to bind, 0 for a free one, or for none.
func (p *place) udp() uint16 {
	if p.dial && p.port == 0 {
		return 0
	}
	return p.encap.udpPort(p.port)
}

// acquire returns the transport of a place, which the caller releases. If the transport is
// just being closed it waits for that, a second at most.
func acquire(p *place) (*transport, error) {
	udp := p.udp()
	key := p.key(udp)
	if key == "" {
		return p.unshared(udp)
	}
	for {
		transports.mu.Lock()
		t := transports.m[key]
		if t != nil && t.refs == 0 {
			transports.mu.Unlock()
			<-t.gone
			continue
		}
		defer transports.mu.Unlock()
		if t != nil {
			t.refs++
			return t, nil
		}
		st, err := p.open(udp)
		if err != nil {
			return nil, err
		}
		t = &transport{Transport: st, key: key, refs: 1, gone: make(chan struct{})}
		transports.m[key] = t
		return t, nil
	}
}

// unshared opens a transport that others do not have. Later sockets may share it if it has got
// a UDP port that was free, which is known from then on.
func (p *place) unshared(udp uint16) (*transport, error) {
	st, err := p.open(udp) // without a lock: it may call the program
	if err != nil {
		return nil, err
	}
	t := &transport{Transport: st, refs: 1, gone: make(chan struct{})}
	if p.listen == nil {
		t.key = p.key(st.LocalAddrs()[0].Port())
		transports.mu.Lock()
		defer transports.mu.Unlock()
		if transports.m[t.key] == nil {
			transports.m[t.key] = t
		}
	}
	return t, nil
}

// open makes the transport of a place.
func (p *place) open(udp uint16) (*sctp.Transport, error) {
	ips := p.ips
	if p.encap == EncapIP {
		if len(ips) > 0 {
			return sctp.NewTransport(sctp.TransportConfig{IPAddrs: ips})
		}
		ips = []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
		t, err := sctp.NewTransport(sctp.TransportConfig{IPAddrs: ips})
		if errors.Is(err, syscall.EAFNOSUPPORT) { // a host without IPv6
			t, err = sctp.NewTransport(sctp.TransportConfig{IPAddrs: ips[:1]})
		}
		return t, err
	}
	if len(ips) == 0 {
		ips = []netip.Addr{netip.IPv6Unspecified()}
	}
	cfg := sctp.TransportConfig{LocalAddrs: withUDP(ips, udp)}
	if p.listen != nil {
		for _, ap := range cfg.LocalAddrs {
			pc, err := p.listen(ap)
			if err != nil {
				for _, pc := range cfg.Conns {
					pc.Close()
				}
				return nil, err
			}
			cfg.Conns = append(cfg.Conns, pc)
		}
		cfg.LocalAddrs = nil
	}
	return sctp.NewTransport(cfg)
}

// release gives up a reference. With the last one it closes the transport and blocks until
// that is done, a second at most.
func (t *transport) release() {
	transports.mu.Lock()
	t.refs--
	last := t.refs == 0
	transports.mu.Unlock()
	if !last {
		return
	}
	t.Close()
	transports.mu.Lock()
	if transports.m[t.key] == t {
		delete(transports.m, t.key)
	}
	transports.mu.Unlock()
	close(t.gone)
}

// forget has later sockets use another transport: t has lost its sockets.
func (t *transport) forget() {
	transports.mu.Lock()
	defer transports.mu.Unlock()
	if transports.m[t.key] == t {
		delete(transports.m, t.key)
	}
}

// port is an SCTP port of a transport. It is freed with the last of its sockets and
// associations.
type port struct {
	set *settings
	tr  *transport
	ep  *sctp.Endpoint

	// newPeer returns the socket of an association that was just established. accept, if not
	// nil, is given the socket then, and refuses it if it reports false. Both are called
	// without locks held.
	newPeer func(*port) *SCTPConn
	accept  func(*SCTPConn) bool

	mu   sync.Mutex
	refs int // guarded by mu
}

// openPort binds a port, with one reference. newPeer and accept may be called at once.
func openPort(set *settings, p place, newPeer func(*port) *SCTPConn, accept func(*SCTPConn) bool) (*port, error) {
	for try := 0; ; try++ {
		tr, err := acquire(&p)
		if err != nil {
			return nil, err
		}
		number := p.port
		if number == 0 && p.encap == EncapSamePort && !p.dial {
			number = tr.LocalAddrs()[0].Port() // where peers look for it
		}
		o := &port{set: set, tr: tr, refs: 1, newPeer: newPeer, accept: accept}
		cfg := set.config(p.dial)
		cfg.OnAssociation, cfg.OnPiece, cfg.OnNotify = o.onAssociation, onPiece, onNotify
		ep, err := tr.Listen(number, cfg)
		if err == nil {
			o.mu.Lock()
			o.ep = ep
			o.mu.Unlock()
			return o, nil
		}
		if errors.Is(err, sctp.ErrClosed) && try == 0 {
			tr.forget()
			tr.release()
			continue
		}
		tr.release()
		if errors.Is(err, sctp.ErrPortInUse) {
			err = &errnoError{err: fmt.Errorf("SCTP port %d: %w", number, err), errno: syscall.EADDRINUSE}
		}
		return nil, err
	}
}

func (p *port) retain() {
	p.mu.Lock()
	p.refs++
	p.mu.Unlock()
}

// release gives up a reference; the last one frees the port, and blocks for that a second at
// most. It must not be called in an upcall.
func (p *port) release() {
	p.mu.Lock()
	p.refs--
	last := p.refs == 0
	p.mu.Unlock()
	if last {
		p.ep.Close()
		p.tr.release()
	}
}

// stopAccepting has the port refuse new associations.
func (p *port) stopAccepting() { sctp.NewListener(p.ep).Close() }

// watch calls ended when the port takes no more associations, because stopAccepting was called
// or the sockets below are lost, with the reason.
func (p *port) watch(ended func(error)) {
	go func() {
		_, err := p.ep.Accept(background)
		ended(err)
	}()
}
