package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weftstack/weft/mpi/internal/dynamic"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Groups whose leaders have a communicator in common, but whose other members have no links to each
// other: one of several ranks has started processes, and all of both jobs make an intercommunicator
// (MPI-4.1, Section 11.10.4: communicators of connected processes). They connect as by
// Accept and Connect.

// commonNames reports whether two groups, as AppendNames wrote them, have a member in common.
func commonNames(mine, other []byte) bool {
	seen := make(map[string]bool, len(mine)/p2p.ProcNameLen)
	for n := range slices.Chunk(mine, p2p.ProcNameLen) {
		seen[string(n)] = true
	}
	for n := range slices.Chunk(other, p2p.ProcNameLen) {
		if seen[string(n)] {
			return true
		}
	}
	return false
}

// severalJobs reports whether the members of two groups belong to several jobs. Those of one
// job have links to each other.
func severalJobs(mine, other []byte) bool {
	job := mine[:8]
	for n := range slices.Chunk(slices.Concat(mine, other), p2p.ProcNameLen) {
		if !bytes.HasPrefix(n, job) {
			return true
		}
	}
	return false
}

// anyLacks reports whether any rank of the two groups lacks a link to the other group; own is
// why the caller does. All ranks of both groups call it.
func (x leaders) anyLacks(ctx context.Context, own error) (bool, error) {
	vote := []byte{0}
	switch err := x.local.consent(ctx, own); {
	case errors.Is(err, ErrRank): // see ParseNames
		vote[0] = 1
	case err != nil:
		return false, x.refuse(ctx, err)
	}
	mine, other, err := x.exchange(ctx, vote)
	if err != nil {
		return false, err
	}
	if len(mine) != 1 || len(other) != 1 {
		return false, fmt.Errorf("%w: vote of %d and %d bytes", ErrProtocol, len(mine), len(other))
	}
	return mine[0]|other[0] != 0, nil
}

// connect connects all members of the two groups by a port of the leader that accepts. All ranks
// of both groups call it.
func (x leaders) connect(ctx context.Context, accepts bool) (*Comm, error) {
	w, isLeader := x.local.w, x.local.comm.Rank == x.leader
	var port string
	var perr error
	if accepts && isLeader {
		if port, perr = w.OpenPort(); perr == nil {
			defer func() { _ = w.ClosePort(port) }() // it is open
		}
	}
	_, other, err := x.exchange(ctx, []byte(port))
	if err != nil {
		return nil, err
	}
	return x.local.connectGroups(ctx, x.leader, accepts, func(ctx context.Context) (*dynamic.RootConn, error) {
		switch {
		case perr != nil:
			return nil, perr
		case accepts:
			return w.job.TakeAt(ctx, port)
		case len(other) == 0:
			return nil, fmt.Errorf("%w: the leader of the other group has opened none", ErrPort)
		}
		return dynamic.Dial(ctx, string(other), DefaultConnectTimeout, w.job.DialPort)
	})
}
