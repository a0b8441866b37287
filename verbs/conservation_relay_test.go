package verbs

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/relaytest"
	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp/relay"
)

// attach gives a side of a world with sites its process: site 1 for "10.1.0.1", and so on.
func (s *side) attach(cfg *Config) {
	site := uint16(1)
	if s.addr != relaytest.NodeAddr(1, 1) {
		site = 2
	}
	s.process = s.w.sites.Node(site, 1, func(c *relay.NodeConfig) { c.PeerTimeout = 10 * time.Second })
	cfg.Relay = s.process.Node
}

// leave ends the transport, or the process.
func (s *side) leave() {
	if s.process != nil {
		s.process.Close()
		return
	}
	s.tr.Close()
}

func (s *side) target() target {
	if s.process != nil {
		return target{process: s.process.Address()}
	}
	return target{sctp: s.dev.Addr()}
}

func (s *side) connect(ctx context.Context, to target, qp *QP, p ConnParams) (ConnInfo, error) {
	if s.process != nil {
		return s.dev.ConnectRelay(ctx, to.process, qp, p)
	}
	return s.dev.Connect(ctx, to.sctp, qp, p)
}

// TestRelayConservation is TestConservation between two sites, whose gateways are killed and started again meanwhile,
// with loss on all links, and one process that restarts.
func TestRelayConservation(t *testing.T) {
	until := time.Now().Add(testenv.Soak(t, 0))
	base := rand.Uint64()
	t.Logf("seed %#x", base)
	before, total, rounds := int64(0), int64(0), uint64(0)
	least, churn := uint64(2), 40
	if testenv.Race { // which takes long
		least, churn = 1, 12
	}
	for ; rounds < least || time.Now().Before(until) && !t.Failed(); rounds++ {
		synctest.Test(t, func(t *testing.T) { total += relayWorld(t, base+rounds, churn) })
		if rounds == 0 {
			before = heap()
		}
	}
	wantHeap(t, before, 1<<20, "rounds that are over")
	t.Logf("%d rounds, %d connections", rounds, total)
}

// relayWorld is a round. It returns the number of connections.
func relayWorld(t *testing.T, seed uint64, churn int) int64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	sites := relaytest.New(t, seed, 2, 2)
	defer sites.Close()
	w := &world{t: t, seed: seed, net: sites.Net, sites: sites, over: map[uint64]*outcome{}}
	lan, wan := relaytest.LAN, relaytest.WAN
	lan.Loss, lan.Reorder, lan.Duplicate = 0.001, 0.001, 0.001
	wan.Loss, wan.Reorder, wan.Duplicate = rng.Float64()*0.02, rng.Float64()*0.05, 0.005
	bad := func() { w.net.SetDefault(lan); sites.SetWAN(wan) }
	good := func() { w.net.SetDefault(relaytest.LAN); sites.SetWAN(relaytest.WAN) }
	bad()
	time.Sleep(time.Second)
	a, b := w.open(nil, relaytest.NodeAddr(1, 1)), w.open(nil, relaytest.NodeAddr(2, 1))
	kills := 0
	killing := func(f func()) {
		done := make(chan struct{})
		var killer sync.WaitGroup
		rng := rand.New(rand.NewPCG(seed, rng.Uint64()))
		killer.Go(func() {
			for {
				site, gw := uint16(1+rng.IntN(2)), uint16(1+rng.IntN(2))
				select {
				case <-done:
					return
				case <-time.After(time.Duration(rng.IntN(1500)) * time.Millisecond):
				}
				sites.Kill(site, gw)
				kills++
				time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
				sites.Revive(site, gw)
			}
		})
		f()
		close(done)
		killer.Wait()
	}
	round := func(n int) {
		wa, wb := a.work(b.target(), n/2), b.work(a.target(), n/2)
		wa.Wait()
		wb.Wait()
		time.Sleep(2 * time.Minute)
	}
	// quiet runs f while there are no gateways: the memory of their associations depends on which streams flows have.
	quiet := func(f func()) {
		for i := range uint16(4) {
			sites.Kill(1+i/2, 1+i%2)
		}
		time.Sleep(3 * time.Second)
		f()
		for i := range uint16(4) {
			sites.Revive(1+i/2, 1+i%2)
		}
		time.Sleep(10 * time.Second)
	}
	killing(func() {
		wa, wb := a.work(b.target(), churn/4), b.work(a.target(), churn/4)
		time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
		b.stop()
		b.process.Close()
		wb.Wait()
		b.close()
		time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
		b = w.open(nil, b.addr)
		wa.Wait()
		round(churn / 2)
	})
	good()
	time.Sleep(10 * time.Second)
	w.wantStreams(a, b)
	var before int64
	quiet(func() { before = heap() })
	bad()
	killing(func() { round(churn) })
	good()
	for try := 0; w.whole == 0 && try < 10; try++ { // gateways were killed under each of the few connections
		round(churn)
	}
	time.Sleep(10 * time.Second)
	w.wantStreams(b, a)
	quiet(func() { wantHeap(t, before, 1<<20, "queue pairs that were closed") })
	held := func() (n int) {
		for _, s := range []*side{a, b} {
			st := s.process.Stats()
			n += st.SendHeld + st.RecvHeld
		}
		for _, g := range sites.Gateways() {
			n += int(g.Held)
		}
		return n
	}
	for try := 0; held() > 0; try++ { // perhaps a sign of life is on its way
		if try == 10 {
			t.Errorf("seed %#x: nodes and gateways hold %d bytes", seed, held())
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.close()
	a.close()
	if w.whole == 0 {
		t.Errorf("seed %#x: no connection ended gracefully", seed)
	}
	t.Logf("%d gateways killed", kills)
	return w.conns.Load()
}
