package mpi

import (
	"context"
	"fmt"
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
	return c.rank == root
}

// interRoot checks the root of a call on an intercommunicator.
func (k *call) interRoot(root int) error {
	if root == Root || root == ProcNull {
		k.root = root
		return nil
	}
	return k.setRoot(root)
}

// run1 performs part, which was begun together with k.
func (k *call) run1(part *call) error { return k.tolerate(part.run()) }

// parts lets k be made of parts on the local communicator and of what run does.
func (k *call) parts(run func(k *call) error, parts ...*call) *call {
	k.alone = func(k *call) error {
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
func (k *call) around(before *call, send, recv []byte, after *call) *call {
	return k.parts(func(k *call) error {
		if err := k.run1(before); err != nil {
			return err
		}
		if k.rank == 0 {
			if err := k.swap(send, 0, recv, 0); err != nil {
				return err
			}
		}
		return k.run1(after)
	}, before, after)
}

func (c *Comm) interBarrier(ctx context.Context) (*call, error) {
	defer c.local.coll.take(2)()
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

func (c *Comm) interBcast(ctx context.Context, b checked, root int) (*call, error) {
	k, err := c.prepare(ctx, CollBcast, b, len(b.recv))
	if err != nil {
		return nil, err
	}
	if err := k.interRoot(root); err != nil {
		return k.refuse(err)
	}
	k.alone = func(k *call) error {
		switch k.root {
		case ProcNull:
			return nil
		case Root:
			for r := range k.size {
				if err := k.startTo(k.recv, r); err != nil {
					return err
				}
			}
			return k.wait()
		}
		return k.from(k.recv, k.root)
	}
	return k, nil
}

// interGather prepares Gather, Gatherv, Scatter and Scatterv.
func (c *Comm) interGather(ctx context.Context, coll Coll, b checked, counts, displs []int, root int) (*call, error) {
	k, err := c.prepare(ctx, coll, b, 0)
	if err != nil {
		return nil, err
	}
	if err := k.interRoot(root); err != nil {
		return k.refuse(err)
	}
	gathers := coll == CollGather || coll == CollGatherv
	if root == Root {
		all, v, mem := &k.recv, &k.rv, &k.rvMem
		if !gathers {
			all, v, mem = &k.send, &k.sv, &k.svMem
		}
		if coll == CollGatherv || coll == CollScatterv {
			if *v, err = mem.set(k, counts, displs, len(*all)); err != nil {
				return k.refuse(err)
			}
		} else if k.n = len(*all) / k.size; k.n*k.size != len(*all) || k.n%k.elem != 0 {
			return k.refuse(wrongLength("the root's buffer", len(*all), k.n*k.size))
		}
	}
	k.alone = func(k *call) error {
		switch {
		case k.root == ProcNull:
			return nil
		case k.root != Root && gathers:
			return k.to(k.send, k.root)
		case k.root != Root:
			return k.from(k.recv, k.root)
		case gathers:
			return k.each(k.startFrom, k.rblock)
		}
		return k.each(k.startTo, k.sblock)
	}
	return k, nil
}

// each starts sending or receiving the block of every remote rank and waits.
func (k *call) each(start func(b []byte, r int) error, block func(r int) []byte) error {
	for r := range k.size {
		if err := start(block(r), r); err != nil {
			return err
		}
	}
	return k.wait()
}

// betweenGroups exchanges all blocks with all remote ranks.
func betweenGroups(k *call) error {
	for r := range k.size {
		if err := k.startFrom(k.rblock(r), r); err != nil {
			return err
		}
	}
	return k.each(k.startTo, k.sblock)
}

func (c *Comm) interAllgather(ctx context.Context, coll Coll, b checked, counts, displs []int) (*call, error) {
	k, err := c.prepare(ctx, coll, b, 0)
	if err != nil {
		return nil, err
	}
	if coll == CollAllgatherv {
		if k.rv, err = k.rvMem.set(k, counts, displs, len(k.recv)); err != nil {
			return k.refuse(err)
		}
	} else if k.n = len(k.recv) / k.size; k.n*k.size != len(k.recv) || k.n%k.elem != 0 {
		return k.refuse(wrongLength("recv", len(k.recv), k.n*k.size))
	}
	k.alone = func(k *call) error {
		for r := range k.size {
			if err := k.startFrom(k.rblock(r), r); err != nil {
				return err
			}
		}
		return k.each(k.startTo, func(int) []byte { return k.send })
	}
	return k, nil
}

// interAlltoall lets the groups send blocks of different lengths.
func (c *Comm) interAlltoall(ctx context.Context, b checked) (*call, error) {
	k, err := c.prepare(ctx, CollAlltoall, b, 0)
	if err != nil {
		return nil, err
	}
	out, in := len(k.send)/k.size, len(k.recv)/k.size
	if out*k.size != len(k.send) || in*k.size != len(k.recv) || out%k.elem != 0 || in%k.elem != 0 {
		return k.refuse(fmt.Errorf("%w: %d and %d bytes for %d ranks", ErrCount, len(k.send), len(k.recv), k.size))
	}
	k.sv, k.rv = k.svMem.even(k.size, out), k.rvMem.even(k.size, in)
	k.alone = betweenGroups
	return k, nil
}

// even makes equal blocks that follow one another.
func (v *layout) even(size, n int) *layout {
	v.count, v.at = v.count[:0], v.at[:0]
	for i := range size {
		v.count, v.at = append(v.count, n), append(v.at, i*n)
	}
	return v
}

// interReduce prepares Reduce and Allreduce.
func (c *Comm) interReduce(ctx context.Context, coll Coll, b checked, red reducer, root int) (*call, error) {
	parts := uint32(1)
	if coll == CollAllreduce {
		parts = 2
	}
	defer c.local.coll.take(parts)()
	k, err := c.prepare(ctx, coll, b, len(b.send))
	if err != nil {
		return nil, err
	}
	if red == nil {
		return k.refuse(ErrOp)
	}
	if coll == CollAllreduce {
		return c.interAllreduce(ctx, k, red)
	}
	if err := k.interRoot(root); err != nil {
		return k.refuse(err)
	}
	switch root {
	case ProcNull:
		k.alone = func(*call) error { return nil }
		return k, nil
	case Root:
		k.alone = func(k *call) error { return k.from(k.recv, 0) }
		return k, nil
	}
	part, sum, err := c.reduceGroup(ctx, k, red)
	if err != nil {
		return k.refuse(err)
	}
	return k.parts(func(k *call) error {
		if err := k.run1(part); err != nil || k.rank != 0 {
			return err
		}
		return k.to(sum, k.root)
	}, part), nil
}

// reduceGroup prepares the reduction of the send buffers of the local group to
// its rank 0, which finds the result in sum.
func (c *Comm) reduceGroup(ctx context.Context, k *call, red reducer) (part *call, sum []byte, err error) {
	if c.rank == 0 {
		sum = k.scratch(len(k.send))
	}
	part, err = c.local.reduceCall(ctx, CollReduce, checked{send: k.send, recv: sum, elem: k.elem, sig: k.slot.sig()}, red, 0)
	return part, sum, err
}

func (c *Comm) interAllreduce(ctx context.Context, k *call, red reducer) (*call, error) {
	if len(k.recv) != len(k.send) {
		return k.refuse(wrongLength("recv", len(k.recv), len(k.send)))
	}
	part, sum, err := c.reduceGroup(ctx, k, red)
	if err != nil {
		return k.refuse(err)
	}
	spread, err := c.local.bcastCall(ctx, checked{recv: k.recv, elem: k.elem, sig: k.slot.sig()}, 0)
	if err != nil {
		part.release()
		return k.refuse(err)
	}
	return k.around(part, sum, k.recv, spread), nil
}

// interReduceScatter prepares ReduceScatter, and with counts nil
// ReduceScatterBlock. Unlike elsewhere the blocks are those of the local group:
// what comes from the other is scattered in it. Both groups reduce as many
// elements.
func (c *Comm) interReduceScatter(ctx context.Context, coll Coll, b checked, counts []int, red reducer) (*call, error) {
	defer c.local.coll.take(2)()
	k, err := c.prepare(ctx, coll, b, len(b.send))
	if err != nil {
		return nil, err
	}
	if red == nil {
		return k.refuse(ErrOp)
	}
	if coll == CollReduceScatterBlock {
		counts = make([]int, len(c.group))
		for i := range counts {
			counts[i] = len(k.recv) / k.elem
		}
	}
	if want := total(counts) * k.elem; want != len(k.send) {
		return k.refuse(wrongLength("send", len(k.send), want))
	}
	part, sum, err := c.reduceGroup(ctx, k, red)
	if err != nil {
		return k.refuse(err)
	}
	var other []byte
	if c.rank == 0 {
		other = k.scratch(len(k.send))
	}
	deal, err := c.local.gathervCall(ctx, CollScatterv, checked{send: other, recv: k.recv, elem: k.elem, sig: k.slot.sig()}, counts, nil, 0)
	if err != nil {
		part.release()
		return k.refuse(err)
	}
	return k.around(part, sum, other, deal), nil
}
