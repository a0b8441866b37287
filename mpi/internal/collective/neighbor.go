package collective

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Neighbors are what a rank receives from and sends to, coll.ProcNull for none. The messages of each have a flow, 0
// or 1: those of both between the same two ranks do not mix.
type Neighbors struct {
	Sources, Targets []int
	InFlow, OutFlow  []int
}

// NeighborAllgather prepares NeighborAllgather.
func (c *Comm) NeighborAllgather(ctx context.Context, n Neighbors, b Args) (*Call, error) {
	return c.prepareNeighbor(ctx, n, b, func(k *Call, out, in *neighborSide) error {
		out.whole(len(b.Send))
		return in.split(len(b.Recv), k.Elem)
	})
}

// NeighborAllgatherv prepares NeighborAllgatherv.
func (c *Comm) NeighborAllgatherv(ctx context.Context, n Neighbors, b Args, counts, displs []int) (*Call, error) {
	return c.prepareNeighbor(ctx, n, b, func(k *Call, out, in *neighborSide) error {
		out.whole(len(b.Send))
		return in.given(k, 1, counts, displs)
	})
}

// NeighborAlltoall prepares NeighborAlltoall.
func (c *Comm) NeighborAlltoall(ctx context.Context, n Neighbors, b Args) (*Call, error) {
	return c.prepareNeighbor(ctx, n, b, func(k *Call, out, in *neighborSide) error {
		if err := out.split(len(b.Send), k.Elem); err != nil {
			return err
		}
		return in.split(len(b.Recv), k.Elem)
	})
}

// NeighborAlltoallv prepares NeighborAlltoallv.
func (c *Comm) NeighborAlltoallv(
	ctx context.Context, n Neighbors, b Args, scounts, sdispls, rcounts, rdispls []int,
) (*Call, error) {
	return c.prepareNeighbor(ctx, n, b, func(k *Call, out, in *neighborSide) error {
		if err := out.given(k, 0, scounts, sdispls); err != nil {
			return err
		}
		return in.given(k, 1, rcounts, rdispls)
	})
}

// neighborSide is what a rank sends, or receives, in a neighbour collective.
type neighborSide struct {
	peers, flow []int
	count, at   []int // blocks, in bytes
}

// whole lets all blocks be the whole buffer.
func (s *neighborSide) whole(n int) {
	for range s.peers {
		s.count, s.at = append(s.count, n), append(s.at, 0)
	}
}

// split makes blocks of the same length of a buffer, of whole elements of elem bytes. A rank may send
// blocks of another length than it receives (MPI-4.1, Section 8.6: signatures are equal "pairwise").
func (s *neighborSide) split(length, elem int) error {
	n := 0
	if len(s.peers) > 0 {
		n = length / elem / len(s.peers) * elem
	}
	return s.even(n, length)
}

// even makes blocks of n bytes in a row.
func (s *neighborSide) even(n, length int) error {
	if n*len(s.peers) != length {
		return fmt.Errorf("%w: %d bytes for %d neighbours with %d each", mpierr.ErrCount, length, len(s.peers), n)
	}
	for i := range s.peers {
		s.count, s.at = append(s.count, n), append(s.at, i*n)
	}
	return nil
}

// given makes blocks of one side of k as the caller says.
func (s *neighborSide) given(k *Call, side int, counts, displs []int) error {
	length := len(k.SendBuf)
	if side == 1 {
		length = len(k.RecvBuf)
	}
	unit := k.units[side]
	if unit == NoData {
		return s.even(0, 0)
	}
	length = k.room(side, length) / unit
	if len(counts) != len(s.peers) || displs != nil && len(displs) != len(s.peers) {
		return fmt.Errorf("%w: %d counts and %d displacements for %d neighbours", mpierr.ErrCount, len(counts), len(displs), len(s.peers))
	}
	next := 0
	for i, n := range counts {
		at := next
		if displs != nil {
			at = displs[i]
		}
		if n < 0 || at < 0 || n > length || at > length-n {
			return fmt.Errorf("%w: block of neighbour %d is %d elements at %d of %d", mpierr.ErrCount, i, n, at, length)
		}
		s.count, s.at = append(s.count, n*unit), append(s.at, at*unit)
		next = at + n
	}
	k.pack(side, s.count, s.at)
	return nil
}

// layout returns the blocks; those of coll.ProcNull are empty.
func (s *neighborSide) layout() *coll.Layout {
	l := new(coll.Layout)
	for i, peer := range s.peers {
		n := s.count[i]
		if peer == coll.ProcNull {
			n = 0
		}
		l.Counts, l.Displs = append(l.Counts, n), append(l.Displs, s.at[i])
	}
	return l
}

// prepareNeighbor begins a neighbour collective; lay lays out the blocks.
func (c *Comm) prepareNeighbor(
	ctx context.Context, n Neighbors, b Args, lay func(k *Call, out, in *neighborSide) error,
) (*Call, error) {
	k, err := c.prepare(ctx, coll.Neighbor, b, 0)
	second := c.nextTag(ctx) // of the second flow
	if err != nil {
		return nil, err
	}
	out, in := &neighborSide{peers: n.Targets, flow: n.OutFlow}, &neighborSide{peers: n.Sources, flow: n.InFlow}
	if err := lay(k, out, in); err != nil {
		return k.refuse(err)
	}
	if k.into != nil {
		k.RecvLayout = in.layout()
	}
	if coll.Overlap(b.Send, b.Recv) && overlaps(b.Send, out.layout(), b.Recv, in.layout()) {
		return k.refuse(mpierr.ErrOverlap)
	}
	tags := [2]int{k.comm.tag, second}
	k.plain, k.run = true, func(k *Call) error { return k.exchange(out, in, tags) }
	return k, nil
}

// exchange sends and receives all blocks at the same time: there are few.
func (k *Call) exchange(out, in *neighborSide, tags [2]int) error {
	for i, peer := range in.peers {
		if peer == coll.ProcNull {
			continue
		}
		k.setTag(tags[in.flow[i]])
		at := in.at[i]
		if err := k.StartRecv(k.RecvBuf[at:at+in.count[i]], peer); err != nil {
			return err
		}
	}
	for i, peer := range out.peers {
		if peer == coll.ProcNull {
			continue
		}
		k.setTag(tags[out.flow[i]])
		at := out.at[i]
		if err := k.StartSend(k.SendBuf[at:at+out.count[i]], peer); err != nil {
			return err
		}
	}
	return k.Wait()
}

// setTag sets the tag of the messages that follow.
func (k *Call) setTag(tag int) { k.comm.tag, k.progress.record.Tag = tag, tag }

// NeighborAlltoallw prepares NeighborAlltoallw.
func (c *Comm) NeighborAlltoallw(ctx context.Context, n Neighbors, b Blocks) (*Call, error) {
	k, err := c.prepare(ctx, coll.Neighbor, Args{}, 0)
	tags := [2]int{0, c.nextTag(ctx)}
	if err != nil {
		return nil, err
	}
	tags[0] = k.comm.tag
	if err := b.check(len(n.Targets), len(n.Sources)); err != nil {
		return k.refuse(err)
	}
	if b.InPlace {
		return k.refuse(mpierr.ErrOverlap)
	}
	k.comm.slot = p2p.SlotColl // blocks are of any types
	k.run = func(k *Call) error {
		x := newBlockExchange(&b)
		defer x.release()
		for i, peer := range n.Sources {
			if peer != coll.ProcNull {
				k.setTag(tags[n.InFlow[i]])
				if err := k.StartRecv(x.in[i], peer); err != nil {
					return err
				}
			}
		}
		for i, peer := range n.Targets {
			if peer != coll.ProcNull {
				k.setTag(tags[n.OutFlow[i]])
				if err := k.StartSend(x.out[i], peer); err != nil {
					return err
				}
			}
		}
		if err := k.Wait(); err != nil || k.comm.mismatch != nil {
			return err
		}
		for i, peer := range n.Sources {
			if peer != coll.ProcNull {
				b.Recv[i].Unpack(x.in[i], 0)
			}
		}
		return nil
	}
	return k, nil
}
