package mpi

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/coll"
)

// NeighborAllgather sends send to all targets of the caller, and stores what comes from its ith
// source as the ith block of recv; all send buffers have the same length (MPI_Neighbor_allgather).
// Blocks of sources that are ProcNull are not changed (MPI-4.1, Section 8.6.1). It blocks until all
// neighbours' data is there; until then send and recv belong to the call. Errors to test for:
// ErrTopology, ErrCount, ErrOverlap, ErrTypeMismatch, [RankError].
func NeighborAllgather[T Element](ctx context.Context, t Topology, send, recv []T) error {
	return finish(neighborAllgather(ctx, t, check(send, recv)))
}

// NeighborAllgatherv is NeighborAllgather with blocks of counts[i] elements at displs[i] of recv;
// if displs is nil they follow one another (MPI_Neighbor_allgatherv). It blocks until all
// neighbours' data is there; until then send and recv belong to the call. Errors to test for:
// ErrTopology, ErrCount, ErrOverlap, ErrTypeMismatch, [RankError].
func NeighborAllgatherv[T Element](ctx context.Context, t Topology, send, recv []T, counts, displs []int) error {
	return finish(neighborAllgatherv(ctx, t, check(send, recv), counts, displs))
}

// NeighborAlltoall sends the ith block of send to the ith target, and stores what comes from the
// ith source as the ith block of recv; all blocks have the same length (MPI-4.1, Section 8.6.2). It
// blocks until all neighbours' data is there; until then send and recv belong to the call. Errors
// to test for: ErrTopology, ErrCount, ErrOverlap, ErrTypeMismatch, [RankError].
func NeighborAlltoall[T Element](ctx context.Context, t Topology, send, recv []T) error {
	return finish(neighborAlltoall(ctx, t, check(send, recv)))
}

// NeighborAlltoallv is NeighborAlltoall with blocks of scounts[i] elements at sdispls[i] of send,
// and rcounts[i] at rdispls[i] of recv; if displacements are nil blocks follow one another
// (MPI_Neighbor_alltoallv). It blocks until all neighbours' data is there; until then send and recv
// belong to the call. Errors to test for: ErrTopology, ErrCount, ErrOverlap, ErrTypeMismatch,
// [RankError].
func NeighborAlltoallv[T Element](
	ctx context.Context, t Topology, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int,
) error {
	return finish(neighborAlltoallv(ctx, t, check(send, recv), scounts, sdispls, rcounts, rdispls))
}

// IneighborAllgather starts [NeighborAllgather] (MPI_Ineighbor_allgather).
func IneighborAllgather[T Element](t Topology, send, recv []T) (*Request, error) {
	return start(neighborAllgather(nonblocking, t, check(send, recv)))
}

// IneighborAllgatherv starts [NeighborAllgatherv] (MPI_Ineighbor_allgatherv).
func IneighborAllgatherv[T Element](t Topology, send, recv []T, counts, displs []int) (*Request, error) {
	return start(neighborAllgatherv(nonblocking, t, check(send, recv), counts, displs))
}

// IneighborAlltoall starts [NeighborAlltoall] (MPI_Ineighbor_alltoall).
func IneighborAlltoall[T Element](t Topology, send, recv []T) (*Request, error) {
	return start(neighborAlltoall(nonblocking, t, check(send, recv)))
}

// IneighborAlltoallv starts [NeighborAlltoallv] (MPI_Ineighbor_alltoallv).
func IneighborAlltoallv[T Element](
	t Topology, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int,
) (*Request, error) {
	return start(neighborAlltoallv(nonblocking, t, check(send, recv), scounts, sdispls, rcounts, rdispls))
}

func neighborAllgather(ctx context.Context, t Topology, b checked) (*collective, error) {
	return prepareNeighbor(ctx, t, b, func(k *collective, out, in *neighborSide) error {
		out.whole(len(b.send))
		return in.even(len(b.send), len(b.recv))
	})
}

func neighborAllgatherv(ctx context.Context, t Topology, b checked, counts, displs []int) (*collective, error) {
	return prepareNeighbor(ctx, t, b, func(k *collective, out, in *neighborSide) error {
		out.whole(len(b.send))
		return in.given(k, 1, counts, displs)
	})
}

func neighborAlltoall(ctx context.Context, t Topology, b checked) (*collective, error) {
	return prepareNeighbor(ctx, t, b, func(k *collective, out, in *neighborSide) error {
		n := 0
		if len(out.peers) > 0 {
			n = len(b.send) / len(out.peers)
		} else if len(in.peers) > 0 {
			n = len(b.recv) / len(in.peers)
		}
		if err := out.even(n, len(b.send)); err != nil {
			return err
		}
		return in.even(n, len(b.recv))
	})
}

func neighborAlltoallv(
	ctx context.Context, t Topology, b checked, scounts, sdispls, rcounts, rdispls []int,
) (*collective, error) {
	return prepareNeighbor(ctx, t, b, func(k *collective, out, in *neighborSide) error {
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

// even makes blocks of n bytes in a row.
func (s *neighborSide) even(n, length int) error {
	if n*len(s.peers) != length {
		return fmt.Errorf("%w: %d bytes for %d neighbours with %d each", ErrCount, length, len(s.peers), n)
	}
	for i := range s.peers {
		s.count, s.at = append(s.count, n), append(s.at, i*n)
	}
	return nil
}

// given makes blocks of one side of k as the caller says.
func (s *neighborSide) given(k *collective, side int, counts, displs []int) error {
	length := len(k.SendBuf)
	if side == 1 {
		length = len(k.RecvBuf)
	}
	unit := k.units[side]
	if unit == noData {
		return s.even(0, 0)
	}
	length = k.room(side, length) / unit
	if len(counts) != len(s.peers) || displs != nil && len(displs) != len(s.peers) {
		return fmt.Errorf("%w: %d counts and %d displacements for %d neighbours", ErrCount, len(counts), len(displs), len(s.peers))
	}
	next := 0
	for i, n := range counts {
		at := next
		if displs != nil {
			at = displs[i]
		}
		if n < 0 || at < 0 || n > length || at > length-n {
			return fmt.Errorf("%w: block of neighbour %d is %d elements at %d of %d", ErrCount, i, n, at, length)
		}
		s.count, s.at = append(s.count, n*unit), append(s.at, at*unit)
		next = at + n
	}
	k.pack(side, s.count, s.at)
	return nil
}

// layout returns the blocks; those of ProcNull are empty.
func (s *neighborSide) layout() *coll.Layout {
	l := new(coll.Layout)
	for i, peer := range s.peers {
		n := s.count[i]
		if peer == ProcNull {
			n = 0
		}
		l.Counts, l.Displs = append(l.Counts, n), append(l.Displs, s.at[i])
	}
	return l
}

// prepareNeighbor begins a neighbour collective; lay lays out the blocks.
func prepareNeighbor(
	ctx context.Context, t Topology, b checked, lay func(k *collective, out, in *neighborSide) error,
) (*collective, error) {
	if t == nil {
		return nil, fmt.Errorf("%w: none", ErrTopology)
	}
	c := t.Comm()
	k, err := c.prepare(ctx, collNeighbor, b, 0)
	second := c.coll.nextTag(ctx) // of the second flow
	if err != nil {
		return nil, err
	}
	out, in := new(neighborSide), new(neighborSide)
	in.peers, out.peers = t.Neighbors()
	in.flow, out.flow = t.flows()
	if err := lay(k, out, in); err != nil {
		return k.refuse(err)
	}
	if k.into != nil {
		k.RecvLayout = in.layout()
	}
	if coll.Overlap(b.send, b.recv) && overlaps(b.send, out.layout(), b.recv, in.layout()) {
		return k.refuse(ErrOverlap)
	}
	tags := [2]int{k.comm.tag, second}
	k.run = func(k *collective) error { return k.exchange(out, in, tags) }
	return k, nil
}

// exchange sends and receives all blocks at the same time: there are few.
func (k *collective) exchange(out, in *neighborSide, tags [2]int) error {
	for i, peer := range in.peers {
		if peer == ProcNull {
			continue
		}
		k.comm.tag = tags[in.flow[i]]
		at := in.at[i]
		if err := k.StartRecv(k.RecvBuf[at:at+in.count[i]], peer); err != nil {
			return err
		}
	}
	for i, peer := range out.peers {
		if peer == ProcNull {
			continue
		}
		k.comm.tag = tags[out.flow[i]]
		at := out.at[i]
		if err := k.StartSend(k.SendBuf[at:at+out.count[i]], peer); err != nil {
			return err
		}
	}
	return k.Wait()
}
