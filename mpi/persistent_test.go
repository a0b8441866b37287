package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestPersistent repeats a ring exchange and collectives that the ranks start
// in different orders.
func TestPersistent(t *testing.T) {
	const p, rounds = 4, 5
	local(t, p, func(ctx context.Context, c *Comm) error {
		me := c.Rank()
		out, in := make([]int, 1), make([]int, 1)
		sum, all, word := make([]int, 1), make([]int, p), make([]int, 1)
		send, err1 := SendInit(c, out, (me+1)%p, 3)
		recv, err2 := RecvInit(c, in, (me+p-1)%p, 3)
		add, err3 := AllreduceInit(c, out, sum, Sum)
		gather, err4 := AllgatherInit(c, out, all)
		bcast, err5 := BcastInit(c, word, 2)
		if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
			return err
		}
		ps := []*Persistent{send, recv, add, gather, bcast}
		for i := range rounds {
			out[0] = 10*i + me
			if word[0] = 0; me == 2 {
				word[0] = i
			}
			reqs, err := Startall(slices.Concat(ps[me:], ps[:me])...)
			if err != nil {
				return err
			}
			if _, err := Waitall(ctx, reqs...); err != nil {
				return err
			}
			if want := 10*i + (me+p-1)%p; in[0] != want {
				return fmt.Errorf("received %d, want %d", in[0], want)
			}
			if want := 10*i*p + 6; sum[0] != want || all[3] != 10*i+3 || word[0] != i {
				return fmt.Errorf("round %d: sum %d, all %v, word %d", i, sum[0], all, word[0])
			}
		}
		for _, q := range ps {
			q.Free()
		}
		if _, err := add.Start(); !errors.Is(err, ErrFreed) {
			return fmt.Errorf("start after free: %v, want %v", err, ErrFreed)
		}
		if _, err := SendInit(c, out, p, 0); !errors.Is(err, ErrRank) {
			return fmt.Errorf("rank: %v, want %v", err, ErrRank)
		}
		return nil
	})
}

// TestPersistentForms starts each persistent collective once; what they do is
// tested with the forms they start.
func TestPersistentForms(t *testing.T) {
	local(t, 2, func(ctx context.Context, c *Comm) error {
		one, two, counts := []int{1}, []int{2, 2}, []int{1, 1}
		var ps []*Persistent
		var errs []error
		add := func(p *Persistent, err error) { ps, errs = append(ps, p), append(errs, err) }
		res := func(n int) []int { return make([]int, n) }
		add(BarrierInit(c))
		add(ReduceInit(c, one, res(1), Sum, 0))
		add(ReduceScatterInit(c, two, res(1), counts, Sum))
		add(ReduceScatterBlockInit(c, two, res(1), Sum))
		add(ScanInit(c, one, res(1), Sum))
		add(ExscanInit(c, one, res(1), Sum))
		add(GatherInit(c, one, res(2), 0))
		add(GathervInit(c, one, res(2), counts, nil, 0))
		add(ScatterInit(c, two, res(1), 0))
		add(ScattervInit(c, two, res(1), counts, nil, 0))
		add(AllgathervInit(c, one, res(2), counts, nil))
		add(AlltoallInit(c, two, res(2)))
		add(AlltoallvInit(c, two, counts, nil, res(2), counts, nil))
		add(SsendInit(c, one, 1-c.Rank(), 0))
		add(RecvInit(c, res(1), 1-c.Rank(), 0))
		if err := errors.Join(errs...); err != nil {
			return err
		}
		reqs, err := Startall(ps...)
		if err != nil {
			return err
		}
		_, err = Waitall(ctx, reqs...)
		return err
	})
}

func TestCollectiveSlices(t *testing.T) {
	const p = 4
	local(t, p, func(ctx context.Context, c *Comm) error {
		me := c.Rank()
		slice := func(n, v int) []int16 {
			s := make([]int16, n)
			for i := range s {
				s[i] = int16(v)
			}
			return s
		}
		got, err := GatherSlices(ctx, c, slice(me, me), 1)
		if err != nil || (got != nil) != (me == 1) {
			return fmt.Errorf("gathered %v, %w", got, err)
		}
		all, err := AllgatherSlices(ctx, c, slice(me, me))
		if err != nil {
			return err
		}
		var send [][]int16
		for r := range p {
			send = append(send, slice(me+r, me*10+r))
		}
		came, err := AlltoallSlices(ctx, c, send)
		if err != nil {
			return err
		}
		mine, err := ScatterSlices(ctx, c, send, 3)
		if err != nil {
			return err
		}
		for r := range p {
			if err := diff("all", all[r], slice(r, r)); err != nil {
				return err
			}
			if err := diff("came", came[r], slice(me+r, r*10+me)); err != nil {
				return err
			}
			if me == 1 {
				if err := diff("gathered", got[r], slice(r, r)); err != nil {
					return err
				}
			}
		}
		if err := diff("scattered", mine, slice(3+me, 30+me)); err != nil {
			return err
		}
		if _, err := ScatterSlices(ctx, c, send[:2], 0); !errors.Is(err, ErrCount) {
			return fmt.Errorf("too few slices: %v, want %v", err, ErrCount)
		}
		if _, err := AlltoallSlices(ctx, c, send[:2]); !errors.Is(err, ErrCount) {
			return fmt.Errorf("too few slices: %v, want %v", err, ErrCount)
		}
		if me == 1 {
			send = send[:1] // and the others must not wait for the rest
		}
		if _, err := AlltoallSlices(ctx, c, send); !errors.Is(err, ErrCount) {
			return fmt.Errorf("too few slices of rank 1: %v, want %v", err, ErrCount)
		}
		return Barrier(ctx, c)
	})
}
