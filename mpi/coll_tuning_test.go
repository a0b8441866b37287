package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/op"
)

// pickFor picks the algorithm of a collective without buffers.
func pickFor(t *Tuning, kind Coll, size, bytes int, red op.Reducer) (*coll.Algorithm, error) {
	return t.table.Pick(blankSchedule(size, red), coll.Kind(kind), bytes, t.Deterministic)
}

func TestTuningPick(t *testing.T) {
	own, err := ParseTuning(`
		allreduce ring 4 1000  # long ones
		allreduce linear 9; bcast chain
		allreduce doubling 16 100`)
	if err != nil {
		t.Fatal(err)
	}
	strict := &Tuning{table: own.table, Deterministic: true}
	sum, user := Op[int](Sum[int]).reducer(), NewOp(func(a, b int) int { return a }, false).reducer()
	for _, tt := range []struct {
		t           *Tuning
		coll        Coll
		red         op.Reducer
		size, bytes int
		want        string
	}{
		{own, CollBcast, nil, 2, 0, "chain"},
		{own, CollAllreduce, sum, 4, 1000, "ring"},
		{own, CollAllreduce, sum, 4, 999, "doubling"},
		{own, CollAllreduce, user, 4, 1000, "doubling"}, // not commutative: no ring
		{own, CollAllreduce, sum, 9, 1000, "linear"},
		{own, CollAllreduce, sum, 16, 99, "linear"},
		{own, CollAllreduce, sum, 16, 100, "doubling"},
		{strict, CollAllreduce, sum, 16, 100, "linear"},
		{strict, CollAllreduce, sum, 2, 1 << 20, "ordered"},
		{strict, CollScan, sum, 16, 100, "linear"},
		{strict, CollBarrier, nil, 2, 0, "dissemination"},
		{builtinTuning(), CollAllgather, nil, 8, 1, "doubling"},
		{builtinTuning(), CollAllgather, nil, 9, 1, "bruck"}, // no power of two
	} {
		alg, err := pickFor(tt.t, tt.coll, tt.size, tt.bytes, tt.red)
		if err != nil {
			t.Error(err)
			continue
		}
		if alg.Name != tt.want {
			t.Errorf("%v of %d bytes on %d ranks by %s, want %s", tt.coll, tt.bytes, tt.size, alg.Name, tt.want)
		}
	}
}

// TestTuningComplete looks for a strict algorithm for every reduction, and for
// any for all else, at all sizes: pick must never fail with the table built in.
func TestTuningComplete(t *testing.T) {
	user := NewOp(func(a, b int) int { return a }, false).reducer
	for _, strict := range []bool{false, true} {
		tun := &Tuning{table: builtinTuning().table, Deterministic: strict}
		for coll := range collCount {
			red := user()
			switch coll {
			case CollReduce, CollAllreduce, CollReduceScatter, CollReduceScatterBlock, CollScan, CollExscan:
			default:
				red = nil
			}
			for p := 1; p < 40; p++ {
				for bytes := 0; bytes < 1<<30; bytes = bytes*4 + 1 {
					if _, err := pickFor(tun, coll, p, bytes, red); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

func TestTuningText(t *testing.T) {
	own, err := ParseTuning("scan linear 2 3; deterministic")
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseTuning(own.String())
	if err != nil {
		t.Fatalf("reading what String wrote: %v", err)
	}
	// Reading adds to the default table.
	base := len(builtinTuning().Rules())
	if got, want := fmt.Sprint(again.Rules()[base:]), fmt.Sprint(own.Rules()); got != want || !again.Deterministic {
		t.Errorf("rules read back = %s, want %s", got, want)
	}
	for _, bad := range []string{
		"bcast", "bcast linear 1 2 3", "bcast quick", "cast linear", "bcast linear x", "bcast linear -1",
		strings.Repeat("#", 64<<10+1),
	} {
		if _, err := ParseTuning(bad); !errors.Is(err, ErrTuning) {
			t.Errorf("ParseTuning(%.20q) = %v, want %v", bad, err, ErrTuning)
		}
	}
	if err := own.Add(Rule{Coll: collCount}); !errors.Is(err, ErrTuning) {
		t.Errorf("Add of no collective: %v, want %v", err, ErrTuning)
	}
}

// TestTuningInfo gives a communicator its table by info key; those made from
// it have it too.
func TestTuningInfo(t *testing.T) {
	local(t, 2, func(ctx context.Context, c *Comm) error {
		d, err := c.DupWithInfo(ctx, Info{InfoTuning: "deterministic; bcast chain"})
		if err != nil {
			return err
		}
		e, err := d.Dup(ctx)
		if err != nil {
			return err
		}
		for _, c := range []*Comm{d, e} {
			alg, err := pickFor(c.Tuning(), CollBcast, 2, 0, nil)
			if err != nil || alg.Name != "chain" || !c.Tuning().Deterministic {
				return fmt.Errorf("table is\n%v", c.Tuning())
			}
		}
		return nil
	})
}

// TestDeterministic adds floating-point numbers that round differently in any
// other order than from left to right.
func TestDeterministic(t *testing.T) {
	seed := testSeed(t)
	for _, p := range []int{2, 3, 6, 8} {
		for _, n := range []int{1, 10, 3000} {
			local(t, p, func(ctx context.Context, c *Comm) error {
				tun := &Tuning{table: builtinTuning().table, Deterministic: true}
				c.SetTuning(tun)
				all := make([][]float64, p)
				want := make([]float64, n*p)
				for r := range all {
					rng := rand.New(rand.NewPCG(seed, uint64(r)))
					all[r] = make([]float64, n*p)
					for i := range all[r] {
						all[r][i] = rng.NormFloat64() * float64(uint64(1)<<rng.IntN(60))
						if r == 0 {
							want[i] = all[r][i]
						} else {
							want[i] += all[r][i]
						}
					}
				}
				got := make([]float64, n*p)
				if err := Allreduce(ctx, c, all[c.Rank()], got, Sum); err != nil {
					return err
				}
				if err := diff("allreduce", got, want); err != nil {
					return err
				}
				if err := Reduce(ctx, c, all[c.Rank()], got, Sum, p-1); err != nil {
					return err
				}
				if err := diff("reduce", got, want); err != nil && c.Rank() == p-1 {
					return err
				}
				if err := ReduceScatterBlock(ctx, c, all[c.Rank()], got[:n], Sum); err != nil {
					return err
				}
				if err := diff("reduce-scatter", got[:n], want[n*c.Rank():n*(c.Rank()+1)]); err != nil {
					return err
				}
				if err := Scan(ctx, c, all[c.Rank()], got, Sum); err != nil {
					return err
				}
				if c.Rank() == p-1 {
					return diff("scan", got, want)
				}
				return nil
			})
		}
	}
}
