package verbs

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// A peer that lists the address of another host when it connects does not get the
// connections, and the private data, that are meant for that host (RFC 5062, Section 2).
func TestConnectGoesToConfirmedAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(1)
		defer net.Close()
		net.SetDefault(sctptest.Link{Delay: time.Millisecond})
		open := func(ips ...string) *node {
			h := net.NewHost(ips...)
			var conns []sctp.PacketConn
			for _, ip := range ips {
				c, err := h.ListenPacket(ip + ":9899")
				if err != nil {
					t.Fatal(err)
				}
				conns = append(conns, c)
			}
			tr, err := sctp.NewTransport(sctp.TransportConfig{Conns: conns})
			if err != nil {
				t.Fatal(err)
			}
			return nodeOn(t, tr, Config{Port: 7000})
		}
		server, liar := open("10.0.0.1"), open("10.0.0.2", "10.0.0.3")
		defer server.tr.Close()
		defer liar.tr.Close()
		net.Cut("10.0.0.1", "10.0.0.3") // for the server 10.0.0.3 is another host
		l, err := liar.dev.Listen()
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			if r, err := l.Accept(t.Context()); err == nil {
				t.Errorf("the liar is asked: %q", r.PrivateData)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		// It opens the association; nobody listens.
		if _, err := liar.dev.Connect(ctx, server.dev.Addr(), liar.qp(QPConfig{}), ConnParams{}); !errors.Is(err, ErrRefused) {
			t.Fatal("the liar connects:", err)
		}
		time.Sleep(10 * time.Second)
		to := sctp.Addr{Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.3:9899")}, Port: 7000}
		if _, err = server.dev.Connect(ctx, to, server.qp(QPConfig{}), ConnParams{PrivateData: []byte("for 10.0.0.3 only")}); err == nil {
			t.Error("connected with a host that nothing reaches")
		}
		// When the address is confirmed the association there is serves.
		net.Restore("10.0.0.1", "10.0.0.3")
		time.Sleep(5 * time.Minute)
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		l.Close()
		if _, err = server.dev.Connect(ctx, to, server.qp(QPConfig{}), ConnParams{}); !errors.Is(err, ErrRefused) {
			t.Error("once the address is confirmed:", err)
		}
		if n := len(server.dev.Associations()); n != 1 {
			t.Errorf("%d associations, want 1", n)
		}
	})
}
