package udpio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What is sent to a port that nobody listens on comes back by ICMP. That keeps no
// datagram to or from others back, and is nothing that is too big.
func TestUnreachablePortsDisturbNobody(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		addr := netip.AddrPortFrom(netip.MustParseAddr(ip), 0).String()
		told := 0
		a, b := listen(t, addr, Options{TooBig: func(netip.AddrPort, int, []byte) { told++ }}), listen(t, addr, Options{})
		gone := listen(t, addr, Options{})
		closed := gone.LocalAddr()
		gone.Close()
		for i := range 100 {
			for _, m := range []Meta{{SegSize: 1000}, {SegSize: 6000, Fragment: true}} {
				n := 5000 + i
				m.Remote = closed
				if err := a.Write(pattern(n), &m); err != nil {
					t.Fatalf("to nobody: %v", err)
				}
				m.Remote = b.LocalAddr()
				if err := a.Write(pattern(n), &m); err != nil {
					t.Fatalf("to somebody: %v", err)
				}
				got, _ := b.datagrams((n + m.SegSize - 1) / m.SegSize)
				if !bytes.Equal(bytes.Join(got, nil), pattern(n)) {
					t.Fatalf("%d bytes came out different", n)
				}
			}
			if err := b.Write(pattern(100), &Meta{Remote: a.LocalAddr(), SegSize: 100}); err != nil {
				t.Fatal(err)
			}
			if got, _ := a.datagrams(1); len(got[0]) != 100 {
				t.Fatalf("%d bytes came back", len(got[0]))
			}
		}
		if told > 0 {
			t.Errorf("%d messages that something is too big", told)
		}
	}
}

// A route may say that a host is unreachable, each time.
func TestWriteEndsWhereHostsAreUnreachable(t *testing.T) {
	c := listen(t, "127.0.0.1:0", Options{}).Conn.(*conn)
	calls := 0
	err := c.call(new(writer), func(uintptr) (int, unix.Errno) {
		if calls++; calls > 2*maxRefused {
			return 1, 0
		}
		return 0, unix.EHOSTUNREACH
	}, "sendto")
	if !errors.Is(err, unix.EHOSTUNREACH) || calls != maxRefused {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// However many ICMP messages there are, one read takes in a bounded number, and leaves
// the rest to the next one.
func TestReadsTakeABoundedNumberOfICMPMessages(t *testing.T) {
	s := listen(t, "127.0.0.1:0", Options{TooBig: func(netip.AddrPort, int, []byte) {}})
	gone := listen(t, "127.0.0.1:0", Options{})
	to := gone.LocalAddr()
	gone.Close()
	const sent, tries = 5 * maxICMP, 100
	c := s.Conn.(*conn)
	for try := 1; ; try++ {
		for range sent {
			if err := s.Write(pattern(100), &Meta{Remote: to, SegSize: 100}); err != nil {
				t.Fatal(err)
			}
		}
		reads := 1
		for c.readICMP(); c.icmp.due.Load(); c.readICMP() {
			if reads++; reads > sent {
				t.Fatal("there are ever more messages")
			}
		}
		if reads >= sent/maxICMP {
			break
		}
		if try == tries { // before, some may have come later
			t.Fatalf("%d messages in %d reads", sent, reads)
		}
	}
}

// What ICMP messages say, as the kernel puts it.
func TestICMPMessages(t *testing.T) {
	message := func(level, typ int32, errno unix.Errno, origin, icmpType, code byte, info uint32) []byte {
		b := make([]byte, unix.CmsgSpace(16))
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		h.Level, h.Type = level, typ
		h.SetLen(unix.CmsgLen(16))
		d := b[unix.CmsgLen(0):]
		binary.NativeEndian.PutUint32(d, uint32(errno))
		d[4], d[5], d[6] = origin, icmpType, code
		binary.NativeEndian.PutUint32(d[8:], info)
		return b
	}
	for _, tc := range []struct {
		name string
		ctl  []byte
		want icmpNews
	}{
		{"fragmentation needed", message(unix.IPPROTO_IP, unix.IP_RECVERR, unix.EMSGSIZE, unix.SO_EE_ORIGIN_ICMP, 3, 4, 1400), icmpNews{mtu: 1400}},
		{"packet too big", message(unix.IPPROTO_IPV6, unix.IPV6_RECVERR, unix.EMSGSIZE, unix.SO_EE_ORIGIN_ICMP6, 2, 0, 1300), icmpNews{mtu: 1300}},
		{"of this host", message(unix.IPPROTO_IP, unix.IP_RECVERR, unix.EMSGSIZE, unix.SO_EE_ORIGIN_LOCAL, 0, 0, 1400), icmpNews{}},
		{"protocol", message(unix.IPPROTO_IP, unix.IP_RECVERR, unix.ENOPROTOOPT, unix.SO_EE_ORIGIN_ICMP, 3, 2, 0), icmpNews{noProtocol: true}},
		{"port", message(unix.IPPROTO_IP, unix.IP_RECVERR, unix.ECONNREFUSED, unix.SO_EE_ORIGIN_ICMP, 3, 3, 0), icmpNews{noPort: true}},
		{"port of IPv6", message(unix.IPPROTO_IPV6, unix.IPV6_RECVERR, unix.ECONNREFUSED, unix.SO_EE_ORIGIN_ICMP6, 1, 4, 0), icmpNews{noPort: true}},
		{"next header", message(unix.IPPROTO_IPV6, unix.IPV6_RECVERR, unix.EPROTO, unix.SO_EE_ORIGIN_ICMP6, 4, 1, 6), icmpNews{noProtocol: true}},
		{"header field", message(unix.IPPROTO_IPV6, unix.IPV6_RECVERR, unix.EPROTO, unix.SO_EE_ORIGIN_ICMP6, 4, 0, 6), icmpNews{}},
		{"something else", message(unix.IPPROTO_IP, unix.IP_TTL, unix.ENOPROTOOPT, unix.SO_EE_ORIGIN_ICMP, 3, 2, 0), icmpNews{}},
		{"too short", message(unix.IPPROTO_IP, unix.IP_RECVERR, unix.ENOPROTOOPT, unix.SO_EE_ORIGIN_ICMP, 3, 2, 0)[:20], icmpNews{}},
	} {
		if got := parseICMP(tc.ctl); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}
