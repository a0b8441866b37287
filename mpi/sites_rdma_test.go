package mpi

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi/internal/localsites"
	"github.com/weftstack/weft/sctp/sctptest"
)

// With the hybrid transport windows between sites are accessed by RDMA through gateways.
func TestSitesWindowRDMA(t *testing.T) {
	runSites(t, func(ctx context.Context, w *World) error {
		win, err := WinCreate(ctx, w.Comm(), make([]byte, 1))
		if err != nil {
			return err
		}
		if !win.RDMA() {
			return fmt.Errorf("rank %d: the window is not accessed by RDMA", w.Rank())
		}
		if err := win.Free(ctx); err != nil {
			return err
		}
		return sitesWindow(ctx, w)
	}, WithTransport(TransportHybrid))
}

// How long Put or Get and the fence or unlock behind it take between two sites 9 ms apart, by messages and by RDMA: a
// large one takes at most two thirds of the time by RDMA, a short one no more than by messages.
func TestSitesWindowTimes(t *testing.T) {
	if testenv.Race {
		t.Skip("times are the same with the race detector, and TestSitesWindowRDMA makes the same calls")
	}
	type key struct {
		op   string
		size int
	}
	var times [2]map[key]time.Duration
	for i, transport := range []string{TransportSCTP, TransportHybrid} {
		times[i] = make(map[key]time.Duration)
		synctest.Test(t, func(t *testing.T) {
			net := sctptest.NewNetwork(1)
			defer net.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			opts := append(virtualSites(net, GatewayOptions{}),
				WithSite(func(rank int) string { return "AB"[rank : rank+1] }), WithTransport(transport))
			err := RunLocal(ctx, 2, func(ctx context.Context, w *World) error {
				win, err := WinCreate(ctx, w.Comm(), make([]byte, 1<<20))
				if err != nil {
					return err
				}
				for _, size := range []int{8, 64 << 10, 1 << 20} {
					for _, op := range []string{"Put, Fence", "Get, Fence", "Put, Unlock", "Get, Unlock"} {
						d, err := timeWindow(ctx, w, win, op, size)
						if err != nil {
							return err
						}
						if w.Rank() == 0 {
							times[i][key{op, size}] = d
						}
					}
				}
				return win.Free(ctx)
			}, opts...)
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	for k, messages := range times[0] {
		rdma := times[1][k]
		t.Logf("%s, %d bytes: %v by messages, %v by RDMA", k.op, k.size, messages, rdma)
		if most := 1.02; float64(rdma) > most*float64(messages) {
			t.Errorf("%s of %d bytes takes %v by RDMA, %v by messages", k.op, k.size, rdma, messages)
		}
		if k.size == 1<<20 && k.op == "Put, Fence" && 3*rdma > 2*messages {
			t.Errorf("%s of %d bytes takes %v by RDMA, %v by messages", k.op, k.size, rdma, messages)
		}
	}
}

// timeWindow returns the shortest of five times.
func timeWindow(ctx context.Context, w *World, win *Win[byte], op string, size int) (best time.Duration, err error) {
	buf := make([]byte, size)
	access := func() error {
		if op[:3] == "Put" {
			return win.Put(ctx, buf, 1, 0)
		}
		return win.Get(ctx, buf, 1, 0)
	}
	for range 5 {
		if err := win.Fence(ctx); err != nil {
			return 0, err
		}
		began := time.Now()
		switch {
		case op[5:] == "Fence":
			if w.Rank() == 0 {
				err = access()
			}
			if err == nil {
				err = win.Fence(ctx)
			}
		case w.Rank() == 0:
			if err = win.Lock(ctx, LockShared, 1); err == nil {
				err = access()
			}
			if err == nil {
				err = win.Unlock(ctx, 1)
			}
		}
		if d := time.Since(began); err == nil && (best == 0 || d < best) {
			best = d
		}
		if err == nil {
			err = Barrier(ctx, w.Comm())
		}
		if err != nil {
			return 0, err
		}
	}
	return best, nil
}

// Gateways are killed and started again while ranks of two sites put into, get from and count in a window; all comes once.
func TestSitesWindowGatewaysKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(1)
		defer net.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		killing, stop := context.WithCancel(ctx)
		killed := make(chan int, 1)
		g := GatewayOptions{PerSite: 2, began: func(gates *localsites.Sites) {
			go func() {
				n := 0
				defer func() { killed <- n }()
				for ; ; n++ {
					select {
					case <-killing.Done():
						return
					case <-time.After(300 * time.Millisecond):
					}
					site, gw := 1+n%2, 1+n/2%2
					gates.Kill(site, gw)
					time.Sleep(700 * time.Millisecond)
					if err := gates.Restart(site, gw); err != nil {
						t.Error(err)
					}
				}
			}()
		}}
		opts := append(virtualSites(net, g), WithSite(func(rank int) string { return "AABB"[rank : rank+1] }), WithTransport(TransportHybrid))
		const rounds, size = 30, 100_000
		err := RunLocal(ctx, 4, func(ctx context.Context, w *World) error {
			c := w.Comm()
			mem := make([]byte, size+8)
			win, err := WinCreate(ctx, c, mem)
			if err != nil {
				return err
			}
			count, err := WinCreate(ctx, c, make([]int64, 1))
			if err != nil {
				return err
			}
			to := (c.Rank() + 2) % 4 // at the other site
			put, got := make([]byte, size), make([]byte, size)
			for i := range rounds {
				pattern(put, i*4+c.Rank())
				if err := win.Fence(ctx); err != nil {
					return err
				}
				if err := win.Put(ctx, put, to, 0); err != nil {
					return err
				}
				if err := win.Fence(ctx); err != nil {
					return err
				}
				if err := checkPattern(mem[:size], i*4+to); err != nil {
					return fmt.Errorf("round %d, rank %d: %w", i, c.Rank(), err)
				}
				if err := win.Get(ctx, got, to, 0); err != nil {
					return err
				}
				if _, err := count.FetchAndOp(ctx, 1, 0, 0, Sum[int64]); err != nil {
					return err
				}
				if err := win.Fence(ctx); err != nil {
					return err
				}
				if err := checkPattern(got, i*4+c.Rank()); err != nil {
					return fmt.Errorf("round %d, rank %d read: %w", i, c.Rank(), err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			if err := count.Fence(ctx); err != nil {
				return err
			}
			if n := count.Buf()[0]; c.Rank() == 0 && n != 4*rounds {
				return fmt.Errorf("counted %d, want %d", n, 4*rounds)
			}
			if err := count.Free(ctx); err != nil {
				return err
			}
			return win.Free(ctx)
		}, opts...)
		stop()
		n := <-killed
		t.Logf("%d gateways killed", n)
		if err != nil || n < 5 {
			t.Errorf("%v, %d gateways killed", err, n)
		}
	})
}
