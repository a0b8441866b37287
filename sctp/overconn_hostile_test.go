package sctp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/sctp/wire"
)

// RFC 8261, Section 6.1: no address is in INIT and INIT ACK, and no Supported Address Types in INIT; nor does
// anything that is shown name one.
func TestOverConnTellsNoAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		defer n.Close()
		l := sctptest.Link{Delay: time.Millisecond}
		a, b := n.NewConns(l, l)
		var mu sync.Mutex
		seen := map[wire.ChunkType]int{}
		var log bytes.Buffer
		cfg := &sctp.ConnConfig{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), Tap: func(e sctp.TapEvent) {
			mu.Lock()
			defer mu.Unlock()
			if e.Local.IsValid() || e.Remote.IsValid() {
				t.Errorf("tapped between %v and %v, want no addresses", e.Local, e.Remote)
			}
			it := wire.NewChunks(e.Data[wire.HeaderLen:])
			for it.Next() {
				c := it.Chunk()
				seen[c.Type]++
				var x wire.Init
				var err error
				switch c.Type {
				case wire.ChunkInit:
					x, err = wire.ParseInit(c)
				case wire.ChunkInitAck:
					x, err = wire.ParseInitAck(c)
				default:
					continue
				}
				if err != nil {
					t.Error(err)
				}
				for p := wire.NewParams(x.Params); p.Next(); {
					switch k := p.Param().Type; k {
					case wire.ParamIPv4, wire.ParamIPv6, wire.ParamSupportedAddrTypes, wire.ParamHostName:
						t.Errorf("%v has %v", c.Type, k)
					}
				}
			}
		}}
		x, y := overConn(t, a, b, false, cfg)
		tr := x.Endpoint().Transport()
		synctest.Wait() // what is logged has been
		for _, s := range []string{x.String(), y.Endpoint().String(), tr.String(), x.ConfirmedAddr().String(), log.String()} {
			if s == "" || bytes.Contains([]byte(s), []byte("100::")) {
				t.Errorf("%q names an address, or nothing", s)
			}
		}
		for what, err := range map[string]error{
			"AddAddr":           x.AddAddr(t.Context(), netip.MustParseAddrPort("10.0.0.1:1")),
			"RemoveAddr":        x.RemoveAddr(t.Context(), netip.MustParseAddrPort("[100::1]:1")),
			"SetPeerPrimary":    x.SetPeerPrimary(t.Context(), netip.MustParseAddrPort("[100::1]:1")),
			"Transport.AddAddr": second(tr.AddAddr(netip.MustParseAddrPort("127.0.0.1:0"))),
			"Transport.AddConn": second(tr.AddConn(listen(t, n))),
			"Transport.Remove":  tr.RemoveAddr(netip.MustParseAddrPort("[100::1]:1")),
		} {
			if !errors.Is(err, sctp.ErrNotSupported) {
				t.Errorf("%s: %v, want ErrNotSupported", what, err)
			}
		}
		acked := x.Stats().Paths[0].HeartbeatsAcked
		params, err := x.PathParams(netip.AddrPort{})
		if err := errors.Join(err, x.Heartbeat(netip.AddrPort{}), x.SetPathParams(netip.AddrPort{}, params), x.SetPrimary(netip.AddrPort{})); err != nil {
			t.Error("the path of a connection:", err)
		}
		if err := x.Heartbeat(netip.MustParseAddrPort("10.0.0.1:1")); !errors.Is(err, sctp.ErrAddress) {
			t.Errorf("Heartbeat of an address that is not the peer's: %v", err)
		}
		time.Sleep(time.Second)
		if got := x.Stats().Paths[0].HeartbeatsAcked; got != acked+1 {
			t.Errorf("%d heartbeats acknowledged, %d before", got, acked)
		}
		x.Abort("")
		<-y.Done()
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if seen[wire.ChunkInit] == 0 || seen[wire.ChunkInitAck] == 0 {
			t.Errorf("tapped %v, want INIT and INIT ACK", seen)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func listen(t *testing.T, n *sctptest.Network) sctp.PacketConn {
	t.Helper()
	pc, err := n.NewHost("10.9.9.9").ListenPacket(":9899")
	if err != nil {
		t.Fatal(err)
	}
	return pc
}

// rawPeer is a peer of Server that says what it likes.
type rawPeer struct {
	t    *testing.T
	conn net.Conn
	tag  uint32 // of the server
	tsn  uint32
	buf  []byte
}

func newRawPeer(t *testing.T, conn net.Conn) *rawPeer {
	return &rawPeer{t: t, conn: conn, tsn: 1000, buf: make([]byte, 65536)}
}

func (p *rawPeer) packet(tag uint32) []byte {
	return wire.AppendHeader(nil, wire.Header{SrcPort: sctp.DefaultConnPort, DstPort: sctp.DefaultConnPort, VTag: tag})
}

func (p *rawPeer) send(b []byte) {
	p.t.Helper()
	wire.SetChecksum(b)
	if _, err := p.conn.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// read returns the first chunk of the next packet.
func (p *rawPeer) read() wire.Chunk {
	p.t.Helper()
	k, err := p.conn.Read(p.buf)
	if err != nil {
		p.t.Fatal(err)
	}
	it := wire.NewChunks(p.buf[wire.HeaderLen:k])
	if !it.Next() {
		p.t.Fatalf("%d bytes without a chunk", k)
	}
	return it.Chunk()
}

// connect sets an association up whose INIT has the parameters params.
func (p *rawPeer) connect(params []byte) {
	p.t.Helper()
	p.send(wire.AppendInit(p.packet(0), wire.Init{Tag: 77, RWND: 1 << 20, OutStreams: 10, InStreams: 10, TSN: p.tsn, Params: params}))
	ack, err := wire.ParseInitAck(p.read())
	if err != nil {
		p.t.Fatal(err)
	}
	p.tag = ack.Tag
	for it := wire.NewParams(ack.Params); it.Next(); {
		if c, err := wire.ParseStateCookie(it.Param()); err == nil {
			p.send(wire.AppendChunk(p.packet(p.tag), wire.ChunkCookieEcho, 0, bytes.Clone(c)))
			if c := p.read(); c.Type != wire.ChunkCookieAck {
				p.t.Fatalf("got %v, want COOKIE ACK", c.Type)
			}
			return
		}
	}
	p.t.Fatal("no cookie")
}

// serveRaw returns an association whose peer p is.
func serveRaw(t *testing.T, conn net.Conn, p *rawPeer, params []byte, cfg *sctp.ConnConfig) *sctp.Association {
	t.Helper()
	done := make(chan *sctp.Association, 1)
	go func() {
		a, err := sctp.Server(context.Background(), conn, cfg)
		if err != nil {
			t.Error(err)
		}
		done <- a
	}()
	p.connect(params)
	return <-done
}

// A peer that lists addresses in its INIT gets no more paths by that: there is one connection.
func TestOverConnIgnoresAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		defer n.Close()
		a, b := n.NewConns(sctptest.Link{}, sctptest.Link{})
		var params []byte
		for i := range byte(8) {
			params = wire.AppendAddr(params, netip.AddrFrom4([4]byte{10, 0, 1, i}))
			params = wire.AppendAddr(params, netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: i}))
		}
		x := serveRaw(t, a, newRawPeer(t, b), params, nil)
		if st := x.Stats(); len(st.Paths) != 1 {
			t.Errorf("%d paths, want 1", len(st.Paths))
		}
		x.Abort("")
		b.Close()
		time.Sleep(time.Minute)
	})
}

// A connection that does not take what it is given bounds what is kept for it, whatever the peer asks for.
func TestOverConnBlockedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		defer n.Close()
		a, b := n.NewConns(sctptest.Link{}, sctptest.Link{})
		stuck := &brokenConn{Conn: a, block: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if x, err := sctp.Server(ctx, stuck, nil); err == nil {
				t.Errorf("established %v", x)
			}
		})
		p := newRawPeer(t, b)
		const count = 30_000
		grow := func() (heap int64) {
			for i := range uint32(count) {
				p.send(wire.AppendInit(p.packet(0), wire.Init{Tag: 1 + i, RWND: 1 << 20, OutStreams: 10, InStreams: 10, TSN: 1}))
				if i%100 == 99 {
					time.Sleep(time.Millisecond)
				}
			}
			var m runtime.MemStats
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := grow()
		if after := grow(); after-before > 1<<20 {
			t.Errorf("the heap grew by %d KiB with %d INITs, to %d KiB", (after-before)>>10, count, after>>10)
		}
		cancel()
		wg.Wait()
		b.Close()
		time.Sleep(time.Minute)
	})
}

// pickyConn refuses messages that are longer than limit, with an error of its own.
type pickyConn struct {
	net.Conn
	limit   int
	refused atomic.Int64
}

func (c *pickyConn) Write(b []byte) (int, error) {
	if len(b) > c.limit {
		c.refused.Add(1)
		return 0, fmt.Errorf("a message of %d bytes is too long", len(b))
	}
	return c.Conn.Write(b)
}

// Probes for a larger path MTU that the connection refuses end nothing, however long the
// association lives.
func TestOverConnRefusesProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		defer n.Close()
		l := sctptest.Link{Delay: time.Millisecond}
		a, b := n.NewConns(l, l)
		picky := &pickyConn{Conn: a, limit: 1300}
		x, y := overConn(t, picky, b, false, &sctp.ConnConfig{MaxMTU: 9000})
		for range 200 {
			time.Sleep(10 * time.Minute)
			if err := x.Err(); err != nil {
				t.Fatalf("ended after %d refusals: %v", picky.refused.Load(), err)
			}
		}
		t.Logf("%d refusals, MTU %d", picky.refused.Load(), x.Stats().Paths[0].MTU)
		if m := x.Stats().Paths[0].MTU; m < sctp.DefaultConnMTU || m > 1300 {
			t.Errorf("MTU %d, want what the connection takes", m)
		}
		if picky.refused.Load() < 100 {
			t.Errorf("%d refusals: too few to show anything", picky.refused.Load())
		}
		x.Abort("")
		<-y.Done()
		time.Sleep(time.Minute)
	})
}

// keptConn is not closed by the association that owns it: a program that dies leaves no word, and
// the next one goes on with the same connection.
type keptConn struct {
	net.Conn
	dead atomic.Bool
}

func (c *keptConn) Write(b []byte) (int, error) {
	if c.dead.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Read discards what comes after the death, until the deadline: the next life would take it for its own,
// and abort the association.
func (c *keptConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		switch {
		case !c.dead.Load():
			return n, err
		case err != nil:
			return 0, net.ErrClosed
		}
	}
}

func (c *keptConn) Close() error { return nil }

// A peer that restarts over the same connection takes the place of its earlier life (RFC 9260,
// Section 5.2).
func TestOverConnRestart(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			n := sctptest.NewNetwork(seed)
			defer n.Close()
			l := sctptest.Link{Delay: 5 * time.Millisecond, Jitter: 4 * time.Millisecond, Loss: 0.1, Duplicate: 0.1}
			a, b := n.NewConns(l, l)
			restarted := make(chan struct{}, 10)
			cfg := &sctp.ConnConfig{Config: &sctp.Config{OnNotify: func(_ *sctp.Association, n sctp.Notification) {
				if n.Addr.IsValid() {
					t.Errorf("notification with address %v", n.Addr)
				}
				if n.Kind == sctp.NotifyRestart {
					restarted <- struct{}{}
				}
			}}}
			first := &keptConn{Conn: a}
			done := make(chan *sctp.Association, 1)
			go func() {
				y, err := sctp.Server(context.Background(), b, cfg)
				if err != nil {
					t.Error(err)
				}
				done <- y
			}()
			x, err := sctp.Client(t.Context(), first, nil)
			if err != nil {
				t.Fatal(err)
			}
			y := <-done
			buf := make([]byte, 100)
			for life := range uint32(4) {
				for i := range uint32(20) {
					msg := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, life), i)
					if err := x.Send(t.Context(), msg, sctp.SendOptions{}); err != nil {
						t.Fatal(err)
					}
					for {
						k, _, err := y.Recv(t.Context(), buf)
						if err != nil || k != 8 {
							t.Fatalf("seed %d: %d bytes, %v", seed, k, err)
						}
						if bytes.Equal(buf[:k], msg) {
							break
						}
						t.Fatalf("seed %d: message %x, want %x", seed, buf[:k], msg)
					}
				}
				if life == 3 {
					break
				}
				first.dead.Store(true)
				x.Abort("") // it is not heard
				time.Sleep(time.Second)
				a.SetReadDeadline(time.Now())
				synctest.Wait()
				a.SetReadDeadline(time.Time{})
				first = &keptConn{Conn: a}
				if x, err = sctp.Client(t.Context(), first, nil); err != nil {
					t.Fatalf("seed %d: restart: %v", seed, err)
				}
				select {
				case <-restarted:
				case <-time.After(time.Minute):
					t.Fatalf("seed %d: no restart was told", seed)
				}
			}
			x.Shutdown(t.Context())
			<-y.Done()
			a.Close()
			time.Sleep(10 * time.Minute)
		})
	}
}

// Server gives up when its context is done, though the peer says nothing, and closes the connection.
func TestOverConnServerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		defer n.Close()
		a, b := n.NewConns(sctptest.Link{}, sctptest.Link{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if x, err := sctp.Server(ctx, a, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, %v, want the error of the context", x, err)
		}
		if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the connection is open: %v", err)
		}
		b.Close()
		time.Sleep(time.Minute)
	})
}
