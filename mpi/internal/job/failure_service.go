package job

import (
	"github.com/weftstack/weft/mpi/internal/ft"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// FailureService handles the messages of agreements and
// revocations on a goroutine of its own, independent of the program. They are messages of a context
// that belongs to no communicator.
type FailureService struct {
	*ft.Service
	job   *Job
	x     *p2p.ServiceContext
	limit int // bound on the members of a communicator
}

const (
	// failureServiceID is the id of the context of the service, in SlotColl.
	failureServiceID = 3 << 8
	// ftRoom is how many more members than the world a communicator with agreements may have.
	ftRoom = 4096
)

func newFailureService(j *Job) *FailureService {
	f := &FailureService{job: j, limit: j.Size() + ftRoom}
	f.Service = ft.NewService(f, f.limit)
	f.x = p2p.NewServiceContext(j.Engine, failureServiceID)
	return f
}

// run acts on the messages of the service, until the job ends.
func (f *FailureService) run() {
	f.x.Receive(ft.MessageLen(f.limit), func(from *p2p.Peer, b []byte) {
		if m, ok := ft.Parse(b); ok {
			f.Take(m, from.ProcHandle)
		}
	})
}

// Comm implements ft.Host.
func (f *FailureService) Comm(id uint64) ft.Comm { return f.job.face.Comm(f.job.Engine.OwnerOf(id)) }

// Failed implements ft.Host.
func (f *FailureService) Failed(handle int32) bool { return f.job.Engine.Peer(handle).Failure() != nil }

// Send implements ft.Host.
func (f *FailureService) Send(handle int32, b []byte) { f.x.Send(f.job.Engine.Peer(handle), b) }

// Over implements ft.Host.
func (f *FailureService) Over() <-chan struct{} { return f.job.Engine.Over }

// Ended implements ft.Host.
func (f *FailureService) Ended() error { return f.job.Usable() }
