package relay_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
)

// In mode Lossy a node keeps nothing that its gateway has acknowledged, however far the target is.
func TestLossyMemory(t *testing.T) {
	held := func(mode relay.Mode) (held int) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, 2, 1, false, nil)
			defer w.Close()
			w.connected()
			far := wan
			far.Delay = 200 * time.Millisecond
			a, b := w.Node(1, 1, func(c *relay.NodeConfig) { c.Mode = mode }), w.Node(2, 1, nil)
			defer a.Close()
			defer b.Close()
			w.SetWAN(far)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s, err := a.Sender(address(2, 1), 0)
			wantNil(t, err)
			for i := range 40 {
				wantNil(t, s.Send(ctx, pattern(1000, uint64(i)), relay.SendOptions{}))
			}
			time.Sleep(50 * time.Millisecond)
			held = a.Stats().SendHeld
			r, err := b.Next(ctx)
			wantNil(t, err)
			for i := range 40 {
				if msg, _ := recv(t, r, ctx); string(msg) != string(pattern(1000, uint64(i))) {
					t.Fatalf("message %d is not what was sent", i)
				}
			}
			wantNil(t, s.Flush(ctx))
			if n := a.Stats().SendHeld; n != 0 {
				t.Errorf("%d bytes are held when all is confirmed", n)
			}
		})
		return held
	}
	kept, stripped := held(relay.Piecewise), held(relay.Lossy)
	t.Logf("%d bytes held, in mode Lossy %d", kept, stripped)
	if kept < 40*1000 || stripped > 40*256 {
		t.Errorf("%d bytes held, in mode Lossy %d; want at least 40000, and at most 10240", kept, stripped)
	}
}

// In mode Lossy a gateway that dies may end a flow: then both sides learn of it, and what arrived is what was sent up to
// there. Without deaths, and when a gateway returns, nothing is lost.
func TestLossy(t *testing.T) {
	const message = 30_000
	// A gateway that dies may be the one that the flow does not use: kills go on until one was seen to lose data.
	runs, most, messages := uint64(12), uint64(120), 400
	if raceEnabled {
		runs, most, messages = 2, 2, 100
	}
	first := rand.Uint64()
	lost, i := 0, uint64(0)
	for ; i < runs || lost == 0 && i < most; i++ {
		seed, kill := first+i, i > 1
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed, 2, 2, false, nil)
			defer w.Close()
			w.connected()
			rng := rand.New(rand.NewPCG(seed, 0))
			var got, ends atomic.Int32
			a := w.Node(1, 1, func(c *relay.NodeConfig) { c.Mode = relay.Lossy })
			defer a.Close()
			var partial []byte
			var mu sync.Mutex
			b := w.Node(2, 1, func(c *relay.NodeConfig) {
				c.OnFragment = func(_ *relay.Receiver, f *relay.Fragment) {
					mu.Lock()
					defer mu.Unlock()
					if f.Err != nil {
						if ends.Add(1); !errors.Is(f.Err, relay.ErrLost) || !f.End || len(f.Data) > 0 {
							t.Errorf("end of the flow: %+v", f)
						}
						return
					}
					if ends.Load() > 0 {
						t.Error("a fragment after the end")
					}
					if f.Begin {
						partial = partial[:0]
					}
					partial = append(partial, f.Data...)
					if f.End {
						if k := binary.BigEndian.Uint32(partial); k != uint32(got.Load()) || len(partial) != message {
							t.Errorf("message %d of %d bytes in place of %d", k, len(partial), got.Load())
						}
						got.Add(1)
					}
				}
			})
			defer b.Close()
			w.connected()
			if i == 1 { // both return, one after the other, while nothing is under way
				for gw := range uint16(2) {
					w.Kill(2, gw+1)
					time.Sleep(time.Second)
					w.Revive(2, gw+1)
					time.Sleep(3 * time.Second)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			s, err := a.Sender(address(2, 1), 0)
			wantNil(t, err)
			var killed sync.WaitGroup
			killed.Go(func() {
				time.Sleep(time.Duration(30+rng.IntN(150)) * time.Millisecond)
				if kill {
					site, gw := uint16(1+rng.IntN(2)), uint16(1+rng.IntN(2))
					w.Kill(site, gw)
					time.Sleep(2 * time.Second)
					w.Revive(site, gw)
				}
			})
			for k := range messages {
				msg := make([]byte, message)
				binary.BigEndian.PutUint32(msg, uint32(k))
				if err = s.Send(ctx, msg, relay.SendOptions{}); err != nil {
					break
				}
			}
			if err == nil {
				err = s.Flush(ctx)
			}
			killed.Wait()
			time.Sleep(5 * time.Second)
			switch {
			case err == nil && int(got.Load()) == messages && ends.Load() == 0:
			case kill && errors.Is(err, relay.ErrLost) && strings.Contains(err.Error(), "flow to 2/1/1 on stream 0") && ends.Load() == 1 && int(got.Load()) < messages:
				lost++
			default:
				t.Errorf("seed %d: sent with %v; %d messages of %d, %d ends at the target", seed, err, got.Load(), messages, ends.Load())
			}
			if n := a.Stats(); n.SendHeld != 0 {
				t.Errorf("seed %d: %d bytes are held", seed, n.SendHeld)
			}
			// The flow can be begun again.
			got.Store(0)
			ends.Store(0)
			s, err = a.Sender(address(2, 1), 0)
			wantNil(t, err)
			msg := make([]byte, message)
			binary.BigEndian.PutUint32(msg, uint32(0))
			wantNil(t, s.Send(ctx, msg, relay.SendOptions{}))
			wantNil(t, s.Flush(ctx))
			if got.Load() != 1 {
				t.Errorf("seed %d: the flow cannot be begun again", seed)
			}
		})
	}
	t.Logf("%d flows of %d lost data", lost, i)
	if lost == 0 && !raceEnabled {
		t.Errorf("seed %d: no flow lost data, want some", first)
	}
}
