package mpi

import "github.com/weftstack/weft/mpi/internal/ft"

// ftComm is a communicator as the failure service uses it.
type ftComm struct{ c *Comm }

// ID implements ft.Comm.
func (x ftComm) ID() uint64 { return x.c.comm.ID }

// Members implements ft.Comm.
func (x ftComm) Members() ([]int32, int) {
	members, me := x.c.members()
	handles := make([]int32, len(members))
	for i, p := range members {
		handles[i] = p.ProcHandle
	}
	return handles, me
}

// Revoked implements ft.Comm.
func (x ftComm) Revoked(by int32) {
	rank := Undefined
	if by != ft.NoMember {
		rank = x.c.w.eng.Peer(by).Rank
	}
	x.c.revoked(rank)
}

// ftCommOf returns owner as the failure service uses it, or nil if it is no communicator.
func ftCommOf(owner any) ft.Comm {
	if c, ok := owner.(*Comm); ok {
		return ftComm{c}
	}
	return nil
}
