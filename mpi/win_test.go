package mpi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/weftstack/weft/mpi/internal/rdmadev"
	"github.com/weftstack/weft/mpi/internal/rma"
)

// winTransports are the ways a window can work: by memory of the process, by
// messages over both networks, and by RDMA.
var winTransports = []string{TransportInproc, TransportTCP, TransportSCTP, TransportHybrid, hybridShared}

func eachTransport(t *testing.T, p int, f func(ctx context.Context, c *Comm) error) {
	t.Helper()
	for _, tr := range winTransports {
		t.Run(tr, func(t *testing.T) { local(t, p, f, overTransport(tr)) })
	}
}

// TestWinPutGet lets every rank put a block into, and get one from, every
// window, of lengths around all limits, and compares digests.
func TestWinPutGet(t *testing.T) {
	sizes := []int{0, 1, 7, rdmadev.MaxInline, rdmadev.MaxInline + 1, rma.MaxInline, rma.MaxInline + 1, 100_000, rma.MaxChunk + 13}
	block := 0
	for _, n := range sizes {
		block += n
	}
	const p = 3
	fill := func(b []byte, from, to int) {
		rng := rand.New(rand.NewPCG(uint64(from), uint64(to)))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
	}
	eachTransport(t, p, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[byte](ctx, c, p*block)
		if err != nil {
			return err
		}
		if want := c.World().Transport() == TransportHybrid; w.RDMA() != want {
			return fmt.Errorf("RDMA = %v, want %v", w.RDMA(), want)
		}
		me := c.Rank()
		for target := range p {
			src := make([]byte, block)
			fill(src, me, target)
			at := 0
			for _, n := range sizes {
				if err := w.Put(ctx, src[at:at+n], target, me*block+at); err != nil {
					return err
				}
				at += n
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		want := make([]byte, block)
		for from := range p {
			fill(want, from, me)
			if got := w.Buf()[from*block : (from+1)*block]; sha256.Sum256(got) != sha256.Sum256(want) {
				return fmt.Errorf("block put by rank %d differs", from)
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		for target := range p {
			dst := make([]byte, block)
			from := (me + 1) % p
			at := 0
			for _, n := range sizes {
				if err := w.Get(ctx, dst[at:at+n], target, from*block+at); err != nil {
					return err
				}
				at += n
			}
			if err := w.Flush(ctx, target); err != nil {
				return err
			}
			if fill(want, from, target); sha256.Sum256(dst) != sha256.Sum256(want) {
				return fmt.Errorf("block got from rank %d differs", target)
			}
		}
		return w.Free(ctx)
	})
}

// TestWinPassive writes, reads and updates a window whose rank is in no call
// of this package: it waits for a Go channel.
func TestWinPassive(t *testing.T) {
	for _, tr := range winTransports {
		t.Run(tr, func(t *testing.T) {
			over := make(chan struct{})
			local(t, 2, func(ctx context.Context, c *Comm) error {
				w, err := WinAllocate[int64](ctx, c, 1000)
				if err != nil {
					return err
				}
				if c.Rank() == 1 {
					for i := range w.Buf() {
						w.Buf()[i] = int64(i)
					}
				}
				if err := w.Fence(ctx); err != nil {
					return err
				}
				if c.Rank() == 1 {
					select {
					case <-over:
					case <-ctx.Done():
						return ctx.Err()
					}
					w.Sync()
					if got, want := w.Buf()[500:503], []int64{-1, 502, 502}; !slices.Equal(got, want) {
						return fmt.Errorf("memory is %v, want %v", got, want)
					}
					return w.Free(ctx)
				}
				if err := w.Put(ctx, []int64{-1}, 1, 500); err != nil {
					return err
				}
				if err := w.Accumulate(ctx, []int64{1}, 1, 501, Sum); err != nil {
					return err
				}
				if err := w.Flush(ctx, 1); err != nil {
					return err
				}
				got := make([]int64, 4)
				if err := w.Get(ctx, got, 1, 499); err != nil {
					return err
				}
				if err := w.Flush(ctx, 1); err != nil {
					return err
				}
				if want := []int64{499, -1, 502, 502}; !slices.Equal(got, want) {
					return fmt.Errorf("got %v, want %v", got, want)
				}
				close(over)
				return w.Free(ctx)
			}, overTransport(tr))
		})
	}
}

// TestWinUpdates lets all ranks update the same elements at the same time, in
// every way that must be atomic.
func TestWinUpdates(t *testing.T) {
	const p, rounds = 4, 60
	eachTransport(t, p, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int64](ctx, c, 8)
		if err != nil {
			return err
		}
		f, err := WinAllocate[float32](ctx, c, 3000)
		if err != nil {
			return err
		}
		ones := make([]float32, 3000)
		for i := range ones {
			ones[i] = 1
		}
		tickets := make(map[int64]bool)
		for range rounds {
			old, err := w.FetchAndOp(ctx, 1, 0, 0, Sum)
			if err != nil {
				return err
			}
			if tickets[old] {
				return fmt.Errorf("ticket %d given twice", old)
			}
			tickets[old] = true
			if err := w.Accumulate(ctx, []int64{1, 2}, 0, 0, Sum); err != nil { // the same element
				return err
			}
			for { // increment by compare and swap
				was, err := w.FetchAndOp(ctx, 0, 0, 2, NoOp)
				if err != nil {
					return err
				}
				now, err := w.CompareAndSwap(ctx, was, was+1, 0, 2)
				if err != nil {
					return err
				}
				if now == was {
					break
				}
			}
			if err := w.Accumulate(ctx, []int64{int64(c.Rank())}, 0, 3, Max); err != nil {
				return err
			}
		}
		for range 5 {
			if err := f.Accumulate(ctx, ones, 1, 0, Sum); err != nil {
				return err
			}
		}
		if err := errors.Join(w.Fence(ctx), f.Fence(ctx)); err != nil {
			return err
		}
		if got, want := w.Buf()[:4], []int64{2 * p * rounds, 2 * p * rounds, p * rounds, p - 1}; c.Rank() == 0 && !slices.Equal(got, want) {
			return fmt.Errorf("sums are %v, want %v", got, want)
		}
		for i, v := range f.Buf() {
			if c.Rank() == 1 && v != 5*p {
				return fmt.Errorf("float %d = %v, want %v", i, v, 5*p)
			}
		}
		if err := f.Fence(ctx); err != nil {
			return err
		}
		old := make([]float32, 3000)
		if err := f.GetAccumulate(ctx, ones, old, 2, 0, Replace); err != nil {
			return err
		}
		if err := f.Flush(ctx, 2); err != nil {
			return err
		}
		if old[0] != old[2999] || old[0] != 0 && old[0] != 1 {
			return fmt.Errorf("replaced %v … %v", old[0], old[2999])
		}
		if v, err := w.FetchAndOp(ctx, int64(c.Rank()), c.Rank(), 5, Replace); err != nil || v != 0 {
			return fmt.Errorf("replaced %d in own memory, error %w", v, err)
		}
		if v, err := w.FetchAndOp(ctx, -1, (c.Rank()+1)%p, 6, Replace); err != nil || v != 0 {
			return fmt.Errorf("replaced %d in the next, error %w", v, err)
		}
		return errors.Join(w.Free(ctx), f.Free(ctx))
	})
}

// TestWinKinds uses updates on elements that are no numbers.
func TestWinKinds(t *testing.T) {
	local(t, 2, func(ctx context.Context, c *Comm) error {
		v, err := WinAllocate[ValLoc[float64]](ctx, c, 1)
		if err != nil {
			return err
		}
		b, err := WinAllocate[flag](ctx, c, 2)
		if err != nil {
			return err
		}
		o, err := WinAllocate[odd](ctx, c, 3)
		if err != nil {
			return err
		}
		if err := v.Accumulate(ctx, []ValLoc[float64]{{float64(c.Rank() + 1), c.Rank()}}, 0, 0, MaxLoc); err != nil {
			return err
		}
		if err := b.Accumulate(ctx, []flag{true, c.Rank() == 0}, 1, 0, Lxor); err != nil {
			return err
		}
		if err := o.Accumulate(ctx, []odd{{1, 2, 3}}, 1, 2, Replace); err != nil {
			return err
		}
		if err := errors.Join(v.Fence(ctx), b.Fence(ctx), o.Fence(ctx)); err != nil {
			return err
		}
		if was, err := o.CompareAndSwap(ctx, odd{1, 2, 3}, odd{4, 5, 6}, 1, 2); err != nil || c.Rank() == 0 && was != (odd{1, 2, 3}) && was != (odd{4, 5, 6}) {
			return fmt.Errorf("swapped %v, error %w", was, err)
		}
		if err := o.Fence(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			if got := v.Buf()[0]; got != (ValLoc[float64]{2, 1}) {
				return fmt.Errorf("greatest is %v", got)
			}
		} else if got := b.Buf(); got[0] || !got[1] || o.Buf()[2] != (odd{4, 5, 6}) {
			return fmt.Errorf("flags are %v, structs %v", got, o.Buf())
		}
		return errors.Join(v.Free(ctx), b.Free(ctx), o.Free(ctx))
	})
}

func TestWinErrors(t *testing.T) {
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		opts := []WinOption{WithAccess(AccessRead | AccessUpdate)}
		if c.Rank() == 1 {
			opts = []WinOption{WithAccess(AccessWrite)}
		}
		w, err := WinAllocate[int32](ctx, c, 10+c.Rank(), opts...)
		if err != nil {
			return err
		}
		two := make([]int32, 2)
		user := NewOp(func(a, b int32) int32 { return a }, true)
		for _, tt := range []struct {
			name string
			want error
			err  error
		}{
			{"rank", ErrRank, w.Put(ctx, two, 2, 0)},
			{"negative rank", ErrRank, w.Flush(ctx, -1)},
			{"negative place", ErrRange, w.Put(ctx, two, 1, -1)},
			{"place", ErrRange, w.Put(ctx, two, 1, 10)},
			{"place wraps", ErrRange, w.Put(ctx, two, 1, math.MaxInt)},
			{"too long", ErrRange, w.Put(ctx, make([]int32, 12), 1, 0)},
			{"last place", nil, w.Put(ctx, two[:1], 1, 9+c.Rank())}, // places 9 and 10
			{"read right", ErrAccess, w.Get(ctx, two, 1, 0)},
			{"write right", ErrAccess, w.Put(ctx, two, 0, 0)},
			{"update right", ErrAccess, w.Accumulate(ctx, two, 1, 0, Sum)},
			{"user operator", ErrOp, w.Accumulate(ctx, two, 0, 0, user)},
			{"no operator", ErrOp, w.Accumulate(ctx, two, 0, 0, nil)},
			{"result", ErrCount, w.GetAccumulate(ctx, two, two[:1], 0, 0, Sum)},
			{"nobody", nil, w.Put(ctx, two, ProcNull, 99)},
			{"lock mode", ErrOption, w.Lock(ctx, 7, 1)},
			{"unlock", ErrEpoch, w.Unlock(ctx, 1)},
			{"complete", ErrEpoch, w.Complete(ctx)},
			{"wait", ErrEpoch, w.Wait(ctx)},
			{"group", ErrRank, w.Start(ctx, 0, 0)},
			{"post", ErrRank, w.Post(5)},
		} {
			if !errors.Is(tt.err, tt.want) {
				return fmt.Errorf("%s: %v, want %v", tt.name, tt.err, tt.want)
			}
		}
		if err := w.Free(ctx); err != nil {
			return err
		}
		if err := w.Put(ctx, two, 1, 0); !errors.Is(err, ErrWindow) {
			return fmt.Errorf("put after free: %v, want %v", err, ErrWindow)
		}
		// All ranks learn that they disagree.
		if c.Rank() == 0 {
			_, err = WinAllocate[int32](ctx, c, 1)
		} else {
			_, err = WinAllocate[float32](ctx, c, 1)
		}
		if !errors.Is(err, ErrWindow) {
			return fmt.Errorf("types disagree: %v, want %v", err, ErrWindow)
		}
		for _, n := range []int{-1, MaxShared/4 + 1, math.MaxInt / 4, math.MaxInt} {
			want := ErrCount
			if c.Rank() != 0 {
				n = 1
			}
			if _, err := WinAllocate[int32](ctx, c, n); !errors.Is(err, want) {
				return fmt.Errorf("%d elements, too many on rank 0: %v, want %v", n, err, want)
			}
		}
		if _, err := WinAllocate[*int](ctx, c, 1); !errors.Is(err, ErrType) {
			return fmt.Errorf("pointers: %v, want %v", err, ErrType)
		}
		return Barrier(ctx, c)
	})
}

// TestWinTargetRefuses goes round the checks of the origin: the target refuses,
// its memory stays as it is, and the origin gets the error; then the window
// works on.
func TestWinTargetRefuses(t *testing.T) {
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinCreate(ctx, c, []uint16{7, 7, 7, 7}, WithAccess(AccessWrite))
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			part := w.w.rma.Remote(1)
			real := *part
			for name, op := range map[string]func() error{
				"put outside":      func() error { return w.Put(ctx, make([]uint16, 3), 1, 2) },
				"long put outside": func() error { return w.Put(ctx, make([]uint16, 10_000), 1, 2) },
				"get":              func() error { return w.Get(ctx, make([]uint16, 2), 1, 0) },
				"accumulate":       func() error { return w.Accumulate(ctx, make([]uint16, 2), 1, 0, Sum) },
				"get and accumulate": func() error {
					return w.GetAccumulate(ctx, make([]uint16, 2), make([]uint16, 2), 1, 0, Sum)
				},
			} {
				part.Bytes, part.Access = 1<<40, rma.AccessAll
				err := op()
				if err == nil {
					err = w.Flush(ctx, 1)
				}
				*part = real
				if !errors.Is(err, ErrAccess) && !errors.Is(err, ErrRange) {
					return fmt.Errorf("%s: %v, want %v or %v", name, err, ErrAccess, ErrRange)
				}
				if err := w.Put(ctx, []uint16{8}, 1, 0); err != nil {
					return fmt.Errorf("put after %s: %w", name, err)
				}
				if err := w.Flush(ctx, 1); err != nil {
					return fmt.Errorf("put after %s: %w", name, err)
				}
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if c.Rank() == 1 && !slices.Equal(w.Buf(), []uint16{8, 7, 7, 7}) {
			return fmt.Errorf("memory is %v", w.Buf())
		}
		return w.Free(ctx)
	})
}

// TestWinRequests uses the forms with requests, and several goroutines.
func TestWinRequests(t *testing.T) {
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		const n, workers = 3000, 4
		w, err := WinAllocate[uint32](ctx, c, n*workers)
		if err != nil {
			return err
		}
		peer := 1 - c.Rank()
		var wg sync.WaitGroup
		errs := make([]error, workers)
		for g := range workers {
			wg.Go(func() {
				errs[g] = func() error {
					src, dst := make([]uint32, n), make([]uint32, n)
					for i := range src {
						src[i] = uint32(g*n + i)
					}
					r, err := w.Rput(ctx, src, peer, g*n)
					if err != nil {
						return err
					}
					if _, err := r.Wait(ctx); err != nil {
						return err
					}
					if err := w.Flush(ctx, peer); err != nil {
						return err
					}
					if r, err = w.Raccumulate(ctx, src, peer, g*n, Sum); err != nil {
						return err
					}
					if _, err := r.Wait(ctx); err != nil {
						return err
					}
					if err := w.Flush(ctx, peer); err != nil {
						return err
					}
					if r, err = w.Rget(ctx, dst, peer, g*n); err != nil {
						return err
					}
					if _, err := r.Wait(ctx); err != nil {
						return err
					}
					for i, v := range dst {
						if v != 2*src[i] {
							return fmt.Errorf("element %d = %d, want %d", i, v, 2*src[i])
						}
					}
					if r, err = w.RgetAccumulate(ctx, src, dst, peer, g*n, NoOp); err != nil {
						return err
					}
					if _, err := r.Wait(ctx); err != nil {
						return err
					}
					return diff("got", dst[:1], []uint32{2 * src[0]})
				}()
			})
		}
		wg.Wait()
		return errors.Join(errors.Join(errs...), w.Free(ctx))
	})
}

// TestWinFetchTo starts many fetches and swaps before it waits for the first, and mixes
// them with those that wait: the updates of a rank keep their order.
func TestWinFetchTo(t *testing.T) {
	const p, n = 3, 50
	eachTransport(t, p, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int64](ctx, c, p)
		if err != nil {
			return err
		}
		me := c.Rank()
		for target := range p {
			old, was := make([]int64, n), make([]int64, n)
			for i := range n {
				if err := w.FetchAndOpTo(ctx, 1, &old[i], target, me, Sum); err != nil {
					return err
				}
				if i%10 == 5 { // waits
					if v, err := w.FetchAndOp(ctx, 0, target, me, NoOp); err != nil || v != int64(2*i+1) {
						return fmt.Errorf("fetched %d after %d updates, %w", v, 2*i+1, err)
					}
				}
				// From 2i+1 to 2i+2; every other time it compares with something else.
				compare := int64(2*i + 1)
				if i%2 == 1 {
					compare = -1
				}
				if err := w.CompareAndSwapTo(ctx, compare, int64(2*i+2), &was[i], target, me); err != nil {
					return err
				}
				if i%2 == 1 {
					if v, err := w.CompareAndSwap(ctx, int64(2*i+1), int64(2*i+2), target, me); err != nil || v != int64(2*i+1) {
						return fmt.Errorf("swapped %d, want %d, %w", v, 2*i+1, err)
					}
				}
			}
			if err := w.FlushLocal(ctx, target); err != nil {
				return err
			}
			for i := range n {
				if old[i] != int64(2*i) || was[i] != int64(2*i+1) {
					return fmt.Errorf("rank %d: fetched %v, swapped %v", target, old, was)
				}
			}
		}
		var none int64 = 5
		if err := w.FetchAndOpTo(ctx, 1, &none, ProcNull, 0, Sum); err != nil || none != 5 {
			return fmt.Errorf("from ProcNull: %d, %w", none, err)
		}
		if err := w.CompareAndSwapTo(ctx, 1, 2, &none, p, 0); !errors.Is(err, ErrRank) {
			return fmt.Errorf("outside the group: %v, want %v", err, ErrRank)
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		for i, v := range w.Buf() {
			if v != 2*n {
				return fmt.Errorf("element %d is %d, want %d", i, v, 2*n)
			}
		}
		return w.Free(ctx)
	})
}

// TestWinFetchToDoesNotWait looks whether answers are outstanding after the calls: only
// a synchronization takes them.
func TestWinFetchToDoesNotWait(t *testing.T) {
	eachTransport(t, 2, func(ctx context.Context, c *Comm) error {
		w, err := WinAllocate[int32](ctx, c, 1) // no words: messages
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			return w.Free(ctx)
		}
		var old, was int32
		if err := errors.Join(w.FetchAndOpTo(ctx, 4, &old, 1, 0, Sum), w.CompareAndSwapTo(ctx, 4, 5, &was, 1, 0)); err != nil {
			return err
		}
		if outstanding := w.w.rma.Inspect(1).Answers; outstanding != 2 {
			return fmt.Errorf("%d answers are outstanding, want 2", outstanding)
		}
		if err := w.Flush(ctx, 1); err != nil {
			return err
		}
		if old != 0 || was != 4 {
			return fmt.Errorf("fetched %d, swapped %d", old, was)
		}
		return w.Free(ctx)
	})
}
