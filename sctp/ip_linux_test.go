package sctp_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
)

// ipTransport returns a transport with sockets of SCTP directly over IP.
func ipTransport(t *testing.T, cfg sctp.TransportConfig, addrs ...string) *sctp.Transport {
	t.Helper()
	testenv.OwnNetwork(t) // usrsctp answers what it sees
	for _, a := range addrs {
		cfg.IPAddrs = append(cfg.IPAddrs, netip.MustParseAddr(a))
	}
	tr, err := sctp.NewTransport(cfg)
	if errors.Is(err, os.ErrPermission) {
		testenv.Lacking(t, "no raw sockets: %v; run as root or with CAP_NET_RAW", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// bothWays sends messages of many lengths each way.
func bothWays(t *testing.T, a, b *sctp.Association) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for _, n := range []int{1, 1452, 1453, 65536, 1 << 20} {
		for _, s := range []struct{ from, to *sctp.Association }{{a, b}, {b, a}} {
			msg := pattern(n)
			if err := s.from.Send(context.Background(), msg, sctp.SendOptions{}); err != nil {
				t.Fatal(err)
			}
			if got, _ := recvMessage(t, s.to, buf); !bytes.Equal(got, msg) {
				t.Errorf("%d bytes came out as %d different ones", n, len(got))
			}
		}
	}
}

func TestDirectlyOverIP(t *testing.T) {
	for _, tc := range []struct {
		name string
		a, b []string
		mtu  int
	}{
		{"v4", []string{"127.77.2.1"}, []string{"127.77.2.2"}, 1480},
		{"v6", []string{"::1"}, []string{"::1"}, 1460},
		{"multihomed", []string{"127.77.2.3", "127.77.2.4"}, []string{"127.77.2.5", "127.77.2.6"}, 1480},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &pair{t: t, ta: ipTransport(t, sctp.TransportConfig{}, tc.a...), tb: ipTransport(t, sctp.TransportConfig{}, tc.b...)}
			cfg := &sctp.Config{MTU: 1500}
			p.connect(cfg, cfg)
			bothWays(t, p.a, p.b)
			paths := p.a.Stats().Paths
			if len(paths) != len(tc.b) {
				t.Errorf("%d paths, want %d", len(paths), len(tc.b))
			}
			for i, x := range paths {
				if want := netip.AddrPortFrom(netip.MustParseAddr(tc.b[i]), 0); x.Remote != want || x.MTU != tc.mtu {
					t.Errorf("path to %v with packets of %d bytes, want %v, %d", x.Remote, x.MTU, want, tc.mtu)
				}
			}
			if err := p.a.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			for _, tr := range []*sctp.Transport{p.ta, p.tb} {
				// On ::1 there may be packets of other tests, of which not all are of SCTP.
				if st := tr.Stats(); st.BadPackets > 0 && tc.a[0] != "::1" || st.WriteErrors > 0 {
					t.Errorf("%+v", st)
				}
			}
		})
	}
}

// Dial takes sockets of SCTP over IP as the address asks for.
func TestDialDirectlyOverIP(t *testing.T) {
	ipTransport(t, sctp.TransportConfig{}, "127.77.2.7").Close() // whether there are any
	l, err := (&sctp.ListenConfig{Transport: sctp.TransportConfig{IPAddrs: []netip.Addr{netip.MustParseAddr("127.77.2.7")}}}).Listen("/5001")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := l.Addr().String(); got != "127.77.2.7:0/5001" {
		t.Errorf("listening on %s", got)
	}
	c, err := sctp.Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 10)
	if n, err := s.Read(buf); err != nil || string(buf[:n]) != "hello" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

// Sockets of both kinds, and raw ones that would get each other's packets, do not go
// together, from the beginning or later; nor do addresses that no socket reaches.
func TestSocketsThatDoNotGoTogether(t *testing.T) {
	ipTransport(t, sctp.TransportConfig{}, "127.77.2.8").Close() // whether there are any
	at, udp := netip.MustParseAddr("127.77.2.8"), netip.MustParseAddrPort("127.77.2.8:0")
	for name, cfg := range map[string]sctp.TransportConfig{
		"both kinds":         {LocalAddrs: []netip.AddrPort{udp}, IPAddrs: []netip.Addr{at}},
		"twice the same":     {IPAddrs: []netip.Addr{at, at}},
		"one of all":         {IPAddrs: []netip.Addr{at, netip.IPv4Unspecified()}},
		"all of one":         {IPAddrs: []netip.Addr{netip.IPv6Unspecified(), netip.IPv6Loopback()}},
		"followed addresses": {IPAddrs: []netip.Addr{at}, AutoAddrs: &sctp.AutoAddrs{}},
	} {
		if tr, err := sctp.NewTransport(cfg); err != sctp.ErrConfig {
			t.Errorf("%s: %v, want %v", name, err, sctp.ErrConfig)
			if err == nil {
				tr.Close()
			}
		}
	}
	direct, over := ipTransport(t, sctp.TransportConfig{}, "127.77.2.8"), newTransport(t, sctp.TransportConfig{LocalAddrs: []netip.AddrPort{udp}})
	for _, a := range []string{"127.77.2.8:0", "127.77.2.9:9899", "0.0.0.0:0"} {
		if got, err := direct.AddAddr(netip.MustParseAddrPort(a)); err != sctp.ErrConfig {
			t.Errorf("another address %s: %v, %v", a, got, err)
		}
	}
	if got, err := direct.AddAddr(netip.MustParseAddrPort("127.77.2.9:0")); err != nil || got.String() != "127.77.2.9:0" {
		t.Errorf("another address: %v, %v", got, err)
	}
	raw, err := net.ListenIP("ip4:132", &net.IPAddr{IP: net.IPv4(127, 77, 2, 10)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := over.AddConn(raw); err != sctp.ErrConfig {
		t.Errorf("a raw socket beside one of UDP: %v", err)
	}
	for _, tt := range []struct {
		tr    *sctp.Transport
		addrs []string
	}{
		{direct, []string{"127.77.2.17:9899"}}, {over, []string{"127.77.2.17:0"}}, {direct, []string{"[::1]:0"}}, {over, []string{"[::1]:9899"}},
		{ipTransport(t, sctp.TransportConfig{}, "::"), []string{"127.77.2.17:0"}}, {over, nil}, {over, []string{"127.77.2.17:9899", "127.77.2.17:0"}},
	} {
		e, err := tt.tr.Listen(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		peer := sctp.Addr{Port: serverPort}
		for _, a := range tt.addrs {
			peer.Addrs = append(peer.Addrs, netip.MustParseAddrPort(a))
		}
		if _, err := e.Connect(t.Context(), peer); !errors.Is(err, sctp.ErrAddress) {
			t.Errorf("connecting from %v to %v: %v, want %v", tt.tr.LocalAddrs(), peer, err, sctp.ErrAddress)
		}
	}
}

// All processes see all packets over IP: only for ports at which it accepts may a
// transport say that there is no such association.
func TestOtherPortsOverIPAreNotAnswered(t *testing.T) {
	tr := ipTransport(t, sctp.TransportConfig{}, "127.77.2.11")
	if _, err := tr.Listen(2, nil); err != nil {
		t.Fatal(err)
	}
	peer, err := net.ListenIP("ip4:132", &net.IPAddr{IP: net.IPv4(127, 77, 2, 12)})
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	if _, err := tr.Listen(3, &sctp.Config{Backlog: -1}); err != nil {
		t.Fatal(err)
	}
	to := func(port byte) []byte {
		b := ootbPacket()
		b[3] = port
		wire.SetChecksum(b)
		return b
	}
	for _, b := range [][]byte{to(4), to(3), to(2)} {
		if _, err := peer.WriteToIP(b, &net.IPAddr{IP: net.IPv4(127, 77, 2, 11)}); err != nil {
			t.Fatal(err)
		}
	}
	peer.SetReadDeadline(time.Now().Add(5 * time.Minute))
	buf := make([]byte, 1<<16)
	n, _, err := peer.ReadFromIP(buf)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := wire.ParseHeader(buf[:n]); err != nil || h.SrcPort != 2 || h.VTag != 0x12345678 {
		t.Errorf("the first answer is %s, %v", wire.Describe(buf[:n]), err)
	}
	if st := tr.Stats(); st.OutOfTheBlue < 2 || st.DatagramsSent != 1 {
		t.Errorf("%+v", st)
	}
}

// RFC 9260, Section 10, ICMP8: a host without SCTP says so, which is an ABORT.
func TestHostWithoutSCTP(t *testing.T) {
	e, err := ipTransport(t, sctp.TransportConfig{}, "127.77.2.15").Listen(0, &sctp.Config{MaxInitTimeout: time.Second, MaxInitRetransmits: 300})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Connect(t.Context(), sctp.Addr{Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.77.2.16:0")}, Port: serverPort})
	if !errors.Is(err, sctp.ErrRefused) {
		t.Errorf("%v, want %v", err, sctp.ErrRefused)
	}
}

// RFC 9260, Section 8.4, and UDP: port 0 is none to answer to.
func TestUDPWithoutSourcePort(t *testing.T) {
	testenv.OwnNetwork(t)
	raw, err := net.ListenIP("ip4:17", &net.IPAddr{IP: net.IPv4(127, 77, 2, 13)})
	if errors.Is(err, os.ErrPermission) {
		testenv.Lacking(t, "no raw sockets: %v; run as root or with CAP_NET_RAW", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	tr := newTransport(t, sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.77.2.14:0")}})
	port := tr.LocalAddrs()[0].Port()
	b := append([]byte{0, 0, byte(port >> 8), byte(port), 0, 0, 0, 0}, ootbPacket()...)
	b[5] = byte(len(b))
	if _, err := raw.WriteToIP(b, &net.IPAddr{IP: net.IPv4(127, 77, 2, 14)}); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(5 * time.Minute); tr.Stats().BadPackets == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("no bad packet was counted")
		}
	}
	if st := tr.Stats(); st.BadPackets != 1 || st.OutOfTheBlue > 0 || st.DatagramsSent > 0 {
		t.Errorf("%+v", st)
	}
}
