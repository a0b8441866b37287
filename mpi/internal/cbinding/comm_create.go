package cbinding

import (
	"slices"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// CommDup is MPI_Comm_dup.
func CommDup(comm Handle, newcomm uintptr) int {
	nullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_dup"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	return c.done(proc, c.dup(newcomm, c.Info()))
}

// CommDupWithInfo is MPI_Comm_dup_with_info.
func CommDupWithInfo(comm, info Handle, newcomm uintptr) int {
	nullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_dup_with_info"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	hints, err := hintsOf(info)
	if err == nil {
		err = c.dup(newcomm, hints)
	}
	return c.done(proc, err)
}

// dup stores the handle of a duplicate of c at p. It does not communicate.
func (c *communicator) dup(p uintptr, hints mpi.Info) error {
	if p == 0 {
		return nullError("newcomm")
	}
	d, err := c.Comm.DupWithInfo(background, hints)
	if err != nil {
		return err
	}
	o := &communicator{Comm: d, session: c.session}
	o.handler.Store(c.handler.Load())
	if err := o.put(p); err != nil {
		return err
	}
	if err := c.attrs.copyTo(&o.attrs, c.handle); err != nil {
		_ = o.attrs.drop(o.handle) // the error of the copy function is the one that counts
		d.Free()
		o.forget(p)
		return err
	}
	return nil
}

// CommCreate is MPI_Comm_create. Ranks of an intracommunicator may give different groups that have no
// common members (MPI-4.1, Section 7.4.2).
func CommCreate(comm, group Handle, newcomm uintptr) int {
	nullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_create"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	g, err := groupOf(group)
	if err == nil {
		err = out("newcomm", newcomm)
	}
	if err != nil {
		return c.done(proc, err)
	}
	var d *mpi.Comm
	if c.IsInter() {
		d, err = c.Create(background, g.Group)
	} else {
		d, err = c.createSubgroups(g.Group)
	}
	if err == nil {
		err = c.newComm(newcomm, d)
	}
	return c.done(proc, err)
}

// createSubgroups makes a communicator of each of the groups that the ranks of c give: the members of a
// group split off with the rank of its first member as their color.
func (c *communicator) createSubgroups(g mpi.Group) (*mpi.Comm, error) {
	ranks := make([]int, g.Size())
	for i := range ranks {
		ranks[i] = i
	}
	ranks = g.TranslateRanks(ranks, c.Group())
	bad := slices.Index(ranks, mpi.Undefined)
	color, key := mpi.Undefined, slices.Index(ranks, c.Rank())
	if key >= 0 && bad < 0 {
		color = ranks[0]
	}
	d, err := c.Split(background, color, key)
	switch {
	case err != nil:
		return nil, err
	case bad >= 0:
		return nil, argError(abi.ErrGroup, "group", g, "has members that are not in the communicator")
	case d != nil && !d.Group().Equal(g):
		d.Free()
		return nil, argError(abi.ErrGroup, "group", g, "is not the one that its other members give")
	}
	return d, nil
}

// CommCreateGroup is MPI_Comm_create_group.
func CommCreateGroup(comm, group Handle, tag int, newcomm uintptr) int {
	nullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_create_group"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	g, err := groupOf(group)
	if err == nil {
		err = out("newcomm", newcomm)
	}
	if err == nil {
		tag, err = tagOf("tag", tag)
	}
	if err != nil {
		return c.done(proc, err)
	}
	var d *mpi.Comm
	if g.Rank(c.World().Rank()) != mpi.Undefined { // the others have no part in it
		d, err = c.CreateGroup(background, g.Group, tag)
	}
	if err == nil {
		err = c.newComm(newcomm, d)
	}
	return c.done(proc, err)
}

// CommSplit is MPI_Comm_split.
func CommSplit(comm Handle, color, key int, newcomm uintptr) int {
	nullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_split"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	if color == abi.Undefined {
		color = mpi.Undefined
	} else if color < 0 {
		return c.done(proc, argError(abi.ErrArg, "color", color, "is negative"))
	}
	if err := out("newcomm", newcomm); err != nil {
		return c.done(proc, err)
	}
	d, err := c.Split(background, color, key)
	if err == nil {
		err = c.newComm(newcomm, d)
	}
	return c.done(proc, err)
}

// splitKinds are the types of MPI_Comm_split_type.
var splitKinds = map[int]mpi.SplitKind{
	abi.Undefined:              0,
	abi.CommTypeShared:         mpi.SplitByMemory,
	abi.CommTypeHwUnguided:     mpi.SplitHWUnguided,
	abi.CommTypeHwGuided:       mpi.SplitHWGuided,
	abi.CommTypeResourceGuided: mpi.SplitResourceGuided,
}

// CommSplitType is MPI_Comm_split_type.
func CommSplitType(comm Handle, splitType, key int, info Handle, newcomm uintptr) int {
	nullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_split_type"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	if err := out("newcomm", newcomm); err != nil {
		return c.done(proc, err)
	}
	kind, ok := splitKinds[splitType]
	if !ok {
		return c.done(proc, argError(abi.ErrArg, "split_type", splitType, "is not known"))
	}
	hints, err := hintsOf(info)
	if err != nil {
		return c.done(proc, err)
	}
	d, err := c.SplitType(background, kind, key, hints)
	if err == nil {
		err = c.newComm(newcomm, d)
	}
	return c.done(proc, err)
}

// IntercommCreate is MPI_Intercomm_create. peer_comm and remote_leader count at the leader.
func IntercommCreate(localComm Handle, localLeader int, peerComm Handle, remoteLeader, tag int, newcomm uintptr) int {
	nullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Intercomm_create"
	c, err := commOf(localComm)
	if err != nil {
		return fail(proc, err)
	}
	if c.IsInter() {
		return c.done(proc, argError(abi.ErrComm, "local_comm", c.Comm, "is an intercommunicator"))
	}
	if localLeader < 0 || localLeader >= c.Size() {
		return c.done(proc, c.badRank("local_leader", localLeader, abi.ErrRank))
	}
	if err := out("newintercomm", newcomm); err != nil {
		return c.done(proc, err)
	}
	if tag, err = tagOf("tag", tag); err != nil {
		return c.done(proc, err)
	}
	var bridge *mpi.Comm
	if c.Rank() == localLeader {
		b, err := commOf(peerComm)
		if err != nil {
			return c.done(proc, err)
		}
		if remoteLeader < 0 || remoteLeader >= b.peers() {
			return c.done(proc, b.badRank("remote_leader", remoteLeader, abi.ErrRank))
		}
		bridge = b.Comm
	} else {
		remoteLeader = 0
	}
	d, err := mpi.IntercommCreate(background, c.Comm, localLeader, bridge, remoteLeader, tag)
	if err == nil {
		err = c.newComm(newcomm, d)
	}
	return c.done(proc, err)
}

// IntercommMerge is MPI_Intercomm_merge.
func IntercommMerge(comm Handle, high int, newcomm uintptr) int {
	nullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Intercomm_merge"
	c, err := intercomm(comm)
	if c == nil {
		return fail(proc, err)
	}
	if err == nil {
		err = out("newintracomm", newcomm)
	}
	if err != nil {
		return c.done(proc, err)
	}
	d, err := c.IntercommMerge(background, high != 0)
	if err == nil {
		err = c.newComm(newcomm, d)
	}
	return c.done(proc, err)
}
