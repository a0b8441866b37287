package sctptest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// pair is two hosts with a socket each.
type pair struct {
	t    *testing.T
	n    *Network
	a, b *PacketConn
}

const addrA, addrB = "10.0.0.1", "10.0.0.2"

func newPair(t *testing.T, seed uint64, l Link) *pair {
	t.Helper()
	n := NewNetwork(seed)
	n.SetDefault(l)
	t.Cleanup(n.Close)
	p := &pair{t: t, n: n}
	var err error
	if p.a, err = n.NewHost(addrA).ListenPacket(addrA + ":1000"); err != nil {
		t.Fatal(err)
	}
	if p.b, err = n.NewHost(addrB).ListenPacket(":2000"); err != nil {
		t.Fatal(err)
	}
	return p
}

// send sends numbered packets of a size from a to b.
func (p *pair) send(count, size int) {
	p.t.Helper()
	for i := range count {
		b := make([]byte, size)
		binary.BigEndian.PutUint32(b, uint32(i))
		if _, err := p.a.WriteToUDPAddrPort(b, netip.MustParseAddrPort(addrB+":2000")); err != nil {
			p.t.Fatal(err)
		}
	}
}

// receive returns the numbers of the packets that arrive within a minute.
func (p *pair) receive() (got []uint32) {
	p.t.Helper()
	p.b.SetReadDeadline(time.Now().Add(time.Minute))
	buf := make([]byte, 1<<16)
	for {
		_, from, err := p.b.ReadFromUDPAddrPort(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return got
		}
		if err != nil {
			p.t.Fatal(err)
		}
		if from.String() != addrA+":1000" {
			p.t.Errorf("packet from %v", from)
		}
		got = append(got, binary.BigEndian.Uint32(buf))
	}
}

func inOrder(s []uint32) bool {
	for i := 1; i < len(s); i++ {
		if s[i] < s[i-1] {
			return false
		}
	}
	return true
}

func TestPacketsArriveAfterDelayInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, Link{Delay: 30 * time.Millisecond, Jitter: 20 * time.Millisecond})
		start := time.Now()
		p.send(100, 50)
		buf := make([]byte, 100)
		if _, _, err := p.b.ReadFromUDPAddrPort(buf); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d < 30*time.Millisecond || d > 50*time.Millisecond {
			t.Errorf("first packet took %v, want 30 to 50 ms", d)
		}
		if got := p.receive(); len(got) != 99 || !inOrder(got) {
			t.Errorf("got %d more packets, in order %v; want 99, true", len(got), inOrder(got))
		}
	})
}

func TestRateSpacesPacketsAndQueueDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, Link{Rate: 8e6, Queue: 10000, MarkAt: 5000})
		start := time.Now()
		p.send(20, 1000-udpOverhead4)
		buf := make([]byte, 2000)
		for i := range 10 {
			if _, _, err := p.b.ReadFromUDPAddrPort(buf); err != nil {
				t.Fatal(err)
			}
			if got, want := time.Since(start), time.Duration(i+1)*time.Millisecond; got != want {
				t.Errorf("packet %d after %v, want %v", i, got, want)
			}
		}
		if c := p.n.Counters(addrA, addrB); c.QueueDrops != 10 || c.Marked != 0 {
			t.Errorf("queue drops %d, marked %d; want 10, 0", c.QueueDrops, c.Marked)
		}
		for range 10 {
			p.a.WriteTrain(make([]byte, 972), 0, netip.Addr{}, netip.MustParseAddrPort(addrB+":2000"), 2)
		}
		marked := 0
		for range 10 {
			if _, _, _, _, ecn, err := p.b.ReadTrain(buf[:1000]); err != nil {
				t.Fatal(err)
			} else if ecn == 3 {
				marked++
			}
		}
		if marked != 5 {
			t.Errorf("%d packets marked, want 5", marked)
		}
	})
}

func TestImpairmentsHaveTheirFrequency(t *testing.T) {
	const count = 20000
	for _, tc := range []struct {
		name  string
		link  Link
		what  func(Counters) uint64
		want  float64 // of count
		lossy bool
	}{
		{"loss", Link{Loss: 0.1}, func(c Counters) uint64 { return c.Lost }, 0.1, true},
		{"burst", Link{BurstEnter: 0.01, BurstLeave: 0.25}, func(c Counters) uint64 { return c.Lost }, 0.01 / (0.01 + 0.25), true},
		{"duplicate", Link{Duplicate: 0.05}, func(c Counters) uint64 { return c.Duplicated }, 0.05, false},
		{"reorder", Link{Reorder: 0.05}, func(c Counters) uint64 { return c.Reordered }, 0.05, false},
		{"corrupt", Link{Corrupt: 0.05}, func(c Counters) uint64 { return c.Corrupted }, 0.05, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, 42, tc.link)
				for range count / 1000 {
					p.send(1000, 20)
					time.Sleep(time.Second)
				}
				c := p.n.Counters(addrA, addrB)
				got := float64(tc.what(c)) / count
				if got < tc.want*0.8 || got > tc.want*1.2 {
					t.Errorf("frequency %v, want about %v: %+v", got, tc.want, c)
				}
				if want := c.Sent - c.Lost + c.Duplicated; c.Delivered != want {
					t.Errorf("delivered %d, want %d", c.Delivered, want)
				}
			})
		})
	}
}

func TestReorderedPacketsAreOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 3, Link{Delay: time.Millisecond, Reorder: 0.1})
		p.send(100, 20)
		if got := p.receive(); len(got) != 100 || inOrder(got) {
			t.Errorf("got %d packets, in order %v; want 100, false", len(got), inOrder(got))
		}
	})
}

func TestSameSeedSameFate(t *testing.T) {
	run := func(seed uint64) (got []uint32, c Counters) {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, seed, Link{Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.1, Jitter: time.Millisecond})
			p.send(500, 200)
			got, c = p.receive(), p.n.Total()
		})
		return got, c
	}
	g1, c1 := run(7)
	g2, c2 := run(7)
	_, c3 := run(8)
	if c1 != c2 || len(g1) != len(g2) {
		t.Errorf("one seed, two fates:\n%+v\n%+v", c1, c2)
	}
	for i := range g1 {
		if g1[i] != g2[i] {
			t.Fatalf("packet %d is number %d and %d", i, g1[i], g2[i])
		}
	}
	if c1 == c3 {
		t.Error("two seeds, one fate")
	}
}

func TestCutMTUAndFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, Link{})
		p.n.Cut(addrA, addrB)
		p.send(3, 20)
		p.n.Restore(addrA, addrB)
		p.n.SetLink(addrA, addrB, Link{MTU: 1500})
		p.send(1, 1472)
		p.send(2, 1473)
		odd := false
		p.n.SetLink(addrA, addrB, Link{Filter: func([]byte) bool { odd = !odd; return odd }})
		p.send(10, 20)
		if got := p.receive(); len(got) != 6 {
			t.Errorf("%d packets arrived, want 6", len(got))
		}
		c := p.n.Counters(addrA, addrB)
		if c.Cut != 3 || c.TooBig != 2 || c.Filtered != 5 {
			t.Errorf("cut %d, too big %d, filtered %d; want 3, 2, 5", c.Cut, c.TooBig, c.Filtered)
		}
	})
}

func TestReadTrainJoinsEqualPackets(t *testing.T) {
	p := newPair(t, 1, Link{})
	to := netip.MustParseAddrPort(addrB + ":2000")
	msg := bytes.Repeat([]byte("weft"), 700)
	if err := p.a.WriteTrain(msg, 1000, netip.Addr{}, to, 1); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1<<16)
	n, size, local, remote, ecn, err := p.b.ReadTrain(buf)
	if err != nil || !bytes.Equal(buf[:n], msg) || size != 1000 || local.String() != addrB || remote.String() != addrA+":1000" || ecn != 1 {
		t.Errorf("ReadTrain = %d bytes of %d, %v, %v, %d, %v", n, size, local, remote, ecn, err)
	}
}

func TestSocketErrorsAreThoseOfPackageNet(t *testing.T) {
	n := NewNetwork(1)
	defer n.Close()
	h := n.NewHost(addrA, "fd00::1")
	c, err := h.ListenPacket(":5")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.ListenPacket(":5"); err == nil {
		t.Error("one port, two sockets")
	}
	if _, err := h.ListenPacket("10.9.9.9:5"); err == nil {
		t.Error("a socket on a foreign address")
	}
	free, err := h.ListenPacket(addrA + ":0")
	if err != nil || free.LocalAddr().(*net.UDPAddr).Port == 0 {
		t.Errorf("port 0: %v, %v", free, err)
	}
	c.SetReadDeadline(time.Now().Add(-time.Second))
	if _, _, err := c.ReadFrom(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read after the deadline = %v", err)
	}
	c.Close()
	if _, _, err := c.ReadFrom(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read from a closed socket = %v", err)
	}
	if _, err := c.WriteTo([]byte("x"), &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write to a closed socket = %v", err)
	}
	if _, err := h.ListenPacket(":5"); err != nil {
		t.Errorf("port of a closed socket: %v", err)
	}
}

func TestReceiveBufferIsBounded(t *testing.T) {
	p := newPair(t, 1, Link{})
	p.send(receiveBuffer/10000+10, 10000)
	if c := p.n.Total(); c.Overflow < 10 || c.Delivered > receiveBuffer/10000 {
		t.Errorf("delivered %d, overflow %d", c.Delivered, c.Overflow)
	}
}
