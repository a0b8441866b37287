package cbinding

import (
	"strconv"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// Peers returns how many ranks c can send to: those of the remote group of an intercommunicator.
func (c *Communicator) Peers() int {
	if c.IsInter() {
		return c.RemoteSize()
	}
	return c.Size()
}

// Peer translates the destination of a message.
func (c *Communicator) Peer(name string, rank int) (int, error) {
	if rank >= 0 && rank < c.Peers() {
		return rank, nil
	}
	if rank == abi.ProcNull {
		return mpi.ProcNull, nil
	}
	return 0, c.BadRank(name, rank, abi.ErrRank)
}

// Source translates the source of a message.
func (c *Communicator) Source(name string, rank int) (int, error) {
	if rank == abi.AnySource {
		return mpi.AnySource, nil
	}
	return c.Peer(name, rank)
}

// Root translates the root of a collective, which on an intercommunicator may be MPI_ROOT or
// MPI_PROC_NULL.
func (c *Communicator) Root(rank int) (int, error) {
	if rank >= 0 && rank < c.Peers() {
		return rank, nil
	}
	if c.IsInter() {
		switch rank {
		case abi.Root:
			return mpi.Root, nil
		case abi.ProcNull:
			return mpi.ProcNull, nil
		}
	}
	return 0, c.BadRank("root", rank, abi.ErrRoot)
}

// BadRank returns the error of a rank that c does not have.
func (c *Communicator) BadRank(name string, rank, class int) error {
	return ArgError(class, name, rank, "is no rank of a communicator of "+strconv.Itoa(c.Peers()))
}

// TagOf checks the tag of a message that is sent.
func TagOf(name string, tag int) (int, error) {
	if tag < 0 || tag > mpi.TagUB {
		return 0, ArgError(abi.ErrTag, name, tag, "is not between 0 and MPI_TAG_UB, "+strconv.Itoa(mpi.TagUB))
	}
	return tag, nil
}

// SourceTag translates the tag of a receive.
func SourceTag(name string, tag int) (int, error) {
	if tag == abi.AnyTag {
		return mpi.AnyTag, nil
	}
	return TagOf(name, tag)
}

// RankToC translates a rank that a call returns.
func RankToC(rank int) int {
	switch rank {
	case mpi.AnySource:
		return abi.AnySource
	case mpi.ProcNull:
		return abi.ProcNull
	case mpi.Root:
		return abi.Root
	case mpi.Undefined:
		return abi.Undefined
	}
	return rank
}

// tagToC translates a tag that a call returns.
func tagToC(tag int) int {
	if tag == mpi.AnyTag {
		return abi.AnyTag
	}
	return tag
}
