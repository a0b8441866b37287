package communicator

import (
	"fmt"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// twoGroups returns the groups of two handles, and the session that one of them knows.
func twoGroups(a, b abi.Handle) (g, h *cbinding.Group, s *cbinding.Session, err error) {
	if g, err = cbinding.GroupOf(a); err != nil {
		return nil, nil, nil, err
	}
	if h, err = cbinding.GroupOf(b); err != nil {
		return nil, nil, nil, err
	}
	if s = g.Session; s == nil {
		s = h.Session
	}
	return g, h, s, nil
}

// GroupSize is MPI_Group_size.
func GroupSize(group abi.Handle, size uintptr) int {
	g, err := cbinding.GroupOf(group)
	if err != nil {
		return cbinding.Fail("MPI_Group_size", err)
	}
	return cbinding.Fail("MPI_Group_size", cbinding.SetInt(size, g.Size(), false))
}

// GroupRank is MPI_Group_rank: MPI_UNDEFINED if the caller is no member.
func GroupRank(group abi.Handle, rank uintptr) int {
	const proc = "MPI_Group_rank"
	g, err := cbinding.GroupOf(group)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, cbinding.SetInt(rank, cbinding.RankToC(g.Rank(int(cbinding.State.Rank.Load()))), false))
}

// GroupTranslateRanks is MPI_Group_translate_ranks.
func GroupTranslateRanks(group1 abi.Handle, n int, ranks1 uintptr, group2 abi.Handle, ranks2 uintptr) int {
	const proc = "MPI_Group_translate_ranks"
	g, h, _, err := twoGroups(group1, group2)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if n < 0 {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrArg, "n", n, "is negative"))
	}
	if n > 0 && ranks2 == 0 {
		return cbinding.Fail(proc, cbinding.NullError("ranks2"))
	}
	ranks, err := cbinding.Ints("ranks1", ranks1, n, false)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	for i, r := range ranks {
		switch {
		case r == abi.ProcNull:
			ranks[i] = mpi.ProcNull
		case r < 0 || r >= g.Size():
			return cbinding.Fail(proc, cbinding.MemberError(fmt.Sprintf("ranks1[%d]", i), r, g))
		}
	}
	out := cbinding.Array[int32](ranks2, n)
	for i, r := range g.TranslateRanks(ranks, h.Group) {
		out[i] = int32(cbinding.RankToC(r))
	}
	return 0
}

// GroupCompare is MPI_Group_compare.
func GroupCompare(group1, group2 abi.Handle, result uintptr) int {
	const proc = "MPI_Group_compare"
	g, h, _, err := twoGroups(group1, group2)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, cbinding.SetInt(result, comparisons[g.Compare(h.Group)], false))
}

// comparisons are the results of comparing, as C has them.
var comparisons = [...]int{
	mpi.Unequal: abi.Unequal, mpi.Similar: abi.Similar, mpi.Congruent: abi.Congruent, mpi.Identical: abi.Ident,
}

// combine stores the group that f makes of two.
func combine(proc string, group1, group2 abi.Handle, newgroup uintptr, f func(g, h mpi.Group) mpi.Group) int {
	g, h, s, err := twoGroups(group1, group2)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, cbinding.NewGroup(newgroup, f(g.Group, h.Group), s))
}

// GroupUnion is MPI_Group_union.
func GroupUnion(group1, group2 abi.Handle, newgroup uintptr) int {
	cbinding.NullHandle(newgroup, abi.GroupNull)
	return combine("MPI_Group_union", group1, group2, newgroup, mpi.Group.Union)
}

// GroupIntersection is MPI_Group_intersection.
func GroupIntersection(group1, group2 abi.Handle, newgroup uintptr) int {
	cbinding.NullHandle(newgroup, abi.GroupNull)
	return combine("MPI_Group_intersection", group1, group2, newgroup, mpi.Group.Intersection)
}

// GroupDifference is MPI_Group_difference.
func GroupDifference(group1, group2 abi.Handle, newgroup uintptr) int {
	cbinding.NullHandle(newgroup, abi.GroupNull)
	return combine("MPI_Group_difference", group1, group2, newgroup, mpi.Group.Difference)
}

// pick stores the group of, or without, the members of a list.
func pick(proc string, from abi.Handle, n int, ranks, newgroup uintptr,
	f func(mpi.Group, ...int) (mpi.Group, error)) int {
	g, err := cbinding.GroupOf(from)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if n < 0 {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrArg, "n", n, "is negative"))
	}
	list, err := cbinding.Ints("ranks", ranks, n, false)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	seen := make(map[int]bool, n)
	for i, r := range list {
		if r < 0 || r >= g.Size() {
			return cbinding.Fail(proc, cbinding.MemberError(fmt.Sprintf("ranks[%d]", i), r, g))
		}
		if seen[r] {
			return cbinding.Fail(proc, cbinding.ArgError(abi.ErrRank, fmt.Sprintf("ranks[%d]", i), r, "is there twice"))
		}
		seen[r] = true
	}
	out, err := f(g.Group, list...)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, cbinding.NewGroup(newgroup, out, g.Session))
}

// GroupIncl is MPI_Group_incl.
func GroupIncl(group abi.Handle, n int, ranks, newgroup uintptr) int {
	cbinding.NullHandle(newgroup, abi.GroupNull)
	return pick("MPI_Group_incl", group, n, ranks, newgroup, mpi.Group.Incl)
}

// GroupExcl is MPI_Group_excl.
func GroupExcl(group abi.Handle, n int, ranks, newgroup uintptr) int {
	cbinding.NullHandle(newgroup, abi.GroupNull)
	return pick("MPI_Group_excl", group, n, ranks, newgroup, mpi.Group.Excl)
}

// pickRanges stores the group of, or without, the members of ranges: triples of first, last and stride.
func pickRanges(proc string, from abi.Handle, n int, ranges, newgroup uintptr,
	f func(mpi.Group, ...mpi.Range) (mpi.Group, error)) int {
	g, err := cbinding.GroupOf(from)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if n < 0 {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrArg, "n", n, "is negative"))
	}
	all, err := cbinding.Ints("ranges", ranges, 3*n, false)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	list := make([]mpi.Range, n)
	seen := make(map[int]bool, n)
	for i := range list {
		r := mpi.Range{First: all[3*i], Last: all[3*i+1], Stride: all[3*i+2]}
		name := fmt.Sprintf("ranges[%d]", i)
		if r.Stride == 0 {
			return cbinding.Fail(proc, cbinding.ArgError(abi.ErrArg, name, r, "has a stride of 0"))
		}
		if r.Stride > 0 && r.First > r.Last || r.Stride < 0 && r.First < r.Last {
			return cbinding.Fail(proc, cbinding.ArgError(abi.ErrArg, name, r, "has a stride away from its end"))
		}
		// The end need not be a rank if the stride passes it (MPI-4.1, Section 7.3.2).
		r.Last = r.First + (r.Last-r.First)/r.Stride*r.Stride
		for k := r.First; r.Stride > 0 && k <= r.Last || r.Stride < 0 && k >= r.Last; k += r.Stride {
			if k < 0 || k >= g.Size() {
				return cbinding.Fail(proc, cbinding.MemberError(name, k, g))
			}
			if seen[k] {
				return cbinding.Fail(proc, cbinding.ArgError(abi.ErrRank, name, k, "is there twice"))
			}
			seen[k] = true
		}
		list[i] = r
	}
	out, err := f(g.Group, list...)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return cbinding.Fail(proc, cbinding.NewGroup(newgroup, out, g.Session))
}

// GroupRangeIncl is MPI_Group_range_incl.
func GroupRangeIncl(group abi.Handle, n int, ranges, newgroup uintptr) int {
	cbinding.NullHandle(newgroup, abi.GroupNull)
	return pickRanges("MPI_Group_range_incl", group, n, ranges, newgroup, mpi.Group.RangeIncl)
}

// GroupRangeExcl is MPI_Group_range_excl.
func GroupRangeExcl(group abi.Handle, n int, ranges, newgroup uintptr) int {
	cbinding.NullHandle(newgroup, abi.GroupNull)
	return pickRanges("MPI_Group_range_excl", group, n, ranges, newgroup, mpi.Group.RangeExcl)
}

// GroupFree is MPI_Group_free.
func GroupFree(group uintptr) int {
	const proc = "MPI_Group_free"
	if group == 0 {
		return cbinding.Fail(proc, cbinding.NullError("group"))
	}
	h := *cbinding.At[abi.Handle](group)
	if _, err := cbinding.GroupOf(h); err != nil {
		return cbinding.Fail(proc, err)
	}
	cbinding.Groups.Delete(h) // MPI_GROUP_EMPTY may be freed, as calls return it (MPI-4.1, Section 7.3.2)
	cbinding.SetHandle(group, abi.GroupNull)
	return 0
}
