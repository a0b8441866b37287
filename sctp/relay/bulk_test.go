package relay_test

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/frame"
)

// Bulk data through two gateways and 1 Gb/s with 9 ms reaches 0.95 times what a direct association does.
func TestBulkThroughput(t *testing.T) {
	const message = 256 << 10
	total := int64(100 << 20)
	if raceEnabled {
		t.Skip("takes a minute")
	}
	var direct, relayed time.Duration
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		ta, tb := w.Transport(nodeAddr(1, 1)), w.Transport(nodeAddr(2, 1))
		defer ta.Close()
		defer tb.Close()
		w.Net.SetLink(nodeAddr(1, 1), nodeAddr(2, 1), wan)
		w.Net.SetLink(nodeAddr(2, 1), nodeAddr(1, 1), wan)
		var got atomic.Int64
		done := make(chan struct{})
		_, err := tb.Listen(1, &sctp.Config{OnPiece: func(_ *sctp.Association, p *sctp.Piece) {
			if got.Add(int64(len(p.Data))) == total {
				close(done)
			}
		}})
		wantNil(t, err)
		ep, err := ta.Listen(0, nil)
		wantNil(t, err)
		a, err := ep.Connect(t.Context(), sctpAddr(nodeAddr(2, 1), 1))
		wantNil(t, err)
		began := time.Now()
		msg := make([]byte, message)
		for range total / message {
			wantNil(t, a.Send(t.Context(), msg, sctp.SendOptions{}))
		}
		<-done
		direct = time.Since(began)
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		var got int64
		done := make(chan struct{})
		a := w.Node(1, 1, nil)
		defer a.Close()
		b := w.Node(2, 1, func(c *relay.NodeConfig) {
			c.OnFragment = func(_ *relay.Receiver, f *relay.Fragment) {
				if got += int64(len(f.Data)); got == total {
					close(done)
				}
			}
		})
		defer b.Close()
		s, err := a.Sender(address(2, 1), 0)
		wantNil(t, err)
		began := time.Now()
		msg := make([]byte, message)
		for range total / message {
			wantNil(t, s.Send(t.Context(), msg, relay.SendOptions{}))
		}
		<-done
		relayed = time.Since(began)
	})
	ratio := direct.Seconds() / relayed.Seconds()
	t.Logf("direct %.1f Mb/s, through gateways %.1f Mb/s, ratio %.3f", float64(total)*8/direct.Seconds()/1e6, float64(total)*8/relayed.Seconds()/1e6, ratio)
	if ratio < 0.95 {
		t.Errorf("ratio %.3f, want at least 0.95", ratio)
	}
}

// Two gateways add to the way of a small message what their links take, and nothing else.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		var arrived atomic.Int64
		began := time.Now()
		a := w.Node(1, 1, nil)
		defer a.Close()
		b := w.Node(2, 1, func(c *relay.NodeConfig) {
			c.OnFragment = func(*relay.Receiver, *relay.Fragment) { arrived.Store(int64(time.Since(began))) }
		})
		defer b.Close()
		s, err := a.Sender(address(2, 1), 0)
		wantNil(t, err)
		for range 5 {
			time.Sleep(time.Second)
			at := time.Since(began)
			wantNil(t, s.Send(t.Context(), make([]byte, 8), relay.SendOptions{}))
			time.Sleep(time.Second)
			took := time.Duration(arrived.Load()) - at
			links := wan.Delay + 2*lan.Delay
			t.Logf("%v, of which %v are the delay of the links", took, links)
			if took < links || took > links+10*time.Microsecond {
				t.Errorf("a message of 8 bytes took %v, want %v and what its bits take", took, links)
			}
		}
	})
}

// One receiver that does not read leaves 999 flows their rate, and nothing in the gateways.
func TestStoppedReceiver(t *testing.T) {
	if raceEnabled {
		t.Skip("takes minutes")
	}
	const duration = time.Second
	rate := func(stopped bool) (n int) {
		synctest.Test(t, func(t *testing.T) {
			const flows, message = 1000, 4000
			w := newWorld(t, 1, 2, 1, false, nil)
			defer w.Close()
			w.connected()
			a := w.Node(1, 1, nil)
			b := w.Node(2, 1, func(c *relay.NodeConfig) { c.FlowWindow = relay.MinFlowWindow })
			defer a.Close()
			defer b.Close()
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for i := range uint16(flows) {
				wg.Go(func() {
					s, err := a.Sender(address(2, 1), i)
					wantNil(t, err)
					msg := make([]byte, message)
					binary.BigEndian.PutUint16(msg, i)
					for s.Send(ctx, msg, relay.SendOptions{}) == nil {
					}
				})
			}
			wg.Go(func() {
				buf := make([]byte, message)
				for {
					r, err := b.Next(ctx)
					if err != nil {
						return
					}
					if stopped && r.Stream() == 0 {
						continue
					}
					for {
						k, _, err := r.TryRecv(buf)
						if err != nil {
							break
						}
						n += k
					}
				}
			})
			time.Sleep(duration)
			for k, g := range w.Up {
				s := g.Stats()
				t.Logf("gateway %v holds %d KiB for %d flows, dropped %d, %d, %d", k, s.Held>>10, len(s.Flows), s.OverFlow, s.OverJob, s.OverGateway)
				if s.Held > relay.DefaultGatewayMemory {
					t.Errorf("gateway %v holds %d bytes", k, s.Held)
				}
				for _, l := range s.Legs { // frames wait in their flows when the association has 4 MiB
					if most := 4<<20 + frame.MaxSize; l.InFlight > most || l.Gateway && k[0] == 1 && l.InFlight < most/2 {
						t.Errorf("the association of gateway %v to %v has %d bytes", k, l.Peer, l.InFlight)
					}
				}
				for _, f := range s.Flows {
					if stopped && f.Stream == 0 && f.From == a.Address() && f.Held > 0 {
						t.Errorf("gateway %v holds %d bytes of the flow with the stopped receiver", k, f.Held)
					}
				}
			}
			if stopped {
				for _, f := range a.Stats().Senders {
					if f.Stream == 0 && f.Held == 0 {
						t.Error("the flow with the stopped receiver is not held up")
					}
				}
			}
			cancel()
			wg.Wait()
		})
		return n
	}
	all, rest := rate(false), rate(true)
	t.Logf("%.1f Mb/s, with a stopped receiver %.1f Mb/s", float64(all)*8/duration.Seconds()/1e6, float64(rest)*8/duration.Seconds()/1e6)
	if float64(rest) < 0.95*float64(all)*999/1000 {
		t.Errorf("%d bytes with a stopped receiver, %d without, want at least 95 %%", rest, all)
	}
}
