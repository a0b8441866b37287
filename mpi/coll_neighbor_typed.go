package mpi

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// NeighborAlltoallw is [NeighborAlltoallv] with a datatype for each neighbour: it sends scounts[i]
// items of stypes[i] that begin sdispls[i] bytes into send to the ith target, and stores what comes
// from the ith source as rcounts[i] items of rtypes[i] at rdispls[i] bytes into recv (MPI-4.1,
// Section 8.6.3). It blocks until all neighbours' data is there; until then send and recv belong to
// the call. Errors to test for: ErrTopology, ErrCount, ErrDatatype, ErrOverlap, ErrTypeMismatch,
// [RankError].
func NeighborAlltoallw[T Element](ctx context.Context, t Topology, send []T, scounts, sdispls []int, stypes []*Datatype,
	recv []T, rcounts, rdispls []int, rtypes []*Datatype) error {
	out, in := blocksIn(send, scounts, sdispls, stypes), blocksIn(recv, rcounts, rdispls, rtypes)
	return finish(neighborAlltoallw(ctx, t, out, in))
}

// IneighborAlltoallw starts [NeighborAlltoallw] (MPI_Ineighbor_alltoallw).
func IneighborAlltoallw[T Element](t Topology, send []T, scounts, sdispls []int, stypes []*Datatype,
	recv []T, rcounts, rdispls []int, rtypes []*Datatype) (*Request, error) {
	out, in := blocksIn(send, scounts, sdispls, stypes), blocksIn(recv, rcounts, rdispls, rtypes)
	return start(neighborAlltoallw(nonblocking, t, out, in))
}

// NeighborAlltoallw sends the items of send[i] to the ith target, and stores what comes from the ith
// source in those of recv[i], with the topology of c (MPI_Neighbor_alltoallw): each block is a Buffer
// of its own. It blocks until all neighbours' data is there; until then the memory of the Buffers
// belongs to the call. Errors to test for: ErrTopology, ErrCount, ErrDatatype, ErrOverlap,
// ErrTypeMismatch, [RankError].
func (c *Comm) NeighborAlltoallw(ctx context.Context, send, recv []Buffer) error {
	return finish(neighborAlltoallw(ctx, c.topology, send, recv))
}

// IneighborAlltoallw starts [Comm.NeighborAlltoallw] (MPI_Ineighbor_alltoallw). The slices of Buffers
// may be used again at once.
func (c *Comm) IneighborAlltoallw(send, recv []Buffer) (*Request, error) {
	send, recv = cloneBuffers(send, recv)
	return start(neighborAlltoallw(nonblocking, c.topology, send, recv))
}

// NeighborAlltoallwInit prepares [Comm.IneighborAlltoallw] (MPI_Neighbor_alltoallw_init).
func (c *Comm) NeighborAlltoallwInit(send, recv []Buffer) (*Persistent, error) {
	send, recv = cloneBuffers(send, recv)
	return prepare(c, func(c *Comm) (*Request, error) {
		return start(neighborAlltoallw(nonblocking, c.topology, send, recv))
	})
}

func neighborAlltoallw(ctx context.Context, t Topology, send, recv []Buffer) (*collective, error) {
	if t == nil {
		return nil, fmt.Errorf("%w: none", ErrTopology)
	}
	c := t.Comm()
	k, err := c.prepare(ctx, collNeighbor, checked{}, 0)
	tags := [2]int{0, c.coll.nextTag(ctx)}
	if err != nil {
		return nil, err
	}
	tags[0] = k.comm.tag
	sources, targets := t.Neighbors()
	inFlow, outFlow := t.flows()
	if err := checkBlocks(send, len(targets), recv, len(sources)); err != nil {
		return k.refuse(err)
	}
	if sameBuffers(send, recv) {
		return k.refuse(ErrOverlap)
	}
	k.comm.slot = p2p.SlotColl // blocks are of any types
	k.run = func(k *collective) error {
		x := newBlockExchange(send, recv)
		defer x.release()
		for i, peer := range sources {
			if peer != ProcNull {
				k.comm.tag = tags[inFlow[i]]
				if err := k.StartRecv(x.in[i], peer); err != nil {
					return err
				}
			}
		}
		for i, peer := range targets {
			if peer != ProcNull {
				k.comm.tag = tags[outFlow[i]]
				if err := k.StartSend(x.out[i], peer); err != nil {
					return err
				}
			}
		}
		if err := k.Wait(); err != nil || k.comm.mismatch != nil {
			return err
		}
		for i, peer := range sources {
			if peer != ProcNull {
				recv[i].items.Unpack(x.in[i], 0)
			}
		}
		return nil
	}
	return k, nil
}
