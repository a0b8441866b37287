package mpi

import (
	"context"
	"fmt"
)

// SplitKind is what Comm.SplitType divides a communicator by (MPI-4.1, Section
// 7.4.2).
type SplitKind uint8

// Kinds of division. What is known of the hardware is which ranks are on one
// host, and which hosts are at one site.
const (
	// SplitByMemory puts ranks together that can share memory
	// (MPI_COMM_TYPE_SHARED): those on one host.
	SplitByMemory SplitKind = iota + 1
	// SplitHWGuided puts ranks together that share the resource that InfoHWType
	// says (MPI_COMM_TYPE_HW_GUIDED): ResourceMemory or ResourceSite. For others, and
	// without the key, there is no communicator.
	SplitHWGuided
	// SplitHWUnguided divides by the next smaller resource that not all ranks
	// share (MPI_COMM_TYPE_HW_UNGUIDED). The info of the communicator says which,
	// by InfoHWType. If there is none there is no communicator.
	SplitHWUnguided
	// SplitResourceGuided is SplitHWGuided, or puts those together that are in
	// one of the process sets that InfoPset names (MPI_COMM_TYPE_RESOURCE_GUIDED).
	SplitResourceGuided
	// SplitBySite puts ranks together that are at one site: see WithSite. The info of the
	// communicator says which, by InfoSite. It is a type of this implementation, as MPI-4.1,
	// Section 7.4.2, has room for.
	SplitBySite
)

// Info keys and values of Comm.SplitType (MPI-4.1, Section 7.4.2).
const (
	InfoHWType     = "mpi_hw_resource_type"
	InfoPset       = "mpi_pset_name"
	ResourceMemory = "mpi_shared_memory" // value of InfoHWType: a host
	ResourceSite   = "weft_site"         // value of InfoHWType: a site
	InfoSite       = "weft_site_name"    // key of communicators of ranks at one site
)

// HardwareInfo returns the resources of the hardware that InfoHWType may say, with
// "true" for those that the caller is restricted to one of (MPI-4.1, Section 9.1.2:
// MPI_Get_hw_resource_info). It is local.
func HardwareInfo() Info { return Info{ResourceMemory: "true", ResourceSite: "true"} }

// SplitShared divides c into communicators of ranks on the same host, ordered by
// key, then by rank (MPI_COMM_TYPE_SHARED). All ranks of c must call it; it
// blocks until they do.
func (c *Comm) SplitShared(ctx context.Context, key int) (*Comm, error) {
	return c.Split(ctx, c.w.job.HostColor(), key)
}

// SplitType divides c by what its ranks share, ordered by key, then by rank. All
// ranks of c must call it, with the same kind and info; it blocks until they do.
// It returns nil if the ranks do not share such a thing. A rank may give a kind
// of 0 to be left out (MPI_UNDEFINED). Of an intercommunicator it makes those of
// ranks of both groups that share it; ranks without one in the other group get nil.
func (c *Comm) SplitType(ctx context.Context, kind SplitKind, key int, info Info) (*Comm, error) {
	if kind > SplitBySite {
		_, err := c.Split(ctx, -1, key) // which fails on all ranks
		return nil, fmt.Errorf("%w: split by kind %d (%w)", ErrOption, kind, err)
	}
	color, resource := Undefined, ""
	pset, byPset := info[InfoPset]
	switch {
	case kind == 0:
	case kind == SplitResourceGuided && byPset:
		switch pset {
		case PsetWorld:
			color = 0
		case PsetSelf:
			if c.remote == nil { // with nobody of the other group there is nothing to make
				color = c.comm.Rank
			}
		}
	case kind == SplitBySite, kind == SplitHWUnguided && c.coll.Sites() != nil,
		kind != SplitByMemory && info[InfoHWType] == ResourceSite:
		color, resource = c.w.job.SiteColor(), ResourceSite
	case kind == SplitByMemory, kind == SplitHWUnguided, info[InfoHWType] == ResourceMemory:
		color, resource = c.w.job.HostColor(), ResourceMemory
	}
	d, err := c.Split(ctx, color, key)
	if err != nil || d == nil {
		return nil, err
	}
	if kind == SplitHWUnguided && d.Size() == c.Size() && len(d.remote) == len(c.remote) {
		d.Free()
		return nil, nil
	}
	switch resource {
	case ResourceSite:
		d.SetInfo(Info{InfoHWType: resource, InfoSite: c.w.Site()})
	case ResourceMemory:
		d.SetInfo(Info{InfoHWType: resource})
	}
	return d, nil
}

// first makes a communicator of the first n ranks of c; the others get nil.
func (c *Comm) first(n int) (*Comm, error) {
	members := make([]int, n)
	for i := range members {
		members[i] = i
	}
	g, err := c.Group().Incl(members...)
	if err != nil {
		return nil, err
	}
	return c.create(g), nil
}
