package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/stream"
)

func pattern(n int, seed uint64) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// Bytes of both directions arrive as they were sent, whatever the lengths of writes and reads; an end of one direction
// leaves the other one, and the stream is used again for the next connection.
func TestBothDirections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, nil)
		defer p.close()
		for round := range 3 {
			if round > 0 {
				p.c, p.d = p.connect(p.a, p.b)
			}
			there, back := pattern(3<<20, 1), pattern(100_000, 2)
			errs := make(chan error, 1)
			go func() {
				rest := there
				for rng := rand.New(rand.NewPCG(1, uint64(round))); len(rest) > 0; {
					n := min(len(rest), 1+rng.IntN(1<<rng.IntN(18)))
					if k, err := p.c.Write(rest[:n]); err != nil || k != n {
						t.Errorf("Write of %d bytes: %d, %v", n, k, err)
						break
					}
					rest = rest[n:]
				}
				errs <- p.c.CloseWrite()
			}()
			got, err := io.ReadAll(p.d)
			wantNil(t, err)
			wantNil(t, <-errs)
			if !bytes.Equal(got, there) {
				t.Fatalf("got %d bytes, sent %d", len(got), len(there))
			}
			if _, err := p.c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Write after CloseWrite: %v", err)
			}
			go func() {
				_, err := p.d.Write(back)
				if err == nil {
					err = p.d.Close()
				}
				errs <- err
			}()
			got, err = io.ReadAll(iotest1{p.c})
			wantNil(t, err)
			wantNil(t, <-errs)
			if !bytes.Equal(got, back) {
				t.Fatalf("got %d bytes back, sent %d", len(got), len(back))
			}
			wantNil(t, p.c.Close())
			wantErr(t, "second Close", p.c.Close(), net.ErrClosed)
			if p.c.LocalAddr() != p.d.RemoteAddr() || p.d.LocalAddr().String() != "2/1/1/2" {
				t.Errorf("addresses %v, %v and %v, %v", p.c.LocalAddr(), p.c.RemoteAddr(), p.d.LocalAddr(), p.d.RemoteAddr())
			}
			time.Sleep(time.Second)
			for _, x := range []*end{p.a, p.b} {
				if s := x.Stats(); s.Conns != 0 || s.Resets+s.ResetByPeer+s.Stale+s.Violations != 0 {
					t.Errorf("%v: %+v", x.Address(), s)
				}
			}
		}
		if n := len(p.a.node.Stats().Senders); n > 2 { // one, and that for control
			t.Errorf("%d flows for one connection at a time", n)
		}
	})
}

// iotest1 reads some bytes at a time.
type iotest1 struct{ r io.Reader }

func (r iotest1) Read(b []byte) (int, error) { return r.r.Read(b[:min(len(b), 1000)]) }

// Copies of whole streams by ReadFrom and WriteTo, as io.Copy does it.
func TestCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, nil)
		defer p.close()
		msg := pattern(1<<20+17, 3)
		go func() {
			n, err := io.Copy(p.c, bytes.NewReader(msg))
			if n != int64(len(msg)) || err != nil {
				t.Errorf("ReadFrom: %d, %v", n, err)
			}
			p.c.CloseWrite()
		}()
		var got bytes.Buffer
		n, err := io.Copy(&got, p.d)
		if n != int64(len(msg)) || err != nil || !bytes.Equal(got.Bytes(), msg) {
			t.Errorf("WriteTo: %d bytes, want %d, %v", n, len(msg), err)
		}
	})
}

// Deadlines end calls that wait, those in the past at once, and a call goes on after its deadline was moved. What
// Write says that it took arrives.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, nil)
		defer p.close()
		timeout := func(what string, err error) {
			t.Helper()
			wantErr(t, what, err, os.ErrDeadlineExceeded)
			if ne, ok := err.(net.Error); !ok || !ne.Timeout() {
				t.Errorf("%s: %v is no timeout", what, err)
			}
		}
		buf := make([]byte, 100)
		began := time.Now()
		p.c.SetReadDeadline(began.Add(3 * time.Second))
		time.AfterFunc(time.Second, func() { p.c.SetReadDeadline(began.Add(5 * time.Second)) })
		_, err := p.c.Read(buf)
		timeout("Read", err)
		if d := time.Since(began); d != 5*time.Second {
			t.Errorf("Read took %v", d)
		}
		time.AfterFunc(time.Second, func() { p.c.SetReadDeadline(time.Unix(1, 0)) })
		p.c.SetReadDeadline(time.Time{})
		_, err = p.c.Read(buf)
		timeout("Read", err)
		p.c.SetDeadline(time.Time{})

		// The reader stops: a write takes what the limits allow.
		p.c.SetWriteDeadline(time.Now().Add(2 * time.Second))
		length := 32 << 20
		if testenv.Race {
			length = 12 << 20
		}
		msg := pattern(length, 4)
		n, err := p.c.Write(msg)
		timeout("Write", err)
		if n < 1<<20 || n >= len(msg) {
			t.Errorf("Write took %d bytes", n)
		}
		p.c.SetWriteDeadline(time.Time{})
		go func() {
			k, err := p.c.Write(msg[n:])
			if k != len(msg)-n || err != nil {
				t.Errorf("the rest: %d, %v", k, err)
			}
			p.c.Close()
		}()
		got, err := io.ReadAll(p.d)
		wantNil(t, err)
		if !bytes.Equal(got, msg) {
			t.Errorf("got %d bytes, sent %d", len(got), len(msg))
		}
		p.d.Close()
	})
}

// A reset arrives although its flow has no credit, and ends calls at both ends. The stream is used again, and has
// nothing of before.
func TestReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, nil)
		defer p.close()
		for range 3 {
			write := make(chan error, 2)
			go func() { _, err := p.c.Write(pattern(32<<20, 1)); write <- err }()
			go func() { _, err := p.d.Write(pattern(32<<20, 1)); write <- err }()
			time.Sleep(2 * time.Second) // both wait
			if len(write) != 0 {
				t.Fatalf("a Write returned: %v", <-write)
			}
			p.c.Reset()
			time.Sleep(time.Second)
			if len(write) != 2 {
				t.Fatalf("%d calls returned, want 2", len(write))
			}
			if a, b := <-write, <-write; errors.Is(a, stream.ErrReset) == errors.Is(b, stream.ErrReset) {
				t.Errorf("errors of Write: %v, %v", a, b)
			}
			_, err := p.d.Read(make([]byte, 10))
			wantErr(t, "Read of the other end", err, stream.ErrReset)
			_, err = p.c.Read(make([]byte, 10))
			wantErr(t, "Read", err, net.ErrClosed)
			p.d.Close()
			time.Sleep(5 * time.Second)
			for _, x := range []*end{p.a, p.b} {
				if s, n := x.Stats(), x.node.Stats(); s.Conns != 0 || n.SendHeld != 0 || n.RecvHeld != 0 {
					t.Errorf("%v: %d connections, %d bytes sent and %d received are held", x.Address(), s.Conns, n.SendHeld, n.RecvHeld)
				}
			}
			p.c, p.d = p.connect(p.a, p.b)
			go p.c.Write([]byte("next"))
			buf := make([]byte, 10)
			if n, err := p.d.Read(buf); string(buf[:n]) != "next" || err != nil {
				t.Fatalf("next connection: %q, %v", buf[:n], err)
			}
		}
		if n := len(p.a.node.Stats().Senders); n > 2 {
			t.Errorf("%d flows for one connection at a time", n)
		}
	})
}

// Close with data that was not read, or that arrives later, is a reset for the other end, as in TCP. A connection
// whose other end never ends its direction lingers for a while only.
func TestCloseBeforeEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, nil)
		defer p.close()
		p.c.Write([]byte("unread"))
		time.Sleep(time.Second)
		wantNil(t, p.d.Close())
		time.Sleep(time.Second)
		_, err := p.c.Read(make([]byte, 10))
		wantErr(t, "Read", err, stream.ErrReset)
		_, err = p.c.Write([]byte("x"))
		wantErr(t, "Write", err, stream.ErrReset)
		p.c.Close()

		p.c, p.d = p.connect(p.a, p.b)
		wantNil(t, p.d.Close())
		time.Sleep(30 * time.Second)
		if n := p.b.Stats().Conns; n != 1 {
			t.Errorf("%d connections, want 1 that lingers", n)
		}
		if _, err := p.c.Read(make([]byte, 10)); err != io.EOF {
			t.Errorf("Read: %v", err)
		}
		time.Sleep(40 * time.Second)
		if a, b := p.a.Stats().Conns, p.b.Stats().Conns; a+b != 0 {
			t.Errorf("%d and %d connections after a minute", a, b)
		}
		_, err = p.c.Write([]byte("x"))
		wantErr(t, "Write", err, stream.ErrReset)
	})
}

// A reader that stops holds up its own connection only, and the memory of the process stays within its limits.
func TestStoppedReader(t *testing.T) {
	if testenv.Race {
		t.Skip("moves 100 MB, which takes a minute with the race detector")
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, nil)
		defer p.close()
		const stopped = 50
		for range stopped {
			c, _ := p.connect(p.a, p.b)
			go c.Write(make([]byte, 64<<20))
		}
		time.Sleep(5 * time.Second)
		msg := pattern(4<<20, 1)
		began := time.Now()
		go func() {
			p.c.Write(msg)
			p.c.Close()
		}()
		got, err := io.ReadAll(p.d)
		wantNil(t, err)
		if !bytes.Equal(got, msg) {
			t.Error("other bytes")
		}
		t.Logf("4 MiB beside %d stopped readers took %v", stopped, time.Since(began))
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("4 MiB took %v", d)
		}
		most := relay.DefaultRecvMemory + (stopped+2)*relay.FlowReserve
		if n := p.b.node.Stats().RecvHeld; n > most {
			t.Errorf("%d bytes are held, want at most %d", n, most)
		}
		if n := p.a.node.Stats().SendHeld; n > most {
			t.Errorf("%d bytes are kept, want at most %d", n, most)
		}
	})
}

// The process at the other end dies: connections are reset, within the peer timeout and a ping, though nothing is sent
// on them, or as soon as it is back; then it can be dialed again.
func TestDeadPeer(t *testing.T) {
	for _, back := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, nil)
			defer func() { p.close() }()
			p.c.Write([]byte("x"))
			time.Sleep(3 * time.Second)
			began := time.Now()
			p.b.kill()
			if back {
				p.b = p.end(2, 1, nil)
			}
			_, err := p.c.Read(make([]byte, 10))
			wantErr(t, "Read", err, stream.ErrReset)
			d := time.Since(began)
			t.Logf("back %t: reset after %v: %v", back, d, err)
			if d > 10*time.Second || back && d > 3*time.Second {
				t.Errorf("reset after %v", d)
			}
			if !back {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				_, err := p.a.Dial(ctx, p.b.Address(), nil)
				wantErr(t, "Dial", err, stream.ErrReset)
				p.b = p.end(2, 1, nil)
			}
			p.c, p.d = p.connect(p.a, p.b)
			p.c.Write([]byte("again"))
			p.c.Close()
			if got, err := io.ReadAll(p.d); string(got) != "again" || err != nil {
				t.Errorf("after the restart: %q, %v", got, err)
			}
		})
	}
}
