package relay_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/frame"
)

// A range of streams goes to its handler, also what came before there was one; other streams go to the node's own reader.
// When the handler has left, what comes is dropped, and confirmed.
func TestHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		a, b := w.Node(1, 1, nil), w.Node(2, 1, nil)
		defer a.Close()
		defer b.Close()
		send := func(stream uint16, text string) {
			t.Helper()
			s, err := a.Sender(b.Address(), stream)
			wantNil(t, err)
			wantNil(t, s.Send(t.Context(), []byte(text), relay.SendOptions{Unordered: true}))
			wantNil(t, s.Flush(t.Context()))
		}
		var got []string
		h := relay.Handler{OnFragment: func(r *relay.Receiver, f *relay.Fragment) { got = append(got, string(f.Data)) }}
		send(100, "early")
		wantNil(t, b.Handle(100, 107, h))
		if len(got) != 1 || got[0] != "early" {
			t.Errorf("the handler got %q before Handle returned", got)
		}
		send(107, "second")
		send(108, "other")
		if len(got) != 2 || got[1] != "second" {
			t.Errorf("the handler got %q", got)
		}
		for {
			r, err := b.Next(t.Context())
			wantNil(t, err)
			if r.Stream() == 108 {
				if msg, _ := recv(t, r, t.Context()); string(msg) != "other" {
					t.Errorf("got %q", msg)
				}
				break
			}
		}
		for _, r := range [][2]uint16{{107, 110}, {90, 100}, {0, 65535}, {101, 102}, {100, 107}, {200, 100}} {
			if err := b.Handle(r[0], r[1], h); !errors.Is(err, relay.ErrConfig) {
				t.Errorf("Handle(%d, %d): %v, want ErrConfig", r[0], r[1], err)
			}
		}
		b.Unhandle(100, 107)
		send(100, "dropped")
		send(101, "dropped")
		if len(got) != 2 || b.Stats().RecvHeld != 0 {
			t.Errorf("the handler got %q, %d bytes are held", got, b.Stats().RecvHeld)
		}
		wantNil(t, b.Handle(100, 107, h))
		send(100, "again")
		send(101, "too")
		if len(got) != 4 {
			t.Errorf("the handler got %q", got)
		}
	})
}

// owner counts what it is told.
type owner struct {
	n   atomic.Int32
	err atomic.Pointer[error]
}

func (o *owner) Released(err error) {
	o.n.Add(1)
	if err != nil {
		o.err.Store(&err)
	}
}

// Each message's owner is told once: when the target has it, or at the end of the flow.
func TestOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 2, false, nil)
		defer w.Close()
		bad := wan
		bad.Loss, bad.Duplicate, bad.Reorder = 0.02, 0.02, 0.02
		w.SetWAN(bad)
		w.connected()
		var got atomic.Int64
		a := w.Node(1, 1, func(c *relay.NodeConfig) { c.PeerTimeout = 2 * time.Second })
		b := w.Node(2, 1, func(c *relay.NodeConfig) {
			c.OnFragment = func(_ *relay.Receiver, f *relay.Fragment) {
				if f.End {
					got.Add(1)
				}
			}
		})
		defer a.Close()
		s, err := a.Sender(b.Address(), 1)
		wantNil(t, err)
		const n = 3000
		owners := make([]owner, n)
		sizes := []int{1, 100, a.MaxPayload(), a.MaxPayload() + 1, 5000}
		for i := range owners {
			o := relay.SendOptions{Unordered: i%3 > 0, Owner: &owners[i], More: i%7 > 0, AckNow: i == n-1}
			for {
				err := s.TrySend(pattern(sizes[i%len(sizes)], 1), o)
				if err == nil {
					break
				}
				if !errors.Is(err, relay.ErrWouldBlock) {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
			}
			switch i {
			case n / 3:
				w.Kill(1, 1)
			case n / 2:
				w.Revive(1, 1)
			}
		}
		wantNil(t, s.Flush(t.Context()))
		time.Sleep(time.Second)
		for i := range owners {
			if k, e := owners[i].n.Load(), owners[i].err.Load(); k != 1 || e != nil {
				t.Fatalf("owner of message %d was told %d times, error %v", i, k, e)
			}
		}
		if got.Load() != n {
			t.Errorf("%d messages arrived, want %d", got.Load(), n)
		}
		b.Close()
		var last owner
		wantNil(t, s.TrySend([]byte("lost"), relay.SendOptions{Owner: &last}))
		time.Sleep(5 * time.Second)
		if e := last.err.Load(); last.n.Load() != 1 || e == nil || !errors.Is(*e, relay.ErrUnreachable) {
			t.Errorf("owner was told %d times, error %v", last.n.Load(), e)
		}
		var none owner
		if err := s.TrySend([]byte("no"), relay.SendOptions{Owner: &none}); err == nil || none.n.Load() != 0 {
			t.Errorf("TrySend on a flow that has ended: %v, owner told %d times", err, none.n.Load())
		}
		if h := a.Stats().SendHeld; h != 0 {
			t.Errorf("%d bytes held", h)
		}
	})
}

// What a program holds of what it got closes the window; an origin that ignores the window is not taken from
// beyond twice the window.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window = relay.MinFlowWindow
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		a := w.Node(1, 1, nil)
		defer a.Close()
		var held atomic.Int64
		var r atomic.Pointer[relay.Receiver]
		b := w.Node(2, 1, func(c *relay.NodeConfig) {
			c.FlowWindow = window
			c.OnFragment = func(f *relay.Receiver, p *relay.Fragment) {
				f.Hold(len(p.Data))
				held.Add(int64(len(p.Data)))
				if f.Origin() == address(1, 1) {
					r.Store(f)
				}
			}
		})
		defer b.Close()
		s, err := a.Sender(b.Address(), 1)
		wantNil(t, err)
		for s.TrySend(pattern(1000, 1), relay.SendOptions{Unordered: true}) == nil {
		}
		time.Sleep(5 * time.Second)
		if n := held.Load(); n < window/4 || n > window {
			t.Errorf("%d bytes came, want up to the window of %d", n, window)
		}
		n := held.Swap(0)
		r.Load().Hold(-int(n))
		time.Sleep(5 * time.Second)
		if held.Load() < window/4 {
			t.Errorf("%d bytes came after the window was opened", held.Load())
		}

		// A process that knows no window.
		held.Store(0)
		x := w.intrude(t, "10.1.0.9", lanAddr(1, 1), relay.DefaultGatewayLAN)
		defer x.tr.Close()
		g := frame.Greeting{Role: frame.RoleNode, From: address(1, 9), Job: testJob, Incarnation: 5, Site: 1}
		x.prove(g, jobKey)
		x.wantUp()
		for i := range uint32(400) {
			x.send(frame.Append(nil, &frame.Frame{Header: frame.Header{
				Type: frame.Single, Flags: frame.First | frame.Last | frame.Unordered | frame.Fresh, Hops: frame.MaxHops,
				Stream: 1, Job: testJob, From: address(1, 9), To: b.Address(), Incarnation: 5, Seq: i,
			}, Payload: pattern(1000, 1)}))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		if n := held.Load(); n < window || n > 2*window {
			t.Errorf("%d bytes of a process that ignores the window were taken, want at most %d", n, 2*window)
		}
		var dropped uint64
		for _, f := range b.Stats().Receivers {
			dropped += f.NoMemory
		}
		if dropped == 0 {
			t.Error("no frame was counted as dropped")
		}
	})
}
