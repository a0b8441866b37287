package sctp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weftstack/weft/sctp"
)

// tosRelay passes datagrams on between a client and a server, and notes the Type of
// Service of those of the client.
type tosRelay struct {
	c      *net.UDPConn
	server netip.AddrPort
	mu     sync.Mutex
	client netip.AddrPort
	seen   map[byte]int
}

func newTOSRelay(t *testing.T, server netip.AddrPort) *tosRelay {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(server.Addr(), 0)))
	if err != nil {
		t.Skipf("no socket: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	level, option := unix.IPPROTO_IP, unix.IP_RECVTOS
	if server.Addr().Is6() {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS
	}
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if e := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, 1) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	r := &tosRelay{c: c, server: server, seen: map[byte]int{}}
	go r.run()
	return r
}

func (r *tosRelay) run() {
	buf, oob := make([]byte, 1<<16), make([]byte, 1000)
	for {
		n, k, _, from, err := r.c.ReadMsgUDPAddrPort(buf, oob)
		if err != nil {
			return
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		to := r.server
		r.mu.Lock()
		if from == r.server {
			to = r.client
		} else {
			r.client = from
			msgs, _ := unix.ParseSocketControlMessage(oob[:k])
			for _, m := range msgs {
				if len(m.Data) > 0 { // the byte, or an int of this little-endian machine
					r.seen[m.Data[0]>>2]++
				}
			}
		}
		r.mu.Unlock()
		r.c.WriteToUDPAddrPort(buf[:n], to)
	}
}

// take returns the code points seen since it was called last.
func (r *tosRelay) take() map[byte]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = map[byte]int{}
	return seen
}

// RFC 6458, Section 8.1.12, SPP_DSCP: "changing the … DSCP value will affect all
// packets sent by the SCTP stack after setting these parameters".
func TestDSCP(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		at := netip.MustParseAddrPort(addr)
		server, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{at}})
		if err != nil {
			t.Logf("%s: %v", addr, err)
			continue
		}
		defer server.Close()
		client := newTransport(t, sctp.TransportConfig{LocalAddrs: []netip.AddrPort{at}})
		eb, err := server.Listen(serverPort, nil)
		if err != nil {
			t.Fatal(err)
		}
		relay := newTOSRelay(t, server.LocalAddrs()[0])
		ea, err := client.Listen(0, &sctp.Config{DSCP: 46, NoPathMTUDiscovery: true, HeartbeatInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		a, err := ea.Connect(ctx, sctp.Addr{Port: serverPort, Addrs: []netip.AddrPort{relay.c.LocalAddr().(*net.UDPAddr).AddrPort()}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := eb.Accept(ctx)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100_000)
		transfer := func() map[byte]int {
			t.Helper()
			relay.take()
			if err := a.Send(ctx, pattern(100_000), sctp.SendOptions{}); err != nil {
				t.Fatal(err)
			}
			recvMessage(t, b, buf)
			return relay.take()
		}
		send := func(want byte) {
			t.Helper()
			var seen map[byte]int
			for range 10 { // what was sent before the change may come late
				if seen = transfer(); len(seen) == 1 && seen[want] >= 2 {
					return
				}
			}
			t.Errorf("%s: code points %v, want %d", addr, seen, want)
		}
		send(46)
		remote := a.RemoteAddr().Addrs[0]
		p, err := a.PathParams(remote)
		if err != nil || p.DSCP != 46 {
			t.Fatalf("%+v, %v", p, err)
		}
		p.DSCP = 10
		if err := a.SetPathParams(remote, p); err != nil {
			t.Fatal(err)
		}
		send(10)
		p.DSCP = 64
		if err := a.SetPathParams(remote, p); err != sctp.ErrConfig {
			t.Errorf("a code point of seven bits: %v", err)
		}
		if _, err := client.Listen(0, &sctp.Config{DSCP: 64}); !errors.Is(err, sctp.ErrConfig) {
			t.Error(fmt.Errorf("a code point of seven bits: %w", err))
		}
	}
}
