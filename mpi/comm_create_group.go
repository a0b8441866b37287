package mpi

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// CreateGroup makes a communicator of the ranks in g, a subset of c's group that includes the
// caller (MPI_Comm_create_group; MPI-4.1, Section 7.4.2). Only they call it, with the same tag;
// calls with tags that differ in the lower 30 bits may be in progress at the same time. It may
// block until the first member has called it. If a member fails meanwhile, some members may get the
// communicator and others an error.
func (c *Comm) CreateGroup(ctx context.Context, g Group, tag int) (*Comm, error) {
	if err := c.comm.Usable(); err != nil {
		return nil, err
	}
	if err := checkTag(tag); err != nil {
		return nil, err
	}
	if c.remote != nil {
		return nil, fmt.Errorf("%w: CreateGroup of an intercommunicator", ErrComm)
	}
	rank := slices.Index(g.ranks, c.group[c.comm.Rank])
	if rank < 0 {
		return nil, fmt.Errorf("%w: the caller is no member of the group", ErrRank)
	}
	members := make([]int, len(g.ranks))
	for i, r := range g.ranks {
		if members[i] = slices.Index(c.group, r); members[i] < 0 {
			return nil, fmt.Errorf("%w: group member %d", ErrRank, r)
		}
	}
	// The first member chooses the id, because the others cannot count the communicators
	// that it has made of groups without them.
	var id [8]byte
	t := tagGroup | tag&(tagGroup-1)
	if rank == 0 {
		binary.BigEndian.PutUint64(id[:], childID(c.comm.ID^uint64(c.comm.Rank+1)<<32, c.groups.Add(1)))
		for _, m := range members[1:] {
			if err := c.comm.Send(ctx, p2p.SlotComm, p2p.SendStandard, id[:], m, t); err != nil {
				return nil, err
			}
		}
	} else if _, err := c.comm.Recv(ctx, p2p.SlotComm, id[:], members[0], t); err != nil {
		return nil, err
	}
	return c.child(c.w.newComm(binary.BigEndian.Uint64(id[:]), slices.Clone(g.ranks), rank, c.Info())), nil
}
