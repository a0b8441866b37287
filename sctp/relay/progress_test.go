package relay_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
)

// A flow that TrySend has filled is continued by OnProgress alone, which counts every byte once, and tells of the end of
// the flow.
func TestOnProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		const size, total = 100_000, 200 * 100_000 // five flow windows
		var queued, confirmed, blocked atomic.Int64
		var end atomic.Pointer[error]
		msg := pattern(size, 1)
		feed := func(s *relay.Sender) {
			for queued.Load() < total {
				switch err := s.TrySend(msg[10:], relay.SendOptions{Header: msg[:10], AckNow: true}); {
				case err == nil:
					queued.Add(size)
				case errors.Is(err, relay.ErrWouldBlock):
					blocked.Add(1)
					return
				default:
					t.Error(err)
					return
				}
			}
		}
		a := w.Node(1, 1, func(c *relay.NodeConfig) {
			c.PeerTimeout = 2 * time.Second
			c.OnProgress = func(s *relay.Sender) {
				if s.Value() != "its value" {
					t.Errorf("Value = %v", s.Value())
				}
				n, err := s.Progress()
				confirmed.Store(int64(n))
				if err != nil {
					if old := end.Swap(&err); old != nil {
						t.Errorf("the flow has ended twice: %v, %v", *old, err)
					}
					return
				}
				feed(s)
			}
		})
		defer a.Close()
		var received atomic.Int64
		b := w.Node(2, 1, func(c *relay.NodeConfig) {
			c.OnFragment = func(r *relay.Receiver, f *relay.Fragment) {
				if f.Begin && f.Message == 0 {
					r.SetValue(t)
				} else if r.Value() != t {
					t.Errorf("Value = %v", r.Value())
				}
				received.Add(int64(len(f.Data)))
			}
		})
		s, err := a.Sender(b.Address(), 3)
		wantNil(t, err)
		s.SetValue("its value")
		feed(s)
		time.Sleep(5 * time.Second)
		if q, c, r := queued.Load(), confirmed.Load(), received.Load(); q != total || c != total || r != total {
			t.Errorf("%d bytes queued, %d confirmed, %d received, want %d of each", q, c, r, total)
		}
		if blocked.Load() == 0 {
			t.Error("the flow was never full")
		}
		b.Close() // the flow ends once the target does not answer
		wantNil(t, s.TrySend(msg, relay.SendOptions{}))
		time.Sleep(4 * time.Second)
		if e := end.Load(); e == nil || !errors.Is(*e, relay.ErrUnreachable) {
			t.Errorf("the end of the flow: %v, want ErrUnreachable", e)
		}
		if n, err := s.Progress(); n != total || !errors.Is(err, relay.ErrUnreachable) {
			t.Errorf("Progress = %d, %v", n, err)
		}
	})
}
