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

// An association moves to an address that its host got after it began.
func TestAssociationMovesToAnotherAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond, Loss: 0.05})
		h := n.NewHost(addrA, "10.0.0.7")
		pc, err := h.ListenPacket(addrA + ":9899")
		if err != nil {
			t.Fatal(err)
		}
		notes := make(chan sctp.Notification, 100)
		p := &pair{t: t, net: n, ta: newTransport(t, sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})}
		p.tb = memTransport(t, n.NewHost(addrB))
		p.connect(&sctp.Config{ChangeAddrs: true}, &sctp.Config{ChangeAddrs: true,
			OnNotify: func(_ *sctp.Association, n sctp.Notification) { notes <- n }})
		old := p.ta.LocalAddrs()[0]
		second, err := h.ListenPacket("10.0.0.7:9899")
		if err != nil {
			t.Fatal(err)
		}
		ap, err := p.ta.AddConn(second)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.a.AddAddr(ctx, ap); err != nil {
			t.Fatal("AddAddr:", err)
		}
		if got := len(p.b.RemoteAddr().Addrs); got != 2 {
			t.Errorf("the peer knows %d addresses, want 2", got)
		}
		if err := p.a.SetPeerPrimary(ctx, ap); err != nil {
			t.Error("SetPeerPrimary:", err)
		}
		if err := p.a.RemoveAddr(ctx, old); err != nil {
			t.Fatal("RemoveAddr:", err)
		}
		if err := p.ta.RemoveAddr(old); err != nil {
			t.Fatal(err)
		}
		n.Cut(addrA, addrB)
		buf := make([]byte, 100_000)
		for _, x := range [][2]*sctp.Association{{p.a, p.b}, {p.b, p.a}} {
			msg := pattern(50_000)
			if err := x[0].Send(ctx, msg, sctp.SendOptions{}); err != nil {
				t.Fatal(err)
			}
			if got, _ := recvMessage(t, x[1], buf); !bytes.Equal(got, msg) {
				t.Error("message came out different")
			}
		}
		if err := p.a.RemoveAddr(ctx, ap); !errors.Is(err, sctp.ErrAddress) {
			t.Errorf("removal of the last address: %v", err)
		}
		seen := map[sctp.NotificationKind]netip.AddrPort{}
		for len(notes) > 0 {
			x := <-notes
			seen[x.Kind] = x.Addr
		}
		if seen[sctp.NotifyPathAdded] != ap || seen[sctp.NotifyPathRemoved] != old {
			t.Errorf("notified of %v and %v, want %v and %v", seen[sctp.NotifyPathAdded], seen[sctp.NotifyPathRemoved], ap, old)
		}
	})
}

func TestAddressChangeNeedsBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, &sctp.Config{ChangeAddrs: true}, nil)
		err := p.a.AddAddr(context.Background(), netip.MustParseAddrPort("10.0.0.9:9899"))
		if !errors.Is(err, sctp.ErrNotSupported) {
			t.Errorf("AddAddr with a peer that cannot: %v", err)
		}
	})
}
