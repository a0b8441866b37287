package udpio

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"

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
