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

// A message that does not fit its receive was exchanged like any other: Sendrecv returns the error of
// the receive, and no SendrecvError, which would say that there was none.
func TestSendrecvOfUnfitMessage(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c, err := w.Comm().DupWithInfo(ctx, Info{InfoExactLength: "true"})
		if err != nil {
			return err
		}
		other := 1 - c.Rank()
		for _, tt := range []struct {
			name       string
			send, recv int // bytes, in both directions
			want       error
		}{
			{"shorter than promised", 2, 4, ErrCount},
			{"empty, although promised not to be", 0, 4, ErrCount},
			{"truncated", 4, 2, ErrTruncate},
			{"truncated to nothing", 4, 0, ErrTruncate},
		} {
			// Tag 0 from rank 0: the status has nothing but zeros where nothing is received.
			_, err := Sendrecv(ctx, c, make([]byte, tt.send), other, 0, make([]byte, tt.recv), other, 0)
			var half *SendrecvError
			if !errors.Is(err, tt.want) || errors.As(err, &half) {
				return fmt.Errorf("%s: %w (%T), want only %v", tt.name, err, err, tt.want)
			}
		}
		_, err = Sendrecv(ctx, c, make([]int32, 1), other, 0, make([]float32, 1), other, 0)
		var half *SendrecvError
		if !errors.Is(err, ErrTypeMismatch) || errors.As(err, &half) {
			return fmt.Errorf("of another type: %w (%T), want only %v", err, err, ErrTypeMismatch)
		}
		return nil
	})
}
