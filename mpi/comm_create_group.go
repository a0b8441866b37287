package mpi

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weftstack/weft/mpi/internal/consent"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// CreateGroup makes a communicator of the ranks in g, a subset of c's group that includes the
// caller (MPI_Comm_create_group; MPI-4.1, Section 7.4.2). Only they call it, with the same tag;
// calls with tags that differ in the lower 30 bits may be in progress at the same time. It blocks
// until all members have called it. If a member fails meanwhile, some members may get the
// communicator and others an error. If callers
// give the same members in different orders, all get ErrNotSame. If they give different members, the call may
// not return.
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
	// The votes go between the members in the order of their ranks in c, whatever order the caller gives: that may be
	// what differs. The first one chooses the id, because the others cannot count the communicators that it has made
	// of groups without them.
	sorted := slices.Sorted(slices.Values(members))
	v := groupVoters{c: c, members: sorted, rank: slices.Index(sorted, c.comm.Rank), tag: tagGroup | tag&(tagGroup-1)}
	if v.rank == 0 {
		v.id = childID(c.comm.ID^uint64(c.comm.Rank+1)<<32, c.groups.Add(1))
	}
	if err := consent.Ask(ctx, &v, nil, members); err != nil {
		return nil, err
	}
	return c.child(c.w.newComm(v.id, slices.Clone(g.ranks), rank, c.Info())), nil
}

// groupVoters are the members of a group of ranks of c as consent.Ask uses them. The id that the first of them has
// chosen goes down the tree with the votes, behind each.
type groupVoters struct {
	c         *Comm
	members   []int // ranks in c, sorted
	rank, tag int
	id        uint64
}

// Rank implements consent.Comm.
func (v *groupVoters) Rank() int { return v.rank }

// Size implements consent.Comm.
func (v *groupVoters) Size() int { return len(v.members) }

// SendVote implements consent.Comm.
func (v *groupVoters) SendVote(ctx context.Context, b []byte, to int, _ bool) error {
	b = binary.BigEndian.AppendUint64(slices.Clip(b), v.id)
	return v.c.comm.Send(ctx, p2p.SlotComm, p2p.SendStandard, b, v.members[to], v.tag)
}

// RecvVote implements consent.Comm.
func (v *groupVoters) RecvVote(ctx context.Context, b []byte, from int, up bool) (int, error) {
	buf := make([]byte, len(b)+8)
	st, err := v.c.comm.Recv(ctx, p2p.SlotComm, buf, v.members[from], v.tag)
	if err != nil {
		return 0, err
	}
	n := st.Bytes - 8
	if n < 0 {
		return 0, fmt.Errorf("%w: vote of %d bytes", ErrProtocol, st.Bytes)
	}
	if !up {
		v.id = binary.BigEndian.Uint64(buf[n:])
	}
	return copy(b, buf[:n]), nil
}
