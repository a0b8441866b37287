package udpio

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp/internal/slab"
)

// needRaw skips tests of sockets that take privileges.
func needRaw(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, os.ErrPermission) {
		testenv.Lacking(t, "no raw sockets: %v; run as root or with CAP_NET_RAW", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// listenIPs opens a socket of SCTP over IP.
func listenIPs(t *testing.T, addr string) *side {
	t.Helper()
	testenv.OwnNetwork(t)
	c, err := ListenIP(netip.MustParseAddr(addr), Options{})
	needRaw(t, err)
	return newSide(t, c)
}

func TestPacketsDirectlyOverIP(t *testing.T) {
	for _, tc := range []struct{ name, a, b, from, to string }{
		{"v4", "127.77.1.1", "127.77.1.2", "127.77.1.1", "127.77.1.2"},
		{"v4 wildcard", "127.77.1.3", "0.0.0.0", "127.77.1.3", "127.77.1.4"},
		{"v6", "::1", "::1", "::1", "::1"},
		{"v6 wildcard", "::1", "::", "::1", "::1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := listenIPs(t, tc.a), listenIPs(t, tc.b)
			if want := netip.AddrPortFrom(netip.MustParseAddr(tc.a), 0); a.LocalAddr() != want || !a.Direct() {
				t.Errorf("bound to %v, want %v", a.LocalAddr(), want)
			}
			to := netip.AddrPortFrom(netip.MustParseAddr(tc.to), 0)
			for _, n := range []int{1, 1480, 1481, 10*1480 + 5, 44 * 1480} {
				msg := pattern(n)
				got := b.among(a, msg, &Meta{Remote: to, SegSize: 1480, ECN: 1})
				if want := (Meta{Local: to.Addr(), Remote: netip.AddrPortFrom(netip.MustParseAddr(tc.from), 0), ECN: 1, SegSize: (n-1)%1480 + 1}); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
			}
		})
	}
}

// among has from send the batch b until it has come, among what else there may be from
// other tests, and returns the meta of its last datagram.
func (s *side) among(from *side, b []byte, m *Meta) (last Meta) {
	s.t.Helper()
	send := func() {
		if err := from.Write(b, m); err != nil {
			s.t.Errorf("Write of %d bytes: %v", len(b), err)
		}
	}
	send()
	s.mu.Lock()
	defer s.mu.Unlock()
	for left, again := b, time.Now(); ; {
		n, err := s.TryRead(s.bufs, s.metas)
		if err != nil {
			s.t.Fatal(err)
		}
		for i := range n {
			want := left[:min(m.SegSize, len(left))]
			if !bytes.Equal(s.bufs[i].B, want) {
				continue
			}
			if left = left[len(want):]; len(left) == 0 {
				return s.metas[i]
			}
		}
		if n == 0 && time.Since(again) > time.Second {
			left, again = b, time.Now()
			send()
		}
	}
}

// The means of package net, which other systems have, carry the same packets.
func TestDirectlyOverIPByPackageNet(t *testing.T) {
	a := listenIPs(t, "127.77.1.5")
	ic, err := net.ListenIP("ip4:132", &net.IPAddr{IP: net.IPv4(127, 77, 1, 6)})
	needRaw(t, err)
	b := newSide(t, newPacketConn(ipConn{ic}))
	if want := netip.MustParseAddrPort("127.77.1.6:0"); !b.Direct() || b.LocalAddr() != want {
		t.Errorf("bound to %v, want %v", b.LocalAddr(), want)
	}
	for _, s := range []struct{ from, to *side }{{a, b}, {b, a}} {
		msg := pattern(3000)
		if err := s.from.Write(msg, &Meta{Remote: s.to.LocalAddr(), SegSize: 1480}); err != nil {
			t.Fatal(err)
		}
		got, m := s.to.datagrams(3)
		if !bytes.Equal(bytes.Join(got, nil), msg) || m.Remote != s.from.LocalAddr() {
			t.Errorf("%d bytes from %v", len(bytes.Join(got, nil)), m.Remote)
		}
	}
	reading := b.reading()
	time.Sleep(5 * time.Millisecond) // for it to wait
	b.Close()
	if n := <-reading; n != 0 {
		t.Errorf("%d batches of a closed socket", n)
	}
}

// A socket that the caller opened is used like one of ListenIP, if it is of
// SCTP.
func TestIPSocketFromElsewhere(t *testing.T) {
	testenv.OwnNetwork(t)
	ic, err := net.ListenIP("ip4:132", &net.IPAddr{IP: net.IPv4(127, 77, 1, 7)})
	needRaw(t, err)
	c, err := FromPacketConn(ic, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s := newSide(t, c); !s.Direct() || !s.CanPoll() {
		t.Errorf("%T", s.Conn)
	}
	other, err := net.ListenIP("ip4:253", &net.IPAddr{IP: net.IPv4(127, 77, 1, 7)})
	needRaw(t, err)
	defer other.Close()
	if _, err := FromPacketConn(other, Options{}); err != errProtocol {
		t.Errorf("a socket of another protocol: %v, want %v", err, errProtocol)
	}
}

func TestPayloadOfIPv4(t *testing.T) {
	packet := func(words byte, n int) []byte {
		b := pattern(n)
		b[0] = 4<<4 | words
		return b
	}
	for _, tc := range []struct {
		b    []byte
		want int
	}{
		{nil, 0}, {packet(5, 19), 0}, {packet(5, 20), 0}, {packet(5, 21), 1}, {packet(4, 40), 0},
		{packet(6, 30), 6}, {packet(15, 59), 0}, {packet(15, 61), 1},
	} {
		if got := payload4(tc.b); len(got) != tc.want || tc.want > 0 && !bytes.Equal(got, tc.b[len(tc.b)-tc.want:]) {
			t.Errorf("%d bytes, header of %d words: %d bytes, want %d", len(tc.b), tc.b[0]&15, len(got), tc.want)
		}
	}
}

func TestBatchesOverIPDoNotAllocate(t *testing.T) {
	a, b := listenIPs(t, "127.77.1.8"), listenIPs(t, "127.77.1.9")
	msg, m := pattern(10*1480), &Meta{Remote: b.LocalAddr(), SegSize: 1480}
	b.mu.Lock()
	defer b.mu.Unlock()
	once := func() {
		if err := a.Write(msg, m); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < 10; {
			n += b.tryRead()
		}
	}
	once()
	if n := testing.AllocsPerRun(100, once); n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
}

// A datagram that a full socket of SCTP over IP drops is not answered by ICMP: NoProtocol is
// not called.
func TestFullSocketOverIPIsThere(t *testing.T) {
	for name, addrs := range map[string][2]string{"v4": {"127.77.1.10", "127.77.1.11"}, "wildcard": {"127.77.1.10", "0.0.0.0"}} {
		t.Run(name, func(t *testing.T) {
			testenv.OwnNetwork(t)
			told := 0
			c, err := ListenIP(netip.MustParseAddr(addrs[0]), Options{NoProtocol: func(netip.AddrPort, []byte) { told++ }})
			needRaw(t, err)
			a := newSide(t, c)
			full := func(c Conn, err error) {
				needRaw(t, err)
				b := newSide(t, c)
				m := &Meta{Remote: netip.MustParseAddrPort("127.77.1.11:0"), SegSize: 1480}
				for range 100 {
					if err := a.Write(pattern(20*1480), m); err != nil {
						t.Fatal(err)
					}
				}
				if b.Info().Drops == 0 {
					t.Error("nothing was dropped")
				}
				a.mu.Lock()
				if _, err := a.TryRead(a.bufs, a.metas); err != nil {
					t.Error(err)
				}
				a.mu.Unlock()
				if told > 0 {
					t.Errorf("told %d times that there is no SCTP", told)
				}
				b.Close()
			}
			o := Options{Buffer: 64 << 10}
			full(ListenIP(netip.MustParseAddr(addrs[1]), o))
			ic, err := net.ListenIP("ip4:132", &net.IPAddr{IP: net.ParseIP(addrs[1])})
			needRaw(t, err)
			full(FromPacketConn(ic, o))
		})
	}
}

// A socket that does not have the family of an address says so.
func TestAddressesOfAnotherFamily(t *testing.T) {
	v4, v6 := netip.MustParseAddr("127.77.1.12"), netip.MustParseAddr("::1")
	mapped := netip.AddrFrom16(v4.As16())
	udp := func(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, 9) }
	ip := func(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, 0) }
	for _, tc := range []struct {
		s    *side
		to   []netip.AddrPort
		want error
	}{
		{listen(t, "127.0.0.1:0", Options{}), []netip.AddrPort{udp(v6)}, errFamily},
		{listen(t, "127.0.0.1:0", Options{}), []netip.AddrPort{udp(v4), udp(mapped)}, nil},
		{listen(t, "[::]:0", Options{}), []netip.AddrPort{udp(v6), udp(v4), udp(mapped)}, nil},
		{listenIPs(t, v4.String()), []netip.AddrPort{ip(v6)}, errFamily},
		{listenIPs(t, v4.String()), []netip.AddrPort{ip(v4), ip(mapped)}, nil},
		{listenIPs(t, "::"), []netip.AddrPort{ip(v4), ip(mapped)}, errFamily},
		{listenIPs(t, "::"), []netip.AddrPort{ip(v6)}, nil},
	} {
		for _, to := range tc.to {
			m := &Meta{Remote: to, SegSize: 10}
			if err := tc.s.Write(pattern(20), m); err != tc.want {
				t.Errorf("from %v to %v: %v, want %v", tc.s.LocalAddr(), to, err, tc.want)
			}
			if err := tc.s.WriteGather(pattern(20), []slab.IOVec{{At: 5, B: pattern(2)}}, m); err != tc.want {
				t.Errorf("in parts, from %v to %v: %v, want %v", tc.s.LocalAddr(), to, err, tc.want)
			}
		}
	}
}
