package mpi

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/collective"
)

// neighborsOf returns the neighbours in t.
func neighborsOf(t Topology) (n collective.Neighbors) {
	n.Sources, n.Targets = t.Neighbors()
	n.InFlow, n.OutFlow = t.flows()
	return n
}

// noTopology is the result of a collective of neighbours without a topology.
func noTopology() (*Comm, *collective.Call, error) {
	return nil, nil, fmt.Errorf("%w: none", ErrTopology)
}

// finishOn is finish on c, which is nil if there is no topology.
func finishOn(c *Comm, k *collective.Call, err error) error {
	if c == nil {
		return err
	}
	return c.finish(k, err)
}

// startOn is start on c, which is nil if there is no topology.
func startOn(c *Comm, k *collective.Call, err error) (*Request, error) {
	if c == nil {
		return nil, err
	}
	return c.start(k, err)
}

func neighborAllgather(
	ctx context.Context, t Topology, b collective.Args,
) (*Comm, *collective.Call, error) {
	if t == nil {
		return noTopology()
	}
	k, err := t.Comm().coll.NeighborAllgather(ctx, neighborsOf(t), b)
	return t.Comm(), k, err
}

func neighborAllgatherv(
	ctx context.Context, t Topology, b collective.Args, counts, displs []int,
) (*Comm, *collective.Call, error) {
	if t == nil {
		return noTopology()
	}
	k, err := t.Comm().coll.NeighborAllgatherv(ctx, neighborsOf(t), b, counts, displs)
	return t.Comm(), k, err
}

func neighborAlltoall(
	ctx context.Context, t Topology, b collective.Args,
) (*Comm, *collective.Call, error) {
	if t == nil {
		return noTopology()
	}
	k, err := t.Comm().coll.NeighborAlltoall(ctx, neighborsOf(t), b)
	return t.Comm(), k, err
}

func neighborAlltoallv(
	ctx context.Context, t Topology, b collective.Args, scounts, sdispls, rcounts, rdispls []int,
) (*Comm, *collective.Call, error) {
	if t == nil {
		return noTopology()
	}
	k, err := t.Comm().coll.NeighborAlltoallv(ctx, neighborsOf(t), b, scounts, sdispls, rcounts, rdispls)
	return t.Comm(), k, err
}

func neighborAlltoallw(
	ctx context.Context, t Topology, send, recv []Buffer,
) (*Comm, *collective.Call, error) {
	if t == nil {
		return noTopology()
	}
	k, err := t.Comm().coll.NeighborAlltoallw(ctx, neighborsOf(t), blocksOf(send, recv))
	return t.Comm(), k, err
}
