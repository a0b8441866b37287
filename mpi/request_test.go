package mpi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// A cancelled receive gets nothing; a cancelled long send is withdrawn, and a
// later one is not disturbed.
func TestCancel(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if c.Rank() == 1 {
			if err := c.barrier(ctx); err != nil {
				return err
			}
			b := make([]byte, 200_000)
			st, err := Recv(ctx, c, b, 0, 9)
			if err != nil || st.Bytes != len(b) {
				return fmt.Errorf("receive after a withdrawn send = %+v, %v", st, err)
			}
			if err := checkPattern(b, 7); err != nil {
				return err
			}
			return Send(ctx, c, []byte{42}, 0, 1)
		}
		var x [1]byte
		r, err := Irecv(c, x[:], 1, 1)
		if err != nil {
			return err
		}
		if !r.Cancel() {
			return errors.New("receive cannot be cancelled")
		}
		if _, err := r.Wait(ctx); !errors.Is(err, ErrCanceled) {
			return fmt.Errorf("cancelled receive: %v", err)
		}
		if r.Cancel() {
			return errors.New("receive cancelled twice")
		}
		short, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := Recv(short, c, x[:], AnySource, AnyTag); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("receive with a cancelled context: %v", err)
		}
		short, cancel = context.WithCancel(ctx)
		context.AfterFunc(ctx, cancel)
		big := make([]byte, 200_000)
		errc := make(chan error)
		go func() { errc <- Send(short, c, big, 1, 9) }()
		for w.eng.IDs.Len() == 0 { // until the send waits for its receiver
			r, err := Irecv(c, x[:], 1, 1)
			if err != nil {
				return err
			}
			r.Cancel()
		}
		cancel()
		if err := <-errc; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("withdrawn send: %v", err)
		}
		if err := c.barrier(ctx); err != nil {
			return err
		}
		pattern(big, 7)
		if err := Send(ctx, c, big, 1, 9); err != nil {
			return err
		}
		if _, err := Recv(ctx, c, x[:], AnySource, AnyTag); err != nil || x[0] != 42 {
			return fmt.Errorf("last receive: %d, %v", x[0], err)
		}
		return nil
	})
}

func TestWaitVariants(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		const n = 20
		if c.Rank() == 0 {
			for i := n - 1; i >= 0; i-- {
				if err := Send(ctx, c, []int32{int32(i)}, 1, i); err != nil {
					return err
				}
			}
			_, err := Recv(ctx, c, []int32{}, 1, n)
			return err
		}
		vals := make([]int32, n)
		reqs := make([]*Request, n)
		for i := range reqs {
			var err error
			if reqs[i], err = Irecv(c, vals[i:i+1], 0, i); err != nil {
				return err
			}
		}
		seen := make(map[int]bool)
		take := func(i int) error {
			if seen[i] || vals[i] != int32(i) {
				return fmt.Errorf("request %d: seen %v, value %d", i, seen[i], vals[i])
			}
			seen[i] = true
			reqs[i] = nil
			return nil
		}
		for len(seen) < n/2 {
			i, st, err := Waitany(ctx, reqs...)
			if err != nil {
				return err
			}
			if st.Tag != i {
				return fmt.Errorf("request %d has status %+v", i, st)
			}
			if err := take(i); err != nil {
				return err
			}
		}
		for len(seen) < n {
			is, err := Waitsome(ctx, reqs...)
			if err != nil {
				return err
			}
			for _, i := range is {
				if err := take(i); err != nil {
					return err
				}
			}
		}
		if i, _, err := Waitany(ctx, reqs...); i != Undefined || err != nil {
			return fmt.Errorf("Waitany of nothing = %d, %v", i, err)
		}
		if is, err := Waitsome(ctx, reqs...); is != nil || err != nil {
			return fmt.Errorf("Waitsome of nothing = %v, %v", is, err)
		}
		if i, _, _ := Testany(reqs...); i != Undefined || !Testall(reqs...) {
			return errors.New("test of nothing")
		}
		open, err := Irecv(c, vals, 0, n+1)
		if err != nil {
			return err
		}
		if Testall(open) || len(Testsome(open)) != 0 {
			return errors.New("a receive without message is done")
		}
		short, cancel := context.WithCancel(ctx)
		cancel()
		if _, _, err := Waitany(short, open); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("Waitany with a cancelled context: %v", err)
		}
		if _, err := Waitall(short, open); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("Waitall with a cancelled context: %v", err)
		}
		open.Cancel()
		if _, err := Waitall(ctx, nil, open); !errors.Is(err, ErrCanceled) {
			return fmt.Errorf("Waitall of a cancelled receive: %v", err)
		}
		return Send(ctx, c, []int32{}, 0, n)
	})
}

// TestWaitanyRetires waits for requests without taking those out that are done: each
// is returned once (MPI-4.1, Section 3.7.5).
func TestWaitanyRetires(t *testing.T) {
	const n = 16
	for name, next := range map[string]func(ctx context.Context, reqs []*Request) ([]int, error){
		"Waitany": func(ctx context.Context, reqs []*Request) ([]int, error) {
			i, st, err := Waitany(ctx, reqs...)
			if i != Undefined && st.Tag != i {
				err = fmt.Errorf("request %d has status %+v, %w", i, st, err)
			}
			return []int{i}, err
		},
		"Testany": func(ctx context.Context, reqs []*Request) ([]int, error) {
			for {
				all := Testall(reqs...) // before: the other goroutine may find the last one, too
				i, _, err := Testany(reqs...)
				if i != Undefined || err != nil || all {
					return []int{i}, err
				}
				runtime.Gosched()
			}
		},
		"Waitsome": func(ctx context.Context, reqs []*Request) ([]int, error) {
			is, err := Waitsome(ctx, reqs...)
			if is == nil {
				is = []int{Undefined}
			}
			return is, err
		},
		"Testsome": func(ctx context.Context, reqs []*Request) ([]int, error) {
			for {
				all := Testall(reqs...)
				is := Testsome(reqs...)
				if is != nil {
					return is, nil
				}
				if all {
					return []int{Undefined}, nil
				}
				runtime.Gosched()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			local(t, 2, func(ctx context.Context, c *Comm) error {
				if c.Rank() == 1 {
					for i := range n {
						if err := Send(ctx, c, []int32{int32(i)}, 0, n-1-i); err != nil {
							return err
						}
					}
					return nil
				}
				vals := make([]int32, n)
				reqs := make([]*Request, n)
				for i := range reqs {
					var err error
					if reqs[i], err = Irecv(c, vals[i:i+1], 1, i); err != nil {
						return err
					}
				}
				// Several goroutines share them, too.
				var mu sync.Mutex
				seen := make(map[int]int)
				errs := make(chan error, 2)
				for range cap(errs) {
					go func() {
						for {
							is, err := next(ctx, reqs)
							if err != nil || is[0] == Undefined {
								errs <- err
								return
							}
							mu.Lock()
							for _, i := range is {
								if seen[i]++; seen[i] > 1 {
									err = fmt.Errorf("request %d was returned again", i)
								}
							}
							mu.Unlock()
							if err != nil {
								errs <- err
								return
							}
						}
					}()
				}
				if err := errors.Join(<-errs, <-errs); err != nil {
					return err
				}
				for i := range n {
					if seen[i] != 1 || vals[i] != int32(n-1-i) {
						return fmt.Errorf("request %d was returned %d times, value %d", i, seen[i], vals[i])
					}
				}
				// The results stay, and other ways to wait do not mind.
				if sts, err := Waitall(ctx, reqs...); err != nil || sts[3].Tag != 3 {
					return fmt.Errorf("Waitall afterwards: %v, %w", sts, err)
				}
				for _, r := range reqs {
					r.Free()
				}
				return nil
			})
		})
	}
}

// Every call that asks whether something is done or there polls the transport if it is not: a program
// that repeats it makes progress (MPI-4.1, Sections 3.7.3, 3.7.5 and 3.8.1).
func TestCallsThatDoNotBlockPoll(t *testing.T) {
	o, err := buildOptions(TransportInproc, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(0, 2, o, nil)
	c, polls := w.Comm(), 0
	w.eng.Progress.Init(func() bool { polls++; return false }, 0)
	r, err := Irecv(c, make([]byte, 1), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(){
		"Test":     func() { r.Test() },
		"Testany":  func() { Testany(nil, r) },
		"Testall":  func() { Testall(nil, r) },
		"Testsome": func() { Testsome(nil, r, r) },
		"Iprobe":   func() { Iprobe(c, 1, 1) },
		"Improbe":  func() { Improbe(c, 1, 1) },
	} {
		polls = 0
		if call(); polls != 1 {
			t.Errorf("%s polls %d times, want once", name, polls)
		}
	}
}
