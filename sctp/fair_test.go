package sctp_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/bench"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// Flows that start within 20 ms of each other on a line with a long queue have
// about equal shares of it soon.
func TestFlowsShareTheLine(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("half a million packets: takes a minute with the race detector")
	}
	const seeds = 3
	for _, rtt := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond} {
		t.Run(fmt.Sprintf("rtt=%v", rtt), func(t *testing.T) {
			sum := 0.0
			for seed := range uint64(seeds) {
				synctest.Test(t, func(t *testing.T) {
					link := sctptest.Link{Delay: rtt / 2, Rate: 100_000_000, Queue: 512 << 10}
					mbit := shareLine(t, seed, link, 0, 0, 2*time.Second, 20*time.Second, sctp.Config{}, sctp.Config{})
					j := bench.Jain(mbit...)
					t.Logf("seed %d: %.1f and %.1f Mb/s, Jain's index %.3f", seed, mbit[0], mbit[1], j)
					if sum += j; mbit[0]+mbit[1] < 94 {
						t.Errorf("seed %d: the line is not full", seed)
					}
				})
			}
			if mean := sum / seeds; mean < 0.95 {
				t.Errorf("Jain's index %.3f on average, want 0.95", mean)
			}
		})
	}
}

// One flow fills a long line, also after slow start and where acknowledgements come in
// bursts: the window is reduced once for what the queue drops.
func TestFlowFillsALongLine(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("half a million packets: takes a minute with the race detector")
	}
	for seed := range uint64(2) {
		synctest.Test(t, func(t *testing.T) {
			link := sctptest.Link{Delay: 25 * time.Millisecond, Rate: 100_000_000, Queue: 512 << 10}
			mbit := shareLine(t, seed, link, 100*time.Microsecond, 0, 2*time.Second, 20*time.Second, sctp.Config{})
			if t.Logf("seed %d: %.2f Mb/s", seed, mbit[0]); mbit[0] < 95.9 {
				t.Errorf("seed %d: %.2f Mb/s of the 96 that it can carry", seed, mbit[0])
			}
		})
	}
}

// A flow that begins when another has filled the queue, and loses the first that it sends,
// gets a share of the line before long.
func TestLateFlowGetsAShare(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("half a million packets: takes a minute with the race detector")
	}
	const seeds = 6
	sum := 0.0
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			link := sctptest.Link{Delay: 25 * time.Millisecond, Rate: 100_000_000, Queue: 512 << 10}
			apart := 270*time.Millisecond + time.Duration(seed)*40*time.Millisecond
			mbit := shareLine(t, seed, link, 0, apart, 2*time.Second, 4*time.Second, sctp.Config{}, sctp.Config{})
			t.Logf("seed %d, %v later: %.1f and %.1f Mb/s", seed, apart, mbit[0], mbit[1])
			sum += mbit[1]
		})
	}
	if mean := sum / seeds; mean < 25 {
		t.Errorf("%.1f Mb/s on average, want 25", mean)
	}
}

// shareLine returns the goodput of flows over one line, in Mb/s, during d after some
// time, a flow for each configuration. Each begins that long after the one before, give
// or take 20 ms.
func shareLine(t *testing.T, seed uint64, link sctptest.Link, nap, apart, after, d time.Duration, cfgs ...sctp.Config) []float64 {
	n := sctptest.NewNetwork(seed)
	defer n.Close()
	n.SetDefault(link)
	from, to := n.NewHost("10.0.0.1"), n.NewHost("10.0.0.2")
	rng := rand.New(rand.NewPCG(seed, 0))
	got := make([]atomic.Int64, len(cfgs))
	for i, cfg := range cfgs {
		cfg.MTU = 1500
		source := lateEndpoint(t, from, 9899+i, nap, rng, cfg)
		lateEndpoint(t, to, 9899+i, nap, rng, sctp.Config{MTU: 1500, OnPiece: func(_ *sctp.Association, p *sctp.Piece) { got[i].Add(int64(len(p.Data))) }})
		start := time.Duration(i)*apart + time.Duration(rng.Int64N(int64(20*time.Millisecond)))
		go func() {
			time.Sleep(start)
			a, err := source.Connect(t.Context(), sctp.Addr{Addrs: []netip.AddrPort{netip.MustParseAddrPort(fmt.Sprintf("10.0.0.2:%d", 9899+i))}, Port: 5000})
			if err != nil {
				t.Error(err)
				return
			}
			for msg := make([]byte, 64<<10); err == nil; {
				err = a.Send(t.Context(), msg, sctp.SendOptions{})
			}
		}()
	}
	time.Sleep(after)
	before := make([]int64, len(cfgs))
	for i := range got {
		before[i] = got[i].Load()
	}
	time.Sleep(d)
	mbit := make([]float64, len(cfgs))
	for i := range got {
		mbit[i] = float64(got[i].Load()-before[i]) * 8 / d.Seconds() / 1e6
	}
	return mbit
}

// lateEndpoint opens an endpoint of a process that wakes up late, after nap on average,
// unless that is 0.
func lateEndpoint(t *testing.T, h *sctptest.Host, port int, nap time.Duration, rng *rand.Rand, cfg sctp.Config) *sctp.Endpoint {
	pc, err := h.ListenPacket(fmt.Sprintf(":%d", port))
	if err != nil {
		t.Fatal(err)
	}
	conn := net.PacketConn(pc)
	if nap > 0 {
		conn = &lateConn{PacketConn: pc, rng: rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())), nap: nap}
	}
	tr, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{conn}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	e, err := tr.Listen(5000, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// lateConn is the socket of a process that wakes up late: it reads what has come by
// then a while after the first of it came.
type lateConn struct {
	net.PacketConn
	rng  *rand.Rand
	nap  time.Duration // the mean
	woke time.Time
}

func (c *lateConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.PacketConn.ReadFrom(b)
	if err == nil && !time.Now().Equal(c.woke) {
		time.Sleep(time.Duration(c.rng.ExpFloat64() * float64(c.nap)))
		c.woke = time.Now()
	}
	return n, from, err
}

// Where processes wake up late, a flow takes no more than its share from one that
// shrinks its window for every loss, also if the queue is short.
func TestShortQueueIsShared(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("a hundred thousand packets, of which the race detector makes much")
	}
	const seeds = 2
	for _, tt := range []struct {
		name  string
		link  sctptest.Link
		other sctp.Congestion
		least float64
	}{
		{"newreno/200", sctptest.Link{Delay: 25 * time.Microsecond, Rate: 200e6, Queue: 25 << 10}, sctp.NewReno, 0.35},
		{"newreno/1000", sctptest.Link{Delay: 25 * time.Microsecond, Rate: 1e9, Queue: 25 << 10}, sctp.NewReno, 0.35},
		{"newreno/1000/256", sctptest.Link{Delay: 25 * time.Microsecond, Rate: 1e9, Queue: 256 << 10}, sctp.NewReno, 0.35},
		{"newreno/200/1ms", sctptest.Link{Delay: time.Millisecond, Rate: 200e6, Queue: 25 << 10}, sctp.NewReno, 0.35},
		{"cubic/200", sctptest.Link{Delay: 25 * time.Microsecond, Rate: 200e6, Queue: 25 << 10}, sctp.Cubic, 0.4},
		{"cubic/1000", sctptest.Link{Delay: 25 * time.Microsecond, Rate: 1e9, Queue: 25 << 10}, sctp.Cubic, 0.4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sum := 0.0
			for seed := range uint64(seeds) {
				synctest.Test(t, func(t *testing.T) {
					mbit := shareLine(t, seed, tt.link, 200*time.Microsecond, 0, time.Second, 2*time.Second, sctp.Config{}, sctp.Config{Congestion: tt.other})
					t.Logf("seed %d: %.1f and %.1f Mb/s", seed, mbit[0], mbit[1])
					sum += mbit[1] / (mbit[0] + mbit[1])
				})
			}
			if sum/seeds < tt.least {
				t.Errorf("the other flow has %.2f of what is carried, want %v", sum/seeds, tt.least)
			}
		})
	}
}

// Where processes wake up late, round-trip times do not tell whether there is a
// queue; random losses still do not shrink the window as congestion does.
func TestRandomLossWithLateWakeups(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("a hundred thousand packets, of which the race detector makes much")
	}
	const seeds = 3
	sum := 0.0
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			link := sctptest.Link{Delay: 25 * time.Microsecond, Rate: 1e9, Loss: 0.01}
			mbit := shareLine(t, seed, link, 200*time.Microsecond, 0, time.Second, time.Second, sctp.Config{}, sctp.Config{Congestion: sctp.NewReno})
			t.Logf("seed %d: %.1f Mb/s, NewReno %.1f", seed, mbit[0], mbit[1])
			sum += mbit[0] / mbit[1]
		})
	}
	if sum/seeds < 1.25 {
		t.Errorf("%.1f times what NewReno carries, want 1.25", sum/seeds)
	}
}

// Nor do they in flows that begin anew with each message: round-trip times are shorter
// then, and those that losses are compared with must not be of these beginnings only.
func TestMessagesUnderRandomLoss(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("a hundred thousand packets, of which the race detector makes much")
	}
	const seeds = 3
	for _, size := range []int{64 << 10, 300_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			sum := 0.0
			for seed := range uint64(seeds) {
				var d [2]time.Duration
				for i, loss := range []float64{0, 0.02} {
					synctest.Test(t, func(t *testing.T) {
						link := sctptest.Link{Delay: 25 * time.Microsecond, Rate: 1e9, Loss: loss}
						d[i] = pingPong(t, seed, link, 100*time.Microsecond, size, 30_000_000/size)
					})
				}
				t.Logf("seed %d: %v without loss, %v with", seed, d[0], d[1])
				sum += float64(d[1]) / float64(d[0])
			}
			if sum/seeds > 1.4 {
				t.Errorf("%.2f times as long as without loss, want 1.4 at most", sum/seeds)
			}
		})
	}
}

// pingPong returns how long a message takes to go back and forth count times.
func pingPong(t *testing.T, seed uint64, link sctptest.Link, nap time.Duration, size, count int) time.Duration {
	n := sctptest.NewNetwork(seed)
	defer n.Close()
	n.SetDefault(link)
	rng := rand.New(rand.NewPCG(seed, 0))
	cfg := sctp.Config{MTU: 1500}
	to := lateEndpoint(t, n.NewHost("10.0.0.2"), 9899, nap, rng, cfg)
	go func() {
		a, err := to.Accept(t.Context())
		msg := make([]byte, size)
		for i := 0; i < count && err == nil; i++ {
			if _, _, err = a.Recv(t.Context(), msg); err == nil {
				err = a.Send(t.Context(), msg, sctp.SendOptions{})
			}
		}
		if err != nil {
			t.Error(err)
		}
	}()
	from := lateEndpoint(t, n.NewHost("10.0.0.1"), 9899, nap, rng, cfg)
	a, err := from.Connect(t.Context(), sctp.Addr{Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.2:9899")}, Port: 5000})
	start, msg := time.Now(), make([]byte, size)
	for i := 0; i < count && err == nil; i++ {
		if err = a.Send(t.Context(), msg, sctp.SendOptions{}); err == nil {
			_, _, err = a.Recv(t.Context(), msg)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}
