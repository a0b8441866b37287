package relay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/frame"
)

// flood has an intruder send n frames of the largest size that fits a packet, on as many flows to a target.
func (x *intruder) flood(n, flows int, to relay.Address) {
	f := frame.Frame{Header: frame.Header{
		Type: frame.Data, Hops: 7, Job: testJob, From: address(1, 9), To: to, Incarnation: 1,
	}, Payload: make([]byte, 1300)}
	for i := range n {
		f.Stream, f.Seq = uint16(i%flows), uint32(i/flows+1)
		x.send(frame.Append(nil, &f))
		if i%100 == 99 {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// What a process sends beyond its credit is dropped at the limits of its flow, its job and the gateway, of which each is
// reached, while the leg behind is slow.
func TestGatewayMemory(t *testing.T) {
	for _, tt := range []struct {
		name  string
		set   func(*relay.GatewayConfig)
		count func(relay.GatewayStats) uint64
		limit int64
	}{
		{"flow", func(c *relay.GatewayConfig) { c.FlowMemory = 100_000 }, func(s relay.GatewayStats) uint64 { return s.OverFlow }, 400_000},
		{"job", func(c *relay.GatewayConfig) { c.JobMemory = 300_000 }, func(s relay.GatewayStats) uint64 { return s.OverJob }, 300_000},
		{"gateway", func(c *relay.GatewayConfig) { c.Memory, c.JobMemory = 300_000, 400_000 }, func(s relay.GatewayStats) uint64 { return s.OverGateway }, 300_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, 2, 1, false, tt.set)
				defer w.Close()
				w.connected()
				slow := wan
				slow.Rate = 1e6
				w.SetWAN(slow)
				x := w.intrude(t, "10.1.0.99", lanAddr(1, 1), relay.DefaultGatewayLAN)
				defer x.tr.Close()
				x.prove(nodeGreeting(1, 9), jobKey)
				x.wantUp()
				x.flood(2000, 4, address(2, 1))
				s := w.Up[[2]uint16{1, 1}].Stats()
				if tt.count(s) == 0 || s.Held > tt.limit || s.Held < tt.limit/2 {
					t.Errorf("holds %d bytes, %+v; want at most %d and drops at the limit of the %s", s.Held, s.GatewayCounters, tt.limit, tt.name)
				}
			})
		})
	}
}

// A process may have a quarter of the flows of a gateway; beyond it frames are refused.
func TestGatewayFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, func(c *relay.GatewayConfig) { c.MaxFlows = 100 })
		defer w.Close()
		w.connected()
		b := w.Node(2, 1, nil)
		defer b.Close()
		x := w.intrude(t, "10.1.0.99", lanAddr(1, 1), relay.DefaultGatewayLAN)
		defer x.tr.Close()
		x.prove(nodeGreeting(1, 9), jobKey)
		x.wantUp()
		x.flood(30, 30, address(2, 1))
		x.wantRefuse(frame.TooManyFlows)
		time.Sleep(10 * time.Millisecond)
		if s := w.Up[[2]uint16{1, 1}].Stats(); s.TooManyFlows != 5 || len(s.Flows) < 25 || len(s.Flows) > 50 {
			t.Errorf("%d refused, %d flows; want 5 refused", s.TooManyFlows, len(s.Flows))
		}
		time.Sleep(15 * time.Second)
		if s := w.Up[[2]uint16{1, 1}].Stats(); len(s.Flows) != 0 {
			t.Errorf("%d idle flows are kept", len(s.Flows))
		}
	})
}

// Frames that arrive in part take MaxPartial at most.
func TestPartialFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		tr := w.Transport("10.1.0.99")
		defer tr.Close()
		in := make(chan []byte, 10)
		ep, err := tr.Listen(0, &sctp.Config{
			OutStreams: 1024, OnPiece: func(_ *sctp.Association, p *sctp.Piece) {
				select {
				case in <- append([]byte{}, p.Data...):
				default:
				}
			},
		})
		wantNil(t, err)
		a, err := ep.Connect(t.Context(), sctpAddr(lanAddr(1, 1), relay.DefaultGatewayLAN))
		wantNil(t, err)
		x := &intruder{t: t, tr: tr, a: a, in: in, end: make(chan error, 1)}
		x.prove(nodeGreeting(1, 9), jobKey)
		x.wantUp()
		out, _ := a.Streams()
		for i := uint16(1); i < out; i++ {
			m, err := a.OpenMessage(t.Context(), sctp.SendOptions{Stream: i, PPID: wirePPID})
			wantNil(t, err)
			_, err = m.Write(make([]byte, 2000)) // and never the rest
			wantNil(t, err)
		}
		time.Sleep(300 * time.Millisecond)
		var dropped uint64
		for _, l := range w.Up[[2]uint16{1, 1}].Stats().Legs {
			dropped += l.Dropped
		}
		if kept := uint64(out) - 1 - dropped; dropped == 0 || kept*frame.MaxSize > relay.MaxPartial || kept*frame.MaxSize < relay.MaxPartial/2 {
			t.Errorf("%d frames of %d are kept in part, %d dropped", kept, out-1, dropped)
		}
	})
}

// Frames that the way of the origin's packets is too narrow for arrive in parts, and are forwarded.
func TestSmallerMTU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		narrow := wan
		narrow.MTU = 1280
		w.SetWAN(narrow)
		a, b := w.Node(1, 1, nil), w.Node(2, 1, nil)
		defer a.Close()
		defer b.Close()
		s, err := a.Sender(address(2, 1), 0)
		wantNil(t, err)
		time.Sleep(20 * time.Second) // path MTU discovery
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for i := range 20 {
			wantNil(t, s.Send(ctx, pattern(100_000, uint64(i)), relay.SendOptions{}))
		}
		r, err := b.Next(ctx)
		wantNil(t, err)
		for i := range 20 {
			if msg, _ := recv(t, r, ctx); string(msg) != string(pattern(100_000, uint64(i))) {
				t.Fatalf("message %d is not what was sent", i)
			}
		}
	})
}

// Many flows to targets that do not read, or are not there, keep a node within its memory, and leave others a reserve.
func TestNodeMemory(t *testing.T) {
	for _, there := range []bool{true, false} {
		t.Run(fmt.Sprintf("target=%t", there), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit, flows := 4<<20, 40
				if raceEnabled {
					limit, flows = 1<<20, 10
				}
				w := newWorld(t, 1, 2, 1, false, nil)
				defer w.Close()
				w.connected()
				a := w.Node(1, 1, func(c *relay.NodeConfig) {
					c.PeerTimeout = -1
					if !there {
						c.SendMemory = limit
					}
				})
				defer a.Close()
				other := w.Node(2, 2, nil)
				defer other.Close()
				var b *node
				if there {
					b = w.Node(2, 1, func(c *relay.NodeConfig) { c.RecvMemory = limit })
					defer b.Close()
				}
				for i := range uint16(flows) {
					s, err := a.Sender(address(2, 1), i)
					wantNil(t, err)
					for msg := make([]byte, 10_000); ; {
						if err := s.TrySend(msg, relay.SendOptions{}); errors.Is(err, relay.ErrWouldBlock) {
							break
						} else if err != nil {
							t.Fatal(err)
						}
					}
				}
				time.Sleep(5 * time.Second)
				held := a.Stats().SendHeld
				if there {
					held = b.Stats().RecvHeld
				}
				t.Logf("%d KiB held", held>>10)
				if held > limit+flows*relay.FlowReserve || held < limit/2 {
					t.Errorf("%d bytes held, want at most %d and %d for each flow", held, limit, relay.FlowReserve)
				}
				s, err := a.Sender(address(2, 2), 0)
				wantNil(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				for range 5 {
					wantNil(t, s.Send(ctx, make([]byte, 5000), relay.SendOptions{}))
				}
				wantNil(t, s.Flush(ctx))
				if !there {
					return
				}
				// Read it all: what was dropped for want of memory is sent again.
				got := 0
				for buf := make([]byte, 10_000); a.Stats().SendHeld > 0 || b.Stats().RecvHeld > 0; {
					short, cancel := context.WithTimeout(ctx, time.Second)
					r, err := b.Next(short)
					cancel()
					if err != nil {
						continue
					}
					for {
						n, _, err := r.TryRecv(buf)
						if err != nil {
							break
						}
						got += n
					}
				}
				sent := uint64(0)
				for _, f := range a.Stats().Senders {
					if f.Target == address(2, 1) {
						sent += f.Bytes
					}
				}
				if uint64(got) != sent {
					t.Errorf("read %d bytes of %d", got, sent)
				}
			})
		})
	}
}

// A node has MaxFlows in each direction.
func TestNodeFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		a := w.Node(1, 1, func(c *relay.NodeConfig) { c.MaxFlows, c.PeerTimeout = 3, 3*time.Second })
		b := w.Node(2, 1, func(c *relay.NodeConfig) { c.MaxFlows = 2 })
		defer a.Close()
		defer b.Close()
		var senders []*relay.Sender
		for i := range uint16(3) {
			s, err := a.Sender(address(2, 1), i)
			wantNil(t, err)
			wantNil(t, s.Send(t.Context(), []byte("x"), relay.SendOptions{}))
			senders = append(senders, s)
		}
		if _, err := a.Sender(address(2, 1), 3); !errors.Is(err, relay.ErrLimit) {
			t.Errorf("a fourth flow: %v, want ErrLimit", err)
		}
		failed := 0
		for _, s := range senders {
			if err := s.Flush(t.Context()); errors.Is(err, relay.ErrUnreachable) {
				failed++
			} else {
				wantNil(t, err)
			}
		}
		if failed != 1 || b.Stats().Refused == 0 {
			t.Errorf("%d of 3 flows failed at a target with 2, %d frames refused", failed, b.Stats().Refused)
		}
	})
}

// TrySend takes a message beyond the window when the flow is idle, and says so if it never can.
func TestTrySendLongMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		a, b := w.Node(1, 1, nil), w.Node(2, 1, nil)
		defer a.Close()
		defer b.Close()
		s, err := a.Sender(address(2, 1), 0)
		wantNil(t, err)
		msg := pattern(10<<20, 1)
		wantNil(t, s.TrySend(msg, relay.SendOptions{}))
		if err := s.TrySend(msg, relay.SendOptions{}); !errors.Is(err, relay.ErrWouldBlock) {
			t.Errorf("another one: %v, want ErrWouldBlock", err)
		}
		r, err := b.Next(t.Context())
		wantNil(t, err)
		if got, _ := recv(t, r, t.Context()); string(got) != string(msg) {
			t.Error("the message is not what was sent")
		}
		wantNil(t, s.Flush(t.Context()))
		if err := s.TrySend(make([]byte, 80<<20), relay.SendOptions{}); !errors.Is(err, relay.ErrLimit) {
			t.Errorf("a message of 80 MiB: %v, want ErrLimit", err)
		}
		if held := a.Stats().SendHeld; held != 0 {
			t.Errorf("%d bytes are held", held)
		}
	})
}
