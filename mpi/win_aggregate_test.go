package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/cma"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
	"github.com/weftstack/weft/mpi/internal/rma"
)

// copying needs a system that copies memory from process to process.
func copying(t *testing.T) {
	t.Helper()
	sharing(t)
	var x, y [1]byte
	if err := cma.Read(os.Getpid(), uint64(uintptr(unsafe.Pointer(&x[0]))), y[:]); err != nil {
		t.Skip("the system copies no memory between processes: ", err)
	}
}

// Short Puts in a row wait for a synchronization, or until there are many, and then
// are where they should be; an operation that follows sees them. Where the system
// refuses them RDMA puts them.
func TestWinGathers(t *testing.T) {
	copying(t)
	const n = 3 * rma.AggregateBytes
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprint("refused=", refused), func(t *testing.T) {
			local(t, 2, func(ctx context.Context, c *Comm) error {
				mem := make([]byte, n)
				w, err := WinCreate(ctx, c, mem)
				if err != nil {
					return err
				}
				if c.Rank() == 1 {
					return w.Free(ctx)
				}
				pid := w.w.rma.Inspect(1).Process
				want := make([]byte, n)
				// Each case begins with one Put that is aggregated.
				for i, tt := range []struct {
					name string
					do   func() error
				}{
					{"flush", func() error { return w.Flush(ctx, 1) }},
					{"flush all", func() error { return w.FlushAll(ctx) }},
					{"unlock", func() error { return errors.Join(w.Lock(ctx, LockShared, 1), w.Unlock(ctx, 1)) }},
					{"get", func() error { return w.Get(ctx, make([]byte, 1), 1, 0) }},
					{"accumulate", func() error { return w.Accumulate(ctx, []byte{0}, 1, n-1, Sum) }},
					{"fetch", func() error { _, err := w.FetchAndOp(ctx, 0, 1, n-1, Sum); return err }},
					{"swap", func() error { _, err := w.CompareAndSwap(ctx, 1, 1, 1, n-1); return err }},
					{"long put", func() error {
						b := make([]byte, rma.AggregateLimit+1)
						pattern(b, 3)
						copy(want[rma.AggregateLimit:], b)
						return w.Put(ctx, b, 1, rma.AggregateLimit)
					}},
					{"many pieces", func() error {
						for k := range rma.AggregatePieces {
							want[10*k] = byte(k + 1)
							if err := w.Put(ctx, want[10*k:10*k+1], 1, 10*k); err != nil {
								return err
							}
						}
						return nil
					}},
					{"many bytes", func() error {
						pattern(want[:2*rma.AggregateBytes], 5)
						for at := 0; at < 2*rma.AggregateBytes; at += 1000 {
							if err := w.Put(ctx, want[at:min(at+1000, 2*rma.AggregateBytes)], 1, at); err != nil {
								return err
							}
						}
						return nil
					}},
				} {
					w.w.rma.SetProcess(1, pid)
					if refused {
						w.w.rma.SetProcess(1, 1<<30)
					}
					want[2*rma.AggregateBytes+i] = byte(i + 1)
					buf := []byte{byte(i + 1)}
					r, err := w.Rput(ctx, buf, 1, 2*rma.AggregateBytes+i)
					if err != nil {
						return err
					}
					if _, err := r.Wait(ctx); err != nil {
						return err
					}
					buf[0] = 99 // it is complete here
					if err := w.FlushLocal(ctx, 1); err != nil {
						return err
					}
					if w.w.rma.Inspect(1).Puts == 0 || w.w.rma.Quiet() {
						return fmt.Errorf("%s: not aggregated", tt.name)
					}
					if err := tt.do(); err != nil {
						return fmt.Errorf("%s: %w", tt.name, err)
					}
					if s := w.w.rma.Inspect(1); s.Puts > 0 && s.First == 2*rma.AggregateBytes+i {
						return fmt.Errorf("%s: still aggregated", tt.name)
					}
					if err := w.Flush(ctx, 1); err != nil {
						return err
					}
					if open := w.w.rma.Inspect(1).Copies; open == refused {
						return fmt.Errorf("%s: refused %v, still by copies %v", tt.name, refused, open)
					}
					if w.w.rma.Inspect(1).Puts > 0 || !w.w.rma.Quiet() {
						return fmt.Errorf("%s: something is left", tt.name)
					}
					w.w.rma.SetProcess(1, pid)
					got := make([]byte, n)
					if err := errors.Join(w.Get(ctx, got, 1, 0), w.Flush(ctx, 1)); err != nil {
						return err
					}
					if err := diff(tt.name, got, want); err != nil {
						return err
					}
				}
				s := c.w.Stats().Peers[1].Writes
				if !refused && s.Messages != uint64(10+1+rma.AggregatePieces+(2*rma.AggregateBytes+999)/1000) {
					return fmt.Errorf("counted %+v", s)
				}
				return w.Free(ctx)
			}, overTransport(hybridShared))
		})
	}
}

// Puts to one place take effect in their order.
func TestWinGathersInOrder(t *testing.T) {
	copying(t)
	local(t, 2, func(ctx context.Context, c *Comm) error {
		mem := make([]int32, 4)
		w, err := WinCreate(ctx, c, mem)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			for _, p := range []struct {
				at   int
				data []int32
			}{{0, []int32{1, 2, 3}}, {1, []int32{4, 5}}, {3, []int32{6}}, {3, []int32{7}}, {0, []int32{8, 9}}} {
				if err := w.Put(ctx, p.data, 1, p.at); err != nil {
					return err
				}
			}
			if w.w.rma.Inspect(1).Puts == 0 {
				return errors.New("not aggregated")
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if want := []int32{8, 9, 5, 7}; c.Rank() == 1 && !slices.Equal(mem, want) {
			return fmt.Errorf("got %v, want %v", mem, want)
		}
		return w.Free(ctx)
	}, overTransport(hybridShared))
}

// Whoever synchronizes finds what all goroutines have put before.
func TestWinGathersFromGoroutines(t *testing.T) {
	copying(t)
	const goroutines, rounds, run = 4, 50, 30
	local(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinCreate(ctx, c, make([]int32, goroutines*run*2))
		if err != nil {
			return err
		}
		errs := make([]error, goroutines)
		var wg sync.WaitGroup
		for g := range goroutines {
			if c.Rank() == 1 {
				break
			}
			wg.Go(func() {
				errs[g] = func() error {
					one, got := make([]int32, 1), make([]int32, 2*run)
					for round := range rounds {
						for i := range run {
							one[0] = int32(round*run + i)
							if err := w.Put(ctx, one, 1, 2*(g*run+i)); err != nil {
								return err
							}
						}
						if err := errors.Join(w.Flush(ctx, 1), w.Get(ctx, got, 1, 2*g*run), w.Flush(ctx, 1)); err != nil {
							return err
						}
						for i := range run {
							if want := int32(round*run + i); got[2*i] != want || got[2*i+1] != 0 {
								return fmt.Errorf("goroutine %d, element %d: %d and %d, want %d", g, i, got[2*i], got[2*i+1], want)
							}
						}
					}
					return nil
				}()
			})
		}
		wg.Wait()
		return errors.Join(errors.Join(errs...), w.Free(ctx))
	}, overTransport(hybridShared))
}

// What could not be put because a context ended stays aggregated, and is put by the next
// call that has to.
func TestWinGatheredAreKept(t *testing.T) {
	copying(t)
	local(t, 2, func(ctx context.Context, c *Comm) error {
		mem := make([]byte, 2*rma.AggregateLimit)
		w, err := WinCreate(ctx, c, mem)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			if err := w.Put(ctx, []byte{1, 2}, 1, 3); err != nil {
				return err
			}
			w.w.rma.SetProcess(1, 1<<30)
			over, end := context.WithCancel(ctx)
			end()
			for _, tt := range []struct {
				name string
				do   func() error
			}{
				{"flush", func() error { return w.Flush(over, 1) }},
				{"get", func() error { return w.Get(over, make([]byte, 1), 1, 0) }},
				{"put", func() error { return w.Put(over, []byte{7}, 1, 3) }},
				{"long put", func() error { return w.Put(over, make([]byte, rma.AggregateLimit+1), 1, 3) }},
			} {
				if err := tt.do(); !errors.Is(err, context.Canceled) {
					return fmt.Errorf("%s: %v", tt.name, err)
				}
				if w.w.rma.Inspect(1).Puts != 1 {
					return fmt.Errorf("%s: not kept", tt.name)
				}
			}
			if err := w.Put(ctx, []byte{9}, 1, 4); err != nil { // of RDMA, after the first
				return err
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if c.Rank() == 1 && (mem[3] != 1 || mem[4] != 9) {
			return fmt.Errorf("got %v", mem[:6])
		}
		return w.Free(ctx)
	}, overTransport(hybridShared))
}

// What is aggregated for a rank that has failed is an error of the next synchronization,
// once, whoever finds out.
func TestWinGatheredForTheDead(t *testing.T) {
	copying(t)
	over := make(chan struct{})
	err := RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
		win, err := WinCreate(ctx, w.Comm(), make([]byte, 10))
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			<-over
			return nil
		}
		defer close(over)
		if err := win.Put(ctx, []byte{1}, 1, 0); err != nil {
			return err
		}
		w.eng.Peers[1].Link.Abort("test")
		if _, err := Recv(ctx, w.Comm(), make([]byte, 1), 1, 0); !errors.Is(err, ErrProcFailed) {
			t.Errorf("receive: %v", err)
		}
		if err := win.Get(ctx, make([]byte, 1), 1, 0); !errors.Is(err, ErrProcFailed) {
			t.Errorf("get: %v", err)
		}
		if err := win.Flush(ctx, 1); !errors.Is(err, ErrProcFailed) {
			t.Errorf("flush: %v", err)
		}
		if err := win.Flush(ctx, 1); err != nil {
			t.Errorf("second flush: %v", err)
		}
		return nil
	}, overTransport(hybridShared), WithFaultTolerance())
	// The ranks cannot finalize with one that died.
	if err != nil && !errors.Is(err, ErrProcFailed) {
		t.Errorf("the job ended with: %v", err)
	}
}

// Short Puts that go by RDMA are posted together: when there are many, by a
// synchronization, or before an operation that follows. The first after a
// synchronization goes at once.
func TestWinGathersWrites(t *testing.T) {
	const n, puts = 1 << 16, 5000
	local(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinCreate(ctx, c, make([]byte, n))
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			return w.Free(ctx)
		}
		want := make([]byte, n)
		check := func(name string) error {
			if err := w.Flush(ctx, 1); err != nil {
				return err
			}
			if w.w.rma.Inspect(1).Puts > 0 || !w.w.rma.Quiet() {
				return fmt.Errorf("%s: something is left", name)
			}
			got := make([]byte, n)
			if err := errors.Join(w.Get(ctx, got, 1, 0), w.Flush(ctx, 1)); err != nil {
				return err
			}
			return diff(name, got, want)
		}
		put := func(b byte, off int) error {
			want[off] = b
			return w.Put(ctx, []byte{b}, 1, off)
		}
		if err := put(7, 0); err != nil {
			return err
		}
		if w.w.rma.Inspect(1).Puts > 0 {
			return errors.New("the first Put waits for others")
		}
		pattern(want, 3)
		for i := range puts {
			if err := w.Put(ctx, want[8*i:8*i+8], 1, 8*i); err != nil {
				return err
			}
		}
		clear(want[8*puts:])
		if err := check("neighbours"); err != nil {
			return err
		}
		if s := c.w.Stats().Peers[1].Writes; s.Messages > puts/(rdmadev.MaxInline/8)+rma.AggregatePieces || s.Bytes != 8*puts+1 {
			return fmt.Errorf("%d Puts were %+v", puts, s)
		}
		for i := range puts { // the last to each place counts, as without aggregation
			if err := put(byte(i), i*37%n); err != nil {
				return err
			}
			if err := put(byte(i+1), i*37%n); err != nil {
				return err
			}
		}
		if err := check("strangers"); err != nil {
			return err
		}
		for i, tt := range []struct {
			name string
			do   func() error
		}{
			{"flush all", func() error { return w.FlushAll(ctx) }},
			{"unlock", func() error { return errors.Join(w.Lock(ctx, LockShared, 1), w.Unlock(ctx, 1)) }},
			{"get", func() error { return w.Get(ctx, make([]byte, 1), 1, 0) }},
			{"accumulate", func() error { return w.Accumulate(ctx, []byte{0}, 1, n-1, Sum) }},
			{"fetch", func() error { _, err := w.FetchAndOp(ctx, 0, 1, n-1, Sum); return err }},
			{"swap", func() error {
				_, err := w.CompareAndSwap(ctx, want[n-1], want[n-1], 1, n-1)
				return err
			}},
			{"long put", func() error {
				pattern(want[:rdmadev.MaxInline+1], 5)
				return w.Put(ctx, want[:rdmadev.MaxInline+1], 1, 0)
			}},
		} {
			if err := errors.Join(put(byte(i), i), put(byte(i+1), 2*i)); err != nil {
				return err
			}
			if w.w.rma.Inspect(1).Puts == 0 {
				return fmt.Errorf("%s: the second Put was not aggregated", tt.name)
			}
			if w.w.rma.Quiet() {
				return fmt.Errorf("%s: quiet although something is aggregated", tt.name)
			}
			if err := tt.do(); err != nil {
				return fmt.Errorf("%s: %w", tt.name, err)
			}
			if w.w.rma.Inspect(1).Puts > 0 {
				return fmt.Errorf("%s: still aggregated", tt.name)
			}
			if err := check(tt.name); err != nil {
				return err
			}
		}
		over, stop := context.WithCancel(ctx)
		defer stop()
		if err := errors.Join(put(1, 1), put(2, 2)); err != nil {
			return err
		}
		stop()
		if err := w.Flush(over, 1); !errors.Is(err, context.Canceled) && w.w.rma.Inspect(1).Puts > 0 {
			return fmt.Errorf("a flush whose context is over left something aggregated, and returned %w", err)
		}
		if err := check("after a flush that was given up"); err != nil {
			return err
		}
		return w.Free(ctx)
	}, overTransport(TransportHybrid))
}
