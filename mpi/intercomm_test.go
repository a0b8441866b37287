package mpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// interTransports are those that tests of intercommunicators run on.
var interTransports = []string{TransportInproc, TransportTCP, TransportSCTP, TransportHybrid, hybridShared}

// runInter runs f on n ranks over each transport, with an intercommunicator
// of the even and the odd ones. In the latter the order is reversed.
func runInter(t *testing.T, n int, f func(ctx context.Context, w *World, c *Comm) error, opts ...Option) {
	t.Helper()
	for _, tr := range interTransports {
		t.Run("transport="+tr, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), testTime)
			defer cancel()
			if err := RunLocal(ctx, n, func(ctx context.Context, w *World) error {
				c, err := evenOdd(ctx, w.Comm())
				if err != nil {
					return err
				}
				return f(ctx, w, c)
			}, append(opts, overTransport(tr))...); err != nil {
				t.Error(err)
			}
		})
	}
}

func evenOdd(ctx context.Context, w *Comm) (*Comm, error) {
	odd := w.Rank() % 2
	local, err := w.Split(ctx, odd, w.Rank()*(1-2*odd))
	if err != nil {
		return nil, err
	}
	leader := local.Size() - 1
	var bridge *Comm
	if local.Rank() == leader {
		bridge = w
	}
	remote := 1 // the last of the odd ranks
	if odd == 1 {
		remote = w.Size() - 1 - (w.Size()-1)%2
	}
	return IntercommCreate(ctx, local, leader, bridge, remote, 12)
}

// interWorld returns the world rank of rank r of the even or odd group.
func interWorld(n, odd, r int) int {
	if odd == 0 {
		return 2 * r
	}
	return n - 1 - n%2 - 2*r
}

func TestIntercomm(t *testing.T) {
	const n = 5
	runInter(t, n, func(ctx context.Context, w *World, c *Comm) error {
		odd := w.Rank() % 2
		sizes := [2]int{3, 2}
		if !c.IsInter() || w.Comm().IsInter() || c.Size() != sizes[odd] || c.RemoteSize() != sizes[1-odd] {
			return fmt.Errorf("%v: local size %d, remote %d", c, c.Size(), c.RemoteSize())
		}
		if interWorld(n, odd, c.Rank()) != w.Rank() {
			return fmt.Errorf("rank %d of %v", c.Rank(), c)
		}
		for r := range c.RemoteSize() {
			if c.RemoteGroup().WorldRank(r) != interWorld(n, 1-odd, r) {
				return fmt.Errorf("remote rank %d is %d", r, c.RemoteGroup().WorldRank(r))
			}
		}
		if err := everyPair(ctx, c, w.Rank(), func(r int) int { return interWorld(n, 1-odd, r) }); err != nil {
			return err
		}
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if x := c.Compare(d); x != Congruent || c.Compare(c) != Identical || c.Compare(w.Comm()) != Unequal {
			return fmt.Errorf("duplicate is %v", x)
		}
		if err := everyPair(ctx, d, w.Rank(), func(r int) int { return interWorld(n, 1-odd, r) }); err != nil {
			return err
		}
		// World ranks 0 and 1, the others but rank 4, which has nobody.
		color := min(w.Rank()/2, 2)
		s, err := d.Split(ctx, color, 0)
		if err != nil {
			return err
		}
		if (s == nil) != (w.Rank() == 4) {
			return fmt.Errorf("part %d of rank %d is %v", color, w.Rank(), s)
		}
		if s != nil {
			if err := everyPair(ctx, s, w.Rank(), func(int) int { return w.Rank() ^ 1 }); err != nil {
				return err
			}
		}
		// Rank 0 of the even ones with all odd ones.
		g := d.Group()
		if odd == 0 {
			g, _ = g.Incl(0)
		}
		p, err := d.Create(ctx, g)
		if err != nil || (p == nil) != (odd == 0 && c.Rank() > 0) {
			return fmt.Errorf("created %v, %w", p, err)
		}
		if p != nil {
			if err := everyPair(ctx, p, w.Rank(), func(r int) int { return interWorld(n, 1-odd, r) }); err != nil {
				return err
			}
		}
		d.Free()
		if _, err := Isend(d, []int{1}, 0, 0); !errors.Is(err, ErrFreed) {
			return fmt.Errorf("send on a freed one: %w", err)
		}
		return w.Comm().barrier(ctx)
	})
}

// everyPair has every rank send its number to every rank of the other group,
// and receive from each with AnySource.
func everyPair(ctx context.Context, c *Comm, number int, want func(r int) int) error {
	var sends []*Request
	for r := range c.RemoteSize() {
		s, err := Isend(c, []int{number}, r, number)
		if err != nil {
			return err
		}
		sends = append(sends, s)
	}
	seen := make([]bool, c.RemoteSize())
	for range c.RemoteSize() {
		var x [1]int
		st, err := Recv(ctx, c, x[:], AnySource, AnyTag)
		if err != nil {
			return err
		}
		if x[0] != want(st.Source) || st.Tag != x[0] || seen[st.Source] {
			return fmt.Errorf("%d from rank %d, tag %d, want %d", x[0], st.Source, st.Tag, want(st.Source))
		}
		seen[st.Source] = true
	}
	_, err := Waitall(ctx, sends...)
	return err
}

func TestIntercommMerge(t *testing.T) {
	const n = 5
	runInter(t, n, func(ctx context.Context, w *World, c *Comm) error {
		odd := w.Rank() % 2
		for i, high := range []bool{odd == 1, odd == 0, false, true} {
			m, err := c.IntercommMerge(ctx, high)
			if err != nil {
				return err
			}
			if m.Size() != n || m.IsInter() {
				return fmt.Errorf("merged into %v", m)
			}
			want := c.Rank()
			if high {
				want += c.RemoteSize()
			}
			if i < 2 && m.Rank() != want {
				return fmt.Errorf("rank %d when merged, want %d", m.Rank(), want)
			}
			// All agree about who is who.
			all := make([]int, n)
			if err := Allgather(ctx, m, []int{w.Rank()}, all); err != nil {
				return err
			}
			for r, x := range all {
				if m.Group().WorldRank(r) != x {
					return fmt.Errorf("rank %d is %d, not %d", r, x, m.Group().WorldRank(r))
				}
			}
		}
		return nil
	})
}

func TestIntercommErrors(t *testing.T) {
	err := RunLocal(context.Background(), 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		other := 1 - w.Rank()
		if _, err := IntercommCreate(ctx, c, w.Rank(), c, other, 0); !errors.Is(err, ErrNotSame) {
			return fmt.Errorf("with two leaders of a group: %w", err)
		}
		// The leader knows that it cannot talk to itself, the other rank hears of it.
		if _, err := IntercommCreate(ctx, c, 0, c, 0, 0); !errors.Is(err, ErrRank) || ErrorClass(err) != ClassRank {
			return fmt.Errorf("with the group itself: %w", err)
		}
		if _, err := IntercommCreate(ctx, w.Self(), 0, nil, 0, 0); !errors.Is(err, ErrComm) {
			return fmt.Errorf("without a bridge: %w", err)
		}
		if _, err := IntercommCreate(ctx, w.Self(), 0, c, w.Rank(), 0); !errors.Is(err, ErrRank) {
			return fmt.Errorf("with itself: %w", err)
		}
		if _, err := IntercommCreate(ctx, w.Self(), 1, c, other, 0); !errors.Is(err, ErrRank) {
			return fmt.Errorf("leader outside: %w", err)
		}
		if _, err := c.IntercommMerge(ctx, false); !errors.Is(err, ErrComm) {
			return fmt.Errorf("merging the world: %w", err)
		}
		ic, err := IntercommCreate(ctx, w.Self(), 0, c, other, 3)
		if err != nil {
			return err
		}
		if _, err := NewGraph(ctx, ic, nil, nil); !errors.Is(err, ErrComm) {
			return fmt.Errorf("graph: %w", err)
		}
		if _, err := NewCart(ctx, ic, []int{1}, []bool{false}); !errors.Is(err, ErrComm) {
			return fmt.Errorf("grid: %w", err)
		}
		if _, err := NewFullGraph(ctx, ic, [][]int{nil}); !errors.Is(err, ErrComm) {
			return fmt.Errorf("full graph: %w", err)
		}
		if _, err := GraphMap(ic, [][]int{nil}); !errors.Is(err, ErrComm) {
			return fmt.Errorf("place in a graph: %w", err)
		}
		if _, err := ic.CreateGroup(ctx, ic.Group(), 0); !errors.Is(err, ErrComm) {
			return fmt.Errorf("group: %w", err)
		}
		return Send(ctx, ic, []int{1}, 1, 0)
	})
	if !errors.Is(err, ErrRank) {
		t.Errorf("send to a rank of the own group only = %v", err)
	}
}

// When a member of one group of an intercommunicator has died, calls that make communicators fail in both groups. The
// group that lost it does not wait for the other one, whose calls have failed before.
func TestIntercommBreaksWithItsOwnGroup(t *testing.T) {
	checkFT(t, 4, func(ctx context.Context, w *World) error {
		c := w.Comm()
		ic, err := evenOdd(ctx, c)
		if err != nil {
			return err
		}
		var one [1]byte
		if w.Rank() != 2 {
			if err := Send(ctx, c, one[:], 2, 0); err != nil {
				return err
			}
		}
		switch w.Rank() {
		case 0: // in the group of the dead one
			if _, err := Recv(ctx, c, one[:], 1, 0); err != nil {
				return err
			}
		case 2: // once all have the intercommunicator
			for _, r := range []int{0, 1, 3} {
				if _, err := Recv(ctx, c, one[:], r, 0); err != nil {
					return err
				}
			}
			return errDies
		default:
			for len(ic.Failed()) == 0 && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}
		for i, f := range []func() (*Comm, error){
			func() (*Comm, error) { return ic.Create(ctx, ic.Group()) },
			func() (*Comm, error) { return ic.IntercommMerge(ctx, false) },
			func() (*Comm, error) { return ic.Split(ctx, 0, 0) },
		} {
			if _, err := f(); !errors.Is(err, ErrProcFailed) {
				return fmt.Errorf("call %d: %w", i, cmp.Or(err, errors.New("no error")))
			}
		}
		if w.Rank() == 1 {
			return Send(ctx, c, one[:], 0, 0)
		}
		return nil
	})
}
