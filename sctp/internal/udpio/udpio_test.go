package udpio

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/slab"
)

// side is one socket of a test with buffers to read into.
type side struct {
	Conn
	t     *testing.T
	mu    sync.Mutex
	bufs  []*slab.Buf
	metas []Meta
}

func listen(t *testing.T, addr string, o Options) *side {
	t.Helper()
	c, err := Listen(netip.MustParseAddrPort(addr), o)
	if err != nil {
		t.Skipf("no socket on %s: %v", addr, err)
	}
	return newSide(t, c)
}

func newSide(t *testing.T, c Conn) *side {
	t.Cleanup(func() { c.Close() })
	s := &side{Conn: c, t: t, metas: make([]Meta, MaxMessages)}
	var pool slab.Pool
	for range MaxMessages {
		s.bufs = append(s.bufs, pool.Get())
	}
	return s
}

// datagrams reads until it has n datagrams and returns them with the last meta.
func (s *side) datagrams(n int) (out [][]byte, m Meta) {
	s.t.Helper()
	for len(out) < n {
		k, err := s.Read(&s.mu, s.bufs, s.metas)
		if err != nil {
			s.t.Fatalf("Read after %d of %d datagrams: %v", len(out), n, err)
		}
		for i := range k {
			m = s.metas[i]
			for b := s.bufs[i].B; ; b = b[m.SegSize:] {
				if len(b) <= m.SegSize {
					out = append(out, bytes.Clone(b))
					break
				}
				out = append(out, bytes.Clone(b[:m.SegSize]))
			}
		}
		s.mu.Unlock()
	}
	return out, m
}

// tryRead is TryRead that waits until there is something: a busy host may deliver what
// is sent over the loopback interface a little later. s.mu is held.
func (s *side) tryRead() int {
	s.t.Helper()
	for limit := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
		n, err := s.TryRead(s.bufs, s.metas)
		if err != nil {
			s.t.Fatal(err)
		}
		if n > 0 {
			return n
		}
		if time.Now().After(limit) {
			s.t.Fatal("no datagram")
		}
	}
}

// reading calls Read on another goroutine, which tells how many batches it got.
func (s *side) reading() <-chan int {
	got := make(chan int, 1)
	go func() {
		n, _ := s.Read(&s.mu, s.bufs, s.metas)
		if n > 0 {
			s.mu.Unlock()
		}
		got <- n
	}()
	return got
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7 >> 3)
	}
	return b
}

func TestBatchesArriveWhole(t *testing.T) {
	for _, tc := range []struct {
		name, a, b string
		o          Options
	}{
		{"v4", "127.0.0.1:0", "127.0.0.1:0", Options{}},
		{"v6", "[::1]:0", "[::1]:0", Options{}},
		{"v4 to dual stack", "127.0.0.1:0", "[::]:0", Options{}},
		{"no offload", "127.0.0.1:0", "127.0.0.1:0", Options{NoOffload: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := listen(t, tc.a, tc.o), listen(t, tc.b, tc.o)
			to := netip.AddrPortFrom(a.LocalAddr().Addr(), b.LocalAddr().Port())
			for _, n := range []int{1, 1472, 1473, 2 * 1472, 10*1472 + 5, 44 * 1472} {
				msg := pattern(n)
				if err := a.Write(msg, &Meta{Remote: to, SegSize: 1472}); err != nil {
					t.Fatalf("Write of %d bytes: %v", n, err)
				}
				got, m := b.datagrams((n + 1471) / 1472)
				if !bytes.Equal(bytes.Join(got, nil), msg) {
					t.Errorf("%d bytes came out different", n)
				}
				if m.Remote != a.LocalAddr() {
					t.Errorf("remote = %v, want %v", m.Remote, a.LocalAddr())
				}
			}
			t.Logf("a %+v", a.Info())
		})
	}
}

func TestECNTravels(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		a, b := listen(t, addr, Options{}), listen(t, addr, Options{})
		if _, ok := a.Conn.(*packetConn); ok {
			t.Skip("sockets carry no ECN on this system")
		}
		for ecn := range uint8(4) {
			if err := a.Write([]byte{1, 2, 3}, &Meta{Remote: b.LocalAddr(), ECN: ecn}); err != nil {
				t.Fatal(err)
			}
			if _, m := b.datagrams(1); m.ECN != ecn {
				t.Errorf("%s: ECN = %d, want %d", addr, m.ECN, ecn)
			}
		}
	}
}

func TestLocalAddressIsKnownAndChosen(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "[::]:0", Options{})
	if _, ok := b.Conn.(*packetConn); ok {
		t.Skip("sockets do not tell the local address on this system")
	}
	second := netip.MustParseAddr("127.0.0.2")
	to := netip.AddrPortFrom(second, b.LocalAddr().Port())
	if err := a.Write([]byte("x"), &Meta{Remote: to}); err != nil {
		t.Fatal(err)
	}
	_, m := b.datagrams(1)
	if m.Local != second {
		t.Fatalf("local = %v, want %v", m.Local, second)
	}
	if err := b.Write([]byte("y"), &Meta{Local: second, Remote: m.Remote}); err != nil {
		t.Fatal(err)
	}
	if _, m := a.datagrams(1); m.Remote != to {
		t.Errorf("answer came from %v, want %v", m.Remote, to)
	}
}

func TestTryReadDoesNotWait(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	if !b.CanPoll() {
		t.Skip("sockets cannot be polled on this system")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n, err := b.TryRead(b.bufs, b.metas); n != 0 || err != nil {
		t.Fatalf("TryRead on an empty socket = %d, %v", n, err)
	}
	for range 3 {
		if err := a.Write([]byte("x"), &Meta{Remote: b.LocalAddr()}); err != nil {
			t.Fatal(err)
		}
	}
	sum := 0
	for sum < 3 {
		sum += b.tryRead()
	}
	if n, err := b.TryRead(b.bufs, b.metas); sum != 3 || n != 0 || err != nil {
		t.Errorf("%d of 3 datagrams read; TryRead after them = %d, %v", sum, n, err)
	}
}

func TestReadsGrowWithWhatWaits(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	if !b.CanPoll() {
		t.Skip("sockets cannot be polled on this system")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	want := []int{1, 2, 4, MaxMessages, 1, 0}
	const sent = 1 + 2 + 4 + MaxMessages + 1
	// Where some come later than others reads stay small, once in a while.
	const tries = 100
	for grown, try := 0, 0; grown < 2; try++ { // the second time after a read that found nothing
		for range sent {
			if err := a.Write([]byte("x"), &Meta{Remote: b.LocalAddr()}); err != nil {
				t.Fatal(err)
			}
		}
		var got []int
		for sum, n := 0, 1; sum < sent || n > 0; sum += n {
			var err error
			if n, err = b.TryRead(b.bufs, b.metas); err != nil {
				t.Fatal(err)
			}
			got = append(got, n)
		}
		if slices.Equal(got, want) {
			grown++
		} else if try == tries {
			t.Fatalf("reads of %d datagrams, want %d", got, want)
		}
	}
}

func TestReadWakesAfterPolling(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	got := make(chan int)
	go func() {
		d, _ := b.datagrams(2)
		got <- len(d)
	}()
	b.Polled(true)
	for range 2 {
		if err := a.Write([]byte("x"), &Meta{Remote: b.LocalAddr()}); err != nil {
			t.Fatal(err)
		}
	}
	b.Polled(false)
	if n := <-got; n != 2 {
		t.Errorf("reader got %d datagrams, want 2", n)
	}
}

// Whoever polls takes what comes, even what was there when Read was called.
func TestReadLeavesDatagramsToWhoPolls(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	if !b.CanPoll() {
		t.Skip("sockets cannot be polled on this system")
	}
	b.Polled(true)
	if err := a.Write([]byte("x"), &Meta{Remote: b.LocalAddr()}); err != nil {
		t.Fatal(err)
	}
	got := b.reading()
	time.Sleep(5 * time.Millisecond) // for Read to fail the test, if it would
	b.mu.Lock()
	n := b.tryRead()
	b.mu.Unlock()
	if n != 1 {
		t.Errorf("TryRead = %d, want 1", n)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if n := <-got; n != 0 {
		t.Errorf("Read = %d", n)
	}
}

func TestCloseEndsRead(t *testing.T) {
	for _, polled := range []bool{false, true} {
		c := listen(t, "127.0.0.1:0", Options{})
		done := make(chan error)
		go func() {
			_, err := c.Read(&c.mu, c.bufs, c.metas)
			done <- err
		}()
		if polled {
			c.Polled(true)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read on a closed socket = %v", err)
		}
		if err := c.Write([]byte("x"), &Meta{Remote: netip.MustParseAddrPort("127.0.0.1:9")}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Write on a closed socket = %v", err)
		}
	}
}

func TestWriteRefusesLongBatches(t *testing.T) {
	c := listen(t, "127.0.0.1:0", Options{})
	if _, ok := c.Conn.(*packetConn); ok {
		t.Skip("writes have no limit on this system")
	}
	m := Meta{Remote: c.LocalAddr(), SegSize: 1472}
	if err := c.Write(make([]byte, MaxBatchBytes+1), &m); err == nil {
		t.Error("a batch beyond MaxBatchBytes was taken")
	}
	m.SegSize = 4
	if err := c.Write(make([]byte, 4*(MaxSegments+1)), &m); err == nil {
		t.Error("a batch beyond MaxSegments was taken")
	}
}

// takenOver returns a socket that package net has made.
func takenOver(t *testing.T) *side {
	t.Helper()
	uc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := FromPacketConn(uc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return newSide(t, c)
}

func TestTakesOverUDPConn(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), takenOver(t)
	if err := a.Write(pattern(3000), &Meta{Remote: b.LocalAddr(), SegSize: 1000}); err != nil {
		t.Fatal(err)
	}
	if got, _ := b.datagrams(3); len(got) != 3 {
		t.Errorf("got %d datagrams, want 3", len(got))
	}
}

func TestRouteMTU(t *testing.T) {
	if got := RouteMTU(netip.MustParseAddrPort("127.0.0.1:9")); got != 0 && got < 576 {
		t.Errorf("MTU of loopback = %d", got)
	}
}

func TestKernelsThatCorruptEqualBatches(t *testing.T) {
	for release, want := range map[string]bool{
		"6.18.44-fc": false, "7.0.0": true, "7.0": true, "7.1.4-generic": true, "7.1.5": false,
		"7.2.0": false, "5.10.0-28-amd64": false, "": false, "x": false, "7.1.4.5": true,
	} {
		if got := equalSegmentsCorrupt(release); got != want {
			t.Errorf("equalSegmentsCorrupt(%q) = %v, want %v", release, got, want)
		}
	}
}

func TestReadAndWriteDoNotAllocate(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	if !b.CanPoll() {
		t.Skip("sockets cannot be polled on this system")
	}
	msg := pattern(20 * 1472)
	m := Meta{Remote: b.LocalAddr(), SegSize: 1472, ECN: 2}
	allocs := testing.AllocsPerRun(100, func() {
		if err := a.Write(msg, &m); err != nil {
			t.Fatal(err)
		}
		n, err := b.Read(&b.mu, b.bufs, b.metas)
		if n == 0 {
			t.Fatal(err)
		}
		b.mu.Unlock()
	})
	if allocs >= 1 {
		t.Errorf("%v allocations per write and read, want 0", allocs)
	}
}

func BenchmarkLoopback(b *testing.B) {
	x, err := Listen(netip.MustParseAddrPort("127.0.0.1:0"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	y, err := Listen(netip.MustParseAddrPort("127.0.0.1:0"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer y.Close()
	var pool slab.Pool
	bufs, metas := []*slab.Buf{pool.Get()}, make([]Meta, 1)
	msg := pattern(44 * 1472)
	m := Meta{Remote: y.LocalAddr(), SegSize: 1472}
	var mu sync.Mutex
	b.SetBytes(int64(len(msg)))
	b.ReportAllocs()
	for b.Loop() {
		if err := x.Write(msg, &m); err != nil {
			b.Fatal(err)
		}
		if _, err := y.Read(&mu, bufs, metas); err != nil {
			b.Fatal(err)
		}
		mu.Unlock()
	}
}

// BenchmarkPingPong is the floor under the latency of everything above.
func BenchmarkPingPong(b *testing.B) {
	var conns [2]Conn
	for i := range conns {
		c, err := Listen(netip.MustParseAddrPort("127.0.0.1:0"), Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		conns[i] = c
	}
	type end struct {
		mu    sync.Mutex
		bufs  []*slab.Buf
		metas []Meta
	}
	var pool slab.Pool
	newEnd := func() *end { return &end{bufs: []*slab.Buf{pool.Get()}, metas: make([]Meta, 1)} }
	go func() {
		e := newEnd()
		for {
			if _, err := conns[1].Read(&e.mu, e.bufs, e.metas); err != nil {
				return
			}
			m := Meta{Remote: e.metas[0].Remote}
			_ = conns[1].Write(e.bufs[0].B, &m)
			e.mu.Unlock()
		}
	}()
	e := newEnd()
	msg := pattern(64)
	m := Meta{Remote: conns[1].LocalAddr()}
	for b.Loop() {
		if err := conns[0].Write(msg, &m); err != nil {
			b.Fatal(err)
		}
		if _, err := conns[0].Read(&e.mu, e.bufs, e.metas); err != nil {
			b.Fatal(err)
		}
		e.mu.Unlock()
	}
}

// Parts of a batch that are elsewhere arrive as if they were in it.
func TestHolesArriveFilled(t *testing.T) {
	for _, o := range []Options{{}, {NoOffload: true}} {
		a, b := listen(t, "127.0.0.1:0", o), listen(t, "127.0.0.1:0", o)
		for _, tc := range []struct {
			n, seg int
			holes  [][2]int // from, to
		}{
			{9000, 0, [][2]int{{28, 8998}}},
			{9000, 9000, [][2]int{{0, 10}, {10, 20}, {8000, 9000}}},
			{10*1472 + 5, 1472, [][2]int{{28, 1400}, {1500, 2900}, {14_724, 14_725}}},
			{10 * 1472, 1472, [][2]int{{28, 1400}, {1500, 2900}}},
			{65_000, 1000, nil}, // 65 datagrams with 65 holes: too many of both
		} {
			msg := pattern(tc.n)
			batch := bytes.Clone(msg)
			if tc.holes == nil {
				for i := range 65 {
					tc.holes = append(tc.holes, [2]int{i * 1000, i*1000 + 900})
				}
			}
			var holes []slab.IOVec
			for _, h := range tc.holes {
				holes = append(holes, slab.IOVec{At: h[0], B: bytes.Clone(msg[h[0]:h[1]])})
				clear(batch[h[0]:h[1]])
			}
			err := a.WriteGather(batch, holes, &Meta{Remote: b.LocalAddr(), SegSize: tc.seg})
			if len(holes) > MaxIOVecs {
				if _, any := a.Conn.(*packetConn); !any && err == nil {
					t.Error("a batch of 65 datagrams was taken")
				}
				continue
			}
			if err != nil {
				t.Fatalf("%d bytes: %v", tc.n, err)
			}
			seg := tc.n
			if tc.seg > 0 {
				seg = tc.seg
			}
			got, _ := b.datagrams((tc.n + seg - 1) / seg)
			if !bytes.Equal(bytes.Join(got, nil), msg) {
				t.Errorf("%d bytes in datagrams of %d came out different", tc.n, seg)
			}
		}
	}
}
