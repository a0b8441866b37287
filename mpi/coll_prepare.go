package mpi

import (
	"context"
	"fmt"
	"slices"
)

// This file checks the arguments of collectives and makes calls of them. Even
// a call with bad arguments takes its tag, so that the ranks still agree about
// later ones.

// checked is the result of bytesOf for all buffers of a call.
type checked struct {
	send, recv []byte
	elem       int
	sig        typeSig
	err        error
}

func check[T Element](send, recv []T) (b checked) {
	if b.sig, b.err = elementSig[T](); b.err == nil {
		b.send, b.recv, b.elem = viewBytes(send), viewBytes(recv), sizeOf[T]()
	}
	return b
}

// prepare begins a call on the buffers; size is what the tuning table goes by.
func (c *Comm) prepare(ctx context.Context, coll Coll, b checked, size int) (*call, error) {
	k, err := c.begin(ctx, coll)
	if err != nil {
		return nil, c.raise(err)
	}
	if b.err != nil {
		return k.refuse(b.err)
	}
	if c.remote != nil && !interHas[coll] {
		return k.refuse(ErrComm)
	}
	k.send, k.recv, k.elem, k.bytes, k.slot = b.send, b.recv, max(b.elem, 1), size, slotColl.of(b.sig)
	return k, nil
}

// refuse ends a call whose arguments are wrong.
func (k *call) refuse(err error) (*call, error) {
	err = fmt.Errorf("%w (in %v)", err, k.coll)
	c := k.c
	k.release()
	return nil, c.raise(err)
}

func (k *call) setRoot(root int) error {
	if root < 0 || root >= k.size {
		return fmt.Errorf("%w: %d of %d", ErrRoot, root, k.size)
	}
	k.root = root
	return nil
}

func wrongLength(what string, got, want int) error {
	return fmt.Errorf("%w: %s holds %d bytes, not %d", ErrCount, what, got, want)
}

func (c *Comm) barrierCall(ctx context.Context) (*call, error) {
	if c.remote != nil {
		return c.interBarrier(ctx)
	}
	return c.prepare(ctx, CollBarrier, checked{}, 0)
}

func (c *Comm) bcastCall(ctx context.Context, b checked, root int) (*call, error) {
	if c.remote != nil {
		return c.interBcast(ctx, b, root)
	}
	k, err := c.prepare(ctx, CollBcast, b, len(b.recv))
	if err != nil {
		return nil, err
	}
	if err := k.setRoot(root); err != nil {
		return k.refuse(err)
	}
	return k, nil
}

// reduceCall prepares Reduce, Allreduce, Scan and Exscan; root is -1 if all
// ranks get a result.
func (c *Comm) reduceCall(ctx context.Context, coll Coll, b checked, red reducer, root int) (*call, error) {
	if c.remote != nil {
		return c.interReduce(ctx, coll, b, red, root)
	}
	k, err := c.prepare(ctx, coll, b, len(b.send))
	if err != nil {
		return nil, err
	}
	if k.red = red; red == nil {
		return k.refuse(ErrOp)
	}
	if coll == CollReduce {
		if err := k.setRoot(root); err != nil {
			return k.refuse(err)
		}
		if k.rank != root {
			k.recv = nil
			return k, nil
		}
	}
	if len(k.recv) != len(k.send) {
		return k.refuse(wrongLength("recv", len(k.recv), len(k.send)))
	}
	if err := apart(k.send, k.recv); err != nil {
		return k.refuse(err)
	}
	return k, nil
}

// reduceScatterCall prepares ReduceScatter, and with counts nil
// ReduceScatterBlock.
func (c *Comm) reduceScatterCall(ctx context.Context, coll Coll, b checked, counts []int, red reducer) (*call, error) {
	if c.remote != nil {
		return c.interReduceScatter(ctx, coll, b, counts, red)
	}
	k, err := c.prepare(ctx, coll, b, len(b.send))
	if err != nil {
		return nil, err
	}
	if k.red = red; red == nil {
		return k.refuse(ErrOp)
	}
	if coll == CollReduceScatterBlock {
		if k.n = len(k.recv); len(k.send) != k.n*k.size {
			return k.refuse(wrongLength("send", len(k.send), k.n*k.size))
		}
	} else {
		if k.sv, err = k.svMem.set(k, counts, nil, len(k.send)); err != nil {
			return k.refuse(err)
		}
		if end := k.sv.at[k.size-1] + k.sv.count[k.size-1]; end != len(k.send) {
			return k.refuse(wrongLength("send", len(k.send), end))
		}
		if len(k.recv) != k.sv.count[k.rank] {
			return k.refuse(wrongLength("recv", len(k.recv), k.sv.count[k.rank]))
		}
	}
	if overlap(k.send, k.recv) && !same(k.recv, k.send[:len(k.recv)]) {
		return k.refuse(ErrOverlap)
	}
	return k, nil
}

// gatherCall prepares Gather and Scatter, which differ in which buffer is
// that of all ranks.
func (c *Comm) gatherCall(ctx context.Context, coll Coll, b checked, root int) (*call, error) {
	if c.remote != nil {
		return c.interGather(ctx, coll, b, nil, nil, root)
	}
	one := len(b.send)
	if coll == CollScatter {
		one = len(b.recv)
	}
	k, err := c.prepare(ctx, coll, b, one)
	if err != nil {
		return nil, err
	}
	if err := k.setRoot(root); err != nil {
		return k.refuse(err)
	}
	k.n = one
	all, mine, name := &k.recv, k.send, "recv"
	if coll == CollScatter {
		all, mine, name = &k.send, k.recv, "send"
	}
	if k.rank != root {
		*all = nil
		return k, nil
	}
	if len(*all) != k.n*k.size {
		return k.refuse(wrongLength(name, len(*all), k.n*k.size))
	}
	if overlap(*all, mine) && !same(blockOf(*all, nil, k.n, root), mine) {
		return k.refuse(ErrOverlap)
	}
	return k, nil
}

// gathervCall prepares Gatherv and Scatterv.
func (c *Comm) gathervCall(ctx context.Context, coll Coll, b checked, counts, displs []int, root int) (*call, error) {
	if c.remote != nil {
		return c.interGather(ctx, coll, b, counts, displs, root)
	}
	k, err := c.prepare(ctx, coll, b, 0)
	if err != nil {
		return nil, err
	}
	if err := k.setRoot(root); err != nil {
		return k.refuse(err)
	}
	all, mine, v, mem := &k.recv, k.send, &k.rv, &k.rvMem
	if coll == CollScatterv {
		all, mine, v, mem = &k.send, k.recv, &k.sv, &k.svMem
	}
	if k.rank != root {
		*all = nil
		return k, nil
	}
	if *v, err = mem.set(k, counts, displs, len(*all)); err != nil {
		return k.refuse(err)
	}
	own := blockOf(*all, *v, 0, root)
	if len(own) != len(mine) {
		return k.refuse(wrongLength("the root's own block", len(own), len(mine)))
	}
	if overlap(*all, mine) && !same(own, mine) {
		return k.refuse(ErrOverlap)
	}
	return k, nil
}

// allgatherCall prepares Allgather, and with counts Allgatherv.
func (c *Comm) allgatherCall(ctx context.Context, coll Coll, b checked, counts, displs []int) (*call, error) {
	if c.remote != nil {
		return c.interAllgather(ctx, coll, b, counts, displs)
	}
	k, err := c.prepare(ctx, coll, b, len(b.send))
	if err != nil {
		return nil, err
	}
	if coll == CollAllgather {
		if k.n = len(k.send); len(k.recv) != k.n*k.size {
			return k.refuse(wrongLength("recv", len(k.recv), k.n*k.size))
		}
	} else {
		if k.rv, err = k.rvMem.set(k, counts, displs, len(k.recv)); err != nil {
			return k.refuse(err)
		}
		if len(k.send) != k.rv.count[k.rank] {
			return k.refuse(wrongLength("send", len(k.send), k.rv.count[k.rank]))
		}
		k.bytes = 0
		for _, n := range k.rv.count {
			k.bytes += n
		}
		k.bytes /= k.size
	}
	if overlap(k.send, k.recv) && !same(k.rblock(k.rank), k.send) {
		return k.refuse(ErrOverlap)
	}
	return k, nil
}

func (c *Comm) alltoallCall(ctx context.Context, b checked) (*call, error) {
	if c.remote != nil {
		return c.interAlltoall(ctx, b)
	}
	size := len(c.group)
	k, err := c.prepare(ctx, CollAlltoall, b, len(b.send)/size)
	if err != nil {
		return nil, err
	}
	if k.n = k.bytes; k.n*size != len(k.send) || k.n%k.elem != 0 {
		return k.refuse(fmt.Errorf("%w: send holds %d bytes, no multiple of %d elements", ErrCount, len(k.send), size))
	}
	if len(k.recv) != len(k.send) {
		return k.refuse(wrongLength("recv", len(k.recv), len(k.send)))
	}
	if err := k.sendApart(); err != nil {
		return k.refuse(err)
	}
	return k, nil
}

func (c *Comm) alltoallvCall(ctx context.Context, b checked, scounts, sdispls, rcounts, rdispls []int) (*call, error) {
	k, err := c.prepare(ctx, CollAlltoallv, b, 0)
	if err != nil {
		return nil, err
	}
	if k.sv, err = k.svMem.set(k, scounts, sdispls, len(k.send)); err != nil {
		return k.refuse(err)
	}
	if k.rv, err = k.rvMem.set(k, rcounts, rdispls, len(k.recv)); err != nil {
		return k.refuse(err)
	}
	if c.remote != nil {
		k.alone = betweenGroups
		return k, nil
	}
	if own, want := len(k.sblock(k.rank)), len(k.rblock(k.rank)); own != want {
		return k.refuse(wrongLength("the rank's own block", own, want))
	}
	if err := k.sendApart(); err != nil {
		return k.refuse(err)
	}
	return k, nil
}

// sendApart makes an in-place exchange one of two buffers.
func (k *call) sendApart() error {
	if !overlap(k.send, k.recv) {
		return nil
	}
	if !same(k.send, k.recv) {
		return ErrOverlap
	}
	k.send = k.scratch(len(k.recv))
	copy(k.send, k.recv)
	return nil
}

// set fills v from counts and displacements in elements; without displs the
// blocks follow one another. The blocks must lie within length bytes.
func (v *layout) set(k *call, counts, displs []int, length int) (*layout, error) {
	if len(counts) != k.size || displs != nil && len(displs) != k.size {
		return nil, fmt.Errorf("%w: %d counts and %d displacements for %d ranks", ErrCount, len(counts), len(displs), k.size)
	}
	v.count = slices.Grow(v.count[:0], k.size)[:k.size]
	v.at = slices.Grow(v.at[:0], k.size)[:k.size]
	room := length / k.elem
	next := 0
	for i, n := range counts {
		at := next
		if displs != nil {
			at = displs[i]
		}
		if n < 0 || at < 0 || n > room || at > room-n {
			return nil, fmt.Errorf("%w: block of rank %d is %d elements at %d of %d", ErrCount, i, n, at, room)
		}
		v.count[i], v.at[i] = n*k.elem, at*k.elem
		next = at + n
	}
	return v, nil
}
