package relay_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
)

// Gateways do not wait for the rest of a message: over a slow leg its first bytes arrive long before the last ones leave.
func TestCutThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		slow := lan
		slow.Rate = 10e6
		w.Net.SetLink(nodeAddr(1, 1), lanAddr(1, 1), slow)
		a := w.Node(1, 1, nil)
		defer a.Close()
		began := time.Now()
		var first, last time.Duration
		done := make(chan struct{})
		b := w.Node(2, 1, func(c *relay.NodeConfig) {
			c.OnFragment = func(_ *relay.Receiver, f *relay.Fragment) {
				if f.Begin {
					first = time.Since(began)
				}
				if f.End {
					last = time.Since(began)
					close(done)
				}
			}
		})
		defer b.Close()
		s, err := a.Sender(address(2, 1), 0)
		wantNil(t, err)
		began = time.Now()
		wantNil(t, s.Send(t.Context(), make([]byte, 1<<20), relay.SendOptions{}))
		<-done
		t.Logf("first fragment after %v, last after %v", first, last)
		if first > 20*time.Millisecond || last < 800*time.Millisecond {
			t.Errorf("1 MiB at 10 Mb/s: first fragment after %v, last after %v", first, last)
		}
	})
}

// A packet that is lost between the gateways holds up its own flow only.
func TestLossHoldsUpOneFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		var lost atomic.Bool
		lossy := wan
		lossy.Filter = func(b []byte) bool {
			return !bytes.Contains(b, []byte("to be lost")) || lost.Swap(true)
		}
		a := w.Node(1, 1, nil)
		defer a.Close()
		var mu sync.Mutex
		var order []string
		b := w.Node(2, 1, func(c *relay.NodeConfig) {
			c.OnFragment = func(r *relay.Receiver, f *relay.Fragment) {
				mu.Lock()
				order = append(order, fmt.Sprintf("%d: %s", r.Stream(), f.Data))
				mu.Unlock()
			}
		})
		defer b.Close()
		w.SetWAN(lossy)
		for i, text := range []string{"to be lost", "of another flow"} {
			s, err := a.Sender(address(2, 1), uint16(i))
			wantNil(t, err)
			wantNil(t, s.Send(t.Context(), []byte(text), relay.SendOptions{}))
			wantNil(t, s.Send(t.Context(), []byte("next"), relay.SendOptions{}))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		want := []string{"1: of another flow", "1: next", "0: to be lost", "0: next"}
		if fmt.Sprint(order) != fmt.Sprint(want) || !lost.Load() {
			t.Errorf("order %q, want %q", order, want)
		}
	})
}

// A gateway that is killed at a random moment of a transfer costs it 1.5 s at most, and not a byte.
func TestKillsDuringTransfers(t *testing.T) {
	const message = 1 << 20
	size, runs := 16<<20, 10
	if raceEnabled {
		size, runs = 4<<20, 1
	}
	seed := rand.Uint64()
	transfer := func(t *testing.T, seed uint64, kill bool) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed, 2, 2, false, nil)
			defer w.Close()
			w.connected()
			a := w.Node(1, 1, func(c *relay.NodeConfig) { c.Mode = relay.Chained })
			b := w.Node(2, 1, nil)
			defer a.Close()
			defer b.Close()
			w.connected()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			rng := rand.New(rand.NewPCG(seed, 0))
			began := time.Now()
			s, err := a.Sender(address(2, 1), 0)
			wantNil(t, err)
			var wg sync.WaitGroup
			wg.Go(func() {
				for i := range uint64(size / message) {
					if err := s.Send(ctx, pattern(message, seed+i), relay.SendOptions{}); err != nil {
						t.Errorf("seed %d: %v", seed, err)
						return
					}
				}
				took = time.Since(began)
			})
			wg.Go(func() {
				r, err := b.Next(ctx)
				wantNil(t, err)
				for i := range uint64(size / message) {
					if msg, _ := recv(t, r, ctx); !bytes.Equal(msg, pattern(message, seed+i)) {
						t.Errorf("seed %d: message %d is not what was sent", seed, i)
						return
					}
				}
			})
			if kill {
				time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
				// The one in use, of either site.
				gw := uint16(1 + rng.IntN(2))
				if site := uint16(1 + rng.IntN(2)); site == 1 && len(a.Stats().Senders) > 0 {
					if g := a.Stats().Senders[0].Gateway; g != 0 {
						gw = g
					}
					w.Kill(1, gw)
				} else {
					w.Kill(site, gw)
				}
			}
			wg.Wait()
		})
		return took
	}
	usual := transfer(t, seed, false)
	for i := range uint64(runs) {
		took := transfer(t, seed+i, true)
		t.Logf("seed %d: %v, usually %v", seed+i, took, usual)
		if took > usual+1500*time.Millisecond {
			t.Errorf("seed %d: the death of a gateway took %v, want at most 1.5 s", seed+i, took-usual)
		}
	}
}
