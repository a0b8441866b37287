package udpio

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pollerOf returns a Poller with some sockets.
func pollerOf(t *testing.T, sides ...*side) *Poller {
	t.Helper()
	p, err := NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	for _, s := range sides {
		if !p.Add(s.Conn) {
			t.Fatal("not added")
		}
	}
	return p
}

// waitingFor runs Wait, which ends when s has got a datagram, and returns once it is in the
// system. The result tells how it ended.
func (p *Poller) waitingFor(t *testing.T, s *side) (ended <-chan bool) {
	t.Helper()
	end := make(chan bool, 1)
	go func() { end <- p.Wait(s.look) }()
	for !p.inCall.Load() {
		time.Sleep(100 * time.Microsecond)
	}
	return end
}

// look reports whether there was a datagram to read.
func (s *side) look() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := s.TryRead(s.bufs, s.metas)
	return n > 0
}

func wantEnd(t *testing.T, ended <-chan bool, want bool) {
	t.Helper()
	select {
	case got := <-ended:
		if got != want {
			t.Errorf("Wait returned %v, want %v", got, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("Wait does not end")
	}
}

// arrived waits until s has a datagram.
func (s *side) arrived() {
	s.t.Helper()
	p := [1]unix.PollFd{{Fd: int32(s.Conn.(*conn).fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p[:], 30_000)
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			s.t.Fatalf("no datagram: %v", err)
		}
		return
	}
}

// Datagrams end a Wait, those that came before it too, on any of the sockets and whether
// Read is woken for them or not.
func TestPollerWakes(t *testing.T) {
	a, b, c := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{}), listen(t, "[::1]:0", Options{})
	d := listen(t, "[::1]:0", Options{})
	p := pollerOf(t, b, c)
	for i, way := range []struct{ from, to *side }{{a, b}, {d, c}, {a, b}} {
		if i == 1 {
			b.Polled(true)
			b.Unwatch()
		}
		ended := p.waitingFor(t, way.to)
		way.from.numbered(way.to, i, 1)
		wantEnd(t, ended, true)
		way.from.numbered(way.to, i, 1)
		way.to.arrived()
		if !p.Wait(way.to.look) {
			t.Error("what was there before did not end it")
		}
	}
}

// What comes to a socket that is added, or that is opened for a dominant peer by the reader
// meanwhile, ends a Wait that was in the system before.
func TestPollerSeesNewSockets(t *testing.T) {
	a, b, c := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	p := pollerOf(t, b)
	ended := p.waitingFor(t, c)
	if !p.Add(c.Conn) {
		t.Fatal("not added")
	}
	a.numbered(c, 0, 1)
	wantEnd(t, ended, true)

	over := make(chan struct{})
	end := make(chan bool, 1)
	go func() {
		end <- p.Wait(func() bool {
			select {
			case <-over:
				return b.look()
			default: // another goroutine reads
				time.Sleep(time.Millisecond)
				return false
			}
		})
	}()
	makeDominant(t, a, b)
	close(over)
	time.Sleep(5 * time.Millisecond) // for it to be in the system again
	a.numbered(b, 0, 1)
	wantEnd(t, end, true)
}

// The port of a socket that a Wait is in the system for is free once it is closed.
func TestPollerFreesPorts(t *testing.T) {
	for range 50 {
		b, c := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
		p := pollerOf(t, b, c)
		ended := p.waitingFor(t, b)
		addr := c.LocalAddr()
		c.Close()
		again, err := Listen(addr, Options{})
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
		p.Kick()
		wantEnd(t, ended, false)
	}
}

// destNone has the socket told of ICMP messages, and returns an address that answers
// with some.
func (s *side) toNobody() (*conn, netip.AddrPort) {
	s.t.Helper()
	gone := listen(s.t, "127.0.0.1:0", Options{})
	gone.Close()
	c := s.Conn.(*conn)
	c.listenICMP(Options{TooBig: func(netip.AddrPort, int, []byte) {}})
	return c, gone.LocalAddr()
}

// An error that waits on a socket, and that no call returned, does not end each ppoll.
func TestPollerTakesErrors(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	c, to := b.toNobody()
	p := pollerOf(t, b)
	for i := range 2 { // the first one reports the first error; the rest of the second is not reported
		if err := b.Write([]byte("x"), &Meta{Remote: to}); err != nil && i == 0 {
			t.Fatal(err)
		}
	}
	time.Sleep(5 * time.Millisecond)
	_, _ = unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	c.icmp.due.Store(false)
	looks := 0
	time.AfterFunc(100*time.Millisecond, func() { a.numbered(b, 0, 1) })
	if !p.Wait(func() bool { looks++; return b.look() }) || looks > 10 {
		t.Errorf("%d looks for a datagram", looks)
	}
}

// A Wait outlives a socket that is closed.
func TestPollerOutlivesSockets(t *testing.T) {
	a, b, c := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	p := pollerOf(t, b, c)
	ended := p.waitingFor(t, b)
	c.Close()
	a.numbered(b, 0, 1)
	wantEnd(t, ended, true)
	if len(p.conns) != 1 {
		t.Errorf("%d sockets, want 1", len(p.conns))
	}
	if p.Add(c.Conn) {
		t.Error("a closed socket was added")
	}
}

func TestPollerKick(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	p := pollerOf(t, b)
	ended := p.waitingFor(t, b)
	p.Kick()
	wantEnd(t, ended, false)
	if p.Wait(b.look) {
		t.Error("a Wait after Kick found something")
	}
	p.Reset()
	// The eventfd may still wake for a Kick that was noticed without it.
	p.mu.Lock()
	p.interrupt()
	p.mu.Unlock()
	ended = p.waitingFor(t, b)
	a.numbered(b, 0, 1)
	wantEnd(t, ended, true)
}

// Closing ends a Wait, from within it too, and what is closed is not used any more: its
// descriptor may have been reused.
func TestPollerClose(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	p := pollerOf(t, b)
	ended := p.waitingFor(t, b)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, ended, false)
	p2 := pollerOf(t, b)
	a.numbered(b, 0, 1)
	if !p2.Wait(func() bool { p2.Close(); return b.look() }) {
		t.Error("closed from within, it lost what it had read")
	}
	for _, p := range []*Poller{p, p2} {
		if p.wake != -1 {
			t.Error("the eventfd was not closed")
		}
		if p.Wait(b.look) {
			t.Error("a closed Poller waited")
		}
		if p.Add(a.Conn) {
			t.Error("added to a closed Poller")
		}
		p.Kick()
		if p.Close() == nil {
			t.Error("closed twice")
		}
	}
}

// A Read wakes after polling for a datagram that came with an error that no
// call took.
func TestPolledWakesWithAnErrorPending(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	_, to := b.toNobody()
	for i := range 3 {
		b.Polled(true)
		read := b.reading()
		if err := b.Write([]byte("x"), &Meta{Remote: to}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // for Read to be woken by it, and wait again
		a.numbered(b, i, 1)
		b.arrived()
		b.Polled(false)
		select {
		case n := <-read:
			if n != 1 {
				t.Fatalf("%d batches", n)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the Read sleeps on")
		}
	}
}
