package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// errDies is what a rank that is to die returns.
var errDies = errors.New("this rank dies")

// runFT runs f in a fault tolerant job over each transport. Ranks that return
// errDies are dead to the others; any other error fails the test.
func runFT(t *testing.T, n int, f func(ctx context.Context, w *World) error, opts ...Option) {
	t.Helper()
	for _, tr := range interTransports {
		t.Run("transport="+tr, func(t *testing.T) { checkFT(t, n, f, append(opts, overTransport(tr))...) })
	}
}

func checkFT(t *testing.T, n int, f func(ctx context.Context, w *World) error, opts ...Option) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	errs := make([]error, n)
	err := RunLocal(ctx, n, func(ctx context.Context, w *World) error {
		err := f(ctx, w)
		errs[w.Rank()] = err
		return err
	}, append(opts, WithFaultTolerance())...)
	for r, e := range errs {
		if e != nil && !errors.Is(e, errDies) {
			t.Errorf("rank %d: %v", r, e)
		}
	}
	for _, line := range strings.Split(fmt.Sprint(err), "\n") {
		if err != nil && !strings.Contains(line, errDies.Error()) && !t.Failed() {
			t.Errorf("the job ends with %q", line)
		}
	}
}

// TestShrinkAndGoOn has a rank die in the middle of a sequence of collectives.
func TestShrinkAndGoOn(t *testing.T) {
	const n, victim = 5, 2
	runFT(t, n, func(ctx context.Context, w *World) error {
		c := w.Comm()
		sum := make([]int, 1)
		var err error
		for i := 0; err == nil; i++ {
			if i == 20 && c.Rank() == victim {
				return errDies
			}
			err = Allreduce(ctx, c, []int{c.Rank()}, sum, Sum)
		}
		if !errors.Is(err, ErrProcFailed) && !errors.Is(err, ErrRevoked) {
			return err
		}
		if err := c.Revoke(); err != nil {
			return err
		}
		if !c.IsRevoked() {
			return errors.New("not revoked")
		}
		if err := Barrier(ctx, c); !errors.Is(err, ErrRevoked) {
			return fmt.Errorf("barrier of a revoked communicator: %v", err)
		}
		d, err := c.Shrink(ctx)
		if err != nil {
			return err
		}
		if want, _ := c.Group().Excl(victim); !d.Group().Equal(want) {
			return fmt.Errorf("group %v, want %v", d.Group(), want)
		}
		if err := Allreduce(ctx, d, []int{c.Rank()}, sum, Sum); err != nil || sum[0] != 0+1+3+4 {
			return fmt.Errorf("sum %d, %v", sum[0], err)
		}
		// The dead is not acknowledged on c, and no member of d.
		if v, err := c.Agree(ctx, uint64(0b1000|c.Rank())); v != 0b1000 || !errors.Is(err, ErrProcFailed) {
			return fmt.Errorf("agreement on c: %b, %v", v, err)
		}
		if got := c.AckFailed(); !slices.Equal(got, []int{victim}) {
			return fmt.Errorf("failed: %v", got)
		}
		for range 3 {
			if v, err := c.Agree(ctx, 6); v != 6 || err != nil {
				return fmt.Errorf("agreement after AckFailed: %b, %v", v, err)
			}
		}
		v := uint64(3)
		r, err := d.Iagree(&v)
		if err != nil {
			return err
		}
		var e *Comm
		s, err := d.Ishrink(&e)
		if err != nil {
			return err
		}
		if _, err := Waitall(ctx, r, s); err != nil || v != 3 || e.Size() != n-1 {
			return fmt.Errorf("Iagree and Ishrink: %d, %v, %v", v, e, err)
		}
		d.Free()
		if _, err := d.Agree(ctx, 0); !errors.Is(err, ErrFreed) {
			return fmt.Errorf("agreement on a freed communicator: %v", err)
		}
		return Barrier(ctx, e)
	})
}

// TestRevokeEndsWaiting has everything that can wait do so when one rank
// revokes the communicator.
func TestRevokeEndsWaiting(t *testing.T) {
	runFT(t, 3, func(ctx context.Context, w *World) error {
		c, err := w.Comm().Dup(ctx)
		if err != nil {
			return err
		}
		const never = 77
		big := make([]byte, 1<<20)
		waits := []func() error{
			func() error { _, err := Recv(ctx, c, []int{}, 0, never); return err },
			func() error { _, err := Recv(ctx, c, []int{}, AnySource, never); return err },
			func() error { _, err := Recv(ctx, c, []int{}, AnySource, AnyTag); return err },
			func() error { _, err := Probe(ctx, c, 1, never); return err },
			func() error { return Ssend(ctx, c, []int{1}, 1, never+1) },
			func() error { return Send(ctx, c, big, 1, never+2) },
			func() error {
				r, err := Irecv(c, []int{}, 1, never)
				if err == nil {
					_, err = r.Wait(ctx)
				}
				return err
			},
		}
		if c.Rank() == 2 {
			waits = append(waits, func() error { return Barrier(ctx, c) }) // rank 0 does not come
		}
		if c.Rank() == 1 { // has what the others send
			waits = waits[:2]
		}
		var wg sync.WaitGroup
		errs := make([]error, len(waits))
		if c.Rank() != 0 {
			for i, f := range waits {
				wg.Go(func() { errs[i] = f() })
			}
		}
		if err := Barrier(ctx, w.Comm()); err != nil {
			return err
		}
		if c.Rank() == 0 {
			if err := c.Revoke(); err != nil {
				return err
			}
		}
		wg.Wait()
		for i, err := range errs {
			if c.Rank() != 0 && !errors.Is(err, ErrRevoked) {
				return fmt.Errorf("wait %d: %w", i, err)
			}
		}
		if v, err := c.Agree(ctx, 5); v != 5 || err != nil {
			return fmt.Errorf("agreement: %d, %v", v, err)
		}
		if err := Send(ctx, c, []int{1}, 0, 0); !errors.Is(err, ErrRevoked) {
			return fmt.Errorf("send: %v", err)
		}
		// Those of other communicators are not concerned.
		return Barrier(ctx, w.Comm())
	}, WithEager(10_000))
}

// TestRevokeBeforeTheCommunicatorIsMade has a rank hear of the revocation
// first.
func TestRevokeBeforeTheCommunicatorIsMade(t *testing.T) {
	runFT(t, 3, func(ctx context.Context, w *World) error {
		c := w.Comm()
		var d *Comm
		var err error
		if c.Rank() == 0 {
			if d, err = c.Dup(ctx); err != nil {
				return err
			}
			if err = d.Revoke(); err != nil {
				return err
			}
		}
		if err := Barrier(ctx, c); err != nil {
			return err
		}
		if d == nil {
			if d, err = c.Dup(ctx); err != nil {
				return err
			}
		}
		if _, err := Recv(ctx, d, []int{}, (c.Rank()+1)%3, 0); !errors.Is(err, ErrRevoked) {
			return fmt.Errorf("receive: %v", err)
		}
		e, err := d.Shrink(ctx)
		if err != nil {
			return err
		}
		return Barrier(ctx, e)
	})
}

// TestAnySourceIsPending has a receive from anybody survive a death.
func TestAnySourceIsPending(t *testing.T) {
	runFT(t, 3, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if c.Rank() == 2 {
			return errDies
		}
		x := make([]int, 1)
		r, err := Irecv(c, x, AnySource, 3)
		if err != nil {
			return err
		}
		pending := func(what string, err error) error {
			var re *RankError
			if !errors.Is(err, ErrProcFailedPending) || !errors.As(err, &re) || re.Rank != 2 {
				return fmt.Errorf("%s: %w", what, err)
			}
			return nil
		}
		_, err = r.Wait(ctx)
		if err := pending("Wait", err); err != nil {
			return err
		}
		_, done, err := r.Test()
		if done {
			return errors.New("the receive is done")
		}
		if err := pending("Test", err); err != nil {
			return err
		}
		i, _, err := Waitany(ctx, nil, r)
		if err := pending("Waitany", err); err != nil || i != 1 {
			return err
		}
		_, err = Waitall(ctx, r)
		if err := pending("Waitall", err); err != nil {
			return err
		}
		_, err = Waitsome(ctx, r)
		if err := pending("Waitsome", err); err != nil {
			return err
		}
		// A blocking one fails: there would be no way to go on with it.
		if _, err := Recv(ctx, c, x, AnySource, 4); !errors.Is(err, ErrProcFailed) || errors.Is(err, ErrProcFailedPending) {
			return fmt.Errorf("Recv: %v", err)
		}
		if f := c.AckFailed(); !slices.Equal(f, []int{2}) {
			return fmt.Errorf("failed: %v", f)
		}
		if _, err := Sendrecv(ctx, c, []int{}, 1-c.Rank(), 9, []int{}, 1-c.Rank(), 9); err != nil {
			return err
		}
		if err := Send(ctx, c, []int{7 + c.Rank()}, 1-c.Rank(), 3); err != nil {
			return err
		}
		if st, err := r.Wait(ctx); err != nil || st.Source != 1-c.Rank() || x[0] != 8-c.Rank() {
			return fmt.Errorf("the receive got %d, %+v, %v", x[0], st, err)
		}
		return nil
	})
}

// TestCollectivesOverTheDead has all collectives on a communicator with a dead
// member fail, whatever part it has in their algorithm.
func TestCollectivesOverTheDead(t *testing.T) {
	const n = 6
	one, all := []int64{1}, make([]int64, n)
	long := make([]int64, 100_000)
	calls := map[string]func(ctx context.Context, c *Comm) error{
		"barrier":   func(ctx context.Context, c *Comm) error { return Barrier(ctx, c) },
		"bcast":     func(ctx context.Context, c *Comm) error { return Bcast(ctx, c, slices.Clone(long), 0) },
		"reduce":    func(ctx context.Context, c *Comm) error { return Reduce(ctx, c, one, []int64{0}, Sum, 1) },
		"allgather": func(ctx context.Context, c *Comm) error { return Allgather(ctx, c, one, slices.Clone(all)) },
		"gather":    func(ctx context.Context, c *Comm) error { return Gather(ctx, c, one, slices.Clone(all), 4) },
		"scatter":   func(ctx context.Context, c *Comm) error { return Scatter(ctx, c, all, []int64{0}, 0) },
		"scan":      func(ctx context.Context, c *Comm) error { return Scan(ctx, c, one, []int64{0}, Sum) },
		"alltoall":  func(ctx context.Context, c *Comm) error { return Alltoall(ctx, c, all, slices.Clone(all)) },
		"allreduce": func(ctx context.Context, c *Comm) error { return Allreduce(ctx, c, long, slices.Clone(long), Sum) },
		"split":     func(ctx context.Context, c *Comm) error { _, err := c.Split(ctx, 0, 0); return err },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			checkFT(t, n, func(ctx context.Context, w *World) error {
				c := w.Comm()
				if c.Rank() == n-1 {
					return errDies
				}
				var err error
				for err == nil {
					err = call(ctx, c)
				}
				if !errors.Is(err, ErrProcFailed) {
					return err
				}
				// Those alive may still make communicators of their own.
				g, err := c.Group().Excl(n - 1)
				if err != nil {
					return err
				}
				d, err := c.CreateGroup(ctx, g, 5)
				if err != nil {
					return err
				}
				return Barrier(ctx, d)
			})
		})
	}
}

// TestWindowOfTheDead has updates of, and synchronization with, a dead rank
// fail.
func TestWindowOfTheDead(t *testing.T) {
	runFT(t, 3, func(ctx context.Context, w *World) error {
		c := w.Comm()
		win, err := WinAllocate[int64](ctx, c, 100)
		if err != nil {
			return err
		}
		if err := win.LockAll(ctx); err != nil {
			return err
		}
		for r := range 3 { // connects
			if err := win.Put(ctx, []int64{1}, r, c.Rank()); err != nil {
				return err
			}
		}
		if err := win.FlushAll(ctx); err != nil {
			return err
		}
		if err := win.UnlockAll(ctx); err != nil {
			return err
		}
		// Rank 1 may leave the barrier, and die, before the others are through.
		if err := Barrier(ctx, c); err != nil && !errors.Is(err, ErrProcFailed) {
			return err
		}
		if c.Rank() == 1 {
			return errDies
		}
		for err == nil {
			if err = win.Put(ctx, []int64{2}, 1, c.Rank()); err == nil {
				err = win.Flush(ctx, 1)
			}
		}
		if !errors.Is(err, ErrProcFailed) {
			return fmt.Errorf("put to the dead: %w", err)
		}
		if err := win.Get(ctx, make([]int64, 1), 1, 0); err == nil {
			if err := win.Flush(ctx, 1); !errors.Is(err, ErrProcFailed) {
				return fmt.Errorf("get from the dead: %w", err)
			}
		}
		if err := win.Fence(ctx); !errors.Is(err, ErrProcFailed) {
			return fmt.Errorf("fence with the dead: %w", err)
		}
		// Ranks 0 and 2 still reach each other.
		if err := win.Put(ctx, []int64{9}, 2-c.Rank(), 50); err != nil {
			return err
		}
		if err := win.Flush(ctx, 2-c.Rank()); err != nil {
			return err
		}
		d, err := c.Shrink(ctx)
		if err != nil {
			return err
		}
		if err := Barrier(ctx, d); err != nil {
			return err
		}
		if got := win.Buf()[50]; got != 9 {
			return fmt.Errorf("put between the living: %d", got)
		}
		return nil
	})
}

// TestAgreementWithRandomDeaths has ranks die at any time while they agree again
// and again: those alive must always agree.
func TestAgreementWithRandomDeaths(t *testing.T) {
	base := rand.Uint64()
	for i := range 40 {
		seed := base + uint64(i)
		rng := rand.New(rand.NewPCG(seed, 3))
		n := 3 + rng.IntN(6)
		kill := make([]int, n) // the round and step a rank dies in
		for r := range kill {
			kill[r] = rng.IntN(30)
		}
		kill[rng.IntN(n)] = 1 << 30
		const rounds = 12
		seen := make([][]string, n) // what each has decided
		checkFT(t, n, func(ctx context.Context, w *World) error {
			c := w.Comm()
			note := func(format string, args ...any) {
				seen[w.Rank()] = append(seen[w.Rank()], fmt.Sprintf(format, args...))
			}
			for round := range rounds {
				if kill[w.Rank()] == 2*round {
					return errDies
				}
				if kill[w.Rank()] == 2*round+1 { // while the others go on
					r, err := c.Iagree(new(uint64))
					if err == nil && w.Rank()%2 == 0 {
						_, _ = r.Wait(ctx)
					}
					return errDies
				}
				v, err := c.Agree(ctx, uint64(1)<<w.Rank()|1<<40)
				if err != nil && !errors.Is(err, ErrProcFailed) {
					return err
				}
				note("%x round %d: %x %t", c.comm.ID, round, v, err != nil)
				if round%4 == 3 {
					old := c
					if c, err = c.Shrink(ctx); err != nil {
						return err
					}
					note("%x shrinks to %v", old.comm.ID, c.Group())
					old.Free()
				}
			}
			return nil
		})
		last := slices.Max(kill)
		first := slices.Index(kill, last)
		for r := range seen {
			if kill[r] >= 2*rounds && !slices.Equal(seen[r], seen[first]) {
				t.Errorf("rank %d has decided\n%q, rank %d\n%q", r, seen[r], first, seen[first])
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d, deaths %v", seed, kill)
		}
	}
}
