package udpio

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pollerOf returns a Poller with one socket.
func pollerOf(t *testing.T, s *side) *Poller {
	t.Helper()
	p, err := NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	if !p.Add(s.Conn) {
		t.Fatal("not added")
	}
	return p
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

// A socket that was armed before, and had datagrams then, wakes for one that came
// while it was not.
func TestPollerWakesWhenArmedAgain(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	p := pollerOf(t, b)
	defer time.AfterFunc(30*time.Second, p.Kick).Stop()
	for i := range 3 {
		looks, got := 0, 0
		if !p.Wait(func() bool {
			if looks++; looks == 1 {
				a.numbered(b, i, 1)
				b.arrived()
				p.Arm(b.Conn, true)
				return false
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			n, _ := b.TryRead(b.bufs, b.metas)
			got += n
			return got > 0
		}) {
			t.Fatalf("wait %d did not end after %d looks", i, looks)
		}
		p.Arm(b.Conn, false)
	}
}

// A Read wakes after polling for a datagram that came with an error that nobody
// took.
func TestPolledWakesWithAnErrorPending(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	gone := listen(t, "127.0.0.1:0", Options{})
	to := gone.LocalAddr()
	gone.Close()
	c := b.Conn.(*conn)
	c.listenICMP(func(netip.AddrPort, int, []byte) {})
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
				t.Fatalf("%d trains", n)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the Read sleeps on")
		}
	}
}

// A closed Poller is not touched any more: its descriptor may be somebody else's.
func TestClosedPollerIsLeftAlone(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	p := pollerOf(t, b)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	meet(t, a, b)
	p.Arm(b.Conn, true)
	if p.Add(a.Conn) {
		t.Error("added to a closed Poller")
	}
}
