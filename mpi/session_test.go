package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSessions(t *testing.T) {
	const n = 4
	runRanks(t, n, func(ctx context.Context, w *World) error {
		s, err := w.NewSession(Info{"library": "solver"})
		if err != nil {
			return err
		}
		if !slices.Equal(s.Psets(), []string{PsetWorld, PsetSelf}) || s.Info()["library"] != "solver" {
			return fmt.Errorf("%v, %v", s.Psets(), s.Info())
		}
		if _, err := w.NewSession(Info{threadLevel: "MPI_THREAD_DOZEN"}); !errors.Is(err, ErrOption) {
			return fmt.Errorf("unknown level of thread support: %v, want %w", err, ErrOption)
		}
		for name, size := range map[string]string{PsetWorld: "4", PsetSelf: "1"} {
			if i, err := s.PsetInfo(name); err != nil || i["mpi_size"] != size {
				return fmt.Errorf("%s: %v, %w", name, i, err)
			}
		}
		if _, err := s.Group("mpi://NOBODY"); !errors.Is(err, ErrOption) {
			return fmt.Errorf("unknown process set: %w", err)
		}
		g, err := s.Group(PsetWorld)
		if err != nil {
			return err
		}
		// Two of the same group and tag, one after the other, and one of another tag.
		var comms []*Comm
		for _, tag := range []string{"a", "a", "b"} {
			c, err := s.CommFromGroup(ctx, g, tag, Info{InfoNoAnyTag: "true"})
			if err != nil {
				return err
			}
			comms = append(comms, c)
		}
		for i, c := range comms {
			if err := Send(ctx, c, []int{100*i + w.Rank()}, (w.Rank()+1)%n, 0); err != nil {
				return err
			}
		}
		for i, c := range slices.Backward(comms) {
			var x [1]int
			from := (w.Rank() + n - 1) % n
			if _, err := Recv(ctx, c, x[:], from, 0); err != nil || x[0] != 100*i+from {
				return fmt.Errorf("communicator %d: %d, %w", i, x[0], err)
			}
		}
		// The even ranks and the odd ones, whose leaders alone know the others.
		even, _ := g.RangeIncl(Range{0, n - 2, 2})
		odd, _ := g.RangeIncl(Range{n - 1, 1, -2})
		local, remote := even, odd
		if w.Rank()%2 == 1 {
			local, remote = odd, even
		}
		if local.Rank(w.Rank()) != 1 {
			remote = Group{}
		}
		c, err := s.IntercommFromGroups(ctx, local, 1, remote, "pair", nil)
		if err != nil {
			return err
		}
		sum := make([]int, 1)
		if err := Allreduce(ctx, c, []int{w.Rank()}, sum, Sum[int]); err != nil || sum[0] != 4-2*(w.Rank()%2) {
			return fmt.Errorf("sum of the others = %d, %w", sum[0], err)
		}
		if _, err := s.IntercommFromGroups(ctx, g, 0, g, "same", nil); !errors.Is(err, ErrRank) {
			return fmt.Errorf("with common members: %w", err)
		}
		if _, err := s.CommFromGroup(ctx, Group{}, "x", nil); !errors.Is(err, ErrRank) {
			return fmt.Errorf("without the caller: %w", err)
		}
		if err := w.Comm().barrier(ctx); err != nil {
			return err
		}
		if err := s.Finalize(ctx); err != nil {
			return err
		}
		if _, err := s.Group(PsetWorld); !errors.Is(err, ErrFinalized) {
			return fmt.Errorf("group after the end: %w", err)
		}
		if err := Send(ctx, c, []int{1}, 0, 0); !errors.Is(err, ErrFreed) {
			return fmt.Errorf("send after the end: %w", err)
		}
		return s.Finalize(ctx)
	})
}

// sessionJob uses MPI from two sessions, without a World.
func sessionJob() error {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	var ss []*Session
	var cs []*Comm
	for i := range 2 {
		s, err := SessionInit(ctx, nil)
		if err != nil {
			return err
		}
		g, err := s.Group(PsetWorld)
		if err != nil {
			return err
		}
		c, err := s.CommFromGroup(ctx, g, fmt.Sprint("session ", i), nil)
		if err != nil {
			return err
		}
		ss, cs = append(ss, s), append(cs, c)
	}
	for i, c := range cs {
		sum := make([]int, 1)
		if err := Allreduce(ctx, c, []int{1}, sum, Sum[int]); err != nil {
			return err
		}
		fmt.Println("session", i, "sum", sum[0])
		if err := ss[i].Finalize(ctx); err != nil {
			return err
		}
	}
	if _, err := SessionInit(ctx, nil); !errors.Is(err, ErrFinalized) {
		return fmt.Errorf("session after the last: %w", err)
	}
	return nil
}

func TestSessionInit(t *testing.T) {
	for _, tr := range []string{"tcp", "sctp", "hybrid"} {
		out, errs := runJob(t, "session", 3, "WEFT_TRANSPORT="+tr)
		for r := range out {
			if errs[r] != nil || !strings.Contains(out[r], "session 1 sum 3") {
				t.Errorf("%s, rank %d: %v\n%s", tr, r, errs[r], out[r])
			}
		}
	}
}
