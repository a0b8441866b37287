package sctp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// connPair connects two Conns over a network in memory.
func connPair(t *testing.T, ca, cb *sctp.Config) (p *pair, a, b *sctp.Conn) {
	t.Helper()
	p = newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, ca, cb)
	return p, sctp.NewConn(p.a), sctp.NewConn(p.b)
}

// fill writes to c until nothing more is taken.
func fill(t *testing.T, c *sctp.Conn) (n int) {
	t.Helper()
	c.SetWriteDeadline(time.Now().Add(10 * time.Second))
	defer c.SetWriteDeadline(time.Time{})
	for {
		k, err := c.Write(make([]byte, 1000))
		n += k
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Package net: "Close closes the connection. Any blocked Read or Write operations will be
// unblocked and return errors." So it is with all calls that block, of all types here.
func TestCloseEndsBlockedCalls(t *testing.T) {
	small := &sctp.Config{SendBuffer: 64 << 10, RecvBuffer: 64 << 10}
	background := context.Background()
	buf := func() []byte { return make([]byte, 100) }
	send := func(p *pair) error { return p.a.Send(background, make([]byte, 60000), sctp.SendOptions{}) }
	for _, tc := range []struct {
		name  string
		full  bool // the buffers are full
		block func(p *pair, c *sctp.Conn) error
		close func(p *pair, c *sctp.Conn)
		want  error
	}{
		{"Conn.Write", true, func(p *pair, c *sctp.Conn) error { _, err := c.Write(make([]byte, 60000)); return err }, nil, net.ErrClosed},
		{"Conn.Write, long", true, func(p *pair, c *sctp.Conn) error { _, err := c.Write(make([]byte, 3<<20)); return err }, nil, net.ErrClosed},
		{"Conn.Write, closed with SetLinger(0)", true, func(p *pair, c *sctp.Conn) error { _, err := c.Write(make([]byte, 60000)); return err },
			func(p *pair, c *sctp.Conn) { c.SetLinger(0); c.Close() }, nil},
		{"Conn.Write, closed with SetLinger(5)", true, func(p *pair, c *sctp.Conn) error { _, err := c.Write(make([]byte, 60000)); return err },
			func(p *pair, c *sctp.Conn) { c.SetLinger(5); go c.Close() }, net.ErrClosed},
		{"Conn.Read", false, func(p *pair, c *sctp.Conn) error { _, err := c.Read(buf()); return err }, nil, net.ErrClosed},
		{"Association.Send", true, func(p *pair, c *sctp.Conn) error { return send(p) },
			func(p *pair, c *sctp.Conn) { p.a.Close() }, sctp.ErrShutdown},
		{"Association.Send during Shutdown", true, func(p *pair, c *sctp.Conn) error { return send(p) },
			func(p *pair, c *sctp.Conn) { go p.a.Shutdown(background) }, sctp.ErrShutdown},
		{"Association.Recv", false, func(p *pair, c *sctp.Conn) error { _, _, err := p.a.Recv(background, buf()); return err },
			func(p *pair, c *sctp.Conn) { p.a.Close() }, net.ErrClosed},
		{"Association.RecvStream", false, func(p *pair, c *sctp.Conn) error { _, _, err := p.a.RecvStream(background, 3, buf()); return err },
			func(p *pair, c *sctp.Conn) { p.a.Close() }, net.ErrClosed},
		{"Association.ResetStreams", false, func(p *pair, c *sctp.Conn) error {
			p.net.Cut(addrA, addrB)
			return p.a.ResetStreams(background, 1)
		}, func(p *pair, c *sctp.Conn) { p.a.Close() }, net.ErrClosed},
		{"MessageWriter.Write", true, func(p *pair, c *sctp.Conn) error {
			w, err := p.a.OpenMessage(background, sctp.SendOptions{Stream: 1})
			if err == nil {
				_, err = w.Write(make([]byte, 1<<20))
			}
			return err
		}, func(p *pair, c *sctp.Conn) { p.a.Close() }, sctp.ErrShutdown},
		{"Endpoint.Accept", false, func(p *pair, c *sctp.Conn) error { _, err := p.eb.Accept(background); return err },
			func(p *pair, c *sctp.Conn) { p.eb.Close() }, net.ErrClosed},
		{"Listener.Accept", false, func(p *pair, c *sctp.Conn) error { _, err := sctp.NewListener(p.eb).Accept(); return err },
			func(p *pair, c *sctp.Conn) { sctp.NewListener(p.eb).Close() }, net.ErrClosed},
		{"Endpoint.Recv", false, func(p *pair, c *sctp.Conn) error { _, _, err := p.ea.Recv(background, buf()); return err },
			func(p *pair, c *sctp.Conn) { p.ea.Close() }, net.ErrClosed},
		{"Endpoint.Connect", false, func(p *pair, c *sctp.Conn) error {
			peer, _ := sctp.ParseAddr("10.0.0.9:9899/5000")
			_, err := p.ea.Connect(background, peer)
			return err
		}, func(p *pair, c *sctp.Conn) { p.ea.Close() }, nil},
		{"Conn.Read while the transport is closed", false, func(p *pair, c *sctp.Conn) error { _, err := c.Read(buf()); return err },
			func(p *pair, c *sctp.Conn) { p.ta.Close() }, nil},
		{"Conn.Write while the transport is closed", true, func(p *pair, c *sctp.Conn) error { _, err := c.Write(make([]byte, 60000)); return err },
			func(p *pair, c *sctp.Conn) { p.ta.Close() }, nil},
		{"Accept while the transport is closed", false, func(p *pair, c *sctp.Conn) error { _, err := p.ea.Accept(background); return err },
			func(p *pair, c *sctp.Conn) { p.ta.Close() }, net.ErrClosed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, c, _ := connPair(t, small, small)
				if tc.full {
					fill(t, c)
				}
				const calls = 3 // the others wait for the first, or as it does
				done := make(chan error, calls)
				n := calls
				if tc.name == "Association.ResetStreams" || tc.name == "MessageWriter.Write" || tc.name == "Endpoint.Connect" {
					n = 1 // more are refused
				}
				for range n {
					go func() { done <- tc.block(p, c) }()
				}
				synctest.Wait()
				if len(done) > 0 {
					t.Fatalf("it returned %v before", <-done)
				}
				if tc.close == nil {
					c.Close()
				} else {
					tc.close(p, c)
				}
				synctest.Wait()
				if len(done) != n {
					t.Errorf("%d of %d calls have returned", len(done), n)
					p.a.Abort("")
					p.ta.Close()
				}
				for range n {
					if err := <-done; err == nil || tc.want != nil && !errors.Is(err, tc.want) {
						t.Errorf("it returned %v, want %v", err, tc.want)
					}
				}
			})
		})
	}
}

// A deadline that passes, is moved or is taken back during Writes that wait for room
// counts for those: for the one that is at it and those behind it. What Write says it has
// written arrives, and nothing else.
func TestWriteDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const buffer = 64 << 10
		cfg := &sctp.Config{SendBuffer: buffer, RecvBuffer: buffer}
		_, a, b := connPair(t, cfg, cfg)
		var mu sync.Mutex
		written := fill(t, a)
		if written < buffer {
			t.Fatalf("%d bytes were taken, with buffers of %d", written, buffer)
		}
		blocked := func(want error) *sync.WaitGroup {
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					n, err := a.Write(make([]byte, 60000))
					if !errors.Is(err, want) {
						t.Errorf("Write = %v, want %v", err, want)
					}
					var ne net.Error
					if err != nil && (!errors.As(err, &ne) || !ne.Timeout()) {
						t.Errorf("%v is no timeout", err)
					}
					mu.Lock()
					written += n
					mu.Unlock()
				})
			}
			synctest.Wait()
			return &wg
		}
		wg := blocked(os.ErrDeadlineExceeded)
		began := time.Now()
		a.SetWriteDeadline(began.Add(time.Minute))
		time.Sleep(time.Second)
		a.SetWriteDeadline(began.Add(5 * time.Second)) // sooner
		wg.Wait()
		if d := time.Since(began); d != 5*time.Second {
			t.Errorf("the Writes ended after %v", d)
		}
		if n, err := a.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write after the deadline = %d, %v", n, err)
		}
		a.SetWriteDeadline(time.Time{})
		wg = blocked(nil)
		a.SetWriteDeadline(time.Now().Add(time.Second))
		a.SetWriteDeadline(time.Time{}) // taken back
		time.Sleep(time.Minute)
		mu.Lock()
		want := written + 3*60000
		mu.Unlock()
		got := 0
		buf := make([]byte, 3000)
		for got < want {
			n, err := b.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			got += n
		}
		wg.Wait()
		a.Close()
		if n, err := b.Read(buf); n != 0 || err != io.EOF {
			t.Errorf("%d bytes more than were written (%d), %v", n, want, err)
		}
	})
}

// What one Write writes is in one piece, as with a net.TCPConn, also if it is longer than
// a message.
func TestConcurrentWritesStayWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, a, b := connPair(t, nil, nil)
		const writers, each = 6, 5
		var seed uint64 = 7
		rng := rand.New(rand.NewPCG(seed, 1))
		var wg sync.WaitGroup
		want := map[byte][]int{}
		for i := range writers {
			var sizes []int
			for range each {
				sizes = append(sizes, 1+rng.IntN(1<<(10+2*(i%3)+rng.IntN(8))))
			}
			sizes = append(sizes, 1<<20+1+rng.IntN(1<<20))
			want[byte(i)] = sizes
			wg.Go(func() {
				for _, n := range sizes {
					if _, err := a.Write(bytes.Repeat([]byte{byte(i)}, n)); err != nil {
						t.Errorf("Write: %v", err)
					}
				}
			})
		}
		go func() {
			wg.Wait()
			a.Close()
		}()
		got := map[byte][]int{}
		last, run := byte(255), 0
		buf := make([]byte, 100_000)
		for {
			n, err := b.Read(buf)
			for _, x := range buf[:n] {
				// A run may be of several Writes of one writer.
				if x != last && run > 0 {
					got[last] = append(got[last], run)
					run = 0
				}
				last = x
				run++
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		got[last] = append(got[last], run)
		for i, sizes := range want {
			for _, run := range got[i] {
				for run > 0 && len(sizes) > 0 {
					run -= sizes[0]
					sizes = sizes[1:]
				}
				if run != 0 {
					t.Fatalf("seed %d: writer %d wrote %v and arrived in parts of %v", seed, i, want[i], got[i])
				}
			}
			if len(sizes) > 0 {
				t.Errorf("seed %d: writer %d: %v of %v did not arrive", seed, i, sizes, want[i])
			}
		}
		_ = p
	})
}

// A message that is longer than the buffer of a Read goes on in the next one, whoever
// makes that, and across a deadline that passes in between.
func TestReadsOfHalfMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := connPair(t, nil, nil)
		want := pattern(10_000)
		go func() {
			a.Write(want[:7000])
			time.Sleep(time.Second)
			a.Write(want[7000:])
			a.Close()
		}()
		var got []byte
		for i := 0; len(got) < 7000; i++ {
			buf := make([]byte, 1+i%13*100)
			n, err := b.Read(buf)
			if err != nil || n == 0 {
				t.Fatalf("Read = %d, %v after %d bytes", n, err, len(got))
			}
			got = append(got, buf[:n]...)
			if i == 3 {
				b.SetReadDeadline(time.Now().Add(-1))
				if n, err := b.Read(buf); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("Read after the deadline = %d, %v", n, err)
				}
				b.SetReadDeadline(time.Time{})
			}
		}
		b.SetReadDeadline(time.Now().Add(time.Millisecond))
		if n, err := b.Read(make([]byte, 10)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("Read until the deadline = %d, %v", n, err)
		}
		b.SetReadDeadline(time.Time{})
		var mu sync.Mutex
		var parts [][]byte // in any order
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					buf := make([]byte, 77)
					n, err := b.Read(buf)
					mu.Lock()
					parts = append(parts, buf[:n])
					mu.Unlock()
					if err == io.EOF {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		rest := slices.Clone(want[7000:])
		var all []byte
		for _, part := range parts {
			if !bytes.Contains(rest, part) {
				t.Errorf("a Read returned %d bytes that were not written in one piece", len(part))
			}
			all = append(all, part...)
		}
		slices.Sort(all)
		slices.Sort(rest)
		if !bytes.Equal(got, want[:7000]) || !bytes.Equal(all, rest) {
			t.Errorf("%d and %d bytes came out different", len(got), len(all))
		}
	})
}

// A Listener goes on, whatever becomes of those that it has accepted or not.
func TestListenerAcceptsManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		e, err := memTransport(t, n.NewHost(addrB)).Listen(5000, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := sctp.NewListener(e)
		const peers, acceptors = 20, 4
		accepted := make(chan net.Conn, peers)
		var wg, dials sync.WaitGroup
		for range acceptors {
			wg.Go(func() {
				for {
					c, err := l.Accept()
					if err != nil {
						if !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), l.Addr().String()) {
							t.Errorf("Accept: %v", err)
						}
						return
					}
					accepted <- c
				}
			})
		}
		ta := memTransport(t, n.NewHost(addrA))
		for i := range peers {
			dials.Go(func() {
				e, err := ta.Listen(0, nil)
				if err != nil {
					t.Error(err)
					return
				}
				a, err := e.Connect(t.Context(), sctp.Addr{Addrs: l.Addr().(sctp.Addr).Addrs, Port: 5000})
				if err != nil {
					t.Error(err)
				} else if i%2 == 0 {
					a.Abort("gone")
				}
			})
		}
		dials.Wait()
		time.Sleep(time.Second)
		if len(accepted) != peers {
			t.Errorf("%d of %d were accepted", len(accepted), peers)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closing it again: %v", err)
		}
		wg.Wait()
	})
}
