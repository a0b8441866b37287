package sctp

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/sctptest"
)

// Whoever gives up does not wait for a connection that takes nothing, and it is closed.
func TestContextOfAConnectionThatBlocks(t *testing.T) {
	near, far := net.Pipe() // nobody reads far: the INIT is being written for ever
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := ClientContext(ctx, WithNetConn(near)); err != context.DeadlineExceeded {
		t.Errorf("ClientContext = %v, want context.DeadlineExceeded", err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
	far.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.Copy(io.Discard, far); err != nil {
		t.Errorf("the connection is open: %v", err)
	}
}

func TestConnectionEndsBeforeTheAssociation(t *testing.T) {
	near, far := net.Pipe()
	far.Close()
	if _, err := ServerWithOptions(WithNetConn(near)); !errors.Is(err, ErrAssociationClosedBeforeConn) {
		t.Errorf("ServerWithOptions = %v, want ErrAssociationClosedBeforeConn", err)
	}
	near, far = net.Pipe()
	far.Close()
	if _, err := ClientWithOptions(WithNetConn(near)); !errors.Is(err, ErrAssociationClosedBeforeConn) {
		t.Errorf("ClientWithOptions = %v, want ErrAssociationClosedBeforeConn", err)
	}
}

// silentConn loses what is written while lost is set.
type silentConn struct {
	net.Conn
	lost *atomic.Bool
}

func (c silentConn) Write(b []byte) (int, error) {
	if c.lost.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// virtual returns two associations over a network in virtual time that can be silenced.
func virtual(t *testing.T) (a, b *Association, lost *atomic.Bool) {
	n := sctptest.NewNetwork(1)
	t.Cleanup(n.Close)
	l := sctptest.Link{Delay: 10 * time.Millisecond}
	ca, cb := n.NewConns(l, l)
	lost = new(atomic.Bool)
	done := make(chan error)
	go func() {
		var err error
		b, err = ClientWithOptions(WithNetConn(silentConn{cb, lost}))
		done <- err
	}()
	a, err := ClientWithOptions(WithNetConn(silentConn{ca, lost}))
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	return a, b, lost
}

// An association lives through any silence, and goes on when packets come again.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, lost := virtual(t)
		defer b.Close()
		defer a.Close()
		s, err := a.OpenStream(1, PayloadTypeWebRTCBinary)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write([]byte("before")); err != nil {
			t.Fatal(err)
		}
		r, err := b.AcceptStream()
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 16)
		if _, err := r.Read(buf); err != nil {
			t.Fatal(err)
		}
		lost.Store(true)
		if _, err := s.Write([]byte("after")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Hour)
		lost.Store(false)
		r.SetReadDeadline(time.Now().Add(5 * time.Minute))
		if n, err := r.Read(buf); err != nil || string(buf[:n]) != "after" {
			t.Errorf("Read = %q, %v", buf[:n], err)
		}
	})
}

// Close tells the peer nothing; Abort does.
func TestCloseIsSilent(t *testing.T) {
	for _, abort := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, b, _ := virtual(t)
			defer b.Close()
			time.Sleep(time.Minute) // what the handshake has sent has come
			received := b.BytesReceived()
			if abort {
				a.Abort("enough")
			} else if err := a.Close(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			if got := b.BytesReceived() > received; got != abort {
				t.Errorf("abort %v: the peer has got something: %v", abort, got)
			}
		})
	}
}

// A UDP socket is read and written in batches, and its bytes count as those of any connection.
func TestUDPSocket(t *testing.T) {
	first, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	here := first.LocalAddr().(*net.UDPAddr)
	far, err := net.DialUDP("udp4", nil, here)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	near, err := net.DialUDP("udp4", here, far.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Skipf("the port was taken meanwhile: %v", err)
	}
	var b *Association
	done := make(chan error)
	go func() {
		var err error
		b, err = ClientWithOptions(WithNetConn(far))
		done <- err
	}()
	a, err := ClientWithOptions(WithNetConn(near))
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	s, err := a.OpenStream(1, PayloadTypeWebRTCBinary)
	if err != nil {
		t.Fatal(err)
	}
	const size = 60_000
	if _, err := s.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	r, err := b.AcceptStream()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, size)); n != size || err != nil {
		t.Fatalf("Read = %d, %v", n, err)
	}
	if sent, received := a.BytesSent(), b.BytesReceived(); sent < size || received < size {
		t.Errorf("%d bytes sent and %d received for a message of %d", sent, received, size)
	}
	// Close tells the peer nothing, and ends the stream; it closes the socket.
	received := b.BytesReceived()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("Read after Close = %v, want io.EOF", err)
	}
	if _, err := near.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the socket is open: %v", err)
	}
	// The socket that ends under an association ends its streams with its error.
	if got := b.BytesReceived(); got != received {
		t.Errorf("the peer got %d bytes after Close", got-received)
	}
	far.Close()
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read after the socket was closed = %v, want net.ErrClosed", err)
	}
	if err := b.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// slowCloser takes its time to close.
type slowCloser struct {
	net.Conn
	err error
}

func (slowCloser) SetReadDeadline(time.Time) error  { return nil }
func (slowCloser) SetWriteDeadline(time.Time) error { return nil }

func (c slowCloser) Close() error {
	time.Sleep(time.Second)
	return c.err
}

// Closes that wait for another one let virtual time go on, and return the same.
func TestClosesShareTheirResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		c := &conn{Conn: slowCloser{err: failed}, closed: make(chan struct{})}
		results := make(chan error, 3)
		start := time.Now()
		for range cap(results) {
			go func() { results <- c.Close() }()
		}
		for range cap(results) {
			if err := <-results; err != failed {
				t.Errorf("Close = %v, want %v", err, failed)
			}
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("the closes took %v, want that of one", d)
		}
	})
}
