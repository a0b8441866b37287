package sctp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// overConn opens an association over a and b, by both sides at once or by one.
func overConn(t testing.TB, a, b net.Conn, crossing bool, cfg *sctp.ConnConfig) (x, y *sctp.Association) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	open := sctp.Server
	if crossing {
		open = sctp.Client
	}
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		y, err = open(ctx, b, cfg)
	}()
	x, errX := sctp.Client(ctx, a, cfg)
	<-done
	if errX != nil || err != nil {
		t.Fatalf("client: %v; other side: %v", errX, err)
	}
	return x, y
}

func TestOverConn(t *testing.T) {
	var lost []error // of peers that got neither the SHUTDOWN COMPLETE nor the end of the connection
	defer func() {
		if len(lost) > 2 {
			t.Errorf("%d of 100 peers ended with an error: %v", len(lost), lost)
		}
	}()
	for _, crossing := range []bool{false, true} {
		for seed := range uint64(50) {
			synctest.Test(t, func(t *testing.T) {
				n := sctptest.NewNetwork(seed)
				defer n.Close()
				l := sctptest.Link{Delay: 10 * time.Millisecond, Jitter: 8 * time.Millisecond, Loss: 0.2, Duplicate: 0.1}
				a, b := n.NewConns(l, l)
				x, y := overConn(t, a, b, crossing, nil)
				msg := bytes.Repeat([]byte("message "), 4000)
				if err := x.Send(t.Context(), msg, sctp.SendOptions{Stream: 3, PPID: 51}); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(msg)+1)
				k, info, err := y.Recv(t.Context(), got)
				if err != nil || !bytes.Equal(got[:k], msg) || info.Stream != 3 || info.PPID != 51 {
					t.Fatalf("seed %d: received %d bytes, %+v, %v", seed, k, info, err)
				}
				for _, as := range []*sctp.Association{x, y} {
					if l, r := as.LocalAddr(), as.RemoteAddr(); len(l.Addrs)+len(r.Addrs) > 0 || l.Port != sctp.DefaultConnPort || r.Port != sctp.DefaultConnPort {
						t.Errorf("addresses %v and %v, want ports only", l, r)
					}
					st := as.Stats()
					if p := st.Paths[0]; len(st.Paths) != 1 || p.Local.IsValid() || p.Remote.IsValid() {
						t.Errorf("paths %+v", st.Paths)
					}
					if s := as.String(); strings.Contains(s, "100::") {
						t.Errorf("%s names an address that nobody has", s)
					}
				}
				if err := x.Shutdown(t.Context()); err != nil {
					t.Fatalf("seed %d: shutdown: %v", seed, err)
				}
				<-y.Done()
				if err := y.Err(); err != nil {
					lost = append(lost, err)
				}
				time.Sleep(5 * time.Second)
				for _, c := range []*sctptest.Conn{a, b} {
					if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
						t.Errorf("%v is open after the end: %v", c, err)
					}
				}
			})
		}
	}
}

// An INIT of the peer's that waits in the connection is answered after ours was sent, with the tag of ours: a peer
// that takes the tag of whatever INIT ACK comes, and keeps it, has the right one then.
func TestOverConnCrossingHasOneTag(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			n := sctptest.NewNetwork(seed)
			defer n.Close()
			l := sctptest.Link{Delay: time.Millisecond}
			a, b := n.NewConns(l, l)
			type result struct {
				a   *sctp.Association
				err error
			}
			first := make(chan result, 1)
			go func() {
				y, err := sctp.Client(t.Context(), b, nil)
				first <- result{y, err}
			}()
			time.Sleep(100 * time.Millisecond) // its INIT has come
			var tags []uint32                  // Initiate Tags that were sent, in INIT and INIT ACK chunks
			x, err := sctp.Client(t.Context(), a, &sctp.ConnConfig{Tap: func(e sctp.TapEvent) {
				if chunk := e.Data[12]; e.Sent && (chunk == 1 || chunk == 2) {
					tags = append(tags, binary.BigEndian.Uint32(e.Data[16:]))
				}
			}})
			r := <-first
			if err := errors.Join(err, r.err); err != nil {
				t.Fatal(err)
			}
			if len(tags) < 2 || slices.Max(tags) != slices.Min(tags) {
				t.Errorf("seed %d: tags %x, want an INIT and an INIT ACK with the same", seed, tags)
			}
			x.Abort("")
			<-r.a.Done()
			time.Sleep(time.Minute)
		})
	}
}

// An INIT that comes before Server is called waits for it.
func TestOverConnServerAnswersEarlierINIT(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		defer n.Close()
		a, b := n.NewConns(sctptest.Link{}, sctptest.Link{})
		go func() {
			x, err := sctp.Client(t.Context(), a, nil)
			if err != nil {
				t.Error(err)
				return
			}
			<-x.Done()
		}()
		synctest.Wait()
		start := time.Now()
		y, err := sctp.Server(t.Context(), b, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 0 {
			t.Errorf("the association took %v, want no retransmission of the INIT", d)
		}
		y.Abort("")
		time.Sleep(time.Minute)
	})
}

// brokenConn fails with its k-th call, or blocks.
type brokenConn struct {
	net.Conn
	left  atomic.Int64
	err   error
	block chan struct{} // closed by Close; a Write blocks until then once left is 0
	once  sync.Once
}

func (c *brokenConn) Write(b []byte) (int, error) {
	if c.left.Add(-1) < 0 {
		if c.err != nil {
			return 0, c.err
		}
		<-c.block
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *brokenConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.err != nil && err == nil && c.left.Add(-1) < 0 {
		return 0, c.err
	}
	return n, err
}

func (c *brokenConn) Close() error {
	c.once.Do(func() { close(c.block) })
	return c.Conn.Close()
}

// A connection that ends at any moment ends the association with an error that names the cause, or the
// attempt to open it, and nothing is left.
func TestOverConnEnds(t *testing.T) {
	for k := range int64(40) {
		synctest.Test(t, func(t *testing.T) {
			n := sctptest.NewNetwork(uint64(k))
			defer n.Close()
			l := sctptest.Link{Delay: time.Millisecond}
			a, b := n.NewConns(l, l)
			bad := &brokenConn{Conn: a, err: fmt.Errorf("the connection broke: %w", io.ErrClosedPipe), block: make(chan struct{})}
			bad.left.Store(k)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			go func() {
				y, err := sctp.Server(ctx, b, nil)
				if err != nil {
					return
				}
				buf := make([]byte, 100)
				for err == nil {
					_, _, err = y.Recv(context.Background(), buf)
				}
				y.Abort("")
			}()
			x, err := sctp.Client(ctx, bad, nil)
			for err == nil {
				if err = x.Send(t.Context(), []byte("data"), sctp.SendOptions{}); err == nil {
					time.Sleep(50 * time.Millisecond)
				}
			}
			if !errors.Is(err, io.ErrClosedPipe) || !strings.Contains(err.Error(), "the connection broke") {
				t.Fatalf("after %d calls: %v, want an error that names the cause", k, err)
			}
			b.Close()
			time.Sleep(10 * time.Minute)
		})
	}
}

// A connection whose Write blocks for ever holds up neither receives nor Close, and what waits
// for it is bounded.
func TestOverConnBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		defer n.Close()
		l := sctptest.Link{Delay: time.Millisecond}
		a, b := n.NewConns(l, l)
		stuck := &brokenConn{Conn: a, block: make(chan struct{})}
		stuck.left.Store(1 << 40)
		x, y := overConn(t, stuck, b, false, &sctp.ConnConfig{Config: &sctp.Config{MaxRetransmits: 3, Linger: time.Second, SendBuffer: 1 << 20}})
		stuck.left.Store(0)
		for { // until the send buffer is full
			if err := x.TrySend(make([]byte, 10000), sctp.SendOptions{Stream: 1}); err != nil {
				if !errors.Is(err, sctp.ErrWouldBlock) {
					t.Fatal(err)
				}
				break
			}
		}
		if err := y.Send(t.Context(), []byte("still heard"), sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		if k, _, err := x.Recv(t.Context(), buf); err != nil || string(buf[:k]) != "still heard" {
			t.Fatalf("received %q, %v", buf[:k], err)
		}
		start := time.Now()
		x.Close()
		<-x.Done()
		if d := time.Since(start); d > time.Minute {
			t.Errorf("the end took %v", d)
		}
		if err := x.Err(); !errors.Is(err, sctp.ErrTimeout) {
			t.Logf("ended with %v", err)
		}
		y.Abort("")
		time.Sleep(10 * time.Minute)
	})
}

// slowWriter takes its time for each message.
type slowWriter struct {
	net.Conn
	each time.Duration
}

func (c slowWriter) Write(b []byte) (int, error) {
	time.Sleep(c.each)
	return c.Conn.Write(b)
}

// A slow connection slows the sender, and no packet is lost on the way to it.
func TestOverConnSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		defer n.Close()
		l := sctptest.Link{Delay: time.Millisecond}
		a, b := n.NewConns(l, l)
		x, y := overConn(t, slowWriter{a, time.Millisecond}, b, true, nil)
		const total = 4 << 20
		go func() {
			for range total / 65536 {
				if err := x.Send(context.Background(), make([]byte, 65536), sctp.SendOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		buf := make([]byte, 65536)
		start := time.Now()
		for got := 0; got < total; {
			k, _, err := y.Recv(t.Context(), buf)
			if err != nil {
				t.Fatal(err)
			}
			got += k
		}
		packets := total / sctp.DefaultConnMTU
		if took, least := time.Since(start), time.Duration(packets)*time.Millisecond; took > least*5/4 {
			t.Errorf("%d packets took %v, want about %v", packets, took, least)
		}
		if st := x.Stats(); st.Retransmits > 100 {
			t.Errorf("%d retransmissions", st.Retransmits)
		}
		x.Abort("")
		<-y.Done()
		time.Sleep(time.Minute)
	})
}

func TestOverConnConfig(t *testing.T) {
	for name, cfg := range map[string]*sctp.ConnConfig{
		"MTU of IP packets": {Config: &sctp.Config{MTU: 1500}},
		"several paths":     {Config: &sctp.Config{Multipath: true}},
		"address changes":   {Config: &sctp.Config{ChangeAddrs: true}},
		"small MTU":         {MTU: 100},
		"MaxMTU below MTU":  {MTU: 1400, MaxMTU: 1300},
		"large MTU":         {MTU: 1 << 20},
	} {
		a, b := net.Pipe()
		if as, err := sctp.Client(t.Context(), a, cfg); !errors.Is(err, sctp.ErrConfig) {
			t.Errorf("%s: %v, %v, want ErrConfig", name, as, err)
		}
		if _, err := b.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: the connection is open: %v", name, err)
		}
	}
}

// Whatever comes from the connection is dropped and counted unless it is SCTP of the peer.
func TestOverConnJunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(2)
		defer n.Close()
		a, b := n.NewConns(sctptest.Link{}, sctptest.Link{})
		x, y := overConn(t, a, b, false, nil)
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 2000 {
			junk := make([]byte, 1+rnd.IntN(200))
			for i := range junk {
				junk[i] = byte(rnd.Uint32())
			}
			b.Write(junk)
		}
		time.Sleep(time.Second)
		if err := y.Send(t.Context(), []byte("after"), sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 10)
		if k, _, err := x.Recv(t.Context(), buf); err != nil || string(buf[:k]) != "after" {
			t.Fatalf("%q, %v", buf[:k], err)
		}
		if st := x.Endpoint().Transport().Stats(); st.BadPackets+st.SocketDrops < 1900 {
			t.Errorf("%+v: want nearly 2000 bad packets", st)
		}
		x.Abort("")
		<-y.Done()
		time.Sleep(time.Minute)
	})
}

// Everything at once, then the count: what was sent is delivered once and in order, and nothing is left.
func TestOverConnConserves(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	before := runtime.NumGoroutine()
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(seed)
		defer n.Close()
		var wg sync.WaitGroup
		for i := range 8 {
			l := sctptest.Link{Delay: 5 * time.Millisecond, Jitter: 4 * time.Millisecond, Loss: 0.03, Duplicate: 0.02, Corrupt: 0.01, Reorder: 0.02}
			a, b := n.NewConns(l, l)
			x, y := overConn(t, slowWriter{a, 100 * time.Microsecond}, b, i%2 == 0, &sctp.ConnConfig{MTU: 600 + 200*i})
			const streams, each = 5, 60
			for _, from := range []*sctp.Association{x, y} {
				to := x
				if from == x {
					to = y
				}
				for sid := range uint16(streams) {
					wg.Go(func() {
						rnd := rand.New(rand.NewPCG(seed, uint64(sid)))
						for k := range uint32(each) {
							msg := binary.BigEndian.AppendUint32(nil, k)
							msg = append(msg, make([]byte, rnd.IntN(20000))...)
							if err := from.Send(context.Background(), msg, sctp.SendOptions{Stream: sid}); err != nil {
								t.Errorf("seed %d: %v", seed, err)
								return
							}
						}
					})
				}
				wg.Go(func() {
					var next [streams]uint32
					buf := make([]byte, 1<<16)
					for range streams * each {
						k, info, err := to.Recv(context.Background(), buf)
						if err != nil || k < 4 {
							t.Errorf("seed %d: received %d bytes, %v", seed, k, err)
							return
						}
						if got := binary.BigEndian.Uint32(buf); got != next[info.Stream] {
							t.Errorf("seed %d: message %d on stream %d, want %d", seed, got, info.Stream, next[info.Stream])
							return
						}
						next[info.Stream]++
						if next[info.Stream]%16 == 0 {
							time.Sleep(20 * time.Millisecond)
						}
					}
				})
			}
			defer func() {
				x.Shutdown(context.Background())
				<-y.Done()
			}()
		}
		wg.Wait()
	})
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}
