package core

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// lossyConfig makes timeouts short, so that an hour of virtual time is long.
func lossyConfig(seed int) *Config {
	c := &Config{RTOInitial: 300 * time.Millisecond, RTOMin: 100 * time.Millisecond, AssocMaxRetrans: 100,
		PathMaxRetrans: 100, MaxInitRetrans: 100, HBInterval: time.Second}
	// Every other thing by turns.
	c.NoRACK = seed&1 != 0
	c.NoInterleaving = seed&2 != 0
	if seed&4 != 0 {
		c.Congestion = cc.NewReno
	}
	c.NoPacing = seed&8 != 0
	c.Scheduler = tx.Scheduler(seed / 16 % 6)
	if seed%5 == 0 {
		c.RecvBuffer = 5000 + seed%7*3000
	}
	if seed%3 == 0 {
		c.MTU = 600 + seed%11*100
	}
	if seed%13 == 0 {
		c.MTU = MaxPacket
	}
	c.NoECN = seed%9 == 0
	return c
}

// Nothing is lost, repeated or reordered within a stream, whatever the network
// does to the packets.
func TestThousandLossyTransfers(t *testing.T) {
	seeds := withRace(1000, 200)
	if testing.Short() {
		seeds = 100
	}
	for seed := range seeds {
		p := newPair(t, uint64(seed), lossyConfig(seed))
		p.net.loss, p.net.dup = seed%7*30, seed%4*40
		p.net.reorder, p.net.corrupt = seed%5*60, seed%3*20
		p.net.jitter = time.Duration(seed%6) * 3 * time.Millisecond
		ok := t.Run(seedName(seed), func(t *testing.T) {
			p.t = t
			p.connect()
			for i := range 30 {
				for _, h := range []*host{p.a, p.z} {
					n := 1 + p.rng.IntN(1+p.rng.IntN(6000))
					h.sendMsg(&tx.Message{SID: uint16(p.rng.IntN(6)), Unordered: p.rng.IntN(4) == 0}, n)
				}
				if i%5 == 0 {
					p.advance(time.Duration(p.rng.IntN(30)) * time.Millisecond)
				}
			}
			p.drive()
			p.wantDelivered()
			p.a.assoc.Shutdown(p.now)
			if !p.driveUntil(10*time.Minute, func() bool {
				return p.a.assoc.State() == Closed && p.z.assoc.State() == Closed
			}) {
				t.Fatalf("not closed: A %v, Z %v", p.a.assoc.State(), p.z.assoc.State())
			}
		})
		if !ok {
			t.Fatalf("seed %d failed", seed)
		}
	}
}
