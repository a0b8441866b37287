package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// NeighborAlltoallw is [NeighborAlltoallv] with a datatype for each neighbour: it sends scounts[i]
// items of stypes[i] that begin sdispls[i] bytes into send to the ith target, and stores what comes
// from the ith source as rcounts[i] items of rtypes[i] at rdispls[i] bytes into recv (MPI-4.1,
// Section 8.6.3). It blocks until all neighbours' data is there; until then send and recv belong to
// the call. Errors to test for: ErrTopology, ErrCount, ErrDatatype, ErrTypeMismatch, [RankError].
func NeighborAlltoallw[T Element](ctx context.Context, t Topology, send []T, scounts, sdispls []int, stypes []*Datatype,
	recv []T, rcounts, rdispls []int, rtypes []*Datatype) error {
	out, in := &typedBlocks{scounts, sdispls, typesOf(stypes), nil}, &typedBlocks{rcounts, rdispls, typesOf(rtypes), nil}
	return finish(neighborAlltoallw(ctx, t, check(send, recv), out, in))
}

// IneighborAlltoallw starts [NeighborAlltoallw] (MPI_Ineighbor_alltoallw).
func IneighborAlltoallw[T Element](t Topology, send []T, scounts, sdispls []int, stypes []*Datatype,
	recv []T, rcounts, rdispls []int, rtypes []*Datatype) (*Request, error) {
	out, in := &typedBlocks{scounts, sdispls, typesOf(stypes), nil}, &typedBlocks{rcounts, rdispls, typesOf(rtypes), nil}
	return start(neighborAlltoallw(context.Background(), t, check(send, recv), out, in))
}

func neighborAlltoallw(ctx context.Context, t Topology, b checked, to, from *typedBlocks) (*collective, error) {
	c := t.Comm()
	k, err := c.prepare(ctx, collNeighbor, b, 0)
	tags := [2]int{0, c.coll.nextTag()}
	if err != nil {
		return nil, err
	}
	tags[0] = k.comm.tag
	out, in := new(neighborSide), new(neighborSide)
	in.peers, out.peers = t.Neighbors()
	in.flow, out.flow = t.flows()
	if err := to.measure(k.SendBuf, len(out.peers)); err != nil {
		return k.refuse(err)
	}
	if err := from.measure(k.RecvBuf, len(in.peers)); err != nil {
		return k.refuse(err)
	}
	if err := out.given(to.lens, nil, 1, total(to.lens)); err != nil {
		return k.refuse(err)
	}
	if err := in.given(from.lens, nil, 1, total(from.lens)); err != nil {
		return k.refuse(err)
	}
	k.run = func(k *collective) error {
		send, recv := k.SendBuf, k.RecvBuf
		k.Elem, k.comm.slot = 1, p2p.SlotColl // blocks are of any types
		k.SendBuf, k.RecvBuf = k.Scratch(total(to.lens)), k.Scratch(total(from.lens))
		for i, typ := range to.types {
			typ.Pack(k.SendBuf[out.at[i]:][:out.count[i]], send[to.displs[i]:], to.counts[i])
		}
		if err := k.exchange(out, in, tags); err != nil {
			return err
		}
		for i, typ := range from.types {
			if in.peers[i] != ProcNull {
				typ.Unpack(recv[from.displs[i]:], k.RecvBuf[in.at[i]:][:in.count[i]], from.counts[i])
			}
		}
		return nil
	}
	return k, nil
}
