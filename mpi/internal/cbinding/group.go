package cbinding

import (
	"fmt"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A Group is an MPI_Group. Those that come from a process set of a session know it.
type Group struct {
	mpi.Group
	Session *Session
}

// NewGroup stores the handle of a new group at p.
func NewGroup(p uintptr, g mpi.Group, s *Session) error {
	if p == 0 {
		return NullError("newgroup")
	}
	if g.Size() == 0 {
		SetHandle(p, abi.GroupEmpty)
		return nil
	}
	h, err := Groups.Put(&Group{g, s})
	if err == nil {
		SetHandle(p, h)
	}
	return err
}

// MemberError is the error of a rank that no member of a group has.
func MemberError(name string, rank int, g *Group) error {
	return ArgError(abi.ErrRank, name, rank, fmt.Sprintf("is no rank of a group of %d", g.Size()))
}
