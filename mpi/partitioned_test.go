package mpi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

func TestPartitioned(t *testing.T) {
	const n = 2400
	runInterTransports(t, 2, func(ctx context.Context, w *World) error {
		for k, tt := range [][2]int{{1, 1}, {8, 8}, {3, 8}, {24, 4}, {240, 1}} {
			if err := partitionedRounds(ctx, w, k, n, tt[0], tt[1]); err != nil {
				return fmt.Errorf("partitions %v: %w", tt, err)
			}
		}
		return nil
	})
}

// runInterTransports is runRanks over all transports.
func runInterTransports(t *testing.T, n int, f func(ctx context.Context, w *World) error) {
	t.Helper()
	for _, tr := range interTransports {
		t.Run("transport="+tr, func(t *testing.T) {
			if err := RunLocal(t.Context(), n, f, overTransport(tr)); err != nil {
				t.Error(err)
			}
		})
	}
}

// partitionedRounds sends a message several times from rank 0 to rank 1, by
// several goroutines.
func partitionedRounds(ctx context.Context, w *World, tag, n, sparts, rparts int) error {
	const rounds = 4
	c := w.Comm()
	buf := make([]int32, n)
	value := func(round, i int) int32 { return int32(round*100_000 + i) }
	if w.Rank() == 0 {
		p, err := PsendInit(c, buf, sparts, 1, tag)
		if err != nil {
			return err
		}
		defer p.Free()
		for round := range rounds {
			r, err := p.Start()
			if err != nil {
				return err
			}
			var wg sync.WaitGroup
			errs := make([]error, 3)
			for g := range errs {
				wg.Go(func() {
					for part := g; part < sparts; part += len(errs) {
						for i := part * n / sparts; i < (part+1)*n/sparts; i++ {
							buf[i] = value(round, i)
						}
						errs[g] = errors.Join(errs[g], p.Pready(part))
					}
				})
			}
			wg.Wait()
			if _, err := r.Wait(ctx); errors.Join(err, errors.Join(errs...)) != nil {
				return errors.Join(err, errors.Join(errs...))
			}
		}
		return nil
	}
	p, err := PrecvInit(c, buf, rparts, 0, tag)
	if err != nil {
		return err
	}
	defer p.Free()
	for round := range rounds {
		r, err := p.Start()
		if err != nil {
			return err
		}
		for part := range rparts {
			for {
				ok, err := p.Parrived(part)
				if err != nil {
					return err
				}
				if ok {
					break
				}
				runtime.Gosched()
			}
			for i := part * n / rparts; i < (part+1)*n/rparts; i++ {
				if buf[i] != value(round, i) {
					return fmt.Errorf("round %d: element %d is %d", round, i, buf[i])
				}
			}
		}
		if _, done, err := r.Test(); !done || err != nil {
			return fmt.Errorf("round %d: all partitions have arrived, but the request is not done: %w", round, err)
		}
		if st, err := r.Wait(ctx); err != nil || st.Bytes != 4*n {
			return fmt.Errorf("round %d: %+v, %w", round, st, err)
		}
	}
	return nil
}

func TestPartitionedOrderAndErrors(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		other := 1 - w.Rank()
		// Two of one tag match in order; a part that is not ready holds up nothing.
		var in, out [2][]int
		var rs []*PartitionedRecv
		var ss []*PartitionedSend
		var reqs []*Request
		for i := range 2 {
			in[i], out[i] = make([]int, 2), []int{10*i + 1, 10*i + 2}
			s, err := PsendInit(c, out[i], 2, other, 5)
			if err != nil {
				return err
			}
			r, err := PrecvInit(c, in[i], 2, other, 5)
			if err != nil {
				return err
			}
			a, err := s.Start()
			if err != nil {
				return err
			}
			b, err := r.Start()
			if err != nil {
				return err
			}
			ss, rs, reqs = append(ss, s), append(rs, r), append(reqs, a, b)
		}
		if err := ss[1].PreadyRange(0, 1); err != nil {
			return err
		}
		if err := ss[0].PreadyList(1); err != nil {
			return err
		}
		if _, err := Waitall(ctx, reqs[2], reqs[3]); err != nil || in[1][0] != 11 || in[1][1] != 12 {
			return fmt.Errorf("second message %v, %w", in[1], err)
		}
		for {
			if ok, err := rs[0].Parrived(1); err != nil {
				return err
			} else if ok {
				break
			}
			runtime.Gosched()
		}
		if ok, err := rs[0].Parrived(0); ok || err != nil || in[0][1] != 2 {
			return fmt.Errorf("first message %v: part 0 is there: %v, %w", in[0], ok, err)
		}
		for _, tt := range []struct {
			name string
			err  error
		}{
			{"twice", ss[0].Pready(1)},
			{"outside", ss[0].Pready(2)},
			{"negative", ss[0].PreadyList(-1)},
			{"started twice", second(ss[0].Start())},
			{"received outside", second(rs[0].Parrived(2))},
			{"uneven", second(PsendInit(c, make([]int32, 3), 5, other, 0))},
			{"no partitions", second(PrecvInit(c, in[0], 0, other, 0))},
		} {
			if !errors.Is(tt.err, ErrPartition) {
				return fmt.Errorf("%s: %w", tt.name, tt.err)
			}
		}
		if _, err := PrecvInit(c, in[0], 2, AnySource, 0); !errors.Is(err, ErrRank) {
			return fmt.Errorf("any source: %w", err)
		}
		if err := c.barrier(ctx); err != nil {
			return err
		}
		if err := ss[0].Pready(0); err != nil {
			return err
		}
		if _, err := Waitall(ctx, reqs...); err != nil || in[0][0] != 1 {
			return fmt.Errorf("first message %v, %w", in[0], err)
		}
		// Another length on the other side.
		s, err := PsendInit(c, make([]int, 3), 3, other, 6)
		if err != nil {
			return err
		}
		r, err := PrecvInit(c, make([]int, 4), 2, other, 6)
		if err != nil {
			return err
		}
		a, err := r.Start()
		if err != nil {
			return err
		}
		if _, err := a.Wait(ctx); !errors.Is(err, ErrCount) {
			return fmt.Errorf("other length: %w", err)
		}
		if _, err := s.Start(); err != nil {
			return err
		}
		return errors.Join(s.PreadyRange(0, 2), partitionedSelf(ctx, w), c.barrier(ctx))
	})
}

// partitionedSelf sends to the caller and to nobody.
func partitionedSelf(ctx context.Context, w *World) error {
	for _, peer := range []int{0, ProcNull} {
		in := make([]int, 4)
		s, err := PsendInit(w.Self(), []int{1, 2, 3, 4}, 2, peer, 0)
		if err != nil {
			return err
		}
		r, err := PrecvInit(w.Self(), in, 4, peer, 0)
		if err != nil {
			return err
		}
		for range 2 {
			a, err := s.Start()
			if err != nil {
				return err
			}
			b, err := r.Start()
			if err != nil {
				return err
			}
			if err := s.PreadyRange(0, 1); err != nil {
				return err
			}
			if _, err := Waitall(ctx, a, b); err != nil {
				return err
			}
			if ok, err := r.Parrived(3); !ok || err != nil || peer == 0 && in[3] != 4 {
				return fmt.Errorf("from %d: %v, %w", peer, in, err)
			}
		}
		s.Free()
		r.Free()
	}
	return nil
}

// Partitions of items with gaps arrive in items of another layout, also if they end within one.
func TestPartitionedItems(t *testing.T) {
	const count = 12 // items of 3 elements on one side, all elements on the other
	runInterTransports(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		num := MustType(TypeOf[int32]())
		gaps := MustType(TypeResized(MustType(TypeVector(3, 1, 2, num)), 0, 28))
		pairs := MustType(TypeResized(MustType(TypeContiguous(2, num)), 0, 12))
		for tag, parts := range [][2]int{{1, 1}, {12, 6}, {4, 18}, {36, 2}, {9, 9}} {
			if w.Rank() == 0 {
				mem := make([]int32, 7*count)
				s, err := c.PsendInit(Items(mem, count, gaps), parts[0], 1, tag)
				if err != nil {
					return err
				}
				for round := range 2 {
					r, err := s.Start()
					if err != nil {
						return err
					}
					for i := range 3 * count {
						mem[i/3*7+i%3*2] = int32(100*round + i + 1)
					}
					for i := parts[0] - 1; i >= 0; i-- {
						if err := s.Pready(i); err != nil {
							return err
						}
					}
					if _, err := r.Wait(ctx); err != nil {
						return err
					}
				}
				s.Free()
				continue
			}
			mem := make([]int32, 3*3*count/2)
			s, err := c.PrecvInit(Items(mem, 3*count/2, pairs), parts[1], 0, tag)
			if err != nil {
				return err
			}
			for round := range 2 {
				r, err := s.Start()
				if err != nil {
					return err
				}
				for last := false; !last; runtime.Gosched() { // the last one, which comes first
					if last, err = s.Parrived(parts[1] - 1); err != nil {
						return err
					}
				}
				if got, want := mem[len(mem)-2], int32(100*round+3*count); got != want {
					return fmt.Errorf("%v: last element %d, want %d", parts, got, want)
				}
				if st, err := r.Wait(ctx); err != nil || st != (Status{Source: 0, Tag: tag, Bytes: 12 * count}) {
					return fmt.Errorf("%v: %+v, %w", parts, st, err)
				}
				for i := range mem {
					want := int32(0)
					if i%3 < 2 {
						want = int32(100*round + i/3*2 + i%3 + 1)
					}
					if mem[i] != want {
						return fmt.Errorf("%v: element %d is %d, want %d", parts, i, mem[i], want)
					}
				}
			}
			s.Free()
		}
		return nil
	})
}

// A partitioned operation does not need the requests of its starts, which the program may free and use for others.
func TestPartitionedRequestsFreed(t *testing.T) {
	runRanks(t, 1, func(ctx context.Context, w *World) error {
		c, in := w.Comm(), make([]int, 2)
		s, err := PsendInit(c, []int{1, 2}, 2, 0, 0)
		if err != nil {
			return err
		}
		r, err := PrecvInit(c, in, 1, 0, 0)
		if err != nil {
			return err
		}
		for range 3 {
			a, err := s.Start()
			if err != nil {
				return err
			}
			b, err := r.Start()
			if err != nil {
				return err
			}
			if err := s.PreadyRange(0, 1); err != nil {
				return err
			}
			if _, err := Waitall(ctx, a, b); err != nil {
				return err
			}
			a.Free()
			b.Free()
			other, err := Irecv(c, make([]int, 1), 0, 1) // one of them again
			if err != nil {
				return err
			}
			defer other.Cancel()
			if ok, err := r.Parrived(0); !ok || err != nil {
				return fmt.Errorf("Parrived after the end: %v, %w", ok, err)
			}
		}
		return nil
	})
}
