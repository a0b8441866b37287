package cbinding

import (
	"strconv"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// peers returns how many ranks c can send to: those of the remote group of an intercommunicator.
func (c *communicator) peers() int {
	if c.IsInter() {
		return c.RemoteSize()
	}
	return c.Size()
}

// peer translates the destination of a message.
func (c *communicator) peer(name string, rank int) (int, error) {
	if rank >= 0 && rank < c.peers() {
		return rank, nil
	}
	if rank == abi.ProcNull {
		return mpi.ProcNull, nil
	}
	return 0, c.badRank(name, rank, abi.ErrRank)
}

// source translates the source of a message.
func (c *communicator) source(name string, rank int) (int, error) {
	if rank == abi.AnySource {
		return mpi.AnySource, nil
	}
	return c.peer(name, rank)
}

// root translates the root of a collective, which on an intercommunicator may be MPI_ROOT or
// MPI_PROC_NULL.
func (c *communicator) root(rank int) (int, error) {
	if rank >= 0 && rank < c.peers() {
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
	return 0, c.badRank("root", rank, abi.ErrRoot)
}

func (c *communicator) badRank(name string, rank, class int) error {
	return argError(class, name, rank, "is no rank of a communicator of "+strconv.Itoa(c.peers()))
}

// tagOf checks the tag of a message that is sent.
func tagOf(name string, tag int) (int, error) {
	if tag < 0 || tag > mpi.TagUB {
		return 0, argError(abi.ErrTag, name, tag, "is not between 0 and MPI_TAG_UB, "+strconv.Itoa(mpi.TagUB))
	}
	return tag, nil
}

// sourceTag translates the tag of a receive.
func sourceTag(name string, tag int) (int, error) {
	if tag == abi.AnyTag {
		return mpi.AnyTag, nil
	}
	return tagOf(name, tag)
}

// rankToC translates a rank that a call returns.
func rankToC(rank int) int {
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
