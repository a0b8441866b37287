package mpi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// contextsOf counts the matching contexts of a rank.
func contextsOf(w *World) int {
	w.eng.Mu.Lock()
	defer w.eng.Mu.Unlock()
	return len(w.eng.Contexts)
}

// TestFreeCompletesWhatIsPending frees communicators while operations of all kinds are
// pending: they complete (MPI-4.1, Section 7.4.3), and then nothing is left.
func TestFreeCompletesWhatIsPending(t *testing.T) {
	const p, long = 2, 1 << 20
	eachTransport(t, p, func(ctx context.Context, c *Comm) error {
		w := c.World()
		before := contextsOf(w)
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		sum, err := AllreduceInit(d, []int{c.Rank() + 1}, make([]int, 1), Sum)
		if err != nil {
			return err
		}
		var reqs []*Request
		var got [4][]int32
		add := func(r *Request, err error) error {
			reqs = append(reqs, r)
			return err
		}
		all := make([]int, 1)
		if c.Rank() == 0 {
			for i := range got {
				got[i] = make([]int32, []int{1, 1, 1, long}[i])
			}
			blocked := make(chan error, 2)
			go func() {
				b := make([]int32, 1)
				_, err := Recv(ctx, d, b, 1, 5)
				if err == nil && b[0] != 5 {
					err = fmt.Errorf("received %v", b)
				}
				blocked <- err
			}()
			go func() {
				st, err := Probe(ctx, d, 1, 6)
				if err == nil && st.Bytes != 4 {
					err = fmt.Errorf("probed %+v", st)
				}
				blocked <- err
			}()
			for d.comm.Waiting() < 2 {
				if err := ctx.Err(); err != nil {
					return err
				}
				runtime.Gosched()
			}
			err := errors.Join(
				add(Irecv(d, got[0], 1, 0)), add(Irecv(d, got[1], AnySource, 1)), add(Irecv(d, got[2], 1, AnyTag)), add(Irecv(d, got[3], 1, 3)),
				add(Iallreduce(d, []int{1}, all, Sum)), add(Ibarrier(d)), add(sum.Start()),
				add(Issend(d, make([]int32, 1), 1, 7)), add(Isend(d, make([]int32, long), 1, 8)))
			if err != nil {
				return err
			}
			d.Free()
			sum.Free()
			if err := Send(ctx, d, got[0], 1, 0); !errors.Is(err, ErrFreed) {
				return fmt.Errorf("send on a freed communicator: %v, want %v", err, ErrFreed)
			}
			if err := Barrier(ctx, d); !errors.Is(err, ErrFreed) {
				return fmt.Errorf("barrier on a freed communicator: %v, want %v", err, ErrFreed)
			}
			if err := Barrier(ctx, c); err != nil {
				return err
			}
			sts, err := Waitall(ctx, reqs...)
			if err := errors.Join(err, <-blocked, <-blocked); err != nil {
				return err
			}
			if sts[1].Tag != 1 || sts[2].Tag != 2 || got[0][0] != 10 || got[1][0] != 11 || got[2][0] != 12 || got[3][long-1] != 13 || all[0] != 2 {
				return fmt.Errorf("statuses %v, values %v %v %v %v, sum %v", sts, got[0], got[1], got[2], got[3][long-1], all)
			}
		} else {
			if err := Barrier(ctx, c); err != nil { // rank 0 has freed it
				return err
			}
			for i, tag := range []int{0, 1, 2, 3} {
				if err := Send(ctx, d, slices.Repeat([]int32{int32(10 + i)}, []int{1, 1, 1, long}[i]), 0, tag); err != nil {
					return err
				}
			}
			if err := errors.Join(Send(ctx, d, []int32{5}, 0, 5), Send(ctx, d, []int32{6}, 0, 6)); err != nil {
				return err
			}
			err := errors.Join(add(Iallreduce(d, []int{1}, all, Sum)), add(Ibarrier(d)), add(sum.Start()),
				add(Irecv(d, make([]int32, 1), 0, 7)), add(Irecv(d, make([]int32, long), 0, 8)))
			if err != nil {
				return err
			}
			d.Free()
			sum.Free()
			if _, err := Waitall(ctx, reqs...); err != nil {
				return err
			}
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		for contextsOf(w) > before { // they go on goroutines of their own
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("%d contexts, before %d: %w", contextsOf(w), before, err)
			}
			runtime.Gosched()
		}
		return nil
	})
}
