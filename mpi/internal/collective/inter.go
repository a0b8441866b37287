package collective

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/op"
)

// Collectives on intercommunicators (MPI-4.1, Section 6.2.2). Data goes from
// one group to the other. Those with a root go one way: the root gives Root, the
// other ranks of its group coll.ProcNull, and those of the other group the rank of
// the root. Those without go both ways: what a rank gets comes from the ranks of
// the remote group, so counts, displacements and blocks are theirs.
//
// Single blocks go straight from rank to rank; reductions are made within a
// group, on its own communicator, and its rank 0 passes the result on. What
// runs on that communicator is begun together with the call, so that calls in
// progress at the same time do not mix, and takes its tags even if the call has
// bad arguments.

// interHas are the collectives that intercommunicators have.
var interHas = [...]bool{
	coll.Barrier: true, coll.Bcast: true, coll.Reduce: true, coll.Allreduce: true,
	coll.Gather: true, coll.Gatherv: true, coll.Scatter: true, coll.Scatterv: true,
	coll.Allgather: true, coll.Allgatherv: true, coll.Alltoall: true, coll.Alltoallv: true,
	coll.ReduceScatter: true, coll.ReduceScatterBlock: true,
	coll.Alltoallw: true, coll.Neighbor: false,
}

// interRoot checks the root of a call on an intercommunicator.
func (k *Call) interRoot(root int) error {
	if root == coll.Root || root == coll.ProcNull {
		k.Root = root
		return nil
	}
	return k.setRoot(root)
}

// run1 performs part, which was begun together with k.
func (k *Call) run1(part *Call) error { return k.comm.tolerate(part.perform()) }

// parts lets k be made of parts on the local communicator and of what run does.
func (k *Call) parts(run func(k *Call) error, parts ...*Call) *Call {
	k.run = func(k *Call) error {
		err := run(k)
		for _, p := range parts {
			p.release()
		}
		return err
	}
	return k
}

// around makes k one part, then an exchange of rank 0 with that of the other
// group, and then another part.
func (k *Call) around(before *Call, send, recv []byte, after *Call) *Call {
	return k.parts(func(k *Call) error {
		if err := k.run1(before); err != nil {
			return err
		}
		if k.Rank == 0 {
			if err := k.Sendrecv(send, 0, recv, 0); err != nil {
				return err
			}
		}
		return k.run1(after)
	}, before, after)
}

func (c *Comm) interBarrier(ctx context.Context) (*Call, error) {
	defer c.Local.take(ctx, interParts[coll.Barrier])()
	k, err := c.prepare(ctx, coll.Barrier, Args{}, 0)
	if err != nil {
		return nil, err
	}
	before, err := c.Local.Barrier(ctx)
	if err != nil {
		return k.refuse(err)
	}
	after, err := c.Local.Barrier(ctx)
	if err != nil {
		before.release()
		return k.refuse(err)
	}
	return k.around(before, nil, nil, after), nil
}

func (c *Comm) interBcast(ctx context.Context, b Args, root int) (*Call, error) {
	defer c.Local.take(ctx, interParts[coll.Bcast])()
	k, err := c.prepare(ctx, coll.Bcast, b, len(b.Recv))
	if err != nil {
		return nil, err
	}
	if err := k.interRoot(root); err != nil {
		return k.refuse(err)
	}
	to := c.Local.P2P.Peers
	switch root {
	case coll.ProcNull:
		k.plain, k.run = true, func(*Call) error { return nil }
		return k, nil
	case coll.Root:
		to = c.P2P.Peers
		k.into = nil // its buffer is only read
	}
	if c.sitesApart() && len(to) > 1 {
		return c.interBcastSites(ctx, k)
	}
	k.plain, k.run = true, func(k *Call) error {
		if k.Root == coll.Root {
			for r := range k.Size {
				if err := k.StartSend(k.RecvBuf, r); err != nil {
					return err
				}
			}
			return k.Wait()
		}
		return k.Recv(k.RecvBuf, k.Root)
	}
	return k, nil
}

// interGather prepares Gather, Gatherv, Scatter and Scatterv.
func (c *Comm) interGather(
	ctx context.Context, kind coll.Kind, b Args, counts, displs []int, root int,
) (*Call, error) {
	k, err := c.prepare(ctx, kind, b, 0)
	if err != nil {
		return nil, err
	}
	if err := k.interRoot(root); err != nil {
		return k.refuse(err)
	}
	gathers := kind == coll.Gather || kind == coll.Gatherv
	if root == coll.Root {
		all, v, mem := &k.RecvBuf, &k.RecvLayout, &k.recvMem
		if !gathers {
			all, v, mem = &k.SendBuf, &k.SendLayout, &k.sendMem
		}
		if kind == coll.Gatherv || kind == coll.Scatterv {
			if *v, err = k.layout(mem, counts, displs, len(*all)); err != nil {
				return k.refuse(err)
			}
		} else if k.Block = len(*all) / k.Size; k.Block*k.Size != len(*all) || k.Block%k.Elem != 0 {
			return k.refuse(wrongLength("the root's buffer", len(*all), k.Block*k.Size))
		}
	}
	k.plain, k.run = true, func(k *Call) error {
		switch {
		case k.Root == coll.ProcNull:
			return nil
		case k.Root != coll.Root && gathers:
			return k.Send(k.SendBuf, k.Root)
		case k.Root != coll.Root:
			return k.Recv(k.RecvBuf, k.Root)
		case gathers:
			return k.each(k.StartRecv, k.RecvBlock)
		}
		return k.each(k.StartSend, k.SendBlock)
	}
	return k, nil
}

// each starts sending or receiving the block of every remote rank and waits.
func (k *Call) each(start func(b []byte, r int) error, block func(r int) []byte) error {
	for r := range k.Size {
		if err := start(block(r), r); err != nil {
			return err
		}
	}
	return k.Wait()
}

// betweenGroups exchanges all blocks with all remote ranks.
func betweenGroups(k *Call) error {
	for r := range k.Size {
		if err := k.StartRecv(k.RecvBlock(r), r); err != nil {
			return err
		}
	}
	return k.each(k.StartSend, k.SendBlock)
}

func (c *Comm) interAllgather(ctx context.Context, kind coll.Kind, b Args, counts, displs []int) (*Call, error) {
	defer c.Local.take(ctx, interParts[kind])()
	k, err := c.prepare(ctx, kind, b, 0)
	if err != nil {
		return nil, err
	}
	if kind == coll.Allgatherv {
		if k.RecvLayout, err = k.layout(&k.recvMem, counts, displs, len(k.RecvBuf)); err != nil {
			return k.refuse(err)
		}
	} else if k.Block = len(k.RecvBuf) / k.Size; k.Block*k.Size != len(k.RecvBuf) || k.Block%k.Elem != 0 {
		return k.refuse(wrongLength("recv", len(k.RecvBuf), k.Block*k.Size))
	} else if c.sitesApart() && c.Size()+len(c.P2P.Peers) > 2 {
		return c.interAllgatherSites(ctx, k)
	}
	k.plain, k.run = true, func(k *Call) error {
		for r := range k.Size {
			if err := k.StartRecv(k.RecvBlock(r), r); err != nil {
				return err
			}
		}
		return k.each(k.StartSend, func(int) []byte { return k.SendBuf })
	}
	return k, nil
}

// interAlltoall lets the groups send blocks of different lengths.
func (c *Comm) interAlltoall(ctx context.Context, b Args) (*Call, error) {
	k, err := c.prepare(ctx, coll.Alltoall, b, 0)
	if err != nil {
		return nil, err
	}
	out, in := len(k.SendBuf)/k.Size, len(k.RecvBuf)/k.Size
	if out*k.Size != len(k.SendBuf) || in*k.Size != len(k.RecvBuf) || out%k.Elem != 0 || in%k.Elem != 0 {
		return k.refuse(
			fmt.Errorf("%w: %d and %d bytes for %d ranks", mpierr.ErrCount, len(k.SendBuf), len(k.RecvBuf), k.Size))
	}
	k.SendLayout, k.RecvLayout = k.sendMem.SetEven(k.Size, out), k.recvMem.SetEven(k.Size, in)
	k.plain, k.run = true, betweenGroups
	return k, nil
}

// interReduce prepares Reduce and Allreduce.
func (c *Comm) interReduce(ctx context.Context, kind coll.Kind, b Args, red op.Reducer, root int) (*Call, error) {
	defer c.Local.take(ctx, interParts[kind])()
	k, err := c.prepare(ctx, kind, b, len(b.Send))
	if err != nil {
		return nil, err
	}
	if red == nil {
		return k.refuse(mpierr.ErrOp)
	}
	if kind == coll.Allreduce {
		return c.interAllreduce(ctx, k, red)
	}
	if err := k.interRoot(root); err != nil {
		return k.refuse(err)
	}
	switch root {
	case coll.ProcNull:
		k.plain, k.run = true, func(*Call) error { return nil }
		return k, nil
	case coll.Root:
		k.plain, k.run = true, func(k *Call) error { return k.Recv(k.RecvBuf, 0) }
		return k, nil
	}
	part, sum, err := c.reduceGroup(ctx, k, red)
	if err != nil {
		return k.refuse(err)
	}
	return k.parts(func(k *Call) error {
		if err := k.run1(part); err != nil || k.Rank != 0 {
			return err
		}
		return k.Send(sum, k.Root)
	}, part), nil
}

// reduceGroup prepares the reduction of the send buffers of the local group to
// its rank 0, which finds the result in sum.
func (c *Comm) reduceGroup(
	ctx context.Context, k *Call, red op.Reducer,
) (part *Call, sum []byte, err error) {
	if c.P2P.Rank == 0 {
		sum = k.Scratch(len(k.SendBuf))
	}
	part, err = c.Local.Reduce(ctx, coll.Reduce,
		Args{Send: k.SendBuf, Recv: sum, Elem: k.Elem, Sig: k.comm.slot.Sig()}, red, 0)
	return part, sum, err
}

func (c *Comm) interAllreduce(ctx context.Context, k *Call, red op.Reducer) (*Call, error) {
	if len(k.RecvBuf) != len(k.SendBuf) {
		return k.refuse(wrongLength("recv", len(k.RecvBuf), len(k.SendBuf)))
	}
	part, sum, err := c.reduceGroup(ctx, k, red)
	if err != nil {
		return k.refuse(err)
	}
	spread, err := c.Local.Bcast(ctx, Args{Recv: k.RecvBuf, Elem: k.Elem, Sig: k.comm.slot.Sig()}, 0)
	if err != nil {
		part.release()
		return k.refuse(err)
	}
	return k.around(part, sum, k.RecvBuf, spread), nil
}

// interReduceScatter prepares ReduceScatter, and with counts nil
// ReduceScatterBlock. Unlike elsewhere the blocks are those of the local group:
// what comes from the other is scattered in it. Both groups reduce as many
// elements.
func (c *Comm) interReduceScatter(
	ctx context.Context, kind coll.Kind, b Args, counts []int, red op.Reducer,
) (*Call, error) {
	defer c.Local.take(ctx, interParts[kind])()
	k, err := c.prepare(ctx, kind, b, len(b.Send))
	if err != nil {
		return nil, err
	}
	if red == nil {
		return k.refuse(mpierr.ErrOp)
	}
	if kind == coll.ReduceScatterBlock {
		counts = make([]int, c.Size())
		for i := range counts {
			counts[i] = len(k.RecvBuf) / k.Elem
		}
	}
	if want := total(counts) * k.Elem; want != len(k.SendBuf) {
		return k.refuse(wrongLength("send", len(k.SendBuf), want))
	}
	part, sum, err := c.reduceGroup(ctx, k, red)
	if err != nil {
		return k.refuse(err)
	}
	var other []byte
	if c.P2P.Rank == 0 {
		other = k.Scratch(len(k.SendBuf))
	}
	deal, err := c.Local.Gatherv(ctx, coll.Scatterv,
		Args{Send: other, Recv: k.RecvBuf, Elem: k.Elem, Sig: k.comm.slot.Sig()}, counts, nil, 0)
	if err != nil {
		part.release()
		return k.refuse(err)
	}
	return k.around(part, sum, other, deal), nil
}
