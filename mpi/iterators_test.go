package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestCompletions(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		const n = 5
		if c.Rank() == 1 {
			for i := range n { // each when the one before it has been looked at
				if _, err := Recv(ctx, c, []int{0}, 0, 0); err != nil {
					return err
				}
				if err := Send(ctx, c, []int{i, i}[:1+i%2], 0, 1+(3*i)%n); err != nil {
					return err
				}
			}
			return nil
		}
		bufs := make([]int, n)
		reqs := make([]*Request, n+1) // the last is nil
		for i := range n {
			var err error
			if reqs[i], err = Irecv(c, bufs[i:i+1], 1, 1+i); err != nil {
				return err
			}
		}
		if err := Send(ctx, c, []int{0}, 1, 0); err != nil {
			return err
		}
		k := 0
		for d, err := range Completions(ctx, reqs...) {
			if d.Index != 3*k%n || d.Status.Tag != 1+d.Index || bufs[d.Index] != k || k%2 == 1 != errors.Is(err, ErrTruncate) {
				return fmt.Errorf("completion %d is %+v, %w", k, d, err)
			}
			if k++; k < n {
				if err := Send(ctx, c, []int{0}, 1, 0); err != nil {
					return err
				}
			}
		}
		if k != n || reqs[0] == nil {
			return fmt.Errorf("%d of %d requests, the first is %v", k, n, reqs[0])
		}
		for d := range Completions(ctx, reqs...) { // all are done
			if d.Index != 0 {
				return fmt.Errorf("first %+v", d)
			}
			break
		}
		for range Completions(ctx, nil, nil) {
			return errors.New("nothing is done")
		}
		open, err := Irecv(c, bufs, 1, 99)
		if err != nil {
			return err
		}
		short, cancel := context.WithCancel(ctx)
		cancel()
		for d, err := range Completions(short, open) {
			if d.Index != Undefined || !errors.Is(err, context.Canceled) {
				return fmt.Errorf("at the end of the context: %+v, %w", d, err)
			}
			k++
		}
		if k != n+1 || !open.Cancel() {
			return fmt.Errorf("%d turns, or the receive is gone", k)
		}
		return nil
	})
}

func TestMessages(t *testing.T) {
	runRanks(t, 3, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if c.Rank() > 0 {
			for i := range 10 {
				if err := Send(ctx, c, make([]int16, i), 0, c.Rank()); err != nil {
					return err
				}
			}
			return nil
		}
		var next [3]int
		n := 0
		for m, err := range Messages(ctx, c, AnySource, AnyTag) {
			if err != nil {
				return err
			}
			buf := make([]int16, m.Status().Bytes/2)
			st, err := Mrecv(ctx, m, buf)
			if err != nil || len(buf) != next[st.Source] || st.Tag != st.Source {
				return fmt.Errorf("%+v, want %d elements, %w", st, next[st.Source], err)
			}
			next[st.Source]++
			if n++; n == 20 {
				break
			}
		}
		for m, err := range Messages(ctx, c, 7, AnyTag) {
			if m != nil || !errors.Is(err, ErrRank) {
				return fmt.Errorf("from nobody: %v, %w", m, err)
			}
			n++
		}
		if n != 21 {
			return fmt.Errorf("%d turns", n)
		}
		return nil
	})
}
