package sctp_test

import (
	"bytes"
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

const serverPort = 5000

// pair is two transports with an association between them.
type pair struct {
	t    testing.TB
	net  *sctptest.Network // nil on loopback
	a, b *sctp.Association // a opened it
	ta   *sctp.Transport
	tb   *sctp.Transport
	ea   *sctp.Endpoint
	eb   *sctp.Endpoint
}

const addrA, addrB = "10.0.0.1", "10.0.0.2"

// newPair connects two hosts of a network in memory.
func newPair(t testing.TB, seed uint64, l sctptest.Link, ca, cb *sctp.Config) *pair {
	t.Helper()
	n := sctptest.NewNetwork(seed)
	n.SetDefault(l)
	p := &pair{t: t, net: n}
	p.ta = memTransport(t, n.NewHost(addrA))
	p.tb = memTransport(t, n.NewHost(addrB))
	p.connect(ca, cb)
	return p
}

func memTransport(t testing.TB, h *sctptest.Host) *sctp.Transport {
	t.Helper()
	cfg := sctp.TransportConfig{}
	for _, a := range h.Addrs() {
		pc, err := h.ListenPacket(netip.AddrPortFrom(a, sctp.DefaultUDPPort).String())
		if err != nil {
			t.Fatal(err)
		}
		cfg.Conns = append(cfg.Conns, pc)
	}
	return newTransport(t, cfg)
}

func newTransport(t testing.TB, cfg sctp.TransportConfig) *sctp.Transport {
	t.Helper()
	tr, err := sctp.NewTransport(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// newLoopbackPair connects two transports over real sockets.
func newLoopbackPair(t testing.TB, tc sctp.TransportConfig, ca, cb *sctp.Config) *pair {
	t.Helper()
	tc.LocalAddrs = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
	p := &pair{t: t, ta: newTransport(t, tc), tb: newTransport(t, tc)}
	p.connect(ca, cb)
	return p
}

func (p *pair) connect(ca, cb *sctp.Config) {
	p.t.Helper()
	var err error
	if p.ea, err = p.ta.Listen(0, ca); err != nil {
		p.t.Fatal(err)
	}
	if p.eb, err = p.tb.Listen(serverPort, cb); err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if p.a, err = p.ea.Connect(ctx, p.eb.Addr()); err != nil {
		p.t.Fatal("Connect:", err)
	}
	if cb != nil && (cb.OneToMany || cb.OnPiece != nil || cb.OnAssociation != nil) {
		return
	}
	if p.b, err = p.eb.Accept(ctx); err != nil {
		p.t.Fatal("Accept:", err)
	}
}

func pattern(n int) []byte {
	b := make([]byte, n)
	x := uint32(n)*2654435761 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}

// recvMessage receives one whole message.
func recvMessage(t testing.TB, a *sctp.Association, buf []byte) ([]byte, sctp.RecvInfo) {
	t.Helper()
	n := 0
	for {
		k, info, err := a.Recv(context.Background(), buf[n:])
		if err != nil {
			t.Fatal("Recv:", err)
		}
		n += k
		if info.EOR {
			return buf[:n], info
		}
	}
}

func TestMessagesKeepTheirBoundariesAndLabels(t *testing.T) {
	p := newLoopbackPair(t, sctp.TransportConfig{}, nil, nil)
	buf := make([]byte, 1<<20)
	for i, n := range []int{1, 2, 3, 4, 5, 100, 1452, 1453, 65000, 65535, 65536, 1 << 20} {
		msg := pattern(n)
		o := sctp.SendOptions{Stream: uint16(i % 10), PPID: uint32(1000 + i), Unordered: i%3 == 0}
		if err := p.a.Send(context.Background(), msg, o); err != nil {
			t.Fatalf("Send of %d bytes: %v", n, err)
		}
		got, info := recvMessage(t, p.b, buf)
		if !bytes.Equal(got, msg) {
			t.Errorf("%d bytes came out as %d different ones", n, len(got))
		}
		if info.Stream != o.Stream || info.PPID != o.PPID || info.Unordered != o.Unordered || info.Association != p.b {
			t.Errorf("%d bytes: info = %+v, want %+v", n, info, o)
		}
	}
}
