package mpi

import "slices"

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

// Compare tells how c and d are related (MPI-4.1, Section 7.4.1). It is local.
func (c *Comm) Compare(d *Comm) Comparison {
	if c.w == d.w && c.comm.ID == d.comm.ID {
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
