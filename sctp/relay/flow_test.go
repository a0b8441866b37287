package relay_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/frame"
)

// recv reads a whole message.
func recv(t testing.TB, r *relay.Receiver, ctx context.Context) ([]byte, relay.Info) {
	t.Helper()
	var msg []byte
	buf := make([]byte, 10_000)
	for {
		n, info, err := r.Recv(ctx, buf)
		if err != nil {
			t.Fatalf("Recv after %d bytes: %v", len(msg), err)
		}
		if msg = append(msg, buf[:n]...); info.EOR {
			return msg, info
		}
	}
}

func pattern(n int, seed uint64) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

// Boundaries, PPID, order and the unordered flag survive 1, 2 and 3 gateways; a message to a process of
// the same site, or to the process itself, takes one.
func TestMessages(t *testing.T) {
	for _, mode := range []relay.Mode{relay.Piecewise, relay.Chained} {
		for _, to := range []uint16{1, 2, 3} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, 3, 1, true, nil)
				defer w.Close()
				w.connected()
				a := w.Node(1, 1, func(c *relay.NodeConfig) { c.Mode = mode })
				defer a.Close()
				b := w.Node(to, 2, nil)
				defer b.Close()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				s, err := a.Sender(address(to, 2), 5)
				wantNil(t, err)
				sizes := []int{1, 100, 1408, 1409, 5000, 1 << 18}
				if to == 3 {
					sizes = append(sizes, relay.DefaultFlowWindow+1)
				}
				go func() {
					for i, n := range sizes {
						msg, header := pattern(n, uint64(i)), 0
						if i%2 == 1 {
							header = min(n, 1500) // all of the message, or more than a frame
						}
						o := relay.SendOptions{PPID: uint32(i), Unordered: n == 5000, Header: msg[:header]}
						if err := s.Send(ctx, msg[header:], o); err != nil {
							t.Errorf("Send of %d bytes: %v", n, err)
						}
					}
				}()
				r, err := b.Next(ctx)
				wantNil(t, err)
				if r.Origin() != address(1, 1) || r.Stream() != 5 {
					t.Errorf("flow from %v on stream %d", r.Origin(), r.Stream())
				}
				for i, n := range sizes {
					msg, info := recv(t, r, ctx)
					if !bytes.Equal(msg, pattern(n, uint64(i))) || info.PPID != uint32(i) || info.Unordered != (n == 5000) {
						t.Fatalf("message %d of %d bytes: got %d bytes, %+v", i, n, len(msg), info)
					}
				}
				wantNil(t, a.Shutdown(ctx))
			})
		}
	}
}

// Unordered messages of one frame overtake those that a loss holds up.
func TestUnordered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		a, b := w.Node(1, 1, nil), w.Node(2, 1, nil)
		defer a.Close()
		defer b.Close()
		lossy := wan
		lossy.Loss = 0.1
		w.SetWAN(lossy)
		s, err := a.Sender(address(2, 1), 0)
		wantNil(t, err)
		const messages = 3000
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			for i := range messages {
				if err := s.Send(ctx, []byte{byte(i >> 8), byte(i), 0}, relay.SendOptions{Unordered: true}); err != nil {
					t.Error(err)
				}
			}
		}()
		r, err := b.Next(ctx)
		wantNil(t, err)
		seen := make(map[int]bool)
		overtook := 0
		for next := 0; len(seen) < messages; next++ {
			msg, info := recv(t, r, ctx)
			i := int(msg[0])<<8 | int(msg[1])
			if seen[i] || !info.Unordered || len(msg) != 3 {
				t.Fatalf("message %d: seen before %t, %+v", i, seen[i], info)
			}
			seen[i] = true
			if i != next {
				overtook++
			}
		}
		if overtook == 0 {
			t.Error("no message overtook another one")
		}
	})
}

// A process that restarts is another one: the flow of its peer ends, and its own flows begin anew.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a, b := w.Node(1, 1, nil), w.Node(2, 1, nil)
		defer a.Close()
		s, err := a.Sender(address(2, 1), 0)
		wantNil(t, err)
		back, err := b.Sender(address(1, 1), 0)
		wantNil(t, err)
		for range 3 {
			wantNil(t, s.Send(ctx, []byte("to the first life"), relay.SendOptions{}))
			wantNil(t, back.Send(ctx, []byte("from the first life"), relay.SendOptions{}))
		}
		wantNil(t, s.Flush(ctx))
		wantNil(t, back.Flush(ctx))
		b.Close()
		time.Sleep(time.Second)
		b = w.Node(2, 1, nil)
		defer b.Close()
		wantNil(t, s.Send(ctx, []byte("to the second life"), relay.SendOptions{}))
		if err := s.Flush(ctx); !errors.Is(err, relay.ErrRestarted) {
			t.Errorf("Flush to a process that restarted: %v, want ErrRestarted", err)
		}
		if got := b.Stats(); len(got.Receivers) != 0 {
			t.Errorf("the second life has flows of the first: %+v", got.Receivers)
		}
		back, err = b.Sender(address(1, 1), 0)
		wantNil(t, err)
		wantNil(t, back.Send(ctx, []byte("from the second life"), relay.SendOptions{}))
		// What the first life sent can be read, then the flow ends, and another one begins.
		old, err := a.Next(ctx)
		wantNil(t, err)
		for range 3 {
			if msg, _ := recv(t, old, ctx); string(msg) != "from the first life" {
				t.Errorf("got %q", msg)
			}
		}
		wantNil(t, back.Flush(ctx))
		if _, _, err := old.Recv(ctx, make([]byte, 1)); !errors.Is(err, relay.ErrRestarted) {
			t.Errorf("Recv of the former flow: %v, want ErrRestarted", err)
		}
		for {
			r, err := a.Next(ctx)
			wantNil(t, err)
			if r != old {
				if msg, _ := recv(t, r, ctx); string(msg) != "from the second life" {
					t.Errorf("got %q", msg)
				}
				return
			}
		}
	})
}

// A flow that ends in a message tells its reader so, and gives it what came beside; then it is not returned by Next any more.
func TestEndInMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1, 1, false, nil)
		defer w.Close()
		b := w.Node(1, 1, nil)
		defer b.Close()
		x := w.intrude(t, "10.1.0.99", lanAddr(1, 1), relay.DefaultGatewayLAN)
		defer x.tr.Close()
		x.prove(nodeGreeting(1, 9), jobKey)
		x.wantUp()
		send := func(typ frame.Type, flags frame.Flags, incarnation uint32, text string) {
			x.send(frame.Append(nil, &frame.Frame{Header: frame.Header{
				Type: typ, Flags: flags | frame.Fresh, Hops: 7, Job: testJob, From: address(1, 9), To: address(1, 1), Incarnation: incarnation,
			}, PPID: 51, Payload: []byte(text)}))
			time.Sleep(10 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		send(frame.Data, frame.First, 1, "the beginning")
		r, err := b.Next(ctx)
		wantNil(t, err)
		buf := make([]byte, 100)
		if n, info, err := r.TryRecv(buf); string(buf[:n]) != "the beginning" || info.EOR || err != nil {
			t.Errorf("got %q, %+v, %v", buf[:n], info, err)
		}
		send(frame.Single, 0, 1, "beside")
		send(frame.Data, frame.First|frame.Last, 2, "another life")
		if n, info, err := r.TryRecv(buf); n != 0 || !info.EOR || !info.Aborted || info.PPID != 51 || err != nil {
			t.Errorf("end of the message: got %q, %+v, %v", buf[:n], info, err)
		}
		if n, info, err := r.TryRecv(buf); string(buf[:n]) != "beside" || !info.EOR || !info.Unordered || info.Aborted || err != nil {
			t.Errorf("got %q, %+v, %v", buf[:n], info, err)
		}
		if n, _, err := r.TryRecv(buf); n != 0 || !errors.Is(err, relay.ErrRestarted) {
			t.Errorf("end of the flow: got %q, %v", buf[:n], err)
		}
		for {
			o, err := b.Next(ctx)
			wantNil(t, err)
			if o == r {
				continue
			}
			if n, _, err := o.TryRecv(buf); string(buf[:n]) != "another life" || err != nil {
				t.Errorf("got %q, %v", buf[:n], err)
			}
			break
		}
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if o, err := b.Next(short); err == nil {
			t.Errorf("flow from %v is returned again", o.Origin())
		}
	})
}

// A message whose Send gives up in its midst is told of, and the flow goes on.
func TestSendGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		a, b := w.Node(1, 1, nil), w.Node(2, 1, nil)
		defer a.Close()
		defer b.Close()
		s, err := a.Sender(address(2, 1), 0)
		wantNil(t, err)
		short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := s.Send(short, make([]byte, 20<<20), relay.SendOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Send to a reader that does not read: %v", err)
		}
		if err := s.TrySend([]byte("x"), relay.SendOptions{}); !errors.Is(err, relay.ErrWouldBlock) {
			t.Errorf("TrySend beyond the window: %v, want ErrWouldBlock", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := b.Next(ctx)
		wantNil(t, err)
		msg, info := recv(t, r, ctx)
		if !info.Aborted || len(msg) < relay.DefaultFlowWindow/2 {
			t.Errorf("got %d bytes, %+v; want the beginning, aborted", len(msg), info)
		}
		wantNil(t, s.Send(ctx, []byte("next"), relay.SendOptions{}))
		if msg, info := recv(t, r, ctx); string(msg) != "next" || info.Aborted {
			t.Errorf("got %q, %+v", msg, info)
		}
	})
}
