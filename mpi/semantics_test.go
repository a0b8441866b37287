package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// MPI-4.1, Section 3.4: a synchronous send "will complete successfully only if
// a matching receive is posted, and the receive operation has started to receive
// the message".
func TestSsendWaitsForReceive(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		for i, n := range []int{0, 10, 60_000, 70_000} {
			b := make([]byte, n)
			if c.Rank() == 0 {
				r, err := Issend(c, b, 1, 1)
				if err != nil {
					return err
				}
				// By the time this comes back the message is there, too, or
				// at least would be.
				if err := Send(ctx, c, b[:0], 1, 2); err != nil {
					return err
				}
				if _, err := Recv(ctx, c, b[:0], 1, 3); err != nil {
					return err
				}
				if _, done, _ := r.Test(); done {
					return fmt.Errorf("synchronous send %d was done before the receive", i)
				}
				if err := Send(ctx, c, b[:0], 1, 4); err != nil {
					return err
				}
				if _, err := r.Wait(ctx); err != nil {
					return err
				}
				continue
			}
			if _, err := Recv(ctx, c, b[:0], 0, 2); err != nil {
				return err
			}
			if _, err := Probe(ctx, c, 0, 1); err != nil {
				return err
			}
			if err := Send(ctx, c, b[:0], 0, 3); err != nil {
				return err
			}
			if _, err := Recv(ctx, c, b[:0], 0, 4); err != nil {
				return err
			}
			if _, err := Recv(ctx, c, b, 0, 1); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestSelfAndProcNull(t *testing.T) {
	runRanks(t, 1, func(ctx context.Context, w *World) error {
		for _, c := range []*Comm{w.Comm(), w.Self()} {
			for i, n := range []int{0, 100, 300_000} {
				out, in := make([]byte, n), make([]byte, n)
				pattern(out, i)
				r, err := Irecv(c, in, 0, 5)
				if err != nil {
					return err
				}
				if err := Ssend(ctx, c, out, 0, 5); err != nil {
					return err
				}
				if _, err := r.Wait(ctx); err != nil {
					return err
				}
				if err := checkPattern(in, i); err != nil {
					return err
				}
			}
			want := Status{Source: ProcNull, Tag: AnyTag}
			if err := Send(ctx, c, []int{1}, ProcNull, 0); err != nil {
				return err
			}
			if st, err := Recv(ctx, c, []int{1}, ProcNull, 0); st != want || err != nil {
				return fmt.Errorf("receive from ProcNull = %+v, %v", st, err)
			}
			if st, err := Sendrecv(ctx, c, []int{1}, ProcNull, 0, []int{1}, ProcNull, 0); st != want || err != nil {
				return fmt.Errorf("exchange with ProcNull = %+v, %v", st, err)
			}
			if st, err := Probe(ctx, c, ProcNull, 0); st != want || err != nil {
				return fmt.Errorf("probe of ProcNull = %+v, %v", st, err)
			}
			m, err := Mprobe(ctx, c, ProcNull, 0)
			if err != nil {
				return err
			}
			if st, err := Mrecv(ctx, m, []int{1}); st != want || err != nil {
				return fmt.Errorf("matched receive from ProcNull = %+v, %v", st, err)
			}
		}
		return nil
	})
}

func TestBadArguments(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		for _, tt := range []struct {
			name string
			err  error
			want error
		}{
			{"rank 2", Send(ctx, c, []int{1}, 2, 0), ErrRank},
			{"rank -3", Send(ctx, c, []int{1}, -3, 0), ErrRank},
			{"send to any", Send(ctx, c, []int{1}, AnySource, 0), ErrRank},
			{"tag -1", Send(ctx, c, []int{1}, 0, -1), ErrTag},
			{"strings", Send(ctx, c, []string{"a"}, 0, 0), ErrType},
			{"struct with slice", Send(ctx, c, []struct{ a []int }{{}}, 0, 0), ErrType},
			{"receive tag -2", second(Recv(ctx, c, []int{1}, 0, -2)), ErrTag},
			{"receive rank 5", second(Recv(ctx, c, []int{1}, 5, 0)), ErrRank},
			{"receive pointers", second(Irecv(c, []*int{nil}, 0, 0)), ErrType},
			{"probe rank 2", second(Probe(ctx, c, 2, 0)), ErrRank},
			{"color", second(c.Split(ctx, -5, 0)), ErrOption},
		} {
			if !errors.Is(tt.err, tt.want) {
				return fmt.Errorf("%s: error %v, want %v", tt.name, tt.err, tt.want)
			}
		}
		return nil
	})
}

func second[T any](_ T, err error) error { return err }

// Many goroutines per rank, each with a tag of its own, talk at the same time.
func TestThreadMultiple(t *testing.T) {
	const threads, rounds = 8, 60
	runRanks(t, 3, func(ctx context.Context, w *World) error {
		c := w.Comm()
		var wg sync.WaitGroup
		errs := make([]error, threads)
		for k := range threads {
			wg.Go(func() {
				errs[k] = func() error {
					out, in := make([]byte, 120_000), make([]byte, 120_000)
					right, left := (c.Rank()+1)%3, (c.Rank()+2)%3
					for i := range rounds {
						n := (i * (k + 1) * 1237) % len(out)
						pattern(out[:n], c.Rank()+100*i+k)
						st, err := Sendrecv(ctx, c, out[:n], right, k, in, left, k)
						if err != nil || st.Bytes != n {
							return fmt.Errorf("round %d: %+v, %v, want %d bytes", i, st, err, n)
						}
						if err := checkPattern(in[:n], left+100*i+k); err != nil {
							return err
						}
					}
					return nil
				}()
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

// A sender that runs ahead uses up its credit and falls back to announcing:
// the receiver's memory stays bounded, and nothing is lost or overtaken.
func TestUnexpectedIsBounded(t *testing.T) {
	const n, size, bound = 2000, 1000, 64 << 10
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if c.Rank() == 0 {
			reqs := make([]*Request, n)
			for i := range reqs {
				b := make([]byte, size)
				pattern(b, i)
				var err error
				if reqs[i], err = Isend(c, b, 1, i%7); err != nil {
					return err
				}
			}
			if err := c.barrier(ctx); err != nil {
				return err
			}
			_, err := Waitall(ctx, reqs...)
			return err
		}
		if err := c.barrier(ctx); err != nil {
			return err
		}
		held := w.Stats().Peers[0].Held
		if held == 0 || held > bound/2 {
			return fmt.Errorf("%d bytes of unexpected messages, want at most %d", held, bound/2)
		}
		b := make([]byte, size)
		for i := range n {
			st, err := Recv(ctx, c, b, 0, AnyTag)
			if err != nil || st.Tag != i%7 {
				return fmt.Errorf("receive %d = %+v, %v", i, st, err)
			}
			if err := checkPattern(b, i); err != nil {
				return err
			}
		}
		return nil
	}, WithUnexpected(bound))
}

func TestBsendAndReplace(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		peer := 1 - c.Rank()
		for i, n := range []int{0, 10, 5000, 64 << 10, 500_000} {
			// Both send first; the buffer is reused at once.
			b := make([]byte, n)
			pattern(b, 10*i+c.Rank())
			if err := Bsend(c, b, peer, i); err != nil {
				return err
			}
			r, err := Ibsend(c, b, peer, i)
			if err != nil {
				return err
			}
			clear(b)
			for range 2 {
				if _, err := Recv(ctx, c, b, peer, i); err != nil {
					return err
				}
				if err := checkPattern(b, 10*i+peer); err != nil {
					return err
				}
			}
			if _, err := r.Wait(ctx); err != nil {
				return err
			}
			pattern(b, 20*i+c.Rank())
			st, err := SendrecvReplace(ctx, c, b, peer, i, AnySource, AnyTag)
			if want := (Status{Source: peer, Tag: i, Bytes: n}); err != nil || st != want {
				return fmt.Errorf("replace = %+v, %v, want %+v", st, err, want)
			}
			if err := checkPattern(b, 20*i+peer); err != nil {
				return err
			}
		}
		return nil
	})
}
