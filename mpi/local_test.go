package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// soakJobs is how many jobs TestRunLocalReturnsMemory runs under WEFT_SOAK; by default
// it runs a few, which would keep 20 MiB if each kept its world.
const (
	soakJobs  = 1000
	shortJobs = 15
)

// After any number of jobs the heap and the goroutines are what they were before.
func TestRunLocalReturnsMemory(t *testing.T) {
	jobs := shortJobs
	if os.Getenv("WEFT_SOAK") != "" {
		jobs = soakJobs
	}
	for _, transport := range []string{TransportInproc, TransportTCP, TransportSCTP, TransportHybrid} {
		t.Run("transport="+transport, func(t *testing.T) {
			busyJob(t, transport) // what the process keeps for good
			busyJob(t, transport)
			heap, goroutines := steadyUsage(0, 0)
			for range jobs {
				busyJob(t, transport)
			}
			const most = 1 << 20
			heapNow, goroutinesNow := steadyUsage(heap+most, goroutines)
			t.Logf("%d jobs: heap %d KiB, then %d KiB; goroutines %d, then %d", jobs, heap>>10, heapNow>>10, goroutines, goroutinesNow)
			if heapNow > heap+most {
				t.Errorf("heap after %d jobs = %d KiB, want at most 1 MiB more than the %d KiB before", jobs, heapNow>>10, heap>>10)
			}
			if goroutinesNow > goroutines {
				t.Errorf("goroutines after %d jobs = %d, want %d", jobs, goroutinesNow, goroutines)
			}
		})
	}
}

// busyJob runs a job of two ranks that leave behind what a program may leave.
func busyJob(t *testing.T, transport string) {
	t.Helper()
	local(t, 2, func(ctx context.Context, c *Comm) error {
		w := c.w
		buf := make([]int64, 50_000)
		if err := Allreduce(ctx, c, buf, make([]int64, len(buf)), Sum); err != nil {
			return err
		}
		if _, err := c.Dup(ctx); err != nil {
			return err
		}
		win, err := WinCreate(ctx, c, buf)
		if err != nil {
			return err
		}
		if err := win.Fence(ctx, 0); err != nil {
			return err
		}
		if c.Rank() > 0 {
			return nil
		}
		port, err := w.OpenPort()
		if err != nil {
			return err
		}
		return w.PublishName(ctx, "service of a job", port) // fails if an earlier job's is still there
	}, WithTransport(transport))
}

// steadyUsage returns the heap in use, in bytes, and the number of goroutines, once both
// are within the bounds given, or after ten seconds.
func steadyUsage(heap uint64, goroutines int) (uint64, int) {
	var m runtime.MemStats
	for begun := time.Now(); ; runtime.Gosched() {
		for range 3 { // pools keep what they hold for two collections
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		n := runtime.NumGoroutine()
		if heap == 0 || m.HeapAlloc <= heap && n <= goroutines || time.Since(begun) > 10*time.Second {
			return m.HeapAlloc, n
		}
	}
}

// A rank whose function does not return ends the job with an error that names it.
func TestRunLocalRankDoesNotReturn(t *testing.T) {
	errOdd := errors.New("odd")
	ways := []struct {
		name  string
		leave func()
		check func(error) error
	}{
		{"Goexit", runtime.Goexit, func(err error) error {
			if !errors.Is(err, ErrGoexit) {
				return errors.New("not ErrGoexit")
			}
			return nil
		}},
		{"panic", func() { panic(errOdd) }, func(err error) error {
			var p *PanicError
			if !errors.As(err, &p) || p.Value != errOdd || !errors.Is(err, errOdd) {
				return errors.New("not the PanicError of the value")
			}
			if !strings.Contains(string(p.Stack), "TestRunLocalRankDoesNotReturn") {
				return fmt.Errorf("stack without the function that panicked:\n%s", p.Stack)
			}
			return nil
		}},
	}
	for _, transport := range []string{TransportInproc, TransportSCTP} {
		for _, way := range ways {
			t.Run(transport+"/"+way.name, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), testTime)
				defer stop()
				err := RunLocal(ctx, 3, func(ctx context.Context, w *World) error {
					if w.Rank() == 1 {
						way.leave()
					}
					return Barrier(ctx, w.Comm())
				}, WithTransport(transport))
				if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "rank 1: ") {
					t.Fatalf("%v, and the context %v; want an error that names rank 1 at once", err, ctx.Err())
				}
				if wrong := way.check(err); wrong != nil {
					t.Errorf("%v: %v", err, wrong)
				}
			})
			t.Run(transport+"/tolerant/"+way.name, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), testTime)
				defer stop()
				survived := make([]bool, 3)
				err := RunLocal(ctx, 3, func(ctx context.Context, w *World) error {
					if w.Rank() == 1 {
						way.leave()
					}
					for Barrier(ctx, w.Comm()) == nil {
					}
					_ = w.Comm().Revoke()
					c, err := w.Comm().Shrink(ctx)
					survived[w.Rank()] = err == nil && c.Size() == 2
					return err
				}, WithTransport(transport), WithFaultTolerance())
				if !survived[0] || !survived[2] || err == nil || strings.Contains(err.Error(), "rank 0: ") {
					t.Errorf("%v, survivors %v; want the error of rank 1 alone", err, survived)
				}
			})
		}
	}
}

// A rank that cannot join ends a fault tolerant job, too: the others wait for it.
func TestRunLocalRankCannotJoin(t *testing.T) {
	errNone := errors.New("no network")
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(1)
		defer net.Close()
		conns := func(rank int) ([]sctp.PacketConn, error) {
			if rank == 1 {
				return nil, errNone
			}
			addr := fmt.Sprintf("10.0.0.%d", rank+1)
			pc, err := net.NewHost(addr).ListenPacket(addr + ":9899")
			return []sctp.PacketConn{pc}, err
		}
		err := RunLocal(t.Context(), 3, func(context.Context, *World) error { return nil },
			WithTransport(TransportSCTP), WithSpin(0), WithFaultTolerance(), WithPacketConns(conns))
		if !errors.Is(err, errNone) || !strings.Contains(err.Error(), "rank 1: ") {
			t.Errorf("%v, want the error of rank 1", err)
		}
	})
}

// A nonblocking collective whose operator does not return fails with the reason.
func TestNonblockingOperatorDoesNotReturn(t *testing.T) {
	for _, way := range []struct {
		name  string
		leave func()
	}{{"Goexit", runtime.Goexit}, {"panic", func() { panic("odd") }}} {
		t.Run(way.name, func(t *testing.T) {
			op := NewOp(func(a, b int) int { way.leave(); return a + b }, true)
			local(t, 2, func(ctx context.Context, c *Comm) error {
				r, err := Iallreduce(c, []int{1}, make([]int, 1), op)
				if err != nil {
					return err
				}
				_, err = r.Wait(ctx)
				var p *PanicError
				if !errors.Is(err, ErrGoexit) && !errors.As(err, &p) {
					return fmt.Errorf("rank %d: %w, want the reason", c.Rank(), err)
				}
				return nil
			})
		})
	}
}
