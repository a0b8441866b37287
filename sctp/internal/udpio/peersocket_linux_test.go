package udpio

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/slab"
)

// peerSocket returns the peer socket of s.
func (s *side) peerSocket() *peerSocket {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Conn.(*conn).dominant.open
}

// numbered sends n datagrams with the numbers from first on.
func (s *side) numbered(to *side, first, n int) {
	s.t.Helper()
	for i := range n {
		if err := s.Write(binary.BigEndian.AppendUint32(nil, uint32(first+i)), &Meta{Remote: to.LocalAddr()}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// wantNumbers reads what numbered sent, from several senders in any order.
func (s *side) wantNumbers(n int) {
	s.t.Helper()
	seen := make([]bool, n)
	got, _ := s.datagrams(n)
	for _, d := range got {
		i := binary.BigEndian.Uint32(d)
		if seen[i] {
			s.t.Fatalf("datagram %d came twice", i)
		}
		seen[i] = true
	}
}

// makeDominant makes a and b the dominant peers of each other.
func makeDominant(t *testing.T, a, b *side) {
	t.Helper()
	for i := range peerSocketAfter {
		a.numbered(b, i, 1)
		b.datagrams(1)
		b.numbered(a, i, 1)
		a.datagrams(1)
	}
	if a.peerSocket() == nil || b.peerSocket() == nil {
		t.Fatalf("peer sockets: %v, %v", a.peerSocket() != nil, b.peerSocket() != nil)
	}
}

// TestPeerSocket does everything with sockets that have a dominant peer.
func TestPeerSocket(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprint(addr, " no offload ", plain), func(t *testing.T) {
				o := Options{NoOffload: plain, TooBig: func(netip.AddrPort, int, []byte) {}}
				a, b, c := listen(t, addr, o), listen(t, addr, o), listen(t, addr, o)
				makeDominant(t, a, b)
				msg := pattern(10*1000 + 5)
				for ecn := range uint8(4) {
					if err := a.Write(msg, &Meta{Remote: b.LocalAddr(), SegSize: 1000, ECN: ecn}); err != nil {
						t.Fatal(err)
					}
					got, m := b.datagrams(11)
					if len(got) != 11 || len(got[10]) != 5 || m.Remote != a.LocalAddr() || m.Local != b.LocalAddr().Addr() || m.ECN != ecn {
						t.Errorf("%d datagrams, the last of %d bytes, %+v", len(got), len(got[10]), m)
					}
				}
				for _, seg := range []int{0, 1000} {
					own := pattern(3000)
					if err := a.WriteGather(own, []slab.IOVec{{At: 500, B: pattern(2000)}}, &Meta{Remote: b.LocalAddr(), SegSize: seg}); err != nil {
						t.Fatal(err)
					}
					b.datagrams(max(1, 3*min(seg, 1)))
				}
				if err := a.Write(pattern(60_000), &Meta{Remote: b.LocalAddr(), Fragment: true}); err != nil {
					t.Fatal(err)
				}
				b.datagrams(1)
				// A third socket, in both directions.
				c.numbered(b, 0, 1)
				if _, m := b.datagrams(1); m.Remote != c.LocalAddr() {
					t.Errorf("from %v, want %v", m.Remote, c.LocalAddr())
				}
				b.numbered(c, 0, 1)
				if _, m := c.datagrams(1); m.Remote != b.LocalAddr() {
					t.Errorf("from %v, want %v", m.Remote, b.LocalAddr())
				}
				if b.peerSocket() == nil {
					t.Error("one datagram of somebody else ended it")
				}
				// The address is still taken.
				if again, err := Listen(b.LocalAddr(), o); err == nil {
					again.Close()
					t.Error("the address could be had again")
				}
			})
		}
	}
}

// TestPeerSocketPartsFromBusyOthers loses nothing when a socket turns out to have more
// peers, and takes longer to trust the next one.
func TestPeerSocketPartsFromBusyOthers(t *testing.T) {
	a, b, c := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	makeDominant(t, a, b)
	const n = maxPeerScore/otherPeerPenalty + 8
	for i := range n {
		a.numbered(b, 2*i, 1)
		c.numbered(b, 2*i+1, 1)
	}
	b.wantNumbers(2 * n)
	// The peer socket is closed once it is empty.
	b.mu.Lock()
	if k, err := b.TryRead(b.bufs, b.metas); k != 0 || err != nil {
		t.Errorf("%d batches more, %v", k, err)
	}
	b.mu.Unlock()
	if b.peerSocket() != nil {
		t.Fatal("the peer socket is still open")
	}
	for i := range peerSocketAfter * peerSocketBackoff {
		if b.peerSocket() != nil {
			t.Fatalf("a peer socket again after %d datagrams", i)
		}
		a.numbered(b, i, 1)
		b.datagrams(1)
	}
	if b.peerSocket() == nil {
		t.Error("no peer socket again")
	}
}

// TestPeerSocketCountsDrops has a peer socket lose datagrams, which Info counts from then on.
func TestPeerSocketCountsDrops(t *testing.T) {
	o := Options{Buffer: 8192}
	a, b, c := listen(t, "127.0.0.1:0", o), listen(t, "127.0.0.1:0", o), listen(t, "127.0.0.1:0", o)
	makeDominant(t, a, b)
	read := func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for n := 1; n > 0; {
			var err error
			if n, err = b.TryRead(b.bufs, b.metas); err != nil {
				t.Fatal(err)
			}
		}
	}
	const tries = 100
	lost := uint64(0)
	for try := 1; lost == 0; try++ { // what comes later than it is read is not lost
		if try > tries {
			t.Fatal("nothing was lost")
		}
		a.numbered(b, 0, 1000)
		read()
		a.numbered(b, 0, 1) // tells how many were lost before
		read()
		lost = b.Info().Drops
	}
	for b.peerSocket() != nil {
		c.numbered(b, 0, 1)
		b.mu.Lock()
		_, err := b.TryRead(b.bufs, b.metas)
		b.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if n := b.Info().Drops; n < lost {
			t.Fatalf("%d drops, %d before", n, lost)
		}
	}
	b.Close()
	if n := b.Info().Drops; n < lost {
		t.Errorf("%d drops when it is closed, %d before", n, lost)
	}
}

// TestPeerSocketKeepsOrder has a queue of datagrams when their sender becomes the dominant
// peer, and a second one behind it.
func TestPeerSocketKeepsOrder(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	const first, all = 3 * peerSocketAfter, 4 * peerSocketAfter
	a.numbered(b, 0, first)
	var got [][]byte
	for b.peerSocket() == nil {
		more, _ := b.datagrams(1)
		if got = append(got, more...); len(got) >= first {
			t.Fatalf("nothing is left of %d datagrams", len(got))
		}
	}
	a.numbered(b, first, all-first)
	more, _ := b.datagrams(all - len(got))
	for i, d := range append(got, more...) {
		if n := binary.BigEndian.Uint32(d); n != uint32(i) {
			t.Fatalf("datagram %d came as the %dth", n, i)
		}
	}
}

// TestPeerSocketLeavesOthersTheirTurn has the dominant peer send without a pause.
func TestPeerSocketLeavesOthersTheirTurn(t *testing.T) {
	a, b, c := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	makeDominant(t, a, b)
	for _, read := range []func([]*slab.Buf, []Meta) (int, error){b.TryRead, b.Poll} {
		c.numbered(b, 0, 1)
		b.arrived()
		came := false
		for i := 0; i < sharedSocketEvery && !came; i++ {
			a.numbered(b, 0, 1)
			b.mu.Lock()
			n, err := read(b.bufs, b.metas)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range b.metas[:n] {
				came = came || m.Remote == c.LocalAddr()
			}
			b.mu.Unlock()
		}
		if !came {
			t.Errorf("it did not come in %d reads", sharedSocketEvery)
		}
		b.mu.Lock()
		for n := 1; n > 0; {
			n, _ = b.TryRead(b.bufs, b.metas)
		}
		b.mu.Unlock()
	}
}

// TestPeerSocketWakes has datagrams of the dominant peer and of another one wake a Read, a
// Read after polling, and a Poller.
func TestPeerSocketWakes(t *testing.T) {
	a, b, c := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	p := pollerOf(t, b)
	makeDominant(t, a, b)
	later := pollerOf(t, b) // knows both sockets from the start
	for _, from := range []*side{a, c} {
		wake := func() {
			time.Sleep(5 * time.Millisecond) // for the other to wait, if it does
			from.numbered(b, 0, 1)
		}
		go wake()
		b.datagrams(1)
		b.Polled(true)
		from.numbered(b, 0, 1)
		b.Polled(false)
		b.datagrams(1)
		for _, p := range []*Poller{p, later} {
			b.Polled(true)
			go wake()
			got := 0
			p.Wait(func() bool {
				b.mu.Lock()
				defer b.mu.Unlock()
				n, _ := b.TryRead(b.bufs, b.metas)
				got += n
				return got > 0
			})
			b.Polled(false)
			if got != 1 {
				t.Errorf("%d datagrams, want 1", got)
			}
		}
	}
}

// TestPeerSocketClose closes a socket under writers and readers, with a dominant peer and
// while it gets one.
func TestPeerSocketClose(t *testing.T) {
	for i := range 20 {
		a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
		if i%2 == 0 {
			makeDominant(t, a, b)
		}
		var wg sync.WaitGroup
		for _, s := range []*side{a, b} {
			to := a.LocalAddr()
			if s == a {
				to = b.LocalAddr()
			}
			wg.Go(func() {
				for s.Write([]byte("x"), &Meta{Remote: to}) == nil {
				}
			})
			wg.Go(func() {
				for {
					n, err := s.Read(&s.mu, s.bufs, s.metas)
					if n > 0 {
						s.mu.Unlock()
					} else if err != nil {
						return
					}
				}
			})
			wg.Go(func() {
				for {
					s.mu.Lock()
					_, err := s.Poll(s.bufs, s.metas)
					s.mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
		time.Sleep(time.Duration(i) * time.Millisecond)
		a.Close()
		b.Close()
		wg.Wait()
	}
}

// TestPeerSocketNeedsItsOwnAddress: sockets that were not made here, or have any address,
// are as they were.
func TestPeerSocketNeedsItsOwnAddress(t *testing.T) {
	a := listen(t, "127.0.0.1:0", Options{})
	for _, b := range []*side{takenOver(t), listen(t, "0.0.0.0:0", Options{})} {
		to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), b.LocalAddr().Port())
		for range 2 * peerSocketAfter {
			if err := a.Write([]byte("x"), &Meta{Remote: to}); err != nil {
				t.Fatal(err)
			}
			b.datagrams(1)
		}
		if b.peerSocket() != nil {
			t.Errorf("%v has a peer socket", b.LocalAddr())
		}
	}
}

func BenchmarkPeerSocket(b *testing.B) {
	for _, connected := range []bool{false, true} {
		b.Run(fmt.Sprintf("connected=%v", connected), func(b *testing.B) {
			x, y := benchConn(b), benchConn(b)
			if !connected {
				x.dominant.after, y.dominant.after = 0, 0
			}
			var pool slab.Pool
			bufs, metas := []*slab.Buf{pool.Get()}, make([]Meta, 1)
			msg := []byte("x")
			exchange := func() {
				for _, way := range [][2]*conn{{x, y}, {y, x}} {
					if err := way[0].Write(msg, &Meta{Remote: way[1].LocalAddr()}); err != nil {
						b.Fatal(err)
					}
					for n := 0; n == 0; {
						var err error
						if n, err = way[1].Poll(bufs, metas); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
			for range 2 * peerSocketAfter {
				exchange()
			}
			b.ReportAllocs()
			for b.Loop() {
				exchange()
			}
			if (x.dominant.open != nil) != connected {
				b.Error("connected:", !connected)
			}
		})
	}
}

func benchConn(b *testing.B) *conn {
	c, err := Listen(netip.MustParseAddrPort("127.0.0.1:0"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c.(*conn)
}

// TestPeerSocketLosesNothingWhenLeft has a datagram come between the read that found
// nothing and the end of the peer socket.
func TestPeerSocketLosesNothingWhenLeft(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		a, b := listen(t, addr, Options{}), listen(t, addr, Options{})
		makeDominant(t, a, b)
		c := b.Conn.(*conn)
		n := b.peerSocket()
		late := &side{Conn: &conn{source: source{fd: n.fd}}, t: t}
		b.mu.Lock()
		c.dominant.to.Store(nil)
		c.dominant.ending = true
		a.numbered(b, 0, 1)
		late.arrived()
		c.closePeerSocket()
		b.mu.Unlock()
		w := addressed(&writer{to: n}, c, a)
		if err := c.sendto(w, []byte("x")); err != nil {
			t.Fatal(err)
		}
		a.datagrams(1) // it does not go to where the peer socket is connected now
		a.numbered(b, 1, 1)
		b.arrived()
		got := 0
		b.mu.Lock()
		for range 4 {
			k, err := b.TryRead(b.bufs, b.metas)
			if err != nil {
				t.Fatal(err)
			}
			got += k
		}
		b.mu.Unlock()
		if got != 2 || b.peerSocket() != nil {
			t.Errorf("%d of 2 datagrams, peer socket: %v", got, b.peerSocket() != nil)
		}
	}
}

// addressed has w send to a peer by the peer socket that it remembers.
func addressed(w *writer, c *conn, to *side) *writer {
	peer := w.to
	w.address(c, &Meta{Remote: to.LocalAddr()})
	w.to = peer
	return w
}

// TestPeerSocketWaitsForNoWriter has a writer hold on to a socket for as long as a read
// takes, both while the peer socket is opened and while it is closed.
func TestPeerSocketWaitsForNoWriter(t *testing.T) {
	a, b, c := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	fdmu := &b.Conn.(*conn).fdmu
	step := func(from *side, n int) {
		t.Helper()
		fdmu.RLock()
		defer fdmu.RUnlock()
		done := time.AfterFunc(time.Minute, func() { panic("reading waits for the writer") })
		defer done.Stop()
		for i := range n {
			from.numbered(b, i, 1)
			b.datagrams(1)
		}
	}
	one := func() {
		t.Helper()
		a.numbered(b, 0, 1)
		b.datagrams(1)
	}
	step(a, 2*peerSocketAfter)
	one()
	if b.peerSocket() == nil {
		t.Fatal("it is not made afterwards")
	}
	step(c, maxPeerScore/otherPeerPenalty+2)
	one()
	b.mu.Lock()
	_, _ = b.TryRead(b.bufs, b.metas)
	b.mu.Unlock()
	if b.peerSocket() != nil {
		t.Error("it is not left afterwards")
	}
}
