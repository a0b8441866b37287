package sctp_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
)

// Sockets of every kind carry an association: of one address or all, of either
// family, several at once.
func TestSocketsOfEveryKind(t *testing.T) {
	for _, tc := range []struct {
		name   string
		client []string
		server []string
		dial   []string // addresses of the server
		paths  int
	}{
		{name: "IPv6", client: []string{"[::1]:0"}, server: []string{"[::1]:0"}, dial: []string{"::1"}, paths: 1},
		{name: "all addresses, IPv4", client: []string{"127.0.0.1:0"}, server: []string{"[::]:0"}, dial: []string{"127.0.0.1"}, paths: 1},
		{name: "all addresses, IPv6", client: []string{"[::1]:0"}, server: []string{"[::]:0"}, dial: []string{"::1"}, paths: 1},
		{name: "all addresses, both", client: []string{"[::]:0"}, server: []string{"0.0.0.0:0"}, dial: []string{"127.0.0.1"}, paths: 1},
		{name: "two addresses", client: []string{"127.0.0.1:0", "127.0.0.2:0"}, server: []string{"127.0.0.3:0", "127.0.0.4:0"}, dial: []string{"127.0.0.3"}, paths: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			open := func(addrs []string) *sctp.Transport {
				var cfg sctp.TransportConfig
				for _, a := range addrs {
					cfg.LocalAddrs = append(cfg.LocalAddrs, netip.MustParseAddrPort(a))
				}
				tr, err := sctp.NewTransport(cfg)
				if err != nil {
					t.Skipf("no sockets at %v: %v", addrs, err)
				}
				t.Cleanup(func() { tr.Close() })
				return tr
			}
			client, server := open(tc.client), open(tc.server)
			es, err := server.Listen(serverPort, nil)
			if err != nil {
				t.Fatal(err)
			}
			ec, err := client.Listen(0, nil)
			if err != nil {
				t.Fatal(err)
			}
			peer := sctp.Addr{Port: serverPort}
			for _, ip := range tc.dial {
				peer.Addrs = append(peer.Addrs, netip.AddrPortFrom(netip.MustParseAddr(ip), server.LocalAddrs()[0].Port()))
			}
			a, err := ec.Connect(context.Background(), peer)
			if err != nil {
				t.Fatal(err)
			}
			b, err := es.Accept(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 300_000)
			for _, x := range [][2]*sctp.Association{{a, b}, {b, a}} {
				msg := pattern(200_000)
				if err := x[0].Send(context.Background(), msg, sctp.SendOptions{}); err != nil {
					t.Fatal(err)
				}
				if got, _ := recvMessage(t, x[1], buf); !bytes.Equal(got, msg) {
					t.Error("message came out different")
				}
			}
			for deadline := time.Now().Add(5 * time.Minute); ; {
				n := 0
				for _, p := range a.Stats().Paths {
					if p.Confirmed {
						n++
					}
				}
				if n == tc.paths {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%d confirmed paths, want %d: %+v", n, tc.paths, a.Stats().Paths)
				}
				<-time.After(time.Millisecond)
			}
			t.Logf("%v to %v", a.LocalAddr(), a.RemoteAddr())
			if err := a.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAddressesInUse(t *testing.T) {
	tr := newTransport(t, loopback())
	if _, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: tr.LocalAddrs()}); err == nil {
		t.Error("two transports on one UDP port")
	}
	e, err := tr.Listen(serverPort, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
	if _, err := tr.Listen(serverPort, nil); err != nil {
		t.Errorf("port of a closed endpoint: %v", err)
	}
	for _, a := range []sctp.Addr{{}, {Port: 1}, {Addrs: tr.LocalAddrs()},
		{Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, Port: 1},
		{Addrs: []netip.AddrPort{netip.MustParseAddrPort("224.0.0.1:1")}, Port: 1}} {
		f, err := tr.Listen(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Connect(context.Background(), a); !errors.Is(err, sctp.ErrAddress) {
			t.Errorf("Connect to %v = %v, want ErrAddress", a, err)
		}
	}
}
