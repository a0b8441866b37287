package cbinding

import (
	"fmt"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A group is an MPI_Group. Those that come from a process set of a session know it.
type group struct {
	mpi.Group
	session *session
}

// newGroup stores the handle of a new group at p.
func newGroup(p uintptr, g mpi.Group, s *session) error {
	if p == 0 {
		return nullError("newgroup")
	}
	if g.Size() == 0 {
		setHandle(p, abi.GroupEmpty)
		return nil
	}
	h, err := groups.put(&group{g, s})
	if err == nil {
		setHandle(p, h)
	}
	return err
}

// twoGroups returns the groups of two handles, and the session that one of them knows.
func twoGroups(a, b Handle) (g, h *group, s *session, err error) {
	if g, err = groupOf(a); err != nil {
		return nil, nil, nil, err
	}
	if h, err = groupOf(b); err != nil {
		return nil, nil, nil, err
	}
	if s = g.session; s == nil {
		s = h.session
	}
	return g, h, s, nil
}

// GroupSize is MPI_Group_size.
func GroupSize(group Handle, size uintptr) int {
	g, err := groupOf(group)
	if err != nil {
		return fail("MPI_Group_size", err)
	}
	return fail("MPI_Group_size", setInt(size, g.Size(), false))
}

// GroupRank is MPI_Group_rank: MPI_UNDEFINED if the caller is no member.
func GroupRank(group Handle, rank uintptr) int {
	const proc = "MPI_Group_rank"
	g, err := groupOf(group)
	if err != nil {
		return fail(proc, err)
	}
	return fail(proc, setInt(rank, rankToC(g.Rank(int(state.rank.Load()))), false))
}

// GroupTranslateRanks is MPI_Group_translate_ranks.
func GroupTranslateRanks(group1 Handle, n int, ranks1 uintptr, group2 Handle, ranks2 uintptr) int {
	const proc = "MPI_Group_translate_ranks"
	g, h, _, err := twoGroups(group1, group2)
	if err != nil {
		return fail(proc, err)
	}
	if n < 0 {
		return fail(proc, argError(abi.ErrArg, "n", n, "is negative"))
	}
	if n > 0 && ranks2 == 0 {
		return fail(proc, nullError("ranks2"))
	}
	ranks, err := ints("ranks1", ranks1, n, false)
	if err != nil {
		return fail(proc, err)
	}
	for i, r := range ranks {
		switch {
		case r == abi.ProcNull:
			ranks[i] = mpi.ProcNull
		case r < 0 || r >= g.Size():
			return fail(proc, memberError(fmt.Sprintf("ranks1[%d]", i), r, g))
		}
	}
	out := array[int32](ranks2, n)
	for i, r := range g.TranslateRanks(ranks, h.Group) {
		out[i] = int32(rankToC(r))
	}
	return 0
}

// memberError is the error of a rank that no member of a group has.
func memberError(name string, rank int, g *group) error {
	return argError(abi.ErrRank, name, rank, fmt.Sprintf("is no rank of a group of %d", g.Size()))
}

// GroupCompare is MPI_Group_compare.
func GroupCompare(group1, group2 Handle, result uintptr) int {
	const proc = "MPI_Group_compare"
	g, h, _, err := twoGroups(group1, group2)
	if err != nil {
		return fail(proc, err)
	}
	return fail(proc, setInt(result, comparisons[g.Compare(h.Group)], false))
}

// comparisons are the results of comparing, as C has them.
var comparisons = [...]int{
	mpi.Unequal: abi.Unequal, mpi.Similar: abi.Similar, mpi.Congruent: abi.Congruent, mpi.Identical: abi.Ident,
}

// combine stores the group that f makes of two.
func combine(proc string, group1, group2 Handle, newgroup uintptr, f func(g, h mpi.Group) mpi.Group) int {
	g, h, s, err := twoGroups(group1, group2)
	if err != nil {
		return fail(proc, err)
	}
	return fail(proc, newGroup(newgroup, f(g.Group, h.Group), s))
}

// GroupUnion is MPI_Group_union.
func GroupUnion(group1, group2 Handle, newgroup uintptr) int {
	nullHandle(newgroup, abi.GroupNull)
	return combine("MPI_Group_union", group1, group2, newgroup, mpi.Group.Union)
}

// GroupIntersection is MPI_Group_intersection.
func GroupIntersection(group1, group2 Handle, newgroup uintptr) int {
	nullHandle(newgroup, abi.GroupNull)
	return combine("MPI_Group_intersection", group1, group2, newgroup, mpi.Group.Intersection)
}

// GroupDifference is MPI_Group_difference.
func GroupDifference(group1, group2 Handle, newgroup uintptr) int {
	nullHandle(newgroup, abi.GroupNull)
	return combine("MPI_Group_difference", group1, group2, newgroup, mpi.Group.Difference)
}

// pick stores the group of, or without, the members of a list.
func pick(proc string, from Handle, n int, ranks, newgroup uintptr, f func(mpi.Group, ...int) (mpi.Group, error)) int {
	g, err := groupOf(from)
	if err != nil {
		return fail(proc, err)
	}
	if n < 0 {
		return fail(proc, argError(abi.ErrArg, "n", n, "is negative"))
	}
	list, err := ints("ranks", ranks, n, false)
	if err != nil {
		return fail(proc, err)
	}
	seen := make(map[int]bool, n)
	for i, r := range list {
		if r < 0 || r >= g.Size() {
			return fail(proc, memberError(fmt.Sprintf("ranks[%d]", i), r, g))
		}
		if seen[r] {
			return fail(proc, argError(abi.ErrRank, fmt.Sprintf("ranks[%d]", i), r, "is there twice"))
		}
		seen[r] = true
	}
	out, err := f(g.Group, list...)
	if err != nil {
		return fail(proc, err)
	}
	return fail(proc, newGroup(newgroup, out, g.session))
}

// GroupIncl is MPI_Group_incl.
func GroupIncl(group Handle, n int, ranks, newgroup uintptr) int {
	nullHandle(newgroup, abi.GroupNull)
	return pick("MPI_Group_incl", group, n, ranks, newgroup, mpi.Group.Incl)
}

// GroupExcl is MPI_Group_excl.
func GroupExcl(group Handle, n int, ranks, newgroup uintptr) int {
	nullHandle(newgroup, abi.GroupNull)
	return pick("MPI_Group_excl", group, n, ranks, newgroup, mpi.Group.Excl)
}

// pickRanges stores the group of, or without, the members of ranges: triples of first, last and stride.
func pickRanges(proc string, from Handle, n int, ranges, newgroup uintptr,
	f func(mpi.Group, ...mpi.Range) (mpi.Group, error)) int {
	g, err := groupOf(from)
	if err != nil {
		return fail(proc, err)
	}
	if n < 0 {
		return fail(proc, argError(abi.ErrArg, "n", n, "is negative"))
	}
	all, err := ints("ranges", ranges, 3*n, false)
	if err != nil {
		return fail(proc, err)
	}
	list := make([]mpi.Range, n)
	seen := make(map[int]bool, n)
	for i := range list {
		r := mpi.Range{First: all[3*i], Last: all[3*i+1], Stride: all[3*i+2]}
		name := fmt.Sprintf("ranges[%d]", i)
		if r.Stride == 0 {
			return fail(proc, argError(abi.ErrArg, name, r, "has a stride of 0"))
		}
		if r.Stride > 0 && r.First > r.Last || r.Stride < 0 && r.First < r.Last {
			return fail(proc, argError(abi.ErrArg, name, r, "has a stride away from its end"))
		}
		// The end need not be a rank if the stride passes it (MPI-4.1, Section 7.3.2).
		r.Last = r.First + (r.Last-r.First)/r.Stride*r.Stride
		for k := r.First; r.Stride > 0 && k <= r.Last || r.Stride < 0 && k >= r.Last; k += r.Stride {
			if k < 0 || k >= g.Size() {
				return fail(proc, memberError(name, k, g))
			}
			if seen[k] {
				return fail(proc, argError(abi.ErrRank, name, k, "is there twice"))
			}
			seen[k] = true
		}
		list[i] = r
	}
	out, err := f(g.Group, list...)
	if err != nil {
		return fail(proc, err)
	}
	return fail(proc, newGroup(newgroup, out, g.session))
}

// GroupRangeIncl is MPI_Group_range_incl.
func GroupRangeIncl(group Handle, n int, ranges, newgroup uintptr) int {
	nullHandle(newgroup, abi.GroupNull)
	return pickRanges("MPI_Group_range_incl", group, n, ranges, newgroup, mpi.Group.RangeIncl)
}

// GroupRangeExcl is MPI_Group_range_excl.
func GroupRangeExcl(group Handle, n int, ranges, newgroup uintptr) int {
	nullHandle(newgroup, abi.GroupNull)
	return pickRanges("MPI_Group_range_excl", group, n, ranges, newgroup, mpi.Group.RangeExcl)
}

// GroupFree is MPI_Group_free.
func GroupFree(group uintptr) int {
	const proc = "MPI_Group_free"
	if group == 0 {
		return fail(proc, nullError("group"))
	}
	h := *at[Handle](group)
	if _, err := groupOf(h); err != nil {
		return fail(proc, err)
	}
	groups.delete(h) // MPI_GROUP_EMPTY may be freed, as calls return it (MPI-4.1, Section 7.3.2)
	setHandle(group, abi.GroupNull)
	return 0
}
