package mpi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

var errTestOver = errors.New("test over")

// When a rank goes away, what waits for it fails with an error that names it;
// the others go on.
func TestRankGone(t *testing.T) {
	for _, tr := range testTransports {
		t.Run("transport="+tr, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), testTime)
			defer cancel()
			var all sync.WaitGroup
			all.Add(3)
			err := RunLocal(ctx, 3, func(ctx context.Context, w *World) error {
				err := rankGone(ctx, w)
				all.Done()
				all.Wait()
				if err != nil {
					return err
				}
				return errTestOver // without rank 1 nobody can finalize
			}, overTransport(tr))
			if err == nil || strings.Count(err.Error(), errTestOver.Error()) < 3 {
				t.Error(err)
			}
		})
	}
}

func rankGone(ctx context.Context, w *World) error {
	c := w.Comm()
	d, err := c.Dup(ctx)
	if err != nil {
		return err
	}
	if c.Rank() == 1 {
		for _, r := range []int{0, 2} {
			if _, err := Recv(ctx, c, []int{}, r, 5); err != nil {
				return err
			}
		}
		for _, p := range w.eng.Peers {
			if p.Rank != 1 {
				p.Link.Abort("rank 1 dies")
			}
		}
		return nil
	}
	var x [1]int32
	big := make([]byte, 1<<20)
	var reqs []*Request
	for _, start := range []func() (*Request, error){
		func() (*Request, error) { return Irecv(c, x[:], 1, 0) },
		func() (*Request, error) { return Irecv(c, x[:], 1, AnyTag) },
		func() (*Request, error) { return Irecv(c, x[:], AnySource, 99) },
		func() (*Request, error) { return Isend(c, big, 1, 0) },
		func() (*Request, error) { return Issend(c, x[:], 1, 0) },
	} {
		r, err := start()
		if err != nil {
			return err
		}
		reqs = append(reqs, r)
	}
	if err := Send(ctx, c, []int{}, 1, 5); err != nil {
		return err
	}
	want := func(what string, err error) error {
		var re *RankError
		if !errors.Is(err, ErrProcFailed) || !errors.As(err, &re) || re.Rank != 1 {
			return fmt.Errorf("%s = %v, want a RankError of rank 1", what, err)
		}
		return nil
	}
	for i, r := range reqs {
		_, err := r.Wait(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("request %d hangs", i)
		}
		if err := want(fmt.Sprintf("request %d", i), err); err != nil {
			return err
		}
	}
	if err := want("send", Send(ctx, c, x[:], 1, 0)); err != nil {
		return err
	}
	if _, err := Recv(ctx, d, x[:], AnySource, 50); want("receive", err) != nil {
		return want("receive from any source before AckFailed", err)
	}
	if _, err := Probe(ctx, d, AnySource, 50); want("probe", err) != nil {
		return want("probe of any source before AckFailed", err)
	}
	if f := d.AckFailed(); len(f) != 1 || f[0] != 1 {
		return fmt.Errorf("failed ranks %v", f)
	}
	// Ranks 0 and 2 still reach each other.
	other := 2 - c.Rank()
	if err := Send(ctx, d, []int32{7}, other, 0); err != nil {
		return err
	}
	if _, err := Recv(ctx, d, x[:], AnySource, 0); err != nil || x[0] != 7 {
		return fmt.Errorf("after AckFailed: %d, %v", x[0], err)
	}
	// Neither leaves before the other is done.
	_, err = Sendrecv(ctx, d, []int32{1}, other, 1, x[:], other, 1)
	return err
}

func TestAbortEndsEverybody(t *testing.T) {
	for _, tr := range testTransports {
		t.Run("transport="+tr, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), testTime)
			defer cancel()
			err := RunLocal(ctx, 4, func(_ context.Context, w *World) error {
				// Not the context of RunLocal: it ends when a rank fails.
				c := w.Comm()
				if c.Rank() == 2 {
					if err := c.barrier(ctx); err != nil {
						return err
					}
					c.Abort(3, "enough")
					if err := Send(ctx, c, []int{1}, 0, 0); !errors.Is(err, ErrAborted) {
						return fmt.Errorf("send after Abort: %v", err)
					}
					return errTestOver
				}
				r, err := Irecv(c, make([]int, 1), 2, 0)
				if err != nil {
					return err
				}
				if err := c.barrier(ctx); err != nil && !errors.Is(err, ErrProcFailed) {
					return err
				}
				_, err = r.Wait(ctx)
				return err
			}, overTransport(tr))
			if !errors.Is(err, errTestOver) || !errors.Is(err, ErrProcFailed) || ctx.Err() != nil {
				t.Errorf("error %v", err)
			}
		})
	}
}

// What was sent before Finalize arrives, though its sender does not wait.
func TestFinalizeLosesNothing(t *testing.T) {
	const n = 300
	runRanks(t, 4, func(ctx context.Context, w *World) error {
		c := w.Comm()
		b := make([]byte, 5000)
		if c.Rank() != 0 {
			for i := range n {
				pattern(b, i)
				if err := Send(ctx, c, b, 0, i%5); err != nil {
					return err
				}
			}
			return nil
		}
		got := make([]int, 4)
		for range 3 * n {
			st, err := Recv(ctx, c, b, AnySource, AnyTag)
			if err != nil {
				return err
			}
			if err := checkPattern(b[:st.Bytes], got[st.Source]); err != nil {
				return err
			}
			got[st.Source]++
		}
		return nil
	})
}

func TestAfterFinalize(t *testing.T) {
	var keep *Comm
	err := RunLocal(context.Background(), 1, func(ctx context.Context, w *World) error {
		keep = w.Comm()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Send(context.Background(), keep, []int{1}, 0, 0); !errors.Is(err, ErrFinalized) {
		t.Errorf("send after Finalize: %v", err)
	}
	if _, err := Irecv(keep, []int{1}, 0, 0); !errors.Is(err, ErrFinalized) {
		t.Errorf("receive after Finalize: %v", err)
	}
	if err := keep.World().Finalize(context.Background()); err != nil {
		t.Errorf("second Finalize: %v", err)
	}
}
