package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport"
	"github.com/weftstack/weft/sctp/relay"
)

// owned is an owner that counts.
type owned struct {
	mu   sync.Mutex
	errs []error
	when time.Time
}

func (o *owned) Released(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.errs = append(o.errs, err)
	o.when = time.Now()
}

func (o *owned) state() (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.errs) > 0 {
		err = o.errs[0]
	}
	return len(o.errs), err
}

var modes = []sites.Mode{sites.Piecewise, sites.Chained}

// Messages of all lengths and many tags arrive in order and as they were sent, over one and two hops.
func TestMessages(t *testing.T) {
	for _, mode := range modes {
		for _, hops := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/hops=%d", mode, hops), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, hops+1, mode)
					defer w.close()
					w.start(1, uint16(hops+1))
					w.connect()
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					sizes := []int{0, 1, 100, 3000, 5000, 60_000, 70_000, 300_000, 5 << 20}
					if testenv.Race {
						sizes[8] = 1 << 20
					}
					const tags = 25
					a, b := w.ranks[0].comm, w.ranks[1].comm
					var sends []*p2p.Request
					for k := range 3 * tags {
						n := sizes[k%len(sizes)]
						r, err := a.Isend(p2p.SlotUser, p2p.SendStandard, pattern(n, k), 1, k%tags)
						wantNil(t, err)
						sends = append(sends, r)
					}
					buf := make([]byte, 6<<20)
					for k := range 3 * tags {
						n := sizes[k%len(sizes)]
						st, err := b.Recv(ctx, p2p.SlotUser, buf, 0, p2p.AnyTag)
						wantNil(t, err)
						if st.Tag != k%tags || st.Bytes != n || !bytes.Equal(buf[:n], pattern(n, k)) {
							t.Fatalf("message %d: tag %d, %d bytes, want %d and %d, equal %t", k, st.Tag, st.Bytes, k%tags, n, bytes.Equal(buf[:n], pattern(n, k)))
						}
					}
					for _, r := range sends {
						wantNil(t, r.Await(ctx))
						wantNil(t, r.Err)
					}
					if n := w.link(0, 1).queued.Load(); n != 0 {
						t.Errorf("%d items wait after all have arrived", n)
					}
				})
			})
		}
	}
}

// A body with an owner is released when the relay has copied it in mode piecewise, and when the other process has it in
// mode chained.
func TestReleased(t *testing.T) {
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLinked(t, mode)
				defer w.close()
				time.Sleep(time.Second)
				var o owned
				l := w.link(0, 1)
				begun := time.Now()
				wantNil(t, l.Send(1, eager(1000), make([]byte, 1000), &o))
				if n, _ := o.state(); n != 0 {
					t.Error("released before Flush")
				}
				l.Flush()
				n, _ := o.state()
				if mode == sites.Piecewise && n != 1 {
					t.Errorf("released %d times by Flush, want 1", n)
				}
				time.Sleep(time.Second)
				if n, err := o.state(); n != 1 || err != nil {
					t.Fatalf("released %d times, %v", n, err)
				}
				var empty owned
				wantNil(t, l.Send(1, eager(0), nil, &empty))
				wantNil(t, l.Send(1, eager(0), nil, nil))
				l.Flush()
				time.Sleep(time.Second)
				if n, err := empty.state(); n != 1 || err != nil {
					t.Errorf("the owner of an empty body was released %d times, %v", n, err)
				}
				if d := o.when.Sub(begun); mode == sites.Chained && (d < 18*time.Millisecond || d > 19*time.Millisecond) {
					t.Errorf("released after %v, want one round trip of 18 ms", d)
				}
			})
		})
	}
}

// Send takes bodies without an owner up to a limit in bytes, and everything else without one, while nothing is
// confirmed.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLinked(t, sites.Piecewise)
		defer w.close()
		w.kill(1)
		l := w.link(0, 1)
		var owners [20]owned
		for i := range owners { // more than the relay takes
			wantNil(t, l.Send(1, eager(1<<20), make([]byte, 1<<20), &owners[i]))
		}
		l.Flush()
		for range 2 * maxCopied / 1000 {
			if err := l.Send(2, eager(1000), make([]byte, 1000), nil); err != nil {
				if !errors.Is(err, transport.ErrFull) {
					t.Fatal(err)
				}
				break
			}
		}
		if held := l.copied.Load(); held <= maxCopied-2000 || held > maxCopied {
			t.Errorf("%d bytes copied, want up to %d", held, maxCopied)
		}
		wantNil(t, l.Send(2, eager(0), nil, nil))
		time.Sleep(5 * testTimeout) // nobody answers
		for i := range owners {
			if n, err := owners[i].state(); n != 1 || err != nil && !errors.Is(err, relay.ErrUnreachable) {
				t.Errorf("owner %d was released %d times with %v", i, n, err)
			}
		}
		if n, err := owners[19].state(); n != 1 || err == nil {
			t.Errorf("the last body: released %d times with %v, want an error", n, err)
		}
		if n := l.copied.Load(); n != 0 {
			t.Errorf("%d bytes of copies are left after the end", n)
		}
		if err := l.Send(2, eager(0), nil, nil); !errors.Is(err, relay.ErrUnreachable) {
			t.Errorf("Send after the end = %v", err)
		}
	})
}

// A shutdown by one side or both delivers everything first, and ends the link at both without an error.
func TestShutdown(t *testing.T) {
	for _, mode := range modes {
		for _, both := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/both=%t", mode, both), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newLinked(t, mode)
					defer w.close()
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					const n = 30 // within the credit
					var recvs []*p2p.Request
					for k := range n {
						r, err := w.ranks[1].comm.Irecv(p2p.SlotUser, make([]byte, 60_000), 0, k)
						wantNil(t, err)
						recvs = append(recvs, r)
					}
					for k := range n {
						_, err := w.ranks[0].comm.Isend(p2p.SlotUser, p2p.SendStandard, pattern(60_000, k), 1, k)
						wantNil(t, err)
					}
					errc := make(chan error, 2)
					go func() { errc <- w.link(0, 1).Shutdown(ctx) }()
					if both {
						go func() { errc <- w.link(1, 0).Shutdown(ctx) }()
					} else {
						errc <- nil
					}
					wantNil(t, <-errc)
					wantNil(t, <-errc)
					synctest.Wait()
					for k, r := range recvs {
						wantNil(t, r.Await(ctx))
						if r.Err != nil || !bytes.Equal(r.Buf, pattern(60_000, k)) {
							t.Fatalf("message %d: %v", k, r.Err)
						}
					}
					for i, r := range w.ranks {
						if e := r.ends(); len(e) != 1 || e[0] != nil && !strings.HasSuffix(e[0].Error(), "%!w(<nil>)") {
							t.Errorf("rank %d: ends %v, want one without a reason", i, e)
						}
						if err := w.link(i, 1-i).Send(0, eager(0), nil, nil); !errors.Is(err, transport.ErrClosed) {
							t.Errorf("Send after Shutdown = %v", err)
						}
					}
				})
			})
		}
	}
}

// Abort ends the link at both sides at once, with its reason.
func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLinked(t, sites.Chained)
		defer w.close()
		var o owned
		l := w.link(0, 1)
		wantNil(t, l.Send(1, eager(1<<20), make([]byte, 1<<20), &o))
		l.Flush()
		l.Abort("no more")
		l.Abort("once more")
		synctest.Wait()
		if n, err := o.state(); n != 1 || !errors.Is(err, transport.ErrClosed) {
			t.Errorf("released %d times with %v, want once with ErrClosed", n, err)
		}
		time.Sleep(time.Second)
		for i, want := range []string{"link closed: no more", "peer aborted: no more"} {
			if e := w.ranks[i].ends(); len(e) != 1 || e[0] == nil || !strings.Contains(e[0].Error(), want) {
				t.Errorf("rank %d: ends %v, want %q", i, e, want)
			}
		}
	})
}

// A process that dies is noticed within the timeout and half as long again, whether something was sent to it or not, and
// the error names its site and the gateway.
func TestProcessDies(t *testing.T) {
	for _, idle := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newLinked(t, sites.Piecewise)
			defer w.close()
			time.Sleep(10 * testTimeout)
			if e := w.ranks[0].ends(); len(e) != 0 {
				t.Fatalf("an idle link has ended: %v", e)
			}
			_ = w.ranks[1].transport.Close() // no more packets
			if !idle {
				wantNil(t, w.link(0, 1).Send(1, eager(100), make([]byte, 100), nil))
				w.link(0, 1).Flush()
			}
			time.Sleep(testTimeout*3/2 + time.Second)
			e := w.ranks[0].ends()
			if len(e) != 1 || !errors.Is(e[0], relay.ErrUnreachable) {
				t.Fatalf("idle %t: ends %v, want ErrUnreachable", idle, e)
			}
			for _, want := range []string{"rank 1", "site tokyo", "gateway 1 of site lyon", "no answer in 3s"} {
				if !strings.Contains(e[0].Error(), want) {
					t.Errorf("%q does not say %q", e[0], want)
				}
			}
			w.ranks[0].mu.Lock()
			defer w.ranks[0].mu.Unlock()
			if s := w.ranks[0].silent; len(s) != 1 || !s[0] {
				t.Errorf("reports of silence: %v, want one", s)
			}
		})
	}
}

// A process that is another one at the same address ends the links to the former one.
func TestProcessRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLinked(t, sites.Piecewise)
		defer w.close()
		_ = w.ranks[1].transport.Close()
		again := w.newRank(1, 2, 2, 2)
		defer again.close()
		wantNil(t, w.link(0, 1).Send(1, eager(100), make([]byte, 100), nil))
		w.link(0, 1).Flush()
		time.Sleep(time.Second)
		e := w.ranks[0].ends()
		if len(e) != 1 || !errors.Is(e[0], relay.ErrRestarted) || !strings.Contains(e[0].Error(), "site tokyo: the process has restarted") {
			t.Fatalf("ends %v, want ErrRestarted", e)
		}
	})
}

// A gateway that dies and comes back is a pause: nothing is lost, doubled or reordered.
func TestGatewayRestarts(t *testing.T) {
	for _, mode := range modes {
		synctest.Test(t, func(t *testing.T) {
			w := newLinked(t, mode)
			defer w.close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			go func() {
				time.Sleep(50 * time.Millisecond)
				w.kill(2)
				time.Sleep(time.Second)
				w.revive(2)
			}()
			const n = 200
			errc := make(chan error, 1)
			go func() {
				for k := range n {
					if err := w.ranks[0].comm.Send(ctx, p2p.SlotUser, p2p.SendStandard, pattern(20_000, k), 1, k%7); err != nil {
						errc <- fmt.Errorf("send %d: %w", k, err)
						return
					}
				}
				errc <- nil
			}()
			buf := make([]byte, 20_000)
			for k := range n {
				if _, err := w.ranks[1].comm.Recv(ctx, p2p.SlotUser, buf, 0, p2p.AnyTag); err != nil || !bytes.Equal(buf, pattern(20_000, k)) {
					t.Fatalf("message %d: %v", k, err)
				}
				time.Sleep(time.Millisecond)
			}
			wantNil(t, <-errc)
		})
	}
}

// A rank may connect long before another one, which knows the key of the job already.
func TestConnectBeforeTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, sites.Piecewise)
		defer w.close()
		w.start(1, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		errc := make(chan error)
		go func() {
			errc <- w.ranks[1].station.Connect(ctx, 1, map[int]relay.Address{0: w.ranks[0].address}, 1)
		}()
		time.Sleep(time.Second)
		wantNil(t, w.ranks[0].station.Connect(ctx, 0, map[int]relay.Address{1: w.ranks[1].address}, 1))
		wantNil(t, <-errc)
	})
}

// A process that does not know the key of the job gets no link, although gateways let it pass.
func TestStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, sites.Piecewise)
		defer w.close()
		w.start(1, 2)
		w.ranks[1].key = []byte("another key")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		errc := make(chan error, 2)
		go func() {
			errc <- w.ranks[0].station.Connect(ctx, 0, map[int]relay.Address{1: w.ranks[1].address}, 1)
		}()
		go func() {
			errc <- w.ranks[1].station.Connect(ctx, 1, map[int]relay.Address{0: w.ranks[0].address}, 1)
		}()
		if a, b := <-errc, <-errc; a == nil || b == nil {
			t.Errorf("connected: %v, %v", a, b)
		}
		if w.ranks[0].eng.Peers[1].Link != nil || w.link(0, 1) != nil {
			t.Error("the stranger has a link")
		}
	})
}
