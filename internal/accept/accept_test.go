package accept

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// echo serves a listener whose clients prove themselves with the byte 'p'; then it
// echoes.
func echo(ctx context.Context, s Server, l net.Listener) error {
	return s.Serve(ctx, l, func(conn net.Conn, proven func() bool) {
		b := make([]byte, 1)
		if _, err := io.ReadFull(conn, b); err != nil || b[0] != 'p' || !proven() {
			return
		}
		defer conn.Close()
		io.Copy(conn, conn)
	})
}

// ping proves a client's right and waits for an echo.
func ping(c net.Conn) error {
	b := []byte("px")
	if _, err := c.Write(b); err != nil {
		return err
	}
	_, err := io.ReadFull(c, b[:1])
	return err
}

// Clients that say nothing keep nobody out, however many they are, and those that have
// proved who they are stay.
func TestIdleClientsKeepNobodyOut(t *testing.T) {
	const limit = 16
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- echo(ctx, Server{MaxUnproven: limit, ProofTimeout: time.Hour}, l) }()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	known := dial()
	if err := ping(known); err != nil {
		t.Fatal(err)
	}
	var idle []net.Conn
	for range 4 * limit {
		idle = append(idle, dial())
	}
	late := dial()
	defer late.Close()
	if err := ping(late); err != nil {
		t.Errorf("a client behind %d idle ones: %v", len(idle), err)
	}
	if err := ping(known); err != nil {
		t.Errorf("the client that had proved itself: %v", err)
	}
	for i, c := range idle[:3*limit] {
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("idle client %d of %d is still connected: %v", i, len(idle), err)
		}
	}
	last := idle[len(idle)-1]
	stop()
	if _, err := last.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an idle client is still connected at the end: %v", err)
	}
	known.Close()
	late.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v at the end, want net.ErrClosed", err)
	}
}

// fakeListener returns what its function says.
type fakeListener struct{ accept func() (net.Conn, error) }

func (l fakeListener) Accept() (net.Conn, error) { return l.accept() }
func (l fakeListener) Close() error              { return nil }
func (l fakeListener) Addr() net.Addr            { return &net.TCPAddr{} }

// A lack of descriptors passes; the end of the listener does not.
func TestAcceptOutlivesErrorsThatPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		over := make(chan struct{})
		var calls atomic.Int32
		l := fakeListener{func() (net.Conn, error) {
			switch n := calls.Add(1); {
			case n <= 20:
				return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept", syscall.EMFILE)}
			case n == 21:
				return theirs, nil
			}
			<-over
			return nil, net.ErrClosed
		}}
		ended := make(chan error, 1)
		go func() { ended <- echo(t.Context(), Server{MaxUnproven: 1, ProofTimeout: time.Minute}, l) }()
		if err := ping(ours); err != nil {
			t.Fatal(err)
		}
		ours.Close()
		close(over)
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v at the end, want net.ErrClosed", err)
		}
	})
}

// A proof that takes too long ends the connection; after it there is no deadline.
func TestProofTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle, a := net.Pipe()
		good, b := net.Pipe()
		conns := []net.Conn{a, b}
		over := make(chan struct{})
		l := fakeListener{func() (net.Conn, error) {
			if len(conns) == 0 {
				<-over
				return nil, net.ErrClosed
			}
			c := conns[0]
			conns = conns[1:]
			return c, nil
		}}
		ended := make(chan error, 1)
		go func() { ended <- echo(t.Context(), Server{MaxUnproven: 2, ProofTimeout: 10 * time.Second}, l) }()
		if err := ping(good); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := idle.Read(make([]byte, 1)); err == nil || time.Since(start) != 10*time.Second {
			t.Errorf("the idle client: %v after %v, want its end after 10s", err, time.Since(start))
		}
		time.Sleep(time.Hour)
		if err := ping(good); err != nil {
			t.Errorf("the client that had proved itself: %v", err)
		}
		good.Close()
		close(over)
		<-ended
	})
}

func TestPasses(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{syscall.EMFILE, true}, {syscall.ENFILE, true}, {syscall.ENOBUFS, true},
		{net.ErrClosed, false}, {syscall.EBADF, false}, {io.EOF, false}, {os.ErrDeadlineExceeded, false},
	} {
		if got := passes(&net.OpError{Op: "accept", Err: os.NewSyscallError("accept", tt.err)}); got != tt.want {
			t.Errorf("%v: got %v, want %v", tt.err, got, tt.want)
		}
	}
}
