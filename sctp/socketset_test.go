package sctp_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// New peers learn of an address that a transport got later, and can use it when
// the first one fails.
func TestAddressesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		p := &pair{t: t, net: n}
		p.ta = memTransport(t, n.NewHost(addrA, "10.1.0.1"))
		h := n.NewHost(addrB, "10.1.0.2")
		pc, err := h.ListenPacket(addrB + ":9899")
		if err != nil {
			t.Fatal(err)
		}
		p.tb = newTransport(t, sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})
		eb, err := p.tb.Listen(serverPort, nil)
		if err != nil {
			t.Fatal(err)
		}
		second, err := h.ListenPacket("10.1.0.2:9899")
		if err != nil {
			t.Fatal(err)
		}
		ap, err := p.tb.AddConn(second)
		if err != nil || ap != netip.MustParseAddrPort("10.1.0.2:9899") {
			t.Fatalf("AddConn = %v, %v", ap, err)
		}
		if got := len(p.tb.LocalAddrs()); got != 2 {
			t.Errorf("%d local addresses, want 2", got)
		}
		ea, err := p.ta.Listen(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.a, err = ea.Connect(context.Background(), sctp.Addr{Addrs: eb.Addr().Addrs[:1], Port: serverPort}); err != nil {
			t.Fatal(err)
		}
		if p.b, err = eb.Accept(context.Background()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		n.Cut(addrA, addrB)
		msg := pattern(50_000)
		if err := p.a.Send(context.Background(), msg, sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, _ := recvMessage(t, p.b, make([]byte, 60_000)); !bytes.Equal(got, msg) {
			t.Error("message came out different")
		}
		n.Restore(addrA, addrB)
		if err := p.tb.RemoveAddr(ap); err != nil {
			t.Error(err)
		}
		if err := p.tb.RemoveAddr(eb.Addr().Addrs[0]); !errors.Is(err, sctp.ErrAddress) {
			t.Errorf("removal of the last address: %v", err)
		}
		if err := p.a.Send(context.Background(), msg, sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		recvMessage(t, p.b, make([]byte, 60_000))
		p.tb.Close()
		if _, err := p.tb.AddConn(second); err == nil {
			t.Error("a closed transport took a connection")
		}
	})
}

func TestAddAddrOnLoopback(t *testing.T) {
	tr := newTransport(t, loopback())
	ap, err := tr.AddAddr(netip.MustParseAddrPort("127.0.0.2:0"))
	if err != nil || ap.Port() != tr.LocalAddrs()[0].Port() {
		t.Fatalf("AddAddr = %v, %v; first is %v", ap, err, tr.LocalAddrs()[0])
	}
	if err := tr.RemoveAddr(ap); err != nil {
		t.Error(err)
	}
}
