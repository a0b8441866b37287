package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/mpi/internal/cma"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport/shm"
)

// overMemory reports whether w exchanges messages with all others through memory.
func overMemory(w *World) bool {
	for r, p := range w.eng.Peers {
		if _, ok := p.Link.(*shm.Link); r != w.Rank() && (!ok || p.Shared.Load() == nil) {
			return false
		}
	}
	return true
}

// Memory is shared where it can be, and only there.
func TestSharedMemoryUse(t *testing.T) {
	here := runtime.GOOS == "linux"
	on := WithSharedMemory(true)
	hybrid := WithTransport(TransportHybrid)
	for _, tt := range []struct {
		name string
		want bool
		opts []Option
	}{
		{"hybrid", here, []Option{hybrid, on}},
		{"off", false, []Option{hybrid}},
		{"sctp", false, []Option{WithTransport(TransportSCTP), on}},
		{"tcp", false, []Option{WithTransport(TransportTCP), on}},
		{"capture", false, []Option{hybrid, on, WithCapture(t.TempDir() + "/capture")}},
		{"hosts", false, []Option{hybrid, on, func(o *options) error {
			o.HostOf = func(rank int) string { return fmt.Sprint("host", rank) }
			return nil
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			local(t, 3, func(ctx context.Context, c *Comm) error {
				if got := overMemory(c.w); got != tt.want {
					return fmt.Errorf("through memory: %v, want %v", got, tt.want)
				}
				want := "0"
				if tt.want {
					want = "1"
				}
				for _, tun := range c.w.Tunables() {
					if tun.Name == "WEFT_SHARED" && tun.Value != want {
						return fmt.Errorf("WEFT_SHARED = %s, want %s", tun.Value, want)
					}
				}
				return Barrier(ctx, c)
			}, tt.opts...)
		})
	}
}

func TestSharedMemoryFromEnv(t *testing.T) {
	for s, want := range map[string]bool{"": true, "1": true, "0": false} {
		o := new(options)
		if err := o.fromEnv(func(name string) string { return map[string]string{"WEFT_SHARED": s}[name] }); err != nil || o.Shared != want {
			t.Errorf("WEFT_SHARED=%q: %v, %v", s, o.Shared, err)
		}
	}
	err := new(options).fromEnv(func(name string) string { return map[string]string{"WEFT_SHARED": "yes"}[name] })
	if !errors.Is(err, ErrOption) {
		t.Errorf("WEFT_SHARED=yes: %v", err)
	}
}

// sharing needs memory that ranks share.
func sharing(t *testing.T) *shm.Memory {
	t.Helper()
	s := shm.New(new(poll.Spinning))
	if s == nil {
		if runtime.GOOS == "linux" {
			t.Fatal("no shared memory")
		}
		t.Skip("no shared memory on", runtime.GOOS)
	}
	t.Cleanup(s.Close)
	return s
}

// Messages get through, in parts that are longer than the memory for them, to ranks
// whose goroutines never poll, and never call this package while they come.
func TestSharedWithoutPolling(t *testing.T) {
	sharing(t)
	const n = 3 * shm.MaxRing
	passed := make(chan struct{})
	local(t, 2, func(ctx context.Context, c *Comm) error {
		if !overMemory(c.w) {
			return errors.New("not through memory")
		}
		b := make([]byte, n)
		if c.Rank() == 0 {
			pattern(b, 1)
			r, err := Isend(c, b, 1, 0)
			if err != nil {
				return err
			}
			<-passed // the receiver has it without a call of this rank
			_, err = r.Wait(ctx)
			return err
		}
		r, err := Irecv(c, b, 0, 0)
		if err != nil {
			return err
		}
		for !r.request.Finished.Load() {
			runtime.Gosched()
		}
		close(passed)
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
		return checkPattern(b, 1)
	}, overTransport(hybridShared), WithSpin(0))
}

// Parked and polling ranks wake each other: round trips with pauses of all lengths
// around the time for which a rank is still taken to poll.
func TestSharedWakes(t *testing.T) {
	sharing(t)
	for _, spin := range []time.Duration{0, 50 * time.Microsecond, 5 * time.Millisecond} {
		local(t, 3, func(ctx context.Context, c *Comm) error {
			rng := rand.New(rand.NewPCG(uint64(c.Rank()), 7))
			next, before := (c.Rank()+1)%3, (c.Rank()+2)%3
			for i := range 300 {
				b := make([]byte, 1+rng.IntN(3000))
				for t0 := p2p.Clock(); p2p.Clock()-t0 < int64(rng.IntN(int(3*shm.Lease))); {
					runtime.Gosched()
				}
				r, err := Isend(c, b, next, i)
				if err != nil {
					return err
				}
				if _, err := Recv(ctx, c, make([]byte, 3000), before, i); err != nil {
					return err
				}
				if _, err := r.Wait(ctx); err != nil {
					return err
				}
			}
			return nil
		}, overTransport(hybridShared), WithSpin(spin))
	}
}

// Between ranks that share memory Put and Get are copies from process to process, if
// the memory is the program's, and RDMA where the system refuses them.
func TestSharedPutGet(t *testing.T) {
	sharing(t)
	var x, y [1]byte
	x[0] = 7
	if err := cma.Read(os.Getpid(), uint64(uintptr(unsafe.Pointer(&x[0]))), y[:]); err != nil {
		t.Skip("the system copies no memory between processes: ", err)
	}
	if y[0] != 7 {
		t.Fatalf("read %d, want 7", y[0])
	}
	const n = 100_000
	local(t, 3, func(ctx context.Context, c *Comm) error {
		next, before := (c.Rank()+1)%3, (c.Rank()+2)%3
		for round, refused := range []bool{false, true} {
			win, err := WinCreate(ctx, c, make([]byte, n))
			if err != nil {
				return err
			}
			if !win.w.rma.Inspect(next).Copies {
				return errors.New("not by copies")
			}
			if refused {
				win.w.rma.SetProcess(next, 1<<30)
			}
			src, got := make([]byte, n), make([]byte, n)
			pattern(src, 10*round+c.Rank())
			if err := win.Put(ctx, src, next, 0); err != nil {
				return err
			}
			if err := win.Fence(ctx); err != nil {
				return err
			}
			if err := checkPattern(win.Buf(), 10*round+before); err != nil {
				return fmt.Errorf("put: %w", err)
			}
			if err := win.Get(ctx, got[5:], next, 5); err != nil {
				return err
			}
			if err := win.Flush(ctx, next); err != nil {
				return err
			}
			if !bytes.Equal(got[5:], src[5:]) {
				return errors.New("get: other bytes")
			}
			if open := win.w.rma.Inspect(next).Copies; open == refused {
				return fmt.Errorf("refused %v, still by copies %v", refused, open)
			}
			// What a Flush has completed does not precede a Fence.
			if err := errors.Join(win.Fence(ctx, AssertNoPrecede), win.Fence(ctx)); err != nil {
				return err
			}
			if err := win.Put(ctx, src[:2], next, n-1); !errors.Is(err, ErrRange) {
				return fmt.Errorf("beyond the end: %v", err)
			}
			if err := win.Free(ctx); err != nil {
				return err
			}
		}
		for _, opts := range [][]WinOption{{WithMessages()}, {WithAccess(AccessRead)}} {
			win, err := WinCreate(ctx, c, make([]byte, 10), opts...)
			if err != nil {
				return err
			}
			if err := win.Put(ctx, make([]byte, 10), next, 0); err != nil && !errors.Is(err, ErrAccess) {
				return err
			}
			if !win.RDMA() && win.w.rma.Direct() {
				return errors.New("messages, and yet copies")
			}
			if err := win.Free(ctx); err != nil {
				return err
			}
		}
		return nil
	}, overTransport(hybridShared))
}
