package mpi

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/op"
)

// Collectives on intercommunicators (MPI-4.1, Section 6.2.2). Data goes from
// one group to the other. Those with a root go one way: the root gives Root, the
// other ranks of its group ProcNull, and those of the other group the rank of
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
	CollBarrier: true, CollBcast: true, CollReduce: true, CollAllreduce: true,
	CollGather: true, CollGatherv: true, CollScatter: true, CollScatterv: true,
	CollAllgather: true, CollAllgatherv: true, CollAlltoall: true, CollAlltoallv: true,
	CollReduceScatter: true, CollReduceScatterBlock: true,
	collAlltoallw: true, collNeighbor: false,
}

// isRoot reports whether the caller is the root.
func (c *Comm) isRoot(root int) bool {
	if c.remote != nil {
		return root == Root
	}
	return c.comm.Rank == root
}

// interRoot checks the root of a call on an intercommunicator.
func (k *collective) interRoot(root int) error {
	if root == Root || root == ProcNull {
		k.Root = root
		return nil
	}
	return k.setRoot(root)
}

// run1 performs part, which was begun together with k.
func (k *collective) run1(part *collective) error { return k.comm.tolerate(part.perform()) }

// parts lets k be made of parts on the local communicator and of what run does.
func (k *collective) parts(run func(k *collective) error, parts ...*collective) *collective {
	k.run = func(k *collective) error {
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
func (k *collective) around(before *collective, send, recv []byte, after *collective) *collective {
	return k.parts(func(k *collective) error {
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

func (c *Comm) interBarrier(ctx context.Context) (*collective, error) {
	defer c.local.coll.take(ctx, 2)()
	k, err := c.prepare(ctx, CollBarrier, checked{}, 0)
	if err != nil {
		return nil, err
	}
	before, err := c.local.barrierCall(ctx)
	if err != nil {
		return k.refuse(err)
	}
	after, err := c.local.barrierCall(ctx)
	if err != nil {
		before.release()
		return k.refuse(err)
	}
	return k.around(before, nil, nil, after), nil
}

func (c *Comm) interBcast(ctx context.Context, b checked, root int) (*collective, error) {
	defer c.local.coll.take(ctx, 1)()
	k, err := c.prepare(ctx, CollBcast, b, len(b.recv))
	if err != nil {
		return nil, err
	}
	if err := k.interRoot(root); err != nil {
		return k.refuse(err)
	}
	to := c.local.comm.Peers
	switch root {
	case ProcNull:
		k.run = func(*collective) error { return nil }
		return k, nil
	case Root:
		to = c.comm.Peers
	}
	if c.sitesApart() && len(to) > 1 {
		return c.interBcastSites(ctx, k)
	}
	k.run = func(k *collective) error {
		if k.Root == Root {
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
	ctx context.Context, kind Coll, b checked, counts, displs []int, root int,
) (*collective, error) {
	k, err := c.prepare(ctx, kind, b, 0)
	if err != nil {
		return nil, err
	}
	if err := k.interRoot(root); err != nil {
		return k.refuse(err)
	}
	gathers := kind == CollGather || kind == CollGatherv
	if root == Root {
		all, v, mem := &k.RecvBuf, &k.RecvLayout, &k.recvMem
		if !gathers {
			all, v, mem = &k.SendBuf, &k.SendLayout, &k.sendMem
		}
		if kind == CollGatherv || kind == CollScatterv {
			if *v, err = k.layout(mem, counts, displs, len(*all)); err != nil {
				return k.refuse(err)
			}
		} else if k.Block = len(*all) / k.Size; k.Block*k.Size != len(*all) || k.Block%k.Elem != 0 {
			return k.refuse(wrongLength("the root's buffer", len(*all), k.Block*k.Size))
		}
	}
	k.run = func(k *collective) error {
		switch {
		case k.Root == ProcNull:
			return nil
		case k.Root != Root && gathers:
			return k.Send(k.SendBuf, k.Root)
		case k.Root != Root:
			return k.Recv(k.RecvBuf, k.Root)
		case gathers:
			return k.each(k.StartRecv, k.RecvBlock)
		}
		return k.each(k.StartSend, k.SendBlock)
	}
	return k, nil
}

// each starts sending or receiving the block of every remote rank and waits.
func (k *collective) each(start func(b []byte, r int) error, block func(r int) []byte) error {
	for r := range k.Size {
		if err := start(block(r), r); err != nil {
			return err
		}
	}
	return k.Wait()
}

// betweenGroups exchanges all blocks with all remote ranks.
func betweenGroups(k *collective) error {
	for r := range k.Size {
		if err := k.StartRecv(k.RecvBlock(r), r); err != nil {
			return err
		}
	}
	return k.each(k.StartSend, k.SendBlock)
}

func (c *Comm) interAllgather(ctx context.Context, kind Coll, b checked, counts, displs []int) (*collective, error) {
	defer c.local.coll.take(ctx, 2)()
	k, err := c.prepare(ctx, kind, b, 0)
	if err != nil {
		return nil, err
	}
	if kind == CollAllgatherv {
		if k.RecvLayout, err = k.layout(&k.recvMem, counts, displs, len(k.RecvBuf)); err != nil {
			return k.refuse(err)
		}
	} else if k.Block = len(k.RecvBuf) / k.Size; k.Block*k.Size != len(k.RecvBuf) || k.Block%k.Elem != 0 {
		return k.refuse(wrongLength("recv", len(k.RecvBuf), k.Block*k.Size))
	} else if c.sitesApart() && len(c.group)+len(c.remote) > 2 {
		return c.interAllgatherSites(ctx, k)
	}
	k.run = func(k *collective) error {
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
func (c *Comm) interAlltoall(ctx context.Context, b checked) (*collective, error) {
	k, err := c.prepare(ctx, CollAlltoall, b, 0)
	if err != nil {
		return nil, err
	}
	out, in := len(k.SendBuf)/k.Size, len(k.RecvBuf)/k.Size
	if out*k.Size != len(k.SendBuf) || in*k.Size != len(k.RecvBuf) || out%k.Elem != 0 || in%k.Elem != 0 {
		return k.refuse(fmt.Errorf("%w: %d and %d bytes for %d ranks", ErrCount, len(k.SendBuf), len(k.RecvBuf), k.Size))
	}
	k.SendLayout, k.RecvLayout = k.sendMem.SetEven(k.Size, out), k.recvMem.SetEven(k.Size, in)
	k.run = betweenGroups
	return k, nil
}

// interReduce prepares Reduce and Allreduce.
func (c *Comm) interReduce(ctx context.Context, kind Coll, b checked, red op.Reducer, root int) (*collective, error) {
	parts := uint32(1)
	if kind == CollAllreduce {
		parts = 2
	}
	defer c.local.coll.take(ctx, parts)()
	k, err := c.prepare(ctx, kind, b, len(b.send))
	if err != nil {
		return nil, err
	}
	if red == nil {
		return k.refuse(ErrOp)
	}
	if kind == CollAllreduce {
		return c.interAllreduce(ctx, k, red)
	}
	if err := k.interRoot(root); err != nil {
		return k.refuse(err)
	}
	switch root {
	case ProcNull:
		k.run = func(*collective) error { return nil }
		return k, nil
	case Root:
		k.run = func(k *collective) error { return k.Recv(k.RecvBuf, 0) }
		return k, nil
	}
	part, sum, err := c.reduceGroup(ctx, k, red)
	if err != nil {
		return k.refuse(err)
	}
	return k.parts(func(k *collective) error {
		if err := k.run1(part); err != nil || k.Rank != 0 {
			return err
		}
		return k.Send(sum, k.Root)
	}, part), nil
}

// reduceGroup prepares the reduction of the send buffers of the local group to
// its rank 0, which finds the result in sum.
func (c *Comm) reduceGroup(
	ctx context.Context, k *collective, red op.Reducer,
) (part *collective, sum []byte, err error) {
	if c.comm.Rank == 0 {
		sum = k.Scratch(len(k.SendBuf))
	}
	part, err = c.local.reduceCall(ctx, CollReduce,
		checked{send: k.SendBuf, recv: sum, elem: k.Elem, sig: k.comm.slot.Sig()}, red, 0)
	return part, sum, err
}

func (c *Comm) interAllreduce(ctx context.Context, k *collective, red op.Reducer) (*collective, error) {
	if len(k.RecvBuf) != len(k.SendBuf) {
		return k.refuse(wrongLength("recv", len(k.RecvBuf), len(k.SendBuf)))
	}
	part, sum, err := c.reduceGroup(ctx, k, red)
	if err != nil {
		return k.refuse(err)
	}
	spread, err := c.local.bcastCall(ctx, checked{recv: k.RecvBuf, elem: k.Elem, sig: k.comm.slot.Sig()}, 0)
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
	ctx context.Context, kind Coll, b checked, counts []int, red op.Reducer,
) (*collective, error) {
	defer c.local.coll.take(ctx, 2)()
	k, err := c.prepare(ctx, kind, b, len(b.send))
	if err != nil {
		return nil, err
	}
	if red == nil {
		return k.refuse(ErrOp)
	}
	if kind == CollReduceScatterBlock {
		counts = make([]int, len(c.group))
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
	if c.comm.Rank == 0 {
		other = k.Scratch(len(k.SendBuf))
	}
	deal, err := c.local.gathervCall(ctx, CollScatterv,
		checked{send: other, recv: k.RecvBuf, elem: k.Elem, sig: k.comm.slot.Sig()}, counts, nil, 0)
	if err != nil {
		part.release()
		return k.refuse(err)
	}
	return k.around(part, sum, other, deal), nil
}
