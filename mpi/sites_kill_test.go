package mpi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi/internal/localsites"
	"github.com/weftstack/weft/sctp/sctptest"
)

// killSeeds are seeds that have found something: a process left while the end of its link was not
// confirmed, as the gateways had just been killed, and the other one never heard of it.
var killSeeds = map[string][]uint64{"chained/hops=2/transfer": {0xb9b5218ae9b11e35}}

// Gateways that are killed and started again at random moments cost time and nothing else: a farm does each piece of work
// once, sums are right, and a long message has every byte.
func TestSitesKilledGateways(t *testing.T) {
	rounds, tasks, sums, long := 2, 2000, 200, 20<<20
	if testenv.Race {
		rounds, tasks, sums, long = 1, 200, 40, 2<<20 // all the same calls, in a tenth of the time
	}
	work := []struct {
		name string
		run  func(ctx context.Context, c *Comm) error
	}{
		{"farm", func(ctx context.Context, c *Comm) error {
			_, err := farmOnce(ctx, c, tasks, 20_000)
			return err
		}},
		{"allreduce", func(ctx context.Context, c *Comm) error {
			for i := range sums {
				x := make([]int, 1+i*37%3000)
				for j := range x {
					x[j] = c.Rank() + i*j
				}
				if err := Allreduce(ctx, c, x, x, Sum[int]); err != nil {
					return err
				}
				for j := range x {
					if want := 15 + 6*i*j; x[j] != want {
						return fmt.Errorf("sum %d: element %d = %d, want %d", i, j, x[j], want)
					}
				}
			}
			return nil
		}},
		{"transfer", func(ctx context.Context, c *Comm) error {
			b := make([]byte, long)
			peer := c.Size() - 1 - c.Rank() // most of them at another site
			if c.Rank() < peer {
				pattern(b, c.Rank())
				return Send(ctx, c, b, peer, 1)
			}
			if _, err := Recv(ctx, c, b, peer, 1); err != nil {
				return err
			}
			return checkPattern(b, peer)
		}},
	}
	if testing.Short() {
		rounds = 1
	}
	for _, tt := range siteLayouts {
		for _, job := range work {
			t.Run(tt.name+"/"+job.name, func(t *testing.T) {
				total := 0
				seeds := slices.Clone(killSeeds[tt.name+"/"+job.name])
				for range rounds {
					seeds = append(seeds, rand.Uint64())
				}
				for _, seed := range seeds {
					kills := 0
					synctest.Test(t, func(t *testing.T) {
						net := sctptest.NewNetwork(seed)
						defer net.Close()
						rng := rand.New(rand.NewPCG(seed, 1))
						ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
						defer cancel()
						g := tt.opts
						over := make(chan struct{})
						var killer sync.WaitGroup
						up := 400 * time.Millisecond
						if g.PerSite < 2 {
							up = 4 * time.Second // or the processes would hardly ever be connected
						}
						g.began = func(gates *localsites.Sites) {
							killer.Go(func() {
								select { // the first one comes soon
								case <-time.After(100*time.Millisecond + time.Duration(rng.Int64N(int64(400*time.Millisecond)))):
								case <-over:
									return
								}
								for round := 0; ; round++ {
									site, gw := 1+rng.IntN(int(tt.sites[len(tt.sites)-1]-'A')+1), 1+rng.IntN(max(1, g.PerSite))
									for i, d := range []time.Duration{up, 800 * time.Millisecond} {
										if i == 0 && round == 0 {
											d = 2
										}
										select {
										case <-time.After(d/2 + time.Duration(rng.Int64N(int64(d)))):
										case <-over:
											return
										}
										if i == 0 {
											gates.Kill(site, gw)
											kills++
										} else if err := gates.Restart(site, gw); err != nil {
											t.Error(err)
										}
									}
								}
							})
						}
						opts := append(virtualSites(net, g), WithSite(func(rank int) string { return tt.sites[rank : rank+1] }))
						err := RunLocal(ctx, len(tt.sites), func(ctx context.Context, w *World) error { return job.run(ctx, w.Comm()) }, opts...)
						close(over)
						killer.Wait()
						if err != nil {
							t.Errorf("seed %#x, %d kills: %v", seed, kills, err)
						}
					})
					t.Logf("seed %#x: %d kills", seed, kills)
					total += kills
				}
				if total == 0 && !testenv.Race { // short transfers may be faster
					t.Error("no gateway was killed")
				}
			})
		}
	}
}
