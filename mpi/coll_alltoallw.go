package mpi

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Alltoallw is [Alltoallv] with a datatype for each rank: it sends scounts[i] items of stypes[i]
// that begin sdispls[i] bytes into send to rank i, and stores what comes from rank i as rcounts[i]
// items of rtypes[i] at rdispls[i] bytes into recv. The data must be as long as what the other side
// expects (MPI-4.1, Section 6.8). It blocks until all data is there; until then send and recv
// belong to the call. Errors to test for: ErrCount, ErrDatatype, ErrOverlap, ErrTypeMismatch,
// [RankError].
func Alltoallw[T Element](ctx context.Context, c *Comm, send []T, scounts, sdispls []int, stypes []*Datatype,
	recv []T, rcounts, rdispls []int, rtypes []*Datatype) error {
	out, in := &typedBlocks{scounts, sdispls, typesOf(stypes), nil}, &typedBlocks{rcounts, rdispls, typesOf(rtypes), nil}
	return finish(c.alltoallwCall(ctx, check(send, recv), out, in))
}

// Ialltoallw starts [Alltoallw] (MPI_Ialltoallw).
func Ialltoallw[T Element](c *Comm, send []T, scounts, sdispls []int, stypes []*Datatype,
	recv []T, rcounts, rdispls []int, rtypes []*Datatype) (*Request, error) {
	out, in := &typedBlocks{scounts, sdispls, typesOf(stypes), nil}, &typedBlocks{rcounts, rdispls, typesOf(rtypes), nil}
	return start(c.alltoallwCall(context.Background(), check(send, recv), out, in))
}

// typedBlocks are the blocks of the ranks in a buffer of Alltoallw.
type typedBlocks struct {
	counts, displs []int
	types          []*datatype.Type
	lens           []int // packed
}

// measure checks the blocks and computes their packed lengths.
func (t *typedBlocks) measure(buf []byte, size int) error {
	if len(t.counts) != size || len(t.displs) != size || len(t.types) != size {
		return fmt.Errorf("%w: %d counts, %d displacements, %d datatypes for %d ranks",
			ErrCount, len(t.counts), len(t.displs), len(t.types), size)
	}
	t.lens = make([]int, size)
	for i, typ := range t.types {
		if t.displs[i] < 0 || t.displs[i] > len(buf) {
			return fmt.Errorf("%w: block of rank %d at %d of %d bytes", ErrCount, i, t.displs[i], len(buf))
		}
		var err error
		if t.lens[i], err = typ.Span(t.counts[i], len(buf)-t.displs[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Comm) alltoallwCall(ctx context.Context, b checked, out, in *typedBlocks) (*collective, error) {
	k, err := c.prepare(ctx, collAlltoallw, b, 0)
	if err != nil {
		return nil, err
	}
	if err := out.measure(k.SendBuf, k.Size); err != nil {
		return k.refuse(err)
	}
	if err := in.measure(k.RecvBuf, k.Size); err != nil {
		return k.refuse(err)
	}
	k.run = func(k *collective) error { return alltoallwPacked(k, out, in) }
	return k, nil
}

// alltoallwPacked packs the blocks, exchanges them pairwise, and unpacks.
func alltoallwPacked(k *collective, out, in *typedBlocks) error {
	send, recv := k.SendBuf, k.RecvBuf
	k.Elem, k.units, k.comm.slot = 1, [2]int{1, 1}, p2p.SlotColl // blocks are of any types
	var err error
	k.SendBuf, k.RecvBuf = k.Scratch(total(out.lens)), k.Scratch(total(in.lens))
	if k.SendLayout, err = k.layout(&k.sendMem, out.lens, nil, len(k.SendBuf)); err != nil {
		return err
	}
	if k.RecvLayout, err = k.layout(&k.recvMem, in.lens, nil, len(k.RecvBuf)); err != nil {
		return err
	}
	for i, t := range out.types {
		t.Pack(k.SendBlock(i), send[out.displs[i]:], out.counts[i])
	}
	if k.comm.c.remote != nil {
		err = betweenGroups(k)
	} else {
		err = coll.AlltoallPairwise(&k.Schedule)
	}
	if err != nil {
		return err
	}
	for i, t := range in.types {
		t.Unpack(recv[in.displs[i]:], k.RecvBlock(i), in.counts[i])
	}
	return nil
}
