package udpio

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// watching returns how many sockets are in the epoll instance of w.
func watching(t *testing.T, w *watch) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", w.epfd))
	if err != nil {
		t.Skipf("the sockets that epoll watches cannot be counted: %v", err)
	}
	return strings.Count(string(b), "tfd:")
}

// While other goroutines keep polling, no socket is watched, the peer socket included;
// afterwards a Read wakes for what came meanwhile.
func TestUnwatch(t *testing.T) {
	for _, connected := range []bool{false, true} {
		a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
		c, sockets := b.Conn.(*conn), 1
		if connected {
			makeDominant(t, a, b)
			sockets = 2
		}
		want := func(when string, n int) {
			t.Helper()
			if got := watching(t, &c.own); got != n {
				t.Errorf("connected %v, %s: %d sockets watched, want %d", connected, when, got, n)
			}
		}
		want("at first", sockets)
		c.Unwatch()
		want("while Read waits", sockets)
		for i := range 3 {
			c.Polled(true)
			c.Unwatch()
			want("while others poll", 0)
			read := b.reading()
			a.numbered(b, i, 1)
			b.letArrive(connected)
			if !c.Polled(false) {
				t.Fatal("refused")
			}
			select {
			case n := <-read:
				if n != 1 {
					t.Fatalf("%d batches", n)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("connected %v: the Read sleeps on", connected)
			}
			want("afterwards", sockets)
		}
	}
}

// letArrive gives a datagram time to arrive.
func (s *side) letArrive(connected bool) {
	if !connected {
		s.arrived()
		return
	}
	time.Sleep(time.Millisecond)
}

// A peer socket that is opened while the sockets are unwatched is watched with the shared one later.
func TestPeerSocketIsWatchedLater(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	c := b.Conn.(*conn)
	c.Polled(true)
	c.Unwatch()
	for i := 0; b.peerSocket() == nil; i++ {
		a.numbered(b, i, 1)
		b.mu.Lock()
		b.tryRead()
		b.mu.Unlock()
	}
	if n := watching(t, &c.own); n != 0 {
		t.Errorf("%d sockets watched", n)
	}
	b.wantWatched(a)
}

// If the system refuses to watch, Polled reports it, and the caller may try again.
func TestWatchRefused(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	makeDominant(t, a, b)
	c := b.Conn.(*conn)
	c.Polled(true)
	c.Unwatch()
	epfd := c.own.epfd
	c.own.epfd = -1
	if c.Polled(false) {
		t.Error("the refusal was not reported")
	}
	c.own.epfd = epfd
	// As if it had been refused for the second socket.
	if err := c.own.set(c.fd); err != nil {
		t.Fatal(err)
	}
	b.wantWatched(a)
}

// wantWatched ends the polling of s, which has two sockets, and has a Read wake for a
// datagram of from.
func (s *side) wantWatched(from *side) {
	s.t.Helper()
	c := s.Conn.(*conn)
	if !c.Polled(false) {
		s.t.Fatal("refused")
	}
	if n := watching(s.t, &c.own); n != 2 {
		s.t.Errorf("%d sockets watched, want 2", n)
	}
	from.numbered(s, 0, 1)
	s.datagrams(1)
}
