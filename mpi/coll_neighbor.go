package mpi

import (
	"context"
	"fmt"
)

// NeighborAllgather sends send to all targets of the caller, and stores what
// comes from its ith source as the ith block of recv; all send buffers have the
// same length. Blocks of sources that are ProcNull are not changed (MPI-4.1,
// Section 8.6.1).
func NeighborAllgather[T Element](ctx context.Context, t Topology, send, recv []T) error {
	return runNeighbor(ctx, t, check(send, recv), func(k *neighborCall) error {
		k.send.same(len(send))
		return k.recv.even(len(send), len(recv))
	})
}

// NeighborAllgatherv is NeighborAllgather with blocks of counts[i] elements at
// displs[i] of recv; if displs is nil they follow one another.
func NeighborAllgatherv[T Element](ctx context.Context, t Topology, send, recv []T, counts, displs []int) error {
	return runNeighbor(ctx, t, check(send, recv), func(k *neighborCall) error {
		k.send.same(len(send))
		return k.recv.given(counts, displs, len(recv))
	})
}

// NeighborAlltoall sends the ith block of send to the ith target, and stores
// what comes from the ith source as the ith block of recv; all blocks have the
// same length (MPI-4.1, Section 8.6.2).
func NeighborAlltoall[T Element](ctx context.Context, t Topology, send, recv []T) error {
	return runNeighbor(ctx, t, check(send, recv), func(k *neighborCall) error {
		n := 0
		if len(k.send.peers) > 0 {
			n = len(send) / len(k.send.peers)
		} else if len(k.recv.peers) > 0 {
			n = len(recv) / len(k.recv.peers)
		}
		if err := k.send.even(n, len(send)); err != nil {
			return err
		}
		return k.recv.even(n, len(recv))
	})
}

// NeighborAlltoallv is NeighborAlltoall with blocks of scounts[i] elements at
// sdispls[i] of send, and rcounts[i] at rdispls[i] of recv; if displacements
// are nil blocks follow one another.
func NeighborAlltoallv[T Element](ctx context.Context, t Topology, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) error {
	return runNeighbor(ctx, t, check(send, recv), func(k *neighborCall) error {
		if err := k.send.given(scounts, sdispls, len(send)); err != nil {
			return err
		}
		return k.recv.given(rcounts, rdispls, len(recv))
	})
}

// A neighborCall is one neighbour collective on one rank. All its messages are
// in flight at the same time: there are few.
type neighborCall struct{ send, recv neighborSide }

type neighborSide struct {
	peers, flow []int
	count, at   []int // blocks, in elements
}

// same lets all blocks be the whole buffer.
func (s *neighborSide) same(n int) {
	for range s.peers {
		s.count, s.at = append(s.count, n), append(s.at, 0)
	}
}

// even makes blocks of n elements in a row.
func (s *neighborSide) even(n, length int) error {
	if n*len(s.peers) != length {
		return fmt.Errorf("%w: %d elements for %d neighbours with %d each", ErrCount, length, len(s.peers), n)
	}
	for i := range s.peers {
		s.count, s.at = append(s.count, n), append(s.at, i*n)
	}
	return nil
}

// given makes blocks as the caller says.
func (s *neighborSide) given(counts, displs []int, length int) error {
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
		s.count, s.at = append(s.count, n), append(s.at, at)
		next = at + n
	}
	return nil
}

// runNeighbor performs a neighbour collective, after lay has laid out the
// blocks.
func runNeighbor(ctx context.Context, t Topology, b checked, lay func(k *neighborCall) error) error {
	c := t.Comm()
	n := new(neighborCall)
	n.recv.peers, n.send.peers = t.Neighbors()
	n.recv.flow, n.send.flow = t.flows()
	k, err := c.begin(ctx, collNeighbor)
	if err != nil {
		return err
	}
	defer k.release()
	tags := [2]int{k.tag, c.coll.nextTag()} // one for each flow
	if b.err != nil {
		return b.err
	}
	if err := lay(n); err != nil {
		return err
	}
	if overlap(b.send, b.recv) {
		return ErrOverlap
	}
	for i, peer := range n.recv.peers {
		k.tag = tags[n.recv.flow[i]]
		at := n.recv.at[i] * b.elem
		if peer == ProcNull {
			continue
		}
		if err := k.startFrom(b.recv[at:at+n.recv.count[i]*b.elem], peer); err != nil {
			return err
		}
	}
	for i, peer := range n.send.peers {
		k.tag = tags[n.send.flow[i]]
		at := n.send.at[i] * b.elem
		if peer == ProcNull {
			continue
		}
		if err := k.startTo(b.send[at:at+n.send.count[i]*b.elem], peer); err != nil {
			return err
		}
	}
	if err := k.wait(); err != nil {
		return err
	}
	return k.wrong
}
