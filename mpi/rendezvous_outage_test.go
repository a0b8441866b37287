package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/mpi/internal/job"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/verbs"
)

// outages lets packets of the RDMA devices of ranks vanish for some time.
type outages struct {
	mu    sync.Mutex
	ports map[uint16]bool // of devices
	seen  map[*verbs.QP]bool
	until map[[2]netip.Addr]time.Time
}

func (o *outages) drops(from, to netip.Addr, b []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return (o.ports[binary.BigEndian.Uint16(b)] || o.ports[binary.BigEndian.Uint16(b[2:])]) &&
		time.Now().Before(o.until[[2]netip.Addr{from, to}])
}

// outageConn is a socket of a host with outages.
type outageConn struct {
	*sctptest.PacketConn
	o    *outages
	addr netip.Addr
}

func (c *outageConn) WriteTrain(b []byte, size int, local netip.Addr, remote netip.AddrPort, ecn uint8) error {
	if c.o.drops(c.addr, remote.Addr(), b) {
		return nil
	}
	return c.PacketConn.WriteTrain(b, size, local, remote, ecn)
}

func (c *outageConn) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	if c.o.drops(c.addr, to.Addr(), b) {
		return len(b), nil
	}
	return c.PacketConn.WriteToUDPAddrPort(b, to)
}

// TestRendezvousOutages has the network lose all packets of queue pairs, and only
// theirs, for so long that their associations end, on one side or both, while bodies are
// written and read: they all arrive, and the sends end.
func TestRendezvousOutages(t *testing.T) {
	for _, method := range []string{RendezvousWrite, RendezvousRead} {
		t.Run("rendezvous="+method, func(t *testing.T) {
			const ranks, threads, rounds = 3, 4, 20
			seed := rand.Uint64()
			n := withOutages(t, seed, ranks, func(ctx context.Context, w *World, o *outages) error {
				c := w.Comm()
				errs := make([]error, threads)
				var wg sync.WaitGroup
				for g := range threads {
					wg.Go(func() { errs[g] = o.exchange(ctx, c, g, rounds, seed) })
				}
				wg.Wait()
				return errors.Join(errs...)
			}, WithRendezvous(method), WithEager(256))
			if n <= ranks {
				t.Errorf("%d queue pairs among %d ranks: none was lost", n, ranks)
			}
		})
	}
}

// TestWindowOutages is TestRendezvousOutages for windows: operations may fail, but they
// end.
func TestWindowOutages(t *testing.T) {
	const ranks, threads, rounds = 3, 4, 60
	seed := rand.Uint64()
	var failed atomic.Int32
	withOutages(t, seed, ranks, func(ctx context.Context, w *World, _ *outages) error {
		win, err := WinAllocate[int64](ctx, w.Comm(), 1+threads*ranks)
		if err == nil {
			err = win.LockAll(ctx)
		}
		if err != nil {
			return err
		}
		me := w.Rank()
		var wg sync.WaitGroup
		for g := range threads {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(g)))
				for range rounds {
					time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
					to, at, in := rng.IntN(ranks), 1+me*threads+g, []int64{0}
					_, err := win.FetchAndOp(ctx, 1, to, 0, Sum)
					err = errors.Join(err, win.Accumulate(ctx, []int64{1}, to, 0, Sum),
						win.Put(ctx, []int64{1}, to, at), win.Flush(ctx, to))
					r, e := win.Rget(ctx, in, to, at)
					if e == nil {
						_, e = r.Wait(ctx)
					}
					if err = errors.Join(err, e); err != nil {
						failed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		_ = win.UnlockAll(ctx)
		return Barrier(ctx, w.Comm())
	})
	t.Logf("%d of %d failed", failed.Load(), ranks*threads*rounds)
	if failed.Load() == 0 {
		t.Error("nothing failed")
	}
}

// withOutages runs f on some ranks, in virtual time, on a network that loses packets of
// their RDMA devices for some time, again and again. It returns how many queue pairs
// were noted.
func withOutages(t *testing.T, seed uint64, ranks int, f func(ctx context.Context, w *World, o *outages) error, opts ...Option) (n int) {
	t.Helper()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(seed)
		defer net.Close()
		net.SetDefault(sctptest.Link{Delay: time.Millisecond})
		o := &outages{ports: make(map[uint16]bool), seen: make(map[*verbs.QP]bool), until: make(map[[2]netip.Addr]time.Time)}
		addr := func(rank int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(rank + 1)}) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		over := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Duration(rng.IntN(300)) * time.Millisecond):
				}
				a, b := rng.IntN(ranks), rng.IntN(ranks)
				end := time.Now().Add(time.Duration(rng.IntN(4000)) * time.Millisecond)
				o.mu.Lock()
				o.until[[2]netip.Addr{addr(a), addr(b)}] = end
				if rng.IntN(2) == 0 {
					o.until[[2]netip.Addr{addr(b), addr(a)}] = end
				}
				o.mu.Unlock()
			}
		})
		err := RunLocal(ctx, ranks, func(ctx context.Context, w *World) error {
			bulk := w.eng.Bulk.(*job.RDMABulk)
			bulk.Prepare()
			if bulk.Open() != nil {
				o.mu.Lock()
				o.ports[device(w).Verbs().Addr().Port] = true
				o.mu.Unlock()
			}
			if err := Barrier(ctx, w.Comm()); err != nil {
				return err
			}
			return f(ctx, w, o)
		}, append([]Option{WithTransport(TransportHybrid), WithSpin(0), WithSilence(time.Second),
			WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
				a := addr(rank)
				pc, err := net.NewHost(a.String()).ListenPacket(a.String() + ":9899")
				if err != nil {
					return nil, err
				}
				return []sctp.PacketConn{&outageConn{pc, o, a}}, nil
			})}, opts...)...)
		close(over)
		wg.Wait()
		if err != nil {
			t.Error(err)
		}
		n = len(o.seen)
	})
	return n
}

// note notes the queue pairs of d.
func (o *outages) note(d *rdmadev.Bulk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, qp := range d.QPs() {
		o.seen[qp] = true
	}
}

// exchange sends bodies around, with a tag of its own.
func (o *outages) exchange(ctx context.Context, c *Comm, tag, rounds int, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, uint64(tag))) // the same for all ranks
	next, prev := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	for round := range rounds {
		n := 1000 + rng.IntN(300_000)
		time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
		out, in := make([]byte, n), make([]byte, n)
		pattern(out, tag+round)
		r, err := Irecv(c, in, prev, tag)
		if err != nil {
			return err
		}
		s, err := Isend(c, out, next, tag)
		if err != nil {
			return err
		}
		if _, err := r.Wait(ctx); err != nil {
			return fmt.Errorf("tag %d, round %d: receive: %w", tag, round, err)
		}
		if _, err := s.Wait(ctx); err != nil {
			return fmt.Errorf("tag %d, round %d: send: %w", tag, round, err)
		}
		if err := checkPattern(in, tag+round); err != nil {
			return fmt.Errorf("tag %d, round %d: %w", tag, round, err)
		}
		if d := c.w.eng.Bulk.(*job.RDMABulk).Open(); d != nil {
			o.note(d)
		}
	}
	return nil
}
