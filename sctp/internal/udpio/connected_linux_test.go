package udpio

import (
	"bytes"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/slab"
	"golang.org/x/sys/unix"
)

// connectedPair returns two sockets of the loopback interface that are connected to each other.
func connectedPair(t *testing.T, network string, ip net.IP) (a, b *net.UDPConn) {
	t.Helper()
	first, err := net.ListenUDP(network, &net.UDPAddr{IP: ip})
	if err != nil {
		t.Skipf("no %s on the loopback interface: %v", network, err)
	}
	here := first.LocalAddr().(*net.UDPAddr)
	if b, err = net.DialUDP(network, nil, here); err != nil {
		t.Fatal(err)
	}
	first.Close()
	if a, err = net.DialUDP(network, here, b.LocalAddr().(*net.UDPAddr)); err != nil {
		t.Skipf("the port was taken meanwhile: %v", err)
	}
	for _, c := range []*net.UDPConn{a, b} {
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

func connected(t *testing.T, uc *net.UDPConn) connectedUDP {
	t.Helper()
	c, ok := NewConnection(uc).(connectedUDP)
	if !ok {
		t.Fatalf("NewConnection of %v is not a connectedUDP", uc.RemoteAddr())
	}
	t.Cleanup(func() { c.Close() })
	c.Start(nil, nil)
	return c
}

// readAll reads count datagrams, and returns them in one piece and in how many batches they came.
func readAll(t *testing.T, c connectedUDP, count int) (all []byte, batches int) {
	t.Helper()
	var pool slab.Pool
	bufs, metas := make([]*slab.Buf, MaxMessages), make([]Meta, MaxMessages)
	for i := range c.Batches() { // the others are nil, as in a transport
		bufs[i] = pool.Get()
	}
	var mu sync.Mutex
	for count > 0 {
		n, err := c.Read(&mu, bufs, metas)
		if err != nil {
			t.Fatal(err)
		}
		mu.Unlock()
		for i := range n {
			m, b := metas[i], bufs[i].B
			if m.Local != ConnLocal.Addr() || m.Remote != ConnRemote || m.ECN != 0 {
				t.Errorf("batch of %+v, want the addresses of a connection", m)
			}
			all = append(all, b...)
			batches++
			count -= (len(b) + m.SegSize - 1) / m.SegSize
		}
	}
	return all, batches
}

func TestConnectedUDPCarriesBatches(t *testing.T) {
	for network, ip := range map[string]net.IP{"udp4": net.IPv4(127, 0, 0, 1), "udp6": net.IPv6loopback} {
		for _, offload := range []bool{true, false} {
			ua, ub := connectedPair(t, network, ip)
			a, b := connected(t, ua), connected(t, ub)
			if in := a.Info(); offload && !(in.GSO && in.GRO) {
				t.Log("no segmentation offload")
				offload = false
			}
			a.gso.Store(offload)
			const count, size = 40, 1200
			msg := pattern((count-1)*size + 100)
			// What a connection cannot carry is ignored.
			if err := a.Write(msg, &Meta{SegSize: size, Remote: ConnRemote, ECN: 2, DSCP: 10}); err != nil {
				t.Fatal(err)
			}
			got, batches := readAll(t, b, count)
			if !bytes.Equal(got, msg) {
				t.Errorf("%s: %d bytes came out different from %d", network, len(got), len(msg))
			}
			if offload && batches > 2 {
				t.Errorf("%s: %d datagrams came in %d batches", network, count, batches)
			}
			if err := a.WriteGather(make([]byte, 100), []slab.IOVec{{At: 50, B: pattern(50)}}, &Meta{Remote: ConnRemote, Fragment: true}); err != nil {
				t.Fatal(err)
			}
			if got, _ := readAll(t, b, 1); len(got) != 100 || !bytes.Equal(got[50:], pattern(50)) {
				t.Errorf("%s: a datagram of %d bytes with parts came out different", network, len(got))
			}
		}
	}
}

// The peer need not know of batches.
func TestConnectedUDPAgainstPlainSocket(t *testing.T) {
	ua, ub := connectedPair(t, "udp4", net.IPv4(127, 0, 0, 1))
	defer ub.Close()
	a := connected(t, ua)
	msg := pattern(3*1000 + 7)
	if err := a.Write(msg, &Meta{SegSize: 1000}); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2000)
	for i, want := range []int{1000, 1000, 1000, 7} {
		if n, err := ub.Read(buf); n != want || err != nil || !bytes.Equal(buf[:n], msg[i*1000:i*1000+n]) {
			t.Errorf("datagram %d: %d bytes, %v, want %d", i, n, err, want)
		}
		if _, err := ub.Write(msg[:want]); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := readAll(t, a, 4); len(got) != len(msg) {
		t.Errorf("%d bytes came back, want %d", len(got), len(msg))
	}
}

// An unconnected socket has no peer to send to.
func TestUnconnectedUDPIsNoConnectedUDP(t *testing.T) {
	uc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer uc.Close()
	if c, ok := NewConnection(uc).(*MessageConn); !ok {
		t.Errorf("%T, want a *MessageConn", c)
	}
}

// readError returns how a Read ends that finds nothing.
func readError(c connectedUDP) chan error {
	failed := make(chan error, 1)
	go func() {
		var pool slab.Pool
		bufs := []*slab.Buf{pool.Get()}
		var mu sync.Mutex
		n, err := c.Read(&mu, bufs, make([]Meta, 1))
		if n > 0 {
			mu.Unlock()
		}
		failed <- err
	}()
	return failed
}

// When the caller closes its socket, Read ends and nothing is sent any more, though the duplicate is open.
func TestConnectedUDPEndsWithTheCallersSocket(t *testing.T) {
	ua, ub := connectedPair(t, "udp4", net.IPv4(127, 0, 0, 1))
	defer ub.Close()
	a := connected(t, ua)
	failed := readError(a)
	ua.Close()
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read = %v, want net.ErrClosed", err)
	}
	if err := a.Write([]byte("after"), &Meta{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write = %v, want net.ErrClosed", err)
	}
	ub.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := ub.Read(make([]byte, 10)); err == nil {
		t.Errorf("%d bytes were sent after Close", n)
	}
	if err := a.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if err := a.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("second Close = %v, want ErrClosed", err)
	}
}

// Close closes the caller's socket.
func TestConnectedUDPClosesTheCallersSocket(t *testing.T) {
	ua, ub := connectedPair(t, "udp4", net.IPv4(127, 0, 0, 1))
	defer ub.Close()
	a := connected(t, ua)
	failed := readError(a)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read = %v, want net.ErrClosed", err)
	}
	if _, err := ua.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the caller's socket is open: %v", err)
	}
}

// The deadlines of the caller's socket hold, and end when it moves them.
func TestConnectedUDPDeadlines(t *testing.T) {
	ua, ub := connectedPair(t, "udp4", net.IPv4(127, 0, 0, 1))
	a, b := connected(t, ua), connected(t, ub)
	if err := ua.SetDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := <-readError(a); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read = %v, want os.ErrDeadlineExceeded", err)
	}
	if err := a.Write([]byte("x"), &Meta{}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Write = %v, want os.ErrDeadlineExceeded", err)
	}
	if err := ua.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]connectedUDP{{a, b}, {b, a}} {
		if err := c[0].Write([]byte("again"), &Meta{}); err != nil {
			t.Fatal(err)
		}
		if got, _ := readAll(t, c[1], 1); string(got) != "again" {
			t.Errorf("%q", got)
		}
	}
}

// A Write that waits for room ends with the caller's deadline. The socket of the loopback interface is never
// full: a full pipe stands for it.
func TestConnectedUDPWaitsToWrite(t *testing.T) {
	ua, ub := connectedPair(t, "udp4", net.IPv4(127, 0, 0, 1))
	defer ub.Close()
	a := connected(t, ua)
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	if err := a.waitToWrite(p[1]); err != nil {
		t.Errorf("an empty pipe: %v", err)
	}
	for {
		if _, err := unix.Write(p[1], make([]byte, 4096)); err != nil {
			break
		}
	}
	if err := ua.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if err := a.waitToWrite(p[1]); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a full pipe: %v, want os.ErrDeadlineExceeded", err)
	}
}

// That nothing uses the port of the peer is an error of Read, and does not keep Write from sending.
func TestConnectedUDPRefused(t *testing.T) {
	ua, ub := connectedPair(t, "udp4", net.IPv4(127, 0, 0, 1))
	ub.Close()
	a := connected(t, ua)
	for range 3 {
		if err := a.Write([]byte("x"), &Meta{}); err != nil {
			t.Errorf("Write = %v", err)
		}
	}
	if err := <-readError(a); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("Read = %v, want ECONNREFUSED", err)
	}
}
