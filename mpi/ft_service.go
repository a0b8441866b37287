package mpi

import (
	"github.com/weftstack/weft/mpi/internal/ft"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// ftService is the failure service of a World: it handles the messages of agreements and
// revocations on a goroutine of its own, independent of the program. They are messages of a context
// that belongs to no communicator.
type ftService struct {
	*ft.Service
	w     *World
	x     *p2p.ServiceContext
	limit int // bound on the members of a communicator
}

const (
	// ftID is the id of the context of the service, in SlotColl.
	ftID = 3 << 8
	// ftRoom is how many more members than the world a communicator with agreements may have.
	ftRoom = 4096
)

func newFTService(w *World) *ftService {
	f := &ftService{w: w, limit: w.Size() + ftRoom}
	f.Service = ft.NewService(f, f.limit)
	f.x = p2p.NewServiceContext(w.eng, ftID)
	return f
}

// run acts on the messages of the service, until the World ends.
func (f *ftService) run() {
	f.x.Receive(ft.MessageLen(f.limit), func(from *p2p.Peer, b []byte) {
		if m, ok := ft.Parse(b); ok {
			f.Take(m, from.ProcHandle)
		}
	})
}

// Comm implements ft.Host.
func (f *ftService) Comm(id uint64) ft.Comm {
	if c, ok := f.w.eng.OwnerOf(id).(*Comm); ok {
		return ftComm{c}
	}
	return nil
}

// Failed implements ft.Host.
func (f *ftService) Failed(handle int32) bool { return f.w.eng.Peer(handle).Failure() != nil }

// Send implements ft.Host.
func (f *ftService) Send(handle int32, b []byte) { f.x.Send(f.w.eng.Peer(handle), b) }

// Over implements ft.Host.
func (f *ftService) Over() <-chan struct{} { return f.w.eng.Over }

// Ended implements ft.Host.
func (f *ftService) Ended() error { return f.w.usable() }

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
