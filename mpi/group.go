package mpi

import (
	"fmt"
	"slices"
)

// Group is an ordered set of ranks (MPI-4.1, Section 7.3). It is a value; its
// operations are local.
type Group struct {
	ranks []int32 // handles, see procName; never changed
}

// Size returns the number of members (MPI_Group_size).
func (g Group) Size() int { return len(g.ranks) }

// WorldRank returns the rank in World.Comm of member i, or Undefined if it is a
// process of another job (MPI_Group_translate_ranks).
func (g Group) WorldRank(i int) int {
	if g.ranks[i] >= MaxRanks { // see procName
		return Undefined
	}
	return int(g.ranks[i])
}

// Rank returns the place in g of the rank with the given world rank, or
// Undefined (MPI_Group_rank).
func (g Group) Rank(world int) int {
	for i, r := range g.ranks {
		if int(r) == world && r < MaxRanks {
			return i
		}
	}
	return Undefined
}

// Incl returns the group of the listed members, in that order (MPI_Group_incl).
// It returns ErrRank if one is outside g or listed twice.
func (g Group) Incl(members ...int) (Group, error) {
	out := make([]int32, 0, len(members))
	for _, m := range members {
		if m < 0 || m >= len(g.ranks) || slices.Contains(out, g.ranks[m]) {
			return Group{}, fmt.Errorf("%w: group member %d of %d", ErrRank, m, len(g.ranks))
		}
		out = append(out, g.ranks[m])
	}
	return Group{ranks: out}, nil
}

// Excl returns g without the listed members (MPI_Group_excl). It returns
// ErrRank if one is outside g.
func (g Group) Excl(members ...int) (Group, error) {
	for _, m := range members {
		if m < 0 || m >= len(g.ranks) {
			return Group{}, fmt.Errorf("%w: group member %d of %d", ErrRank, m, len(g.ranks))
		}
	}
	var out []int32
	for i, r := range g.ranks {
		if !slices.Contains(members, i) {
			out = append(out, r)
		}
	}
	return Group{ranks: out}, nil
}

// Union returns the members of g, then those of h that are not in g
// (MPI_Group_union).
func (g Group) Union(h Group) Group {
	out := slices.Clone(g.ranks)
	for _, r := range h.ranks {
		if !slices.Contains(g.ranks, r) {
			out = append(out, r)
		}
	}
	return Group{ranks: out}
}

// Intersection returns the members of g that are also in h, in g's order
// (MPI_Group_intersection).
func (g Group) Intersection(h Group) Group {
	var out []int32
	for _, r := range g.ranks {
		if slices.Contains(h.ranks, r) {
			out = append(out, r)
		}
	}
	return Group{ranks: out}
}

// Difference returns the members of g that are not in h, in g's order
// (MPI_Group_difference).
func (g Group) Difference(h Group) Group {
	var out []int32
	for _, r := range g.ranks {
		if !slices.Contains(h.ranks, r) {
			out = append(out, r)
		}
	}
	return Group{ranks: out}
}

// Translate returns the rank in h of member i of g, or Undefined
// (MPI_Group_translate_ranks).
func (g Group) Translate(i int, h Group) int {
	if r := slices.Index(h.ranks, g.ranks[i]); r >= 0 {
		return r
	}
	return Undefined
}

// Equal reports whether g and h have the same members in the same order
// (MPI_Group_compare).
func (g Group) Equal(h Group) bool { return slices.Equal(g.ranks, h.ranks) }

// Range is an arithmetic sequence of ranks: First, First+Stride …, up to Last
// (MPI_Group_range_incl).
type Range struct{ First, Last, Stride int }

// members appends the ranks of r to out; n is the size of the group.
func (r Range) members(out []int, n int) ([]int, error) {
	if r.Stride == 0 || r.First < 0 || r.First >= n || r.Last < 0 || r.Last >= n {
		return nil, fmt.Errorf("%w: range %+v of %d", ErrRank, r, n)
	}
	for i := r.First; r.Stride > 0 && i <= r.Last || r.Stride < 0 && i >= r.Last; i += r.Stride {
		out = append(out, i)
	}
	return out, nil
}

// RangeIncl is Incl for the members of ranges (MPI_Group_range_incl).
func (g Group) RangeIncl(ranges ...Range) (Group, error) {
	members, err := g.ranges(ranges)
	if err != nil {
		return Group{}, err
	}
	return g.Incl(members...)
}

// RangeExcl is Excl for the members of ranges (MPI_Group_range_excl).
func (g Group) RangeExcl(ranges ...Range) (Group, error) {
	members, err := g.ranges(ranges)
	if err != nil {
		return Group{}, err
	}
	return g.Excl(members...)
}

func (g Group) ranges(ranges []Range) (members []int, err error) {
	for _, r := range ranges {
		if members, err = r.members(members, len(g.ranks)); err != nil {
			return nil, err
		}
	}
	return members, nil
}
