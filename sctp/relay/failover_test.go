package relay_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
)

// A flow is without its gateway for less than a second, whichever of the two gateways on its way dies, and
// uses it again when it is back.
func TestFailover(t *testing.T) {
	for _, site := range []uint16{1, 2} {
		t.Run(fmt.Sprintf("site=%d", site), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 3, 2, 2, false, nil)
				defer w.Close()
				w.connected()
				a, b := w.Node(1, 1, func(c *relay.NodeConfig) { c.Mode = relay.Chained }), w.Node(2, 1, nil)
				defer a.Close()
				defer b.Close()
				w.connected() // a and b with both gateways
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				s, err := a.Sender(address(2, 1), 0)
				wantNil(t, err)
				go func() {
					for {
						r, err := b.Next(ctx)
						if err != nil {
							return
						}
						for buf := make([]byte, 100); ; {
							if _, _, err := r.TryRecv(buf); err != nil {
								break
							}
						}
					}
				}()
				send := func() time.Duration {
					t.Helper()
					began := time.Now()
					wantNil(t, s.Send(ctx, []byte("x"), relay.SendOptions{}))
					return time.Since(began)
				}
				send()
				normal := send()
				// Find the gateway of the site that the flow takes, by what it has forwarded.
				gw := uint16(1)
				frames := func(gw uint16) (n uint64) {
					for _, f := range w.Up[[2]uint16{site, gw}].Stats().Flows {
						if f.From == a.Address() {
							n += f.Frames
						}
					}
					return n
				}
				if before := frames(1); send() > 0 && frames(1) == before {
					gw = 2
				}
				w.Kill(site, gw)
				pause := send()
				t.Logf("usual round trip %v, after the death of gateway %d.%d %v", normal, site, gw, pause)
				if pause > time.Second || pause < 100*time.Millisecond {
					t.Errorf("the death of gateway %d.%d took %v, want at most 1 s", site, gw, pause)
				}
				w.Revive(site, gw)
				time.Sleep(5 * time.Second)
				before := frames(gw)
				send()
				send()
				if frames(gw) < before+2 {
					t.Errorf("gateway %d.%d is not used again", site, gw)
				}
				if moves := w.Up[[2]uint16{1, 1}].Stats().Moves + w.Up[[2]uint16{1, 2}].Stats().Moves; site == 2 && moves < 2 {
					t.Errorf("the gateways of site 1 have moved %d flows, want away and back", moves)
				}
			})
		})
	}
}

// With one gateway a flow waits until it is back.
func TestGatewayReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		a, b := w.Node(1, 1, nil), w.Node(2, 1, nil)
		defer a.Close()
		defer b.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, err := a.Sender(address(2, 1), 0)
		wantNil(t, err)
		for _, site := range []uint16{1, 2} {
			for i := range 100 {
				if i == 50 {
					w.Kill(site, 1)
				}
				wantNil(t, s.Send(ctx, pattern(3000, uint64(i)), relay.SendOptions{PPID: uint32(i)}))
			}
			time.Sleep(4 * time.Second)
			w.Revive(site, 1)
			wantNil(t, s.Flush(ctx))
		}
		r, err := b.Next(ctx)
		wantNil(t, err)
		for i := range 200 {
			if msg, info := recv(t, r, ctx); len(msg) != 3000 || int(info.PPID) != i%100 {
				t.Fatalf("message %d: %d bytes, %+v", i, len(msg), info)
			}
		}
	})
}
