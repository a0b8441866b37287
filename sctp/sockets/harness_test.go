package sockets_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/sctp/sockets"
)

// pair is a server and a client on a network in memory, for virtual time. The server has the
// addresses 10.0.0.1 and 10.0.1.1, the client 10.0.0.2 and 10.0.1.2.
type pair struct {
	t              *testing.T
	net            *sctptest.Network
	server, client sockets.SocketConfig
}

func newPair(t *testing.T, seed uint64, link sctptest.Link) *pair {
	t.Helper()
	n := sctptest.NewNetwork(seed)
	n.SetDefault(link)
	t.Cleanup(n.Close)
	p := &pair{t: t, net: n}
	listen := func(addrs ...string) func(netip.AddrPort) (net.PacketConn, error) {
		h := n.NewHost(addrs...)
		return func(ap netip.AddrPort) (net.PacketConn, error) { return h.ListenPacket(ap.String()) }
	}
	p.server = sockets.SocketConfig{PPID: sockets.PPIDHost, ListenPacket: listen("10.0.0.1", "10.0.1.1")}
	p.client = sockets.SocketConfig{PPID: sockets.PPIDHost, ListenPacket: listen("10.0.0.2", "10.0.1.2")}
	return p
}

func addr(t testing.TB, s string) *sockets.SCTPAddr {
	t.Helper()
	a, err := sockets.ResolveSCTPAddr("sctp", s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

const (
	serverAddr = "10.0.0.1/10.0.1.1:38412"
	clientAddr = "10.0.0.2/10.0.1.2:0"
)

func (p *pair) listen() *sockets.SCTPListener {
	p.t.Helper()
	l, err := p.server.Listen("sctp", addr(p.t, serverAddr))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { l.Close() })
	return l
}

func (p *pair) dial() *sockets.SCTPConn {
	p.t.Helper()
	c, err := p.client.Dial("sctp", addr(p.t, clientAddr), addr(p.t, serverAddr))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	return c
}

// connect returns both ends of an association.
func (p *pair) connect() (client, server *sockets.SCTPConn) {
	p.t.Helper()
	l := p.listen()
	client = p.dial()
	server, err := l.AcceptSCTP()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { server.Close() })
	return client, server
}

// wantMessage reads a message and checks it.
func wantMessage(t *testing.T, c *sockets.SCTPConn, want string) sockets.SndRcvInfo {
	t.Helper()
	buf := make([]byte, 1<<16)
	var info sockets.SndRcvInfo
	n, flags, err := c.ReadMsg(buf, &info)
	if err != nil || string(buf[:n]) != want || flags != sockets.MSG_EOR {
		t.Fatalf("read %q, flags %#x, error %v; want %q", buf[:n], flags, err, want)
	}
	return info
}

// wantNotification reads a notification.
func wantNotification[N sockets.Notification](t *testing.T, c *sockets.SCTPConn) N {
	t.Helper()
	buf := make([]byte, 1<<16)
	n, flags, err := c.ReadMsg(buf, nil)
	if err != nil || flags != sockets.MSG_NOTIFICATION|sockets.MSG_EOR {
		t.Fatalf("read %d bytes, flags %#x, error %v; want a notification", n, flags, err)
	}
	got, err := sockets.ParseNotification(buf[:n])
	if err != nil {
		t.Fatal(err)
	}
	want, ok := got.(N)
	if !ok {
		t.Fatalf("notification %T %+v, want a %T", got, got, want)
	}
	return want
}

// wantError reads or writes until there is an error, and checks it.
func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}
