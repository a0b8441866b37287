package job

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/dynamic"
	"github.com/weftstack/weft/mpi/internal/ft"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport/inproc"
	"github.com/weftstack/weft/mpi/internal/transport/shm"
)

// Job is the part of one process in a job. It is safe for concurrent use.
type Job struct {
	Engine    *p2p.Engine
	Options   *Options
	Launcher  Launcher
	Transport Transport       // nil before Join
	FT        *FailureService // of the communicators
	Shared    *shm.Memory     // nil: none
	Ports     dynamic.Ports   // that are open
	Spawned   dynamic.Spawned // jobs that it starts
	Log       *slog.Logger    // nil: nothing is logged

	face    Face // of the layer above
	rdma    rdmaState
	joined  atomic.Bool // the links are up
	leaving atomic.Bool // see Leave

	mu      sync.Mutex                    // guards closers and setups
	closers []func(context.Context) error // see OnFinalize
	setups  map[uint64]*linkSetup         // in progress, by id
}

// Face is what a job needs of the layer above.
type Face struct {
	// RankError makes the error of operations with a process that has failed because of err, which may be nil. other says
	// that it belongs to another job, where it has this rank.
	RankError func(rank int, other bool, err error) error
	// Comm returns the communicator that owner is, as the failure service uses it, or nil if it is none.
	Comm func(owner any) ft.Comm
	// CommName names the communicator that owner is.
	CommName func(owner any) string
	// Operation says what the only operation on the communicator that owner is waits for, if it was made for one;
	// otherwise it returns "". It may be nil.
	Operation func(owner any) string
	// CallName returns the name in MPI of a call that a program in C or Fortran is in, from the name of its entry in the
	// stack of a goroutine, or "" for any other name.
	CallName func(entry string) string
}

// New returns the part of a rank in a job of size ranks. It has no links, but for the one to itself.
func New(rank, size int, o *Options, l Launcher, face Face) *Job {
	j := &Job{Options: o, Launcher: l, face: face}
	j.Engine = p2p.New(&p2p.Config{
		Rank: rank, Size: size, Eager: o.Eager, Unexpected: o.Unexpected, Streams: o.Streams, Method: o.Rendezvous,
		PeerError: func(p *p2p.Peer, err error) error { return face.RankError(p.Rank, p.Remote != nil, err) },
		OnDown:    j.peerDown,
	})
	if o.Log != nil {
		j.Log = o.Log.With(slog.Int("rank", rank))
	}
	j.FT = newFailureService(j)
	if o.Transport == TransportHybrid {
		j.Engine.Bulk = &RDMABulk{device: j.Device, Engine: j.Engine}
	}
	self := j.Engine.Peers[rank]
	out := &inproc.Link{To: self}
	out.Rev = out
	self.Link = out
	self.Credit.Store(j.Engine.Window)
	return j
}

// Rank returns the rank of this process in the job.
func (j *Job) Rank() int { return j.Engine.Rank }

// Size returns the number of ranks of the job.
func (j *Job) Size() int { return len(j.Engine.Peers) }

// Usable returns why no operation can start, or nil.
func (j *Job) Usable() error { return j.Engine.Usable() }
