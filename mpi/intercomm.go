package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/weftstack/weft/mpi/internal/consent"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Intercommunicators (MPI-4.1, Section 7.6) consist of two groups without common members. Messages
// go from one group to the other: ranks in sends and receives are those of the remote group.

// IntercommCreate makes an intercommunicator of the group of local and one that the caller is not
// in (MPI-4.1, Section 7.6.2). The leader, a rank of local, and the leader of the other group have
// the communicator bridge in common, in which the latter has rank remoteLeader; other ranks ignore
// both arguments. All ranks of both groups must call it with the same tag, which no other
// IntercommCreate between the same leaders uses at the time; it blocks until all have.
func IntercommCreate(ctx context.Context, local *Comm, leader int, bridge *Comm, remoteLeader, tag int) (*Comm, error) {
	if local.remote != nil {
		return nil, fmt.Errorf("%w: IntercommCreate of an intercommunicator", ErrComm)
	}
	if err := local.comm.Usable(); err != nil {
		return nil, err
	}
	bad := errors.Join(checkTag(tag), local.comm.CheckPeer(p2p.SlotComm, leader))
	if err := local.consent(ctx, bad, leader); err != nil {
		return nil, err
	}
	e := local.w.eng
	// The nonces of both groups together make the id.
	own := binary.BigEndian.AppendUint64(nil, rand.Uint64())
	own = e.AppendNames(own, local.group)
	x := leaders{local: local, leader: leader, bridge: bridge, remote: remoteLeader, tag: tagInter | tag&(tagInter-1)}
	mine, other, err := x.exchange(ctx, own)
	if err != nil {
		return nil, err
	}
	if len(other) < 8+p2p.ProcNameLen {
		return nil, fmt.Errorf("%w: group without members", ErrProtocol)
	}
	if commonNames(mine[8:], other[8:]) {
		return nil, fmt.Errorf("%w: groups with common members", ErrRank)
	}
	a, b := binary.BigEndian.Uint64(mine), binary.BigEndian.Uint64(other)
	side := 0
	if a > b || a == b && bytes.Compare(mine, other) > 0 {
		side = 1
	}
	remote, err := e.ParseNames(other[8:])
	if severalJobs(mine[8:], other[8:]) {
		lacking, lerr := x.anyLacks(ctx, err)
		if lerr != nil {
			return nil, lerr
		}
		if lacking {
			return x.connect(ctx, side == 0)
		}
	}
	if err != nil {
		return nil, err
	}
	id := childID(a+b, a^b)
	return local.child(local.w.newIntercomm(id, local.group, local.comm.Rank, remote, side, local.Info())), nil
}

// newIntercomm makes an intercommunicator. The groups are handles; both must
// have links to each other and no common member. rank is the caller's in local.
// Both sides have found the same id, and have different sides, 0 and 1.
func (w *World) newIntercomm(id uint64, local []int32, rank int, remote []int32, side int, info Info) *Comm {
	c := &Comm{comm: p2p.Comm{ID: id, Rank: rank}, w: w, group: local, remote: remote, side: side}
	c.local = w.newComm(childID(id, 1<<63|uint64(side)), local, rank, nil)
	return w.openComm(c, remote, info)
}

// IsInter reports whether c is an intercommunicator (MPI_Comm_test_inter).
func (c *Comm) IsInter() bool { return c.remote != nil }

// RemoteSize returns the number of ranks in the remote group of an
// intercommunicator, else 0 (MPI_Comm_remote_size).
func (c *Comm) RemoteSize() int { return len(c.remote) }

// RemoteGroup returns the remote group of an intercommunicator, else an empty
// group (MPI_Comm_remote_group).
func (c *Comm) RemoteGroup() Group { return Group{ranks: c.remote} }

// IntercommMerge makes an intracommunicator of both groups of c (MPI-4.1, Section 7.6.2). The group
// with high false comes first; if both give the same value, the order is arbitrary. All members of
// a group must give the same value. All ranks of both groups must call it; it blocks until all
// have.
func (c *Comm) IntercommMerge(ctx context.Context, high bool) (*Comm, error) {
	if err := c.comm.Usable(); err != nil {
		return nil, err
	}
	if c.remote == nil {
		return nil, fmt.Errorf("%w: merging an intracommunicator", ErrComm)
	}
	id := childID(c.comm.ID, c.children.Add(1))
	mine, other, err := c.leaders().exchange(ctx, []byte{boolByte(high)})
	if err != nil {
		return nil, err
	}
	if len(other) != 1 {
		return nil, fmt.Errorf("%w: answer of %d bytes", ErrProtocol, len(other))
	}
	second := c.side == 1
	if mine[0] != other[0] {
		second = mine[0] == 1
	}
	if second {
		return c.child(c.w.newComm(id, slices.Concat(c.remote, c.group), len(c.remote)+c.comm.Rank, c.Info())), nil
	}
	return c.child(c.w.newComm(id, slices.Concat(c.group, c.remote), c.comm.Rank, c.Info())), nil
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// splitInter is Split for intercommunicators.
func (c *Comm) splitInter(ctx context.Context, color, key int) (*Comm, error) {
	id := childID(c.comm.ID, c.children.Add(1))
	all, err := c.local.allgatherPairs(ctx, int64(color), int64(key))
	if err != nil {
		return nil, err
	}
	var table []byte
	for _, x := range all {
		table = binary.BigEndian.AppendUint64(table, uint64(x[0]))
		table = binary.BigEndian.AppendUint64(table, uint64(x[1]))
	}
	_, other, err := c.leaders().exchange(ctx, table)
	if err != nil {
		return nil, err
	}
	if len(other) != 16*len(c.remote) {
		return nil, fmt.Errorf("%w: table of %d bytes", ErrProtocol, len(other))
	}
	theirs := make([][2]int64, len(c.remote))
	for i := range theirs {
		theirs[i][0] = int64(binary.BigEndian.Uint64(other[16*i:]))
		theirs[i][1] = int64(binary.BigEndian.Uint64(other[16*i+8:]))
	}
	if err := orFirst(checkColors(all), checkColors(theirs)); err != nil || color == Undefined {
		return nil, err
	}
	group, rank := colorGroup(c.group, all, color, c.comm.Rank)
	remote, _ := colorGroup(c.remote, theirs, color, -1)
	if len(remote) == 0 {
		return nil, nil
	}
	return c.child(c.w.newIntercomm(id, group, rank, remote, c.side, c.Info())), nil
}

// createInter is Create for intercommunicators.
func (c *Comm) createInter(ctx context.Context, g Group) (*Comm, error) {
	id := childID(c.comm.ID, c.children.Add(1))
	var list []byte
	for _, h := range g.ranks {
		list = binary.BigEndian.AppendUint32(list, uint32(slices.Index(c.group, h)))
	}
	_, other, err := c.leaders().exchange(ctx, list)
	if err != nil {
		return nil, err
	}
	var remote []int32
	for ; len(other) >= 4; other = other[4:] {
		r := binary.BigEndian.Uint32(other)
		if int64(r) >= int64(len(c.remote)) {
			return nil, fmt.Errorf("%w: member %d of %d", ErrProtocol, r, len(c.remote))
		}
		remote = append(remote, c.remote[r])
	}
	rank := slices.Index(g.ranks, c.group[c.comm.Rank])
	if rank < 0 || len(remote) == 0 {
		return nil, nil
	}
	return c.child(c.w.newIntercomm(id, slices.Clone(g.ranks), rank, remote, c.side, c.Info())), nil
}

// leaders exchanges data between two groups, by one rank of each.
type leaders struct {
	local  *Comm // of the group
	leader int   // rank in local
	bridge *Comm // of both leaders
	remote int   // rank of the other leader in bridge
	tag    int
}

// leaders returns the leaders of an intercommunicator, rank 0 of each group.
func (c *Comm) leaders() leaders {
	return leaders{local: c.local, bridge: c, tag: tagLeaders}
}

const (
	// maxLeaderMessage bounds a message between the leaders: 16 bytes per rank.
	maxLeaderMessage = 16*MaxRanks + 64
	// leaderFailed is the length that says that an error follows instead of the message.
	leaderFailed = 1 << 63
)

// exchange gives all ranks of both groups the messages of both leaders. All ranks of both
// groups call it; said is ignored on ranks that are not leaders.
func (x leaders) exchange(ctx context.Context, said []byte) (mine, other []byte, err error) {
	c := x.local
	if c.comm.Rank != x.leader {
		if mine, err = x.recvResult(ctx, maxLeaderMessage); err == nil {
			other, err = x.recvResult(ctx, maxLeaderMessage)
		}
		return mine, other, err
	}
	other, err = x.exchangeLeaders(ctx, said)
	for r := range c.group {
		if r == c.comm.Rank {
			continue
		}
		for _, b := range [][]byte{said, other} {
			if serr := x.sendResult(ctx, r, b, err); serr != nil {
				return nil, nil, errors.Join(err, serr)
			}
			if err != nil {
				break
			}
		}
	}
	return said, other, err
}

// exchangeLeaders exchanges b with the other leader.
func (x leaders) exchangeLeaders(ctx context.Context, b []byte) ([]byte, error) {
	if x.bridge == nil {
		return nil, fmt.Errorf("%w: no communicator of the leaders", ErrComm)
	}
	if x.bridge.remote == nil && x.remote == x.bridge.comm.Rank {
		return nil, fmt.Errorf("%w: the leaders are the same rank", ErrRank)
	}
	var out, in [8]byte
	binary.BigEndian.PutUint64(out[:], uint64(len(b)))
	if _, err := x.bridge.comm.Sendrecv(ctx, p2p.SlotComm, out[:], x.remote, x.tag, p2p.SlotComm, in[:], x.remote,
		x.tag); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint64(in[:])
	if n > maxLeaderMessage {
		return nil, fmt.Errorf("%w: message of %d bytes between leaders", ErrProtocol, n)
	}
	other := make([]byte, n)
	_, err := x.bridge.comm.Sendrecv(ctx, p2p.SlotComm, b, x.remote, x.tag, p2p.SlotComm, other, x.remote, x.tag)
	return other, err
}

// sendResult sends b to rank r of the group, or the error why if it is not nil.
func (x leaders) sendResult(ctx context.Context, r int, b []byte, why error) error {
	var head [8]byte
	n := uint64(len(b))
	if why != nil {
		n, b = leaderFailed, (&consent.Vote{Why: mpierr.MakePortable(why)}).Append(nil)
	}
	binary.BigEndian.PutUint64(head[:], n)
	if err := x.local.comm.Send(ctx, p2p.SlotComm, p2p.SendStandard, head[:], r, tagLeaderResult); err != nil {
		return err
	}
	return x.local.comm.Send(ctx, p2p.SlotComm, p2p.SendStandard, b, r, tagLeaderResult)
}

// recvResult receives what sendResult of the leader has sent, at most limit bytes.
func (x leaders) recvResult(ctx context.Context, limit uint64) ([]byte, error) {
	var head [8]byte
	if _, err := x.local.comm.Recv(ctx, p2p.SlotComm, head[:], x.leader, tagLeaderResult); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint64(head[:])
	switch {
	case n == leaderFailed:
		return nil, x.recvError(ctx)
	case n > limit:
		return nil, fmt.Errorf("%w: message of %d bytes from the leader", ErrProtocol, n)
	}
	b := make([]byte, n)
	_, err := x.local.comm.Recv(ctx, p2p.SlotComm, b, x.leader, tagLeaderResult)
	return b, err
}

// recvError receives the error that the leader reports instead of a result.
func (x leaders) recvError(ctx context.Context) error {
	buf := make([]byte, consent.MaxVote)
	st, err := x.local.comm.Recv(ctx, p2p.SlotComm, buf, x.leader, tagLeaderResult)
	if err != nil {
		return err
	}
	var b consent.Vote
	if err := b.Parse(buf[:st.Bytes]); err != nil {
		return err
	}
	if b.Why == nil {
		return fmt.Errorf("%w: the leader sent no error", ErrProtocol)
	}
	return fmt.Errorf("leader of the group, rank %d: %w", x.leader, b.Why.Err())
}
