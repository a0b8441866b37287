package sctp_test

import (
	"fmt"
	"math/rand/v2"
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
	if raceEnabled {
		t.Skip("half a million packets: takes a minute with the race detector")
	}
	const seeds = 3
	for _, rtt := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond} {
		t.Run(fmt.Sprintf("rtt=%v", rtt), func(t *testing.T) {
			sum := 0.0
			for seed := range uint64(seeds) {
				synctest.Test(t, func(t *testing.T) {
					mbit := shareLine(t, rtt, seed)
					j := bench.Jain(mbit[:]...)
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

// shareLine returns the goodput of two flows, in Mb/s.
func shareLine(t *testing.T, rtt time.Duration, seed uint64) (mbit [2]float64) {
	n := sctptest.NewNetwork(seed)
	defer n.Close()
	n.SetDefault(sctptest.Link{Delay: rtt / 2, Rate: 100_000_000, Queue: 512 << 10})
	from, to := n.NewHost("10.0.0.1"), n.NewHost("10.0.0.2")
	rng := rand.New(rand.NewPCG(seed, 0))
	var got [2]atomic.Int64
	for i := range got {
		open := func(h *sctptest.Host, cfg *sctp.Config) *sctp.Endpoint {
			pc, err := h.ListenPacket(fmt.Sprintf(":%d", 9899+i))
			if err != nil {
				t.Fatal(err)
			}
			tr, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { tr.Close() })
			e, err := tr.Listen(5000, cfg)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		source := open(from, &sctp.Config{MTU: 1500})
		open(to, &sctp.Config{MTU: 1500, OnPiece: func(_ *sctp.Association, p *sctp.Piece) { got[i].Add(int64(len(p.Data))) }})
		start := time.Duration(rng.Int64N(int64(20 * time.Millisecond)))
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
	time.Sleep(2 * time.Second)
	before := [2]int64{got[0].Load(), got[1].Load()}
	const d = 20 * time.Second
	time.Sleep(d)
	for i := range got {
		mbit[i] = float64(got[i].Load()-before[i]) * 8 / d.Seconds() / 1e6
	}
	return mbit
}
