package sctp

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/internal/udpio"
)

// memConn is a socket in memory; its datagrams arrive at once.
type memConn struct {
	local  netip.AddrPort
	peer   *memConn
	onPoll atomic.Pointer[func()] // if not nil, called by Poll

	mu    sync.Mutex // guards what follows
	queue [][]byte
	free  [][]byte
}

func (c *memConn) Read(sync.Locker, []*slab.Buf, []udpio.Meta) (int, error) { return 0, net.ErrClosed }

func (c *memConn) TryRead(bufs []*slab.Buf, metas []udpio.Meta) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(bufs) && len(c.queue) > 0 {
		d := c.queue[0]
		c.queue = c.queue[:copy(c.queue, c.queue[1:])]
		bufs[n].B = append(bufs[n].B[:0], d...)
		metas[n] = udpio.Meta{Local: c.local.Addr(), Remote: c.peer.local, SegSize: len(d)}
		c.free = append(c.free, d[:0])
		n++
	}
	return n, nil
}

func (c *memConn) Poll(bufs []*slab.Buf, metas []udpio.Meta) (int, error) {
	if f := c.onPoll.Load(); f != nil {
		(*f)()
	}
	return c.TryRead(bufs, metas)
}

func (c *memConn) Write(b []byte, m *udpio.Meta) error {
	p := c.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(b) > 0 {
		n := min(len(b), m.SegSize)
		var d []byte
		if k := len(p.free); k > 0 {
			d, p.free = p.free[k-1], p.free[:k-1]
		}
		p.queue = append(p.queue, append(d, b[:n]...))
		b = b[n:]
	}
	return nil
}

func (c *memConn) WriteGather(b []byte, holes []slab.IOVec, m *udpio.Meta) error {
	slab.Fill(b, holes)
	return c.Write(b, m)
}

func (c *memConn) CanPoll() bool             { return true }
func (c *memConn) Polled(bool) bool          { return true }
func (c *memConn) Unwatch()                  {}
func (c *memConn) Segments() int             { return udpio.MaxSegments }
func (c *memConn) Direct() bool              { return false }
func (c *memConn) LocalAddr() netip.AddrPort { return c.local }
func (c *memConn) Info() udpio.Info          { return udpio.Info{} }
func (c *memConn) Close() error              { return nil }

// memTransports returns two transports with such sockets.
func memTransports(tb testing.TB) (t [2]*Transport) {
	a := &memConn{local: netip.MustParseAddrPort("10.0.0.1:9899")}
	b := &memConn{local: netip.MustParseAddrPort("10.0.0.2:9899"), peer: a}
	a.peer = b
	for i, c := range []*memConn{a, b} {
		tr, err := NewTransport(TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { tr.Close() })
		real := tr.sockets().list[0].conn
		tb.Cleanup(func() { real.Close() })
		tr.set.Store(newSocketSet([]*socket{newSocket(tr, c)}))
		t[i] = tr
	}
	return t
}

// memPair connects two associations over such transports.
func memPair(tb testing.TB) (ends [2]*Association) {
	t := memTransports(tb)
	ctx := context.Background()
	server, err := t[1].Listen(5000, &Config{MTU: 1500})
	if err != nil {
		tb.Fatal(err)
	}
	client, err := t[0].Listen(0, &Config{MTU: 1500})
	if err != nil {
		tb.Fatal(err)
	}
	up := make(chan *Association)
	go func() {
		a, err := client.Connect(ctx, server.Addr())
		if err != nil {
			panic(err)
		}
		up <- a
	}()
	for ends[0] == nil {
		select {
		case ends[0] = <-up:
		default:
			t[0].Poll()
			t[1].Poll()
		}
	}
	if ends[1], err = server.Accept(ctx); err != nil {
		tb.Fatal(err)
	}
	return ends
}

// roundTrip sends a message one way and the other.
func roundTrip(tb testing.TB, ends [2]*Association, msg, buf []byte) {
	for i, from := range ends {
		if err := from.Send(context.Background(), msg, SendOptions{}); err != nil {
			tb.Fatal(err)
		}
		if n, _, err := ends[1-i].Recv(context.Background(), buf); err != nil || n != len(msg) {
			tb.Fatal(n, err)
		}
	}
}

// BenchmarkRoundTrip is a round trip of one short message without the system: what
// both sides compute for it, on one goroutine.
func BenchmarkRoundTrip(b *testing.B) {
	ends := memPair(b)
	buf, msg := make([]byte, 64), make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		roundTrip(b, ends, msg, buf)
	}
}

// Who waits parks in the end, however often something happens that is not what it
// waits for, also after short waits, which begin without a look at the clock.
func TestWaitsEndThatAreDisturbed(t *testing.T) {
	ends := memPair(t)
	a, buf := ends[0], make([]byte, 64)
	var disturb atomic.Bool
	onPoll := func() {
		if disturb.Load() {
			a.seq.Add(1)
		}
	}
	a.t.sockets().list[0].conn.(*memConn).onPoll.Store(&onPoll)
	for range 10 { // of these most are not measured
		for range 100 {
			roundTrip(t, ends, buf, buf)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		disturb.Store(true)
		go func() {
			defer close(done)
			_, _, _ = a.RecvStream(ctx, 1, buf)
		}()
		parked := func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.readers.head != nil
		}
		for begun := time.Now(); !parked(); time.Sleep(time.Millisecond) {
			if time.Since(begun) > 10*time.Second {
				t.Fatal("it polls on")
			}
		}
		disturb.Store(false)
		cancel()
		<-done
	}
}
