package ddprelay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/internal/relaytest"
	"github.com/weftstack/weft/sctp/relay"
)

// Sessions of both sides share an association, whoever dials, also at the same time; segments come once, and are
// released when the peer's process has them, a round trip of the long leg later.
func TestSessions(t *testing.T) {
	world(t, func(t *testing.T, w *relaytest.World) {
		a, b := newHost(t, w, 1, 1, nil), newHost(t, w, 2, 1, nil)
		defer a.close()
		defer b.close()
		if first := a.dial(b); first != a.dial(b) {
			t.Error("a second association")
		}
		for i := range 20 {
			from, to := a, b
			if i%3 == 0 {
				from, to = b, a
			}
			s := initiate(t, from.dial(to))
			time.Sleep(100 * time.Millisecond)
			if _, answers, _, lost := s.state(); answers != 1 || lost != nil {
				t.Fatalf("session %d: %d answers, lost %v", i, answers, lost)
			}
			began := time.Now()
			var o owner
			s.send(t, &o, 50, s.session.MULPDU()-100)
			time.Sleep(10 * time.Second)
			sinks := to.accepted()
			if got, _, _, _ := sinks[len(sinks)-1].state(); got != 50 {
				t.Errorf("session %d: %d segments came, want 50", i, got)
			}
			if n, err := o.state(); n != 50 || err != nil || o.when.Sub(began) < 18*time.Millisecond {
				t.Errorf("session %d: %d segments released after %v, error %v", i, n, o.when.Sub(began), err)
			}
		}
		for _, h := range []*host{a, b} {
			if st := h.Stats(); st.Associations != 1 || st.Dropped+st.Killed+st.Malformed+st.Unknown+st.Violations != 0 {
				t.Errorf("%+v", st)
			}
		}
	})
}

func TestDialAtOnce(t *testing.T) {
	world(t, func(t *testing.T, w *relaytest.World) {
		a, b := newHost(t, w, 1, 1, nil), newHost(t, w, 2, 1, nil)
		defer a.close()
		defer b.close()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { initiate(t, a.dial(b)) })
			wg.Go(func() { initiate(t, b.dial(a)) })
		}
		wg.Wait()
		time.Sleep(time.Minute) // no association is on trial
		if n := len(a.accepted()) + len(b.accepted()); n != 20 {
			t.Errorf("%d sessions, want 20", n)
		}
		if n := a.Associations()[b.process.Address()]; n < 1 || n > 2 {
			t.Errorf("%d associations, want one for each side that dials at most", n)
		}
	})
}

func TestDialErrors(t *testing.T) {
	world(t, func(t *testing.T, w *relaytest.World) {
		a := newHost(t, w, 1, 1, func(c *relay.NodeConfig) { c.PeerTimeout = 3 * time.Second })
		defer a.close()
		b := newHost(t, w, 2, 1, nil)
		defer b.close()
		if _, err := a.tryDial(a, time.Second); !errors.Is(err, ddpsctp.ErrSelf) {
			t.Errorf("Dial of itself: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := a.Dial(ctx, relaytest.Address(2, 9)); !errors.Is(err, relay.ErrUnreachable) {
			t.Errorf("Dial of a process that is not there: %v", err)
		}
		var refused *relay.RefusedError
		if _, err := a.Dial(ctx, relaytest.Address(7, 1)); !errors.As(err, &refused) {
			t.Errorf("Dial of a site that is not there: %v", err)
		}
		if _, err := a.Dial(ctx, relay.Address{}); !errors.Is(err, relay.ErrAddress) {
			t.Errorf("Dial of no process: %v", err)
		}
		_ = b.Endpoint.Close()
		if _, err := a.tryDial(b, 2*time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Dial of a process without endpoint: %v", err)
		}
		// One that waits gets the endpoint that comes later.
		done := make(chan error)
		go func() {
			_, err := a.tryDial(b, time.Minute)
			done <- err
		}()
		time.Sleep(8 * time.Second)
		b.listen(nil)
		if err := <-done; err != nil {
			t.Errorf("Dial: %v", err)
		}
		_ = a.Endpoint.Close()
		if _, err := a.tryDial(b, time.Second); !errors.Is(err, ddpsctp.ErrClosed) {
			t.Errorf("Dial of a closed endpoint: %v", err)
		}
		if err := a.Endpoint.Close(); !errors.Is(err, ddpsctp.ErrClosed) {
			t.Errorf("second Close: %v", err)
		}
		if _, err := Listen(b.process.Node, 0, Config{}); !errors.Is(err, ErrService) {
			t.Errorf("second endpoint of a service: %v", err)
		}
		if _, err := Listen(b.process.Node, MaxService+1, Config{}); !errors.Is(err, ErrService) {
			t.Errorf("service %d: %v", MaxService+1, err)
		}
		if e, err := Listen(b.process.Node, MaxService, Config{}); err != nil {
			t.Errorf("service %d: %v", MaxService, err)
		} else {
			_ = e.Close()
		}
	})
}

// The ends of an association: the peer's endpoint closes, its process restarts, cannot be reached, or this side
// aborts. Each session learns of it once, with the reason, though it sends nothing; what was sent is released.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func(w *relaytest.World, a, b *host, as *ddpsctp.Association)
		within time.Duration
		want   func(error) bool
	}{
		{"close", func(_ *relaytest.World, _, b *host, _ *ddpsctp.Association) { _ = b.Endpoint.Close() }, time.Second,
			func(err error) bool {
				var e *AbortError
				return errors.As(err, &e) && e.ByPeer && e.Reason == "endpoint closed" && strings.Contains(e.Error(), "2/1/1")
			}},
		{"restart", func(w *relaytest.World, _, b *host, _ *ddpsctp.Association) {
			b.process.Close()
			time.Sleep(time.Millisecond)
			b.process = w.Node(2, 1, nil)
			b.listen(nil)
		}, KeepAlive + 2*time.Second, func(err error) bool { return errors.Is(err, relay.ErrRestarted) }},
		{"death", func(_ *relaytest.World, _, b *host, _ *ddpsctp.Association) { b.process.Close() }, KeepAlive + 5*time.Second,
			func(err error) bool { return errors.Is(err, relay.ErrUnreachable) }},
		{"abort", func(_ *relaytest.World, _, _ *host, as *ddpsctp.Association) { as.Link().Abort("enough") }, time.Second,
			func(err error) bool {
				var e *AbortError
				return errors.As(err, &e) && e.Reason == "enough" && !e.ByPeer
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			world(t, func(t *testing.T, w *relaytest.World) {
				a := newHost(t, w, 1, 1, func(c *relay.NodeConfig) { c.PeerTimeout = 3 * time.Second })
				b := newHost(t, w, 2, 1, nil)
				defer a.close()
				defer func() { b.close() }()
				as := a.dial(b)
				sessions := []*sink{initiate(t, as), initiate(t, as)}
				time.Sleep(20 * time.Second) // idle
				peers := b.accepted()
				c.end(w, a, b, as)
				time.Sleep(c.within)
				for i, s := range sessions {
					if _, _, _, lost := s.state(); !c.want(lost) {
						t.Errorf("session %d: %v", i, lost)
					}
				}
				if c.name == "abort" {
					for _, s := range peers {
						var e *AbortError
						if _, _, _, lost := s.state(); !errors.As(lost, &e) || !e.ByPeer || e.Reason != "enough" {
							t.Errorf("peer's session: %v", lost)
						}
					}
				}
				if st := a.Stats(); st.Associations != 0 {
					t.Errorf("%+v", st)
				}
				a.mu.Lock()
				if n := len(a.events); n != 2 || !strings.HasPrefix(a.events[1], "down 2/1/1: ") {
					t.Errorf("events %q", a.events)
				}
				a.mu.Unlock()
				var o owner
				if _, err := as.Initiate(sessions[0], sessions[0].bind, nil, nil); err == nil {
					t.Error("a session on an association that has ended")
				}
				if c.name == "restart" || c.name == "abort" { // another one can be opened at once
					s := initiate(t, a.dial(b))
					time.Sleep(time.Second)
					s.send(t, &o, 10, 1000)
					time.Sleep(time.Second)
					if n, err := o.state(); n != 10 || err != nil {
						t.Errorf("%d segments of another session released, error %v", n, err)
					}
				}
			})
		})
	}
}

// What the peer does not confirm is released when the association ends, at once, though the flow goes on to try.
func TestAbortReleases(t *testing.T) {
	world(t, func(t *testing.T, w *relaytest.World) {
		a, b := newHost(t, w, 1, 1, nil), newHost(t, w, 2, 1, nil)
		defer a.close()
		defer b.close()
		as := a.dial(b)
		s := initiate(t, as)
		time.Sleep(time.Second)
		w.CutNode(2, 1)
		var o owner
		s.send(t, &o, 6000, 1000) // more than the flow takes
		time.Sleep(time.Second)
		if n, _ := o.state(); n != 0 {
			t.Errorf("%d segments released", n)
		}
		as.Link().Abort("no patience")
		time.Sleep(time.Millisecond)
		if n, err := o.state(); n != 6000 || err == nil {
			t.Errorf("%d segments released, error %v, want 6000", n, err)
		}
	})
}

// A process that was not talked to for long may have restarted: Dial finds its next life.
func TestDialAfterRestart(t *testing.T) {
	world(t, func(t *testing.T, w *relaytest.World) {
		a, b := newHost(t, w, 1, 1, nil), newHost(t, w, 2, 1, nil)
		defer a.close()
		as := a.dial(b)
		as.Link().Abort("done")
		time.Sleep(time.Second)
		b.close()
		b = newHost(t, w, 2, 1, nil)
		defer b.close()
		s := initiate(t, a.dial(b))
		time.Sleep(time.Second)
		if _, answers, _, lost := s.state(); answers != 1 || lost != nil {
			t.Errorf("%d answers, %v", answers, lost)
		}
	})
}

// A gateway that dies, and comes back, is a pause.
func TestGatewayKilled(t *testing.T) {
	world(t, func(t *testing.T, w *relaytest.World) {
		a, b := newHost(t, w, 1, 1, nil), newHost(t, w, 2, 1, nil)
		defer a.close()
		defer b.close()
		s := initiate(t, a.dial(b))
		time.Sleep(time.Second)
		var o owner
		for range 10 {
			s.send(t, &o, 300, 1200)
			time.Sleep(3 * time.Millisecond)
			w.Kill(2, 1)
			s.send(t, &o, 300, 1200) // without a leg, too
			time.Sleep(time.Second)
			w.Revive(2, 1)
			time.Sleep(4 * time.Second)
		}
		time.Sleep(5 * time.Second)
		got, _, _, lost := b.accepted()[0].state()
		if n, err := o.state(); n != 6000 || got != 6000 || err != nil || lost != nil {
			t.Errorf("%d segments came, %d released, errors %v, %v, want 6000", got, n, err, lost)
		}
	})
}

// Peers that open associations, and no session, are few at a time, and lose them.
func TestTrials(t *testing.T) {
	world(t, func(t *testing.T, w *relaytest.World) {
		b := newHost(t, w, 2, 1, nil)
		defer b.close()
		x := newSpeaker(t, w, 1, b)
		defer x.process.Close()
		// One at a time of each peer: a further one takes the place of the former.
		for i := range uint32(100) {
			x.message(message{kind: open, streams: 8, own: i + 1})
		}
		time.Sleep(time.Second)
		b.Endpoint.mu.Lock()
		n, trials := len(b.tags), b.trials
		b.Endpoint.mu.Unlock()
		if n != 1 || trials != 1 {
			t.Errorf("%d associations, %d on trial, want 1 of a peer", n, trials)
		}
		b.Endpoint.mu.Lock()
		b.trials += MaxTrials // of others
		b.Endpoint.mu.Unlock()
		y := newSpeaker(t, w, 2, b)
		defer y.process.Close()
		y.message(message{kind: open, streams: 8, own: 77})
		if m := y.want(abort); m.tag != 77 || !strings.Contains(m.reason, fmt.Sprint(MaxTrials)) || b.Stats().RefusedAssociations != 1 {
			t.Errorf("answered by %+v, %+v", m, b.Stats())
		}
		b.Endpoint.mu.Lock()
		b.trials -= MaxTrials
		b.Endpoint.mu.Unlock()
		if m := x.want(abort); !strings.Contains(m.reason, "in time") {
			t.Errorf("the trial ended with %+v", m)
		}
		y.message(message{kind: open, streams: 8, own: 78})
		tag := y.want(opened).own
		y.send(0, ddpsctp.PPIDControl, session(tag, 0, 0, 0, 1))
		time.Sleep(time.Minute)
		b.Endpoint.mu.Lock()
		n, trials = len(b.tags), b.trials
		b.Endpoint.mu.Unlock()
		if n != 1 || trials != 0 {
			t.Errorf("%d associations, %d on trial, want the one with a session", n, trials)
		}
	})
}
