package udpio

import (
	"net/netip"
	"testing"
)

// makeDataOnly makes b read what a sends without control messages.
func (b *side) makeDataOnly(a *side) {
	b.t.Helper()
	if lateRecvfrom {
		b.t.Skip("this system may have no recvfrom")
	}
	makeDominant(b.t, a, b)
	for i := 0; !b.readsDataOnly(); i++ {
		if i > 2*groOffAfter {
			b.t.Fatal("datagrams are read with control messages")
		}
		a.numbered(b, i, 1)
		b.datagrams(1)
		b.nothing()
	}
}

// nothing polls, and finds nothing.
func (b *side) nothing() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.empty()
}

// empty is nothing with b.mu held.
func (b *side) empty() {
	b.t.Helper()
	if n, err := b.TryRead(b.bufs, b.metas); n != 0 || err != nil {
		b.t.Fatalf("%d batches more, %v", n, err)
	}
}

// marked sends a datagram that met congestion.
func (a *side) marked(b *side, msg []byte) {
	a.t.Helper()
	if err := a.Write(msg, &Meta{Remote: b.LocalAddr(), ECN: 3}); err != nil {
		a.t.Fatal(err)
	}
}

// readsDataOnly reports whether b reads its peer socket without control messages next.
func (b *side) readsDataOnly() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open().readsDataOnly()
}

// open is peerSocket with b.mu held.
func (b *side) open() *peerSocket { return b.Conn.(*conn).dominant.open }

// Datagrams that are read without control messages come with their addresses, in
// whole, and marks of congestion are seen sooner or later.
func TestDataOnlyDatagrams(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		for _, plain := range []bool{false, true} {
			a, b := listen(t, addr, Options{NoOffload: plain}), listen(t, addr, Options{NoOffload: plain})
			b.makeDataOnly(a)
			seen := 0
			for i := range 4 * (maxDataOnly + 1) {
				msg := pattern(1 + i)
				a.marked(b, msg)
				got, m := b.datagrams(1)
				b.nothing()
				if string(got[0]) != string(msg) || m.Remote != a.LocalAddr() || m.Local != b.LocalAddr().Addr() || m.SegSize != len(msg) {
					t.Fatalf("%s, datagram %d: %d bytes, %+v", addr, i, len(got[0]), m)
				}
				if m.ECN == 3 {
					seen++
				} else if m.ECN != 0 {
					t.Errorf("%s, datagram %d: ECN %d", addr, i, m.ECN)
				}
			}
			if seen != 4 {
				t.Errorf("%s: %d marks seen of %d, want 4", addr, seen, 4*(maxDataOnly+1))
			}
			// Of several that wait all is known.
			b.mu.Lock()
			b.open().more = MaxMessages - 1
			b.mu.Unlock()
			for range 3 {
				a.marked(b, []byte{1})
			}
			if _, m := b.datagrams(3); m.ECN != 3 {
				t.Errorf("%s: ECN %d of the last of three", addr, m.ECN)
			}
			// So it is if it comes from another host.
			b.mu.Lock()
			b.open().onHost = false
			b.mu.Unlock()
			for range 3 {
				a.marked(b, []byte{1})
				if _, m := b.datagrams(1); m.ECN != 3 {
					t.Errorf("%s: ECN %d", addr, m.ECN)
				}
				b.nothing()
			}
		}
	}
}

// Batches need their control messages.
func TestBatchesAreNotDataOnly(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	if !b.Info().GRO || !a.Info().GSO {
		t.Skip("no segmentation offload")
	}
	b.makeDataOnly(a)
	for range 3 {
		if err := a.Write(pattern(10*1000+5), &Meta{Remote: b.LocalAddr(), SegSize: 1000}); err != nil {
			t.Fatal(err)
		}
		if got, _ := b.datagrams(11); len(got) != 11 {
			t.Fatalf("%d datagrams", len(got))
		}
		if b.readsDataOnly() {
			t.Error("batches are read without control messages")
		}
	}
}

// A socket is bound before it is connected: what came in between may be from any sender.
func TestDataOnlySinceConnected(t *testing.T) {
	a, b, c := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	bc := b.Conn.(*conn)
	bc.dominant.after = 0
	s := &bc.source // as if it were connected to a
	s.remote, s.connected, s.onHost = a.LocalAddr(), true, true
	s.setGRO(false)
	for range 2 {
		c.numbered(b, 0, 1)
	}
	b.arrived()
	b.mu.Lock()
	defer b.mu.Unlock()
	for range 2 {
		if b.tryRead(); b.metas[0].Remote != c.LocalAddr() {
			t.Fatalf("from %v, want %v", b.metas[0].Remote, c.LocalAddr())
		}
	}
	b.empty()
	if !s.readsDataOnly() && !lateRecvfrom {
		t.Error("not known to have only what came since")
	}
}

// A long datagram that is dropped, as it may be a batch, leaves the next one whole.
func TestDataOnlyAfterADrop(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	if !b.Info().GRO {
		t.Skip("no receive offload")
	}
	b.makeDataOnly(a)
	for _, n := range []int{longDatagram, 2 * longDatagram} {
		if err := a.Write(pattern(n), &Meta{Remote: b.LocalAddr()}); err != nil {
			t.Fatal(err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open().maybeMerged = true
	if b.tryRead(); len(b.bufs[0].B) != 2*longDatagram || b.metas[0].SegSize != 2*longDatagram {
		t.Errorf("%d bytes in segments of %d, want %d", len(b.bufs[0].B), b.metas[0].SegSize, 2*longDatagram)
	}
}

// While a socket is left it is connected to itself.
func TestOwnDatagramsWhileLeaving(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		a, b := listen(t, addr, Options{}), listen(t, addr, Options{})
		b.makeDataOnly(a)
		b.mu.Lock()
		c := b.Conn.(*conn)
		c.dominant.to.Store(nil)
		c.dominant.ending = true
		if !c.closePeerSocket() {
			t.Fatal("not left")
		}
		c.fdmu.RLock() // a writer keeps it from being closed
		b.empty()
		c.fdmu.RUnlock()
		b.numbered(b, 0, 1)
		if b.tryRead(); b.metas[0].Remote != b.LocalAddr() {
			t.Errorf("from %v, want %v", b.metas[0].Remote, b.LocalAddr())
		}
		b.mu.Unlock()
	}
}

// What comes from other hosts, or directly over IP, is read with control messages.
func TestDataOnlyOnHost(t *testing.T) {
	here := netip.MustParseAddrPort("192.0.2.1:1")
	for _, x := range []struct {
		remote string
		ip     bool
		want   bool
	}{
		{"192.0.2.1:2", false, true},
		{"127.0.0.2:1", false, true},
		{"[::1]:1", false, true},
		{"192.0.2.1:2", true, false},
		{"192.0.2.2:1", false, false},
	} {
		c := &conn{local: here, ip: x.ip}
		if got := c.onHost(netip.MustParseAddrPort(x.remote)); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}
