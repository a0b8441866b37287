package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestSendrecvForms passes numbers round a ring in all ways to send and receive
// at the same time.
func TestSendrecvForms(t *testing.T) {
	const p = 3
	for _, n := range []int{1, 100_000} {
		local(t, p, func(ctx context.Context, c *Comm) error {
			next, prev := (c.Rank()+1)%p, (c.Rank()+p-1)%p
			fill := func(v int) []int32 {
				b := make([]int32, n)
				for i := range b {
					b[i] = int32(v)
				}
				return b
			}
			buf := fill(c.Rank())
			r, err := IsendrecvReplace(c, buf, next, 2, prev, 2)
			if err != nil {
				return err
			}
			if _, err := r.Wait(ctx); err != nil {
				return err
			}
			if err := diff("replaced", buf, fill(prev)); err != nil {
				return err
			}
			in := make([]int32, n)
			if r, err = Isendrecv(c, fill(c.Rank()), prev, 3, in, AnySource, AnyTag); err != nil {
				return err
			}
			if st, err := r.Wait(ctx); err != nil || st.Source != next || st.Tag != 3 {
				return fmt.Errorf("isendrecv: %+v, %w", st, err)
			}
			if err := diff("in", in, fill(next)); err != nil {
				return err
			}
			if _, err := IsendrecvReplace(c, buf, next, -1, prev, 1); !errors.Is(err, ErrTag) {
				return fmt.Errorf("tag: %v, want %v", err, ErrTag)
			}
			if _, err := Isendrecv(c, buf, p, 1, in, prev, 1); !errors.Is(err, ErrRank) {
				return fmt.Errorf("rank: %v, want %v", err, ErrRank)
			}
			return nil
		})
	}
}
