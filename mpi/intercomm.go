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
// IntercommCreate between the same leaders uses at the time; it blocks until all have. An error of a rank
// of one group is an error on all ranks of both, unless its leader gives a bridge, remoteLeader or tag that
// is wrong: then the other group waits.
func IntercommCreate(ctx context.Context, local *Comm, leader int, bridge *Comm, remoteLeader, tag int) (*Comm, error) {
	if local.remote != nil {
		return nil, fmt.Errorf("%w: IntercommCreate of an intercommunicator", ErrComm)
	}
	if err := local.comm.Usable(); err != nil {
		return nil, err
	}
	bad := errors.Join(checkTag(tag), local.comm.CheckPeer(p2p.SlotComm, leader))
	x := leaders{local: local, leader: leader, bridge: bridge, remote: remoteLeader, tag: tagInter | tag&(tagInter-1)}
	if err := local.consent(ctx, bad, leader); err != nil {
		return nil, x.refuseCreate(ctx, err, bad)
	}
	e := local.w.eng
	// The nonces of both groups together make the id.
	own := binary.BigEndian.AppendUint64(nil, rand.Uint64())
	own = e.AppendNames(own, local.group)
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
// a group must give the same value, or all ranks get ErrNotSame. All ranks of both groups must call it; it
// blocks until all have.
func (c *Comm) IntercommMerge(ctx context.Context, high bool) (*Comm, error) {
	if err := c.comm.Usable(); err != nil {
		return nil, err
	}
	if c.remote == nil {
		return nil, fmt.Errorf("%w: merging an intracommunicator", ErrComm)
	}
	id := childID(c.comm.ID, c.children.Add(1))
	if err := c.consent(ctx, nil, high); err != nil {
		return nil, c.leaders().refuse(ctx, err)
	}
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

// createInter is Create for intercommunicators. bad is why the caller's group cannot.
func (c *Comm) createInter(ctx context.Context, g Group, bad error) (*Comm, error) {
	id := childID(c.comm.ID, c.children.Add(1))
	if bad != nil {
		return nil, c.leaders().refuse(ctx, bad)
	}
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
	other, err = x.exchangeLeaders(ctx, said, nil)
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

// refuse returns why, an error that the caller's group knows of, and lets the other group know, too, which is in
// exchange. It blocks at the leader, until the other leader is.
func (x leaders) refuse(ctx context.Context, why error) error {
	if x.local.comm.Rank == x.leader {
		if _, err := x.exchangeLeaders(ctx, nil, why); err != nil && !errors.Is(err, why) {
			return errors.Join(why, err)
		}
	}
	return why
}

// refuseCreate is refuse for IntercommCreate, where the members of the group may have been given different leaders.
// They agree on one, which sends the error to the leader of the other group. It sends nothing if its own arguments
// are bad: the other leader or the tag may be what is wrong.
func (x leaders) refuseCreate(ctx context.Context, why, bad error) error {
	leader, err := x.local.agreeOnLeader(ctx, x.leader)
	if err != nil || leader != x.leader || bad != nil {
		return why
	}
	if b := x.bridge; b != nil && b.remote == nil && x.remote >= 0 && x.remote < len(b.group) &&
		slices.Contains(x.local.group, b.group[x.remote]) {
		return why // a member of the caller's group, which has heard of it
	}
	return x.refuse(ctx, why)
}

// agreeOnLeader returns the rank that most ranks of c take for the leader, of those that take themselves for it; the
// lowest one if there are several, -1 if there is none. All ranks call it, each with the leader that it was given.
func (c *Comm) agreeOnLeader(ctx context.Context, leader int) (int, error) {
	all, err := c.allgatherPairs(ctx, int64(leader), 0)
	if err != nil {
		return -1, err
	}
	votes := make([]int, len(all))
	for _, v := range all {
		if l := v[0]; l >= 0 && l < int64(len(all)) && all[l][0] == l {
			votes[l]++
		}
	}
	most := slices.Max(votes)
	if most == 0 {
		return -1, nil
	}
	return slices.Index(votes, most), nil
}

// exchangeLeaders exchanges b, or the error why if it is not nil, with the other leader. It returns the error of
// either.
func (x leaders) exchangeLeaders(ctx context.Context, b []byte, why error) ([]byte, error) {
	if x.bridge == nil {
		return nil, fmt.Errorf("%w: no communicator of the leaders", ErrComm)
	}
	if x.bridge.remote == nil && x.remote == x.bridge.comm.Rank {
		return nil, fmt.Errorf("%w: the leaders are the same rank", ErrRank)
	}
	var in [8]byte
	out, b := leaderHead(b, why)
	if _, err := x.bridge.comm.Sendrecv(ctx, p2p.SlotComm, out, x.remote, x.tag, p2p.SlotComm, in[:], x.remote,
		x.tag); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint64(in[:])
	failed := n == leaderFailed
	if failed {
		n = consent.MaxVote
	}
	if n > maxLeaderMessage {
		return nil, fmt.Errorf("%w: message of %d bytes between leaders", ErrProtocol, n)
	}
	other := make([]byte, n)
	st, err := x.bridge.comm.Sendrecv(ctx, p2p.SlotComm, b, x.remote, x.tag, p2p.SlotComm, other, x.remote, x.tag)
	switch {
	case err != nil:
		return nil, err
	case why != nil:
		return nil, why
	case failed:
		return nil, fmt.Errorf("leader of the other group: %w", leaderError(other[:st.Bytes]))
	}
	return other, nil
}

// leaderHead returns the two messages that stand for b, or for the error why if it is not nil.
func leaderHead(b []byte, why error) (head, body []byte) {
	n := uint64(len(b))
	if why != nil {
		n, b = leaderFailed, (&consent.Vote{Why: mpierr.MakePortable(why)}).Append(nil)
	}
	return binary.BigEndian.AppendUint64(nil, n), b
}

// leaderError returns the error of a message.
func leaderError(b []byte) error {
	var v consent.Vote
	if err := v.Parse(b); err != nil {
		return err
	}
	if v.Why == nil {
		return fmt.Errorf("%w: a leader sent no error", ErrProtocol)
	}
	return v.Why.Err()
}

// sendResult sends b to rank r of the group, or the error why if it is not nil.
func (x leaders) sendResult(ctx context.Context, r int, b []byte, why error) error {
	head, b := leaderHead(b, why)
	if err := x.local.comm.Send(ctx, p2p.SlotComm, p2p.SendStandard, head, r, tagLeaderResult); err != nil {
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
	return fmt.Errorf("leader of the group, rank %d: %w", x.leader, leaderError(buf[:st.Bytes]))
}
