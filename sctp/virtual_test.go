package sctp_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// hostile is the link of the tests that count on nothing.
var hostile = sctptest.Link{
	Delay: 2 * time.Millisecond, MTU: 1500,
	Loss: 0.01, Duplicate: 0.01, Reorder: 0.01, Corrupt: 0.001,
}

// transfer moves size bytes from a to b as messages of random sizes on random
// streams and compares digests per stream.
func (p *pair) transfer(size int64, seed uint64) {
	t := p.t
	t.Helper()
	const streams = 4
	ctx := context.Background()
	var sent, got [streams][sha256.Size]byte
	var wg sync.WaitGroup
	wg.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 1))
		data := pattern(1 << 20)
		var h [streams]hasher
		for i := range h {
			h[i].Hash = sha256.New()
		}
		for left := size; left > 0; {
			n := min(left, 1+rng.Int64N(1<<rng.IntN(18)))
			off := rng.IntN(len(data) - int(n))
			sid := rng.IntN(streams)
			msg := data[off : off+int(n)]
			h[sid].Write(msg)
			if err := p.a.Send(ctx, msg, sctp.SendOptions{Stream: uint16(sid)}); err != nil {
				t.Errorf("seed %d: Send: %v", seed, err)
				return
			}
			left -= n
		}
		for i := range h {
			h[i].Sum(sent[i][:0])
		}
		if err := p.a.Shutdown(ctx); err != nil {
			t.Errorf("seed %d: Shutdown: %v", seed, err)
		}
	})
	buf := make([]byte, 1<<18)
	var h [streams]hasher
	for i := range h {
		h[i].Hash = sha256.New()
	}
	total := int64(0)
	for {
		n, info, err := p.b.Recv(ctx, buf)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Errorf("seed %d: Recv after %d bytes: %v", seed, total, err)
			break
		}
		h[info.Stream].Write(buf[:n])
		total += int64(n)
	}
	for i := range h {
		h[i].Sum(got[i][:0])
	}
	wg.Wait()
	if total != size {
		t.Errorf("seed %d: got %d of %d bytes", seed, total, size)
	}
	if sent != got {
		t.Errorf("seed %d: digests differ", seed)
	}
}

type hasher struct{ hash.Hash }

func TestGigabyteOverHostileLink(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	size := int64(1 << 30)
	if sctp.RaceEnabled {
		size = 1 << 26
	}
	start := time.Now()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := newPair(t, 1, hostile, nil, nil)
		p.transfer(size, 1)
		t.Logf("virtual time %v; links %+v", time.Since(began), p.net.Total())
		t.Logf("sender %+v", p.a.Stats())
	})
	t.Logf("real time %v", time.Since(start))
}

func TestThousandSeeds(t *testing.T) {
	seeds, size := uint64(1000), int64(100_000)
	if sctp.RaceEnabled || testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := hostile
				rng := rand.New(rand.NewPCG(seed, 2))
				l.Loss, l.Duplicate, l.Reorder, l.Corrupt = rng.Float64()/10, rng.Float64()/10, rng.Float64()/10, rng.Float64()/20
				l.Delay = time.Duration(rng.IntN(50)) * time.Millisecond
				if rng.IntN(2) == 0 {
					l.Rate = 1e6 + rng.Int64N(1e9)
				}
				p := newPair(t, seed, l, nil, nil)
				p.transfer(size, seed)
			})
		}) {
			break
		}
	}
}

func TestLostTailCostsFewRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: 10 * time.Millisecond}, nil, nil)
		ctx := context.Background()
		// Teach the round trip time.
		buf := make([]byte, 2000)
		for range 10 {
			if err := p.a.Send(ctx, pattern(1000), sctp.SendOptions{}); err != nil {
				t.Fatal(err)
			}
			recvMessage(t, p.b, buf)
			time.Sleep(time.Second)
		}
		lose := true
		p.net.SetLink(addrA, addrB, sctptest.Link{Delay: 10 * time.Millisecond, Filter: func([]byte) bool {
			was := lose
			lose = false
			return !was
		}})
		start := time.Now()
		if err := p.a.Send(ctx, pattern(1000), sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		recvMessage(t, p.b, buf)
		if d := time.Since(start); d > 300*time.Millisecond {
			t.Errorf("a lost last packet cost %v", d)
		}
	})
}

func TestPeerVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, nil, nil)
		p.net.Cut(addrA, addrB)
		if err := p.a.Send(context.Background(), []byte("x"), sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		_, _, err := p.a.Recv(context.Background(), make([]byte, 1))
		if !errors.Is(err, sctp.ErrTimeout) {
			t.Errorf("Recv = %v, want ErrTimeout", err)
		}
		<-p.a.Done()
		if err := p.a.TrySend([]byte("x"), sctp.SendOptions{}); !errors.Is(err, sctp.ErrTimeout) {
			t.Errorf("TrySend after the end = %v, want ErrTimeout", err)
		}
		<-p.b.Done() // by its heartbeats
	})
}

func TestConnectGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		tr := memTransport(t, n.NewHost(addrA))
		e, err := tr.Listen(0, &sctp.Config{MaxInitRetransmits: 3})
		if err != nil {
			t.Fatal(err)
		}
		peer, err := sctp.ParseAddr("10.0.0.9:9899/5000")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Connect(context.Background(), peer); !errors.Is(err, sctp.ErrTimeout) {
			t.Errorf("Connect to nobody = %v, want ErrTimeout", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := e.Connect(ctx, peer); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Connect until a deadline = %v", err)
		}
		if n := tr.Stats().Associations; n != 0 {
			t.Errorf("%d associations are left", n)
		}
	})
}

func TestConnectRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		tr := memTransport(t, n.NewHost(addrA))
		memTransport(t, n.NewHost(addrB))
		e, err := tr.Listen(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		peer, _ := sctp.ParseAddr(addrB + ":9899/5000")
		a, err := e.Connect(context.Background(), peer)
		var ab *sctp.AbortError
		if a != nil || !errors.Is(err, sctp.ErrRefused) || !errors.As(err, &ab) || !ab.ByPeer {
			t.Errorf("Connect to a port where nobody listens = %v, %v, want ErrRefused", a, err)
		}
	})
}

func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		p := &pair{t: t, net: n}
		p.ta = memTransport(t, n.NewHost(addrA, "10.1.0.1"))
		p.tb = memTransport(t, n.NewHost(addrB, "10.1.0.2"))
		var mu sync.Mutex
		var down []string
		p.connect(&sctp.Config{OnNotify: func(_ *sctp.Association, n sctp.Notification) {
			mu.Lock()
			defer mu.Unlock()
			if n.Kind == sctp.NotifyPathDown {
				down = append(down, n.Addr.Addr().String())
			}
		}}, nil)
		time.Sleep(time.Minute) // heartbeats confirm the second path
		n.Cut(addrA, addrB)
		msg := pattern(100_000)
		start := time.Now()
		if err := p.a.Send(context.Background(), msg, sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		got, _ := recvMessage(t, p.b, make([]byte, 200_000))
		if !bytes.Equal(got, msg) {
			t.Error("message came out different")
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("failover took %v", d)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(down) != 1 || down[0] != addrB {
			t.Errorf("paths down: %v, want %s", down, addrB)
		}
	})
}

func TestGracefulShutdownDeliversEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 5, sctptest.Link{Delay: 20 * time.Millisecond, Loss: 0.05}, nil, nil)
		const count = 500
		for i := range count {
			if err := p.a.Send(context.Background(), fmt.Appendf(nil, "message %d", i), sctp.SendOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.a.Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.a.TrySend([]byte("late"), sctp.SendOptions{}); err == nil {
			t.Error("Send after Close")
		}
		buf := make([]byte, 100)
		for i := range count {
			n, _, err := p.b.Recv(context.Background(), buf)
			if err != nil || string(buf[:n]) != fmt.Sprintf("message %d", i) {
				t.Fatalf("message %d = %q, %v", i, buf[:n], err)
			}
		}
		if _, _, err := p.b.Recv(context.Background(), buf); err != io.EOF {
			t.Errorf("Recv after the end = %v, want EOF", err)
		}
		<-p.a.Done()
		<-p.b.Done()
		if p.a.Err() != nil || p.b.Err() != nil {
			t.Errorf("errors after a graceful end: %v, %v", p.a.Err(), p.b.Err())
		}
	})
}

func TestAutoCloseEndsIdleAssociations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, &sctp.Config{AutoClose: 10 * time.Second}, nil)
		start := time.Now()
		time.Sleep(9 * time.Second)
		if err := p.a.Send(context.Background(), []byte("x"), sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		<-p.a.Done()
		if d := time.Since(start); d < 19*time.Second || d > 21*time.Second {
			t.Errorf("ended after %v, want 19 s", d)
		}
		if p.a.Err() != nil {
			t.Error(p.a.Err())
		}
	})
}

// A server that ends with the end of its input still says so.
func TestServerLeavesAtEOF(t *testing.T) {
	for i := range 50 {
		p := newLoopbackPair(t, sctp.TransportConfig{}, nil, nil)
		go func() {
			buf := make([]byte, 100)
			for {
				if _, _, err := p.b.Recv(context.Background(), buf); err != nil {
					p.tb.Close()
					return
				}
			}
		}()
		if err := p.a.Send(context.Background(), []byte("bye"), sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		if err := p.a.Shutdown(ctx); err != nil {
			t.Fatalf("round %d: Shutdown: %v", i, err)
		}
		cancel()
		p.ta.Close()
	}
}
