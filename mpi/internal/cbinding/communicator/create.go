package communicator

import (
	"context"
	"slices"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// CommDup is MPI_Comm_dup.
func CommDup(comm abi.Handle, newcomm uintptr) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_dup"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return c.Done(proc, dupComm(c, newcomm, c.Info()))
}

// CommDupWithInfo is MPI_Comm_dup_with_info.
func CommDupWithInfo(comm, info abi.Handle, newcomm uintptr) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_dup_with_info"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	hints, err := cbinding.HintsOf(info)
	if err == nil {
		err = dupComm(c, newcomm, hints)
	} else {
		err = refuseDup(c, err)
	}
	return c.Done(proc, err)
}

// refuseDup ends the duplication of c in a rank whose arguments are wrong: the other ranks count their duplicates, and
// this one makes one like them. It returns err.
func refuseDup(c *cbinding.Communicator, err error) error {
	if d, e := c.Comm.Dup(cbinding.Background); e == nil {
		d.Free()
	}
	return err
}

// dup stores the handle of a duplicate of c at p. It does not communicate.
func dupComm(c *cbinding.Communicator, p uintptr, hints mpi.Info) error {
	if err := cbinding.CommRoom("newcomm", p); err != nil {
		return refuseDup(c, err)
	}
	d, err := c.Comm.DupWithInfo(cbinding.Background, hints)
	if err != nil {
		return err
	}
	o := &cbinding.Communicator{Comm: d, Session: c.Session}
	o.Handler.Store(c.Handler.Load())
	if err := o.Publish(p); err != nil {
		return err
	}
	if err := c.Attrs.CopyTo(&o.Attrs, c.Handle); err != nil {
		_ = o.Attrs.Drop(o.Handle) // the error of the copy function is the one that counts
		d.Free()
		forgetComm(o, p)
		return err
	}
	return nil
}

// CommCreate is MPI_Comm_create. Ranks of an intracommunicator may give different groups that have no
// common members (MPI-4.1, Section 7.4.2).
func CommCreate(comm, group abi.Handle, newcomm uintptr) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_create"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	g, err := cbinding.GroupOf(group)
	if err == nil {
		err = cbinding.CommRoom("newcomm", newcomm)
	}
	if err != nil && c.IsInter() {
		return c.Done(proc, c.RefuseCall(err, func(ctx context.Context) { _, _ = c.Create(ctx, c.Group()) }))
	}
	if err != nil {
		return c.Done(proc, c.RefuseSplit(err))
	}
	var d *mpi.Comm
	if c.IsInter() {
		d, err = c.Create(cbinding.Background, g.Group)
	} else {
		d, err = createSubgroups(c, g.Group)
	}
	if err == nil {
		err = c.NewComm(newcomm, d)
	}
	return c.Done(proc, err)
}

// createSubgroups makes a communicator of each of the groups that the ranks of c give: the members of a
// group split off with the rank of its first member as their color.
func createSubgroups(c *cbinding.Communicator, g mpi.Group) (*mpi.Comm, error) {
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
	d, err := c.Split(cbinding.Background, color, key)
	switch {
	case err != nil:
		return nil, err
	case bad >= 0:
		return nil, cbinding.ArgError(abi.ErrGroup, "group", g, "has members that are not in the communicator")
	case d != nil && !d.Group().Equal(g):
		d.Free()
		return nil, cbinding.ArgError(abi.ErrGroup, "group", g, "is not the one that its other members give")
	}
	return d, nil
}

// CommCreateGroup is MPI_Comm_create_group.
func CommCreateGroup(comm, group abi.Handle, tag int, newcomm uintptr) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_create_group"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	g, err := cbinding.GroupOf(group)
	if err == nil {
		err = cbinding.CommRoom("newcomm", newcomm)
	}
	t, bad := cbinding.TagOf("tag", tag)
	if g != nil && bad == nil && err != nil {
		return c.Done(proc, c.RefuseCall(err, func(ctx context.Context) { _, _ = c.CreateGroup(ctx, g.Group, t) }))
	}
	if err == nil {
		err = bad
	}
	if err != nil { // without a group and a tag the other members cannot be told
		return c.Done(proc, err)
	}
	var d *mpi.Comm
	if g.Rank(c.World().Rank()) != mpi.Undefined { // the others have no part in it
		d, err = c.CreateGroup(cbinding.Background, g.Group, t)
	}
	if err == nil {
		err = c.NewComm(newcomm, d)
	}
	return c.Done(proc, err)
}

// CommSplit is MPI_Comm_split.
func CommSplit(comm abi.Handle, color, key int, newcomm uintptr) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_split"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if color == abi.Undefined {
		color = mpi.Undefined
	} else if color < 0 {
		return c.Done(proc, c.RefuseSplit(cbinding.ArgError(abi.ErrArg, "color", color, "is negative")))
	}
	if err := cbinding.CommRoom("newcomm", newcomm); err != nil {
		return c.Done(proc, c.RefuseSplit(err))
	}
	d, err := c.Split(cbinding.Background, color, key)
	if err == nil {
		err = c.NewComm(newcomm, d)
	}
	return c.Done(proc, err)
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
func CommSplitType(comm abi.Handle, splitType, key int, info abi.Handle, newcomm uintptr) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Comm_split_type"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if err := cbinding.CommRoom("newcomm", newcomm); err != nil {
		return c.Done(proc, c.RefuseSplit(err))
	}
	kind, ok := splitKinds[splitType]
	if !ok {
		return c.Done(proc, c.RefuseSplit(cbinding.ArgError(abi.ErrArg, "split_type", splitType, "is not known")))
	}
	hints, err := cbinding.HintsOf(info)
	if err != nil {
		return c.Done(proc, c.RefuseSplit(err))
	}
	d, err := c.SplitType(cbinding.Background, kind, key, hints)
	if err == nil {
		err = c.NewComm(newcomm, d)
	}
	return c.Done(proc, err)
}

// IntercommCreate is MPI_Intercomm_create. peer_comm and remote_leader count at the leader.
func IntercommCreate(
	localComm abi.Handle, localLeader int, peerComm abi.Handle, remoteLeader, tag int, newcomm uintptr,
) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Intercomm_create"
	c, err := cbinding.CommOf(localComm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if c.IsInter() {
		return c.Done(proc, cbinding.ArgError(abi.ErrComm, "local_comm", c.Comm, "is an intercommunicator"))
	}
	var bridge *mpi.Comm
	err = cbinding.CommRoom("newintercomm", newcomm)
	if err == nil && (localLeader < 0 || localLeader >= c.Size()) {
		err = c.BadRank("local_leader", localLeader, abi.ErrRank)
	}
	if _, e := cbinding.TagOf("tag", tag); e != nil && err == nil {
		err = e
	}
	if c.Rank() == localLeader {
		var e error
		if bridge, e = bridgeOf(peerComm, remoteLeader); e != nil && err == nil {
			err = e
		}
	} else {
		remoteLeader = 0
	}
	if err != nil {
		return c.Done(proc, c.RefuseCall(err, func(ctx context.Context) {
			_, _ = mpi.IntercommCreate(ctx, c.Comm, localLeader, bridge, remoteLeader, tag)
		}))
	}
	d, err := mpi.IntercommCreate(cbinding.Background, c.Comm, localLeader, bridge, remoteLeader, tag)
	if err == nil {
		err = c.NewComm(newcomm, d)
	}
	return c.Done(proc, err)
}

// bridgeOf returns the communicator in which a leader reaches the leader of the remote group.
func bridgeOf(peerComm abi.Handle, remoteLeader int) (*mpi.Comm, error) {
	b, err := cbinding.CommOf(peerComm)
	if err != nil {
		return nil, err
	}
	if remoteLeader < 0 || remoteLeader >= b.Peers() {
		return nil, b.BadRank("remote_leader", remoteLeader, abi.ErrRank)
	}
	return b.Comm, nil
}

// IntercommMerge is MPI_Intercomm_merge.
func IntercommMerge(comm abi.Handle, high int, newcomm uintptr) int {
	cbinding.NullHandle(newcomm, abi.CommNull)
	const proc = "MPI_Intercomm_merge"
	c, err := intercomm(comm)
	if c == nil {
		return cbinding.Fail(proc, err)
	}
	if err != nil {
		return c.Done(proc, err)
	}
	if err := cbinding.CommRoom("newintracomm", newcomm); err != nil {
		return c.Done(proc, c.RefuseCall(err, func(ctx context.Context) { _, _ = c.IntercommMerge(ctx, high != 0) }))
	}
	d, err := c.IntercommMerge(cbinding.Background, high != 0)
	if err == nil {
		err = c.NewComm(newcomm, d)
	}
	return c.Done(proc, err)
}
