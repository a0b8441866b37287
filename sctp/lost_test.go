package sctp_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// endingConn is a connection whose reads fail with err from some time on.
type endingConn struct {
	net.PacketConn
	mu  sync.Mutex
	err error
}

func (c *endingConn) end(err error) {
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	c.PacketConn.SetReadDeadline(time.Now())
}

func (c *endingConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.PacketConn.ReadFrom(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.err != nil {
			return 0, nil, c.err
		}
	}
	return n, from, err
}

// When the connection under a transport ends so do its associations, and all who wait
// learn why.
func TestTransportEndsWithItsConnection(t *testing.T) {
	broken := errors.New("tunnel broken")
	for _, tc := range []struct {
		name   string
		err    error // of the reads
		within time.Duration
		is     error
	}{
		{"EOF", io.EOF, 0, io.ErrUnexpectedEOF},
		{"closed by its owner", net.ErrClosed, 0, net.ErrClosed},
		{"pipe", io.ErrClosedPipe, 0, io.ErrClosedPipe},
		{"another error for long", broken, 2 * time.Second, broken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := sctptest.NewNetwork(1)
				n.SetDefault(sctptest.Link{Delay: time.Millisecond})
				pc, err := n.NewHost(addrA).ListenPacket(":9899")
				if err != nil {
					t.Fatal(err)
				}
				conn := &endingConn{PacketConn: pc}
				p := &pair{t: t, net: n}
				p.ta = newTransport(t, sctp.TransportConfig{Conns: []sctp.PacketConn{conn}})
				p.tb = memTransport(t, n.NewHost(addrB))
				p.connect(nil, nil)
				results := make(chan error, 4)
				go func() { _, err := sctp.NewConn(p.a).Read(make([]byte, 1)); results <- err }()
				go func() { _, err := p.ea.Accept(context.Background()); results <- err }()
				other, err := p.ta.Listen(0, nil)
				if err != nil {
					t.Fatal(err)
				}
				go func() { _, _, err := other.Recv(context.Background(), make([]byte, 1)); results <- err }()
				go func() {
					peer, _ := sctp.ParseAddr("10.0.0.9:9899/5000")
					_, err := other.Connect(context.Background(), peer)
					results <- err
				}()
				synctest.Wait()
				began := time.Now()
				conn.end(tc.err)
				select {
				case <-p.a.Done():
				case <-time.After(time.Hour):
					t.Fatal("the association is still there")
				}
				if d := time.Since(began); d > tc.within {
					t.Errorf("the association ended after %v", d)
				}
				for err := range map[error]bool{p.a.Err(): true, <-results: true, <-results: true, <-results: true, <-results: true} {
					if !errors.Is(err, tc.is) || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), tc.err.Error()) {
						t.Errorf("error %v, want one that names %v", err, tc.err)
					}
				}
				if _, err := p.ea.Connect(t.Context(), p.eb.Addr()); !errors.Is(err, tc.is) {
					t.Errorf("Connect = %v", err)
				}
				if err := p.ta.Close(); err != nil {
					t.Errorf("Close = %v", err)
				}
			})
		})
	}
}

// Errors that pass, and deadlines of the owner's, end nothing; nor does the end of one of
// two connections.
func TestTransportOutlivesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		h := n.NewHost(addrA, "10.1.0.1")
		var conns [2]*endingConn
		for i, a := range []string{addrA, "10.1.0.1"} {
			pc, err := h.ListenPacket(a + ":9899")
			if err != nil {
				t.Fatal(err)
			}
			conns[i] = &endingConn{PacketConn: pc}
		}
		p := &pair{t: t, net: n}
		p.ta = newTransport(t, sctp.TransportConfig{Conns: []sctp.PacketConn{conns[0], conns[1]}})
		p.tb = memTransport(t, n.NewHost(addrB, "10.1.0.2"))
		p.connect(nil, nil)
		time.Sleep(time.Minute) // heartbeats confirm the second path
		echo := func() {
			t.Helper()
			if err := p.a.Send(t.Context(), []byte("x"), sctp.SendOptions{}); err != nil {
				t.Fatal(err)
			}
			recvMessage(t, p.b, make([]byte, 10))
			if err := p.b.Send(t.Context(), []byte("y"), sctp.SendOptions{}); err != nil {
				t.Fatal(err)
			}
			recvMessage(t, p.a, make([]byte, 10))
		}
		for _, c := range conns {
			c.PacketConn.SetReadDeadline(time.Now()) // and nothing else
		}
		time.Sleep(10 * time.Second)
		for _, c := range conns {
			c.end(errors.New("passes"))
		}
		time.Sleep(500 * time.Millisecond)
		for _, c := range conns {
			c.end(nil)
			c.PacketConn.SetReadDeadline(time.Time{})
		}
		echo()
		conns[0].end(io.EOF)
		synctest.Wait()
		if got := p.ta.LocalAddrs(); len(got) != 1 || got[0].Addr().String() != "10.1.0.1" {
			t.Errorf("the addresses are %v", got)
		}
		echo()
	})
}

// records is a slog.Handler that keeps lines.
type records struct {
	slog.Handler
	mu    *sync.Mutex
	lines *[]string
}

func (r records) Enabled(context.Context, slog.Level) bool { return true }
func (r records) Handle(_ context.Context, rec slog.Record) error {
	line := rec.Level.String() + " " + rec.Message
	rec.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.lines = append(*r.lines, line)
	return nil
}

// Paths that fail and come back, and a peer that is given up, are in the log and among the
// notifications.
func TestLogTellsOfPathsAndPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		var mu sync.Mutex
		var lines, notes []string
		h := n.NewHost(addrA, "10.1.0.1")
		tc := sctp.TransportConfig{Log: slog.New(records{mu: &mu, lines: &lines})}
		for _, a := range h.Addrs() {
			pc, err := h.ListenPacket(net.JoinHostPort(a.String(), "9899"))
			if err != nil {
				t.Fatal(err)
			}
			tc.Conns = append(tc.Conns, pc)
		}
		p := &pair{t: t, net: n}
		p.ta = newTransport(t, tc)
		p.tb = memTransport(t, n.NewHost(addrB, "10.1.0.2"))
		p.connect(nil, &sctp.Config{OnNotify: func(_ *sctp.Association, n sctp.Notification) {
			mu.Lock()
			defer mu.Unlock()
			notes = append(notes, n.Kind.String())
		}})
		want := func(what string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			for _, l := range lines {
				if strings.Contains(l, what) {
					if !strings.Contains(l, "peer=") || !strings.Contains(l, "local=") || !strings.Contains(l, addrB+":9899") {
						t.Errorf("line %q does not name the peer", l)
					}
					lines = nil
					return
				}
			}
			t.Errorf("no line has %q: %q", what, lines)
		}
		want("DEBUG sctp: up")
		time.Sleep(time.Minute)
		all := []string{addrA, "10.1.0.1"}
		for _, a := range all {
			n.Cut(a, addrB)
		}
		time.Sleep(20 * time.Minute)
		want("WARN sctp: path down")
		for _, a := range all {
			n.Restore(a, addrB)
		}
		time.Sleep(5 * time.Minute)
		want("INFO sctp: path up")
		for _, a := range all {
			n.Cut(a, addrB)
			n.Cut(a, "10.1.0.2")
		}
		p.a.Send(t.Context(), []byte("x"), sctp.SendOptions{})
		p.b.Send(t.Context(), []byte("x"), sctp.SendOptions{})
		<-p.a.Done()
		<-p.b.Done()
		want("WARN sctp: down")
		mu.Lock()
		defer mu.Unlock()
		told := strings.Join(notes, ",")
		for _, kind := range []string{"path down", "path up", "down"} {
			if !strings.Contains(told, kind) {
				t.Errorf("no notification %q among %s", kind, told)
			}
		}
	})
}
