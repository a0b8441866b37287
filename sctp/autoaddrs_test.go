package sctp_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// fakeHost is a host whose addresses come and go.
type fakeHost struct {
	mu    sync.Mutex
	addrs []netip.Addr
	h     *sctptest.Host
	fail  int // so many sockets cannot be opened
}

func (f *fakeHost) set(addrs ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addrs = nil
	for _, a := range addrs {
		f.addrs = append(f.addrs, netip.MustParseAddr(a))
	}
}

func (f *fakeHost) config() *sctp.AutoAddrs {
	return &sctp.AutoAddrs{
		Interval: time.Second,
		List: func() ([]netip.Addr, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.addrs == nil {
				return nil, errors.New("no interfaces")
			}
			return slices.Clone(f.addrs), nil
		},
		Listen: func(a netip.AddrPort) (sctp.PacketConn, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.fail > 0 {
				f.fail--
				return nil, errors.New("the address is tentative")
			}
			return f.h.ListenPacket(a.String())
		},
	}
}

func ips(list []netip.AddrPort) (s []string) {
	for _, a := range list {
		s = append(s, a.Addr().String())
	}
	slices.Sort(s)
	return s
}

// The associations of a transport follow the addresses of its host (RFC 6458, Section
// 8.1.23): one more, one less, a move to another one, and none at all.
func TestAutoAddrs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const second, third = "10.0.0.7", "10.0.0.8"
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		h := &fakeHost{h: n.NewHost(addrA, second, third)}
		h.set(addrA, "::1")
		p := &pair{t: t, net: n}
		p.ta = newTransport(t, sctp.TransportConfig{AutoAddrs: h.config(),
			LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:9899")}})
		p.tb = memTransport(t, n.NewHost(addrB))
		cfg := &sctp.Config{ChangeAddrs: true, RTOMin: 100 * time.Millisecond}
		p.connect(cfg, cfg)
		// An association that cannot change its addresses is left alone.
		e, err := p.ta.Listen(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		fixed, err := e.Connect(t.Context(), p.eb.Addr())
		if err != nil {
			t.Fatal(err)
		}
		step := func(what string, want []string, host ...string) {
			t.Helper()
			h.set(host...)
			for _, a := range []string{addrA, second, third} {
				if slices.Contains(host, a) {
					n.Restore(a, addrB)
				} else {
					n.Cut(a, addrB)
				}
			}
			time.Sleep(5 * time.Second)
			if got := ips(p.ta.LocalAddrs()); !slices.Equal(got, want) {
				t.Errorf("%s: the transport has %v, want %v", what, got, want)
			}
			if got := ips(p.b.RemoteAddr().Addrs); !slices.Equal(got, want) {
				t.Errorf("%s: the peer knows %v, want %v", what, got, want)
			}
			for i, x := range [][2]*sctp.Association{{p.a, p.b}, {p.b, p.a}} {
				msg := pattern(20_000 + i)
				if err := x[0].Send(context.Background(), msg, sctp.SendOptions{}); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if got, _ := recvMessage(t, x[1], make([]byte, 30_000)); !bytes.Equal(got, msg) {
					t.Errorf("%s: message came out different", what)
				}
			}
		}
		step("at first", []string{addrA}, addrA)
		h.fail = 2
		step("another one", []string{addrA, second}, addrA, second)
		if fixed.Err() != nil {
			t.Errorf("the association that cannot: %v", fixed.Err())
		}
		step("the first is gone", []string{second}, second)
		step("two at once", []string{addrA, second, third}, third, second, addrA)
		h.set()
		time.Sleep(time.Minute)
		step("the network was down", []string{addrA, second, third}, addrA, second, third)
		step("another network", []string{third}, third)
		step("and another", []string{addrA, second}, addrA, second)
		step("and back", []string{third}, third)
	})
}

// What AutoAddrs is not for.
func TestAutoAddrsErrors(t *testing.T) {
	n := sctptest.NewNetwork(1)
	h := &fakeHost{h: n.NewHost(addrA)}
	for _, cfg := range []sctp.TransportConfig{
		{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}},
		{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:0"), netip.MustParseAddrPort("[::]:0")}},
	} {
		cfg.AutoAddrs = h.config()
		if _, err := sctp.NewTransport(cfg); err != sctp.ErrConfig {
			t.Errorf("%v: %v", cfg.LocalAddrs, err)
		}
	}
	pc, err := h.h.ListenPacket(addrA + ":9899")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sctp.NewTransport(sctp.TransportConfig{AutoAddrs: h.config(), Conns: []sctp.PacketConn{pc}}); err != sctp.ErrConfig {
		t.Error(err)
	}
	if _, err := pc.WriteTo([]byte("x"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.2:1"))); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is still open: %v", err)
	}
	if _, err := sctp.NewTransport(sctp.TransportConfig{AutoAddrs: h.config()}); err != sctp.ErrAddress {
		t.Errorf("a host without addresses: %v", err)
	}
	h.set(addrA)
	h.fail = 1
	if _, err := sctp.NewTransport(sctp.TransportConfig{AutoAddrs: h.config()}); err == nil {
		t.Error("no socket could be opened")
	}
}

// By default the addresses are those of the host, with one port.
func TestAutoAddrsOfHost(t *testing.T) {
	tr, err := sctp.NewTransport(sctp.TransportConfig{AutoAddrs: &sctp.AutoAddrs{},
		LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("[::]:0")}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	list := tr.LocalAddrs()
	for _, a := range list {
		if a.Port() == 0 || a.Port() != list[0].Port() || a.Addr().IsUnspecified() || a.Addr().IsLinkLocalUnicast() ||
			a.Addr().IsLoopback() != list[0].Addr().IsLoopback() {
			t.Errorf("sockets on %v", list)
		}
	}
}
