package relay_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
)

// A flow that has ended can be begun again by the same process: after a restart of its target, and after the target
// could not be reached. The target, if it is the same, has the former flow end and gets another one; what was left of
// the former one does not get into it.
func TestFlowBegunAgain(t *testing.T) {
	for _, incarnation := range []uint32{0, 1000} { // from the clock, given
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, 2, 1, false, nil)
			defer w.Close()
			w.connected()
			a := w.Node(1, 1, func(c *relay.NodeConfig) {
				c.PeerTimeout, c.Incarnation = 2*time.Second, incarnation
			})
			defer a.Close()
			b := w.Node(2, 1, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begin := func() *relay.Sender {
				s, err := a.Sender(address(2, 1), 3)
				wantNil(t, err)
				return s
			}
			want := func(r *relay.Receiver, text string) {
				t.Helper()
				if msg, _ := recv(t, r, ctx); string(msg) != text {
					t.Fatalf("got %q, want %q", msg, text)
				}
			}
			s := begin()
			wantNil(t, s.Send(ctx, []byte("first"), relay.SendOptions{}))
			r, err := b.Next(ctx)
			wantNil(t, err)
			want(r, "first")
			wantNil(t, s.Flush(ctx))
			if begin() != s {
				t.Error("another sender of a flow that has not ended")
			}

			// The target is out of reach for longer than the peer timeout.
			w.Cut(2, 1, w.Net.Cut)
			wantNil(t, s.Send(ctx, []byte("lost"), relay.SendOptions{}))
			if err := s.Flush(ctx); !errors.Is(err, relay.ErrUnreachable) {
				t.Fatalf("Flush: %v", err)
			}
			w.Cut(2, 1, w.Net.Restore)
			w.connected()
			again := begin()
			if again == s {
				t.Fatal("the sender that has ended")
			}
			wantNil(t, again.Send(ctx, []byte("second"), relay.SendOptions{}))
			wantNil(t, again.Flush(ctx))
			for {
				if _, _, err := r.Recv(ctx, make([]byte, 10)); err != nil {
					if !errors.Is(err, relay.ErrRestarted) {
						t.Errorf("former flow: %v", err)
					}
					break
				}
				t.Error("a message of the former flow arrived that its origin has given up")
			}
			for next := r; next == r; {
				next, err = b.Next(ctx)
				wantNil(t, err)
				if next != r {
					want(next, "second")
				}
			}

			// The origin ends the flow while a call waits.
			short, stop := context.WithTimeout(ctx, time.Minute)
			time.AfterFunc(time.Second, again.End)
			err = again.Send(short, make([]byte, 2*relay.DefaultFlowWindow), relay.SendOptions{})
			stop()
			if !errors.Is(err, relay.ErrClosed) {
				t.Errorf("Send on a flow that was ended: %v", err)
			}
			if held := a.Stats().SendHeld; held != 0 {
				t.Errorf("%d bytes are held for a flow that was ended", held)
			}
			again = begin()
			wantNil(t, again.Send(ctx, []byte("anew"), relay.SendOptions{}))
			for anew := false; !anew; {
				r, err := b.Next(ctx)
				wantNil(t, err)
				buf := make([]byte, 1<<20)
				for {
					n, info, err := r.TryRecv(buf)
					if err != nil {
						break
					}
					if anew = string(buf[:n]) == "anew"; anew && !info.EOR {
						t.Error("a rest of the former flow")
					}
				}
			}
			wantNil(t, again.Flush(ctx))

			// The target restarts.
			b.Close()
			time.Sleep(2 * time.Second)
			b = w.Node(2, 1, nil)
			defer b.Close()
			wantNil(t, again.Send(ctx, []byte("lost"), relay.SendOptions{}))
			if err := again.Flush(ctx); !errors.Is(err, relay.ErrRestarted) {
				t.Fatalf("Flush: %v", err)
			}
			third := begin()
			wantNil(t, third.Send(ctx, []byte("third"), relay.SendOptions{}))
			r, err = b.Next(ctx)
			wantNil(t, err)
			want(r, "third")
			wantNil(t, third.Flush(ctx))
		})
	}
}
