package mpi

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
)

// Comparison is the result of Comm.Compare and Group.Compare
// (MPI_Comm_compare).
type Comparison uint8

const (
	// Unequal: the members differ (MPI_UNEQUAL).
	Unequal Comparison = iota
	// Similar: the same members in another order (MPI_SIMILAR).
	Similar
	// Congruent: the same members in the same order, on another communicator
	// (MPI_CONGRUENT).
	Congruent
	// Identical: the same communicator, or equal groups (MPI_IDENT).
	Identical
)

var comparisonNames = [...]string{"unequal", "similar", "congruent", "identical"}

// String returns the name in lower case.
func (x Comparison) String() string {
	if int(x) < len(comparisonNames) {
		return comparisonNames[x]
	}
	return "unknown"
}

// Compare returns Identical for equal groups, Similar for groups of the same
// members in another order, else Unequal (MPI-4.1, Section 7.3.1).
func (g Group) Compare(h Group) Comparison {
	if g.Equal(h) {
		return Identical
	}
	a, b := slices.Sorted(slices.Values(g.ranks)), slices.Sorted(slices.Values(h.ranks))
	if slices.Equal(a, b) {
		return Similar
	}
	return Unequal
}

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

// Compare tells how c and d are related (MPI-4.1, Section 7.4.1). It is local.
func (c *Comm) Compare(d *Comm) Comparison {
	if c.w == d.w && c.id == d.id {
		return Identical
	}
	if (c.remote == nil) != (d.remote == nil) {
		return Unequal
	}
	// Both groups must be related: the weaker of the relations counts.
	x := min(c.Group().Compare(d.Group()), c.RemoteGroup().Compare(d.RemoteGroup()))
	if x == Identical {
		return Congruent
	}
	return x
}

// CreateGroup makes a communicator of the ranks in g, a subset of c's group
// that includes the caller (MPI_Comm_create_group). Only they call it, with the
// same tag; calls with tags that differ in the lower 30 bits may go on at the
// same time (MPI-4.1, Section 7.4.2). It may block until the first member has
// called it.
func (c *Comm) CreateGroup(ctx context.Context, g Group, tag int) (*Comm, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	if err := checkTag(tag); err != nil {
		return nil, err
	}
	if c.remote != nil {
		return nil, fmt.Errorf("%w: CreateGroup of an intercommunicator", ErrComm)
	}
	rank := slices.Index(g.ranks, c.group[c.rank])
	if rank < 0 {
		return nil, fmt.Errorf("%w: the caller is no member of the group", ErrRank)
	}
	members := make([]int, len(g.ranks))
	for i, r := range g.ranks {
		if members[i] = slices.Index(c.group, r); members[i] < 0 {
			return nil, fmt.Errorf("%w: group member %d", ErrRank, r)
		}
	}
	// The first member chooses the id: others may not know how many
	// communicators it has made of groups that they are not in.
	var id [8]byte
	t := tagGroup | tag&(tagGroup-1)
	if rank == 0 {
		binary.BigEndian.PutUint64(id[:], childID(c.id^uint64(c.rank+1)<<32, c.groups.Add(1)))
		for _, m := range members[1:] {
			if err := c.send(ctx, slotComm, sendStandard, id[:], m, t); err != nil {
				return nil, err
			}
		}
	} else if _, err := c.recv(ctx, slotComm, id[:], members[0], t); err != nil {
		return nil, err
	}
	return c.child(c.w.newComm(binary.BigEndian.Uint64(id[:]), slices.Clone(g.ranks), rank, c.Info())), nil
}
