package sctp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// upcallLog has the upcalls of an association, each of which takes some time.
type upcallLog struct {
	mu  sync.Mutex
	b   *sctp.Association
	got []string
}

func (l *upcallLog) add(s string, d time.Duration) {
	l.mu.Lock()
	l.got = append(l.got, s)
	l.mu.Unlock()
	time.Sleep(d)
}

func (l *upcallLog) config(d time.Duration, noInterleaving bool) *sctp.Config {
	return &sctp.Config{NoInterleaving: noInterleaving,
		OnAssociation: func(a *sctp.Association) { l.b = a },
		OnPiece:       func(_ *sctp.Association, p *sctp.Piece) { l.add(string(p.Data), d) },
		OnNotify: func(_ *sctp.Association, n sctp.Notification) {
			switch n.Kind {
			case sctp.NotifyShutdown, sctp.NotifyDown, sctp.NotifyRestart:
				l.add(n.Kind.String(), d)
			}
		}}
}

// fill sends messages to an association that holds them back, and lets go of them: their
// upcalls, one after the other, begin on a goroutine that receives no packets.
func (l *upcallLog) fill(t *testing.T, a *sctp.Association, n int) {
	t.Helper()
	synctest.Wait()
	l.b.PauseStream(1, true)
	for range n {
		if err := a.Send(t.Context(), []byte("old"), sctp.SendOptions{Stream: 1}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second) // all is acknowledged
	l.b.PauseStream(1, false)
}

// In upcall mode the end that the peer makes is told after all the data that came before it,
// also where the callbacks are far behind the network.
func TestTheEndIsToldAfterTheDataBeforeIt(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(*sctp.Association) error
		told []string
	}{
		{"Shutdown", func(a *sctp.Association) error { return a.Shutdown(context.Background()) }, []string{"shutdown", "down"}},
		{"Abort", func(a *sctp.Association) error { a.Abort("test"); return nil }, []string{"down"}},
	} {
		for _, n := range []int{1, 64, 65, 200} {
			t.Run(fmt.Sprintf("%s/%d", tc.name, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var l upcallLog
					p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, nil, l.config(5*time.Millisecond, n%2 == 0))
					l.fill(t, p.a, n)
					if err := tc.end(p.a); err != nil {
						t.Fatal(err)
					}
					<-l.b.Done()
					if want := slices.Concat(slices.Repeat([]string{"old"}, n), tc.told); !slices.Equal(l.got, want) {
						t.Errorf("the order is %v", l.got)
					}
				})
			})
		}
	}
}

// In upcall mode a restart of the peer is told between the data of its earlier life that was
// delivered and that of its new one; so is a shutdown of its earlier life before it, also one
// that waits for data that is dropped.
func TestRestartIsToldBetweenTheData(t *testing.T) {
	for _, shut := range []bool{false, true} {
		for _, wait := range []time.Duration{0, 700 * time.Millisecond} {
			t.Run(fmt.Sprintf("Shutdown=%v/%v", shut, wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var l upcallLog
					r := newRestarting(t, l.config(10*time.Millisecond, false))
					l.fill(t, r.a, 500)
					if shut {
						r.shutdown(l.b)
					}
					time.Sleep(wait) // another batch of pieces is taken
					r.restart()
					for range 100 {
						if err := r.a.Send(t.Context(), []byte("new"), sctp.SendOptions{Stream: 1}); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(10 * time.Second)
					l.mu.Lock()
					defer l.mu.Unlock()
					want := "old restart new"
					if shut {
						want = "old shutdown restart new"
					}
					if s := strings.Join(slices.Compact(slices.Clone(l.got)), " "); s != want {
						t.Errorf("the order is %q", s)
					}
					if n := len(slices.DeleteFunc(slices.Clone(l.got), func(s string) bool { return s != "new" })); n != 100 {
						t.Errorf("%d messages after the restart", n)
					}
				})
			})
		}
	}
}

// After a restart of a peer that was shutting down there is more to receive.
func TestReceiveAfterARestartDuringShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRestarting(t, nil)
		b, err := r.eb.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.shutdown(b)
		r.restart()
		time.Sleep(time.Second)
		if n, _, err := b.TryRecv(make([]byte, 10)); !errors.Is(err, sctp.ErrWouldBlock) {
			t.Errorf("TryRecv after the restart: %d bytes, %v", n, err)
		}
		if err := r.a.Send(t.Context(), []byte("new"), sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, _ := recvMessage(t, b, make([]byte, 10)); string(got) != "new" {
			t.Errorf("received %q", got)
		}
	})
}

// restarting is a peer that can lose its memory.
type restarting struct {
	t  *testing.T
	n  *sctptest.Network
	h  *sctptest.Host
	ta *sctp.Transport
	a  *sctp.Association
	eb *sctp.Endpoint
}

func newRestarting(t *testing.T, cfg *sctp.Config) *restarting {
	t.Helper()
	r := &restarting{t: t, n: sctptest.NewNetwork(1)}
	r.n.SetDefault(sctptest.Link{Delay: time.Millisecond})
	eb, err := memTransport(t, r.n.NewHost(addrB)).Listen(serverPort, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.eb, r.h = eb, r.n.NewHost(addrA)
	r.begin()
	return r
}

func (r *restarting) begin() {
	r.t.Helper()
	r.ta = memTransport(r.t, r.h)
	e, err := r.ta.Listen(6000, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.a, err = e.Connect(r.t.Context(), r.eb.Addr()); err != nil {
		r.t.Fatal(err)
	}
}

// restart has the peer begin anew, without its ABORT.
func (r *restarting) restart() {
	r.t.Helper()
	r.n.Cut(addrA, addrB)
	r.ta.Close()
	r.n.Restore(addrA, addrB)
	r.begin()
}

// shutdown has the peer begin a shutdown that b cannot complete: the peer, which does not read,
// has no room for what b has queued.
func (r *restarting) shutdown(b *sctp.Association) {
	r.t.Helper()
	for {
		if err := b.TrySend(make([]byte, 1<<16), sctp.SendOptions{}); errors.Is(err, sctp.ErrWouldBlock) {
			break
		} else if err != nil {
			r.t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := r.a.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		r.t.Fatalf("Shutdown: %v", err)
	}
}
