package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/bridge"
	"github.com/weftstack/weft/mpi/internal/fileio"
	"github.com/weftstack/weft/mpi/internal/ft"
	"github.com/weftstack/weft/mpi/internal/job"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// World is one rank's membership in a job (the state between MPI_Init and MPI_Finalize). It is safe
// for concurrent use.
type World struct {
	job      *job.Job
	eng      *p2p.Engine // of job
	opts     *options
	world    *Comm
	self     *Comm
	datareps fileio.Datareps // that the program has registered

	mu        sync.Mutex
	fromGroup map[uint64]uint64 // calls of groupID, by what they were for
	parent    *Comm
	toolsOver chan struct{} // closed when the profilers of the environment end; nil: none
	finalize  sync.Once
	finErr    error
	finalized atomic.Bool // Finalize has ended
}

// Ids of the communicators that exist from the start.
const (
	worldID = 1 << 8
	selfID  = 2 << 8
)

func newWorld(rank, size int, o *options, l job.Launcher) *World {
	w := &World{opts: o}
	w.job = job.New(rank, size, &o.Options, l, face)
	w.eng = w.job.Engine
	group := make([]int32, size)
	for i := range group {
		group[i] = int32(i)
	}
	w.world = w.newComm(worldID, group, rank, nil)
	w.world.name = "world"
	w.self = w.newComm(selfID, []int32{int32(rank)}, 0, nil)
	w.self.name = "self"
	return w
}

// face is what a job needs of this package.
var face = job.Face{
	RankError: rankError, Comm: ftCommOf,
	CommName:  func(owner any) string { return string(appendComm(nil, owner.(*Comm))) },
	Operation: func(owner any) string { return owner.(*Comm).served() },
	CallName: func(entry string) string {
		if bridge.CallName == nil {
			return ""
		}
		return bridge.CallName(entry)
	},
}

// rankError makes the error of operations with a process that has failed.
func rankError(rank int, other bool, err error) error {
	return &RankError{Rank: rank, Other: other, Err: err}
}

// newComm makes a communicator with a given id.
func (w *World) newComm(id uint64, group []int32, rank int, info Info) *Comm {
	return w.openComm(&Comm{comm: p2p.Comm{ID: id, Rank: rank}, w: w, group: group}, group, info)
}

// openComm makes c able to exchange messages with the ranks in to.
func (w *World) openComm(c *Comm, to []int32, info Info) *Comm {
	c.info = Info{}
	maps.Copy(c.info, info)
	c.prof = w.opts.profiler
	peers := make([]*p2p.Peer, len(to))
	for i, r := range to {
		peers[i] = w.eng.Peer(r)
	}
	if c.local != nil {
		c.comm.Local, c.coll.Local = c.local.comm.Peers, &c.local.coll
	}
	c.comm.Init(w.eng, peers, c, c.forget)
	c.coll.P2P, c.coll.Pick = &c.comm, c.pickAlgorithm
	c.readHints()
	c.comm.CheckMembers()
	w.job.FT.Adopt(ftComm{c})
	return c
}

// Rank returns the rank of this process in the job (MPI_Comm_rank).
func (w *World) Rank() int { return w.eng.Rank }

// Size returns the number of ranks of the job (MPI_Comm_size).
func (w *World) Size() int { return len(w.eng.Peers) }

// Comm returns the communicator of all ranks (MPI_COMM_WORLD).
func (w *World) Comm() *Comm { return w.world }

// Self returns the communicator of this rank alone (MPI_COMM_SELF).
func (w *World) Self() *Comm { return w.self }

// Transport returns the name of the transport in use.
func (w *World) Transport() string { return w.opts.Transport }

// usable returns why no operation can start, or nil.
func (w *World) usable() error { return w.eng.Usable() }

// Finalize ends this rank's part in the job (MPI-4.1, Section 11.2.2): it waits until all ranks
// have called it, and the processes of other jobs that are connected have called it or
// [Comm.Disconnect]; it delivers everything that was sent, and closes the links. It blocks; if ctx
// ends first, links are closed without waiting for the peers. Requests that are not done fail with
// ErrFinalized. It ends the sessions that share the World, too. Only the first call counts.
func (w *World) Finalize(ctx context.Context) error {
	w.finalize.Do(func() {
		w.job.Leave()
		w.self.attrs.dropAll()
		w.finErr = errors.Join(w.job.Finalize(ctx, w.finalBarrier), w.closeTools())
		w.finalized.Store(true)
		w.job.Record(slog.LevelInfo, "finalized", job.Cause(w.finErr))
	})
	return w.finErr
}

// finalBarrier waits for all ranks, in a fault-tolerant job for those that are alive.
func (w *World) finalBarrier(ctx context.Context) error {
	if !w.opts.Tolerant {
		return w.world.barrier(ctx)
	}
	wait, err := w.job.FT.Start(ftComm{w.world}, func() *ft.Ballot { return w.world.ballot(0) })
	if err != nil {
		return err
	}
	_, _, err = wait(ctx)
	return err
}

// Abort ends the whole job: the launcher kills all ranks, with the given exit code and message, and
// all operations of this rank fail with ErrAborted (MPI_Abort). It does not block on peers.
func (w *World) Abort(code int, msg string) { w.job.Abort(code, msg, w.flushTools) }

// join connects to the other ranks.
func (w *World) join(ctx context.Context, t job.Transport) error {
	return w.job.Join(ctx, t, func() { w.eng.PrepareRendezvous(w.world.comm.Hints.Load()) })
}

// Tags in SlotComm.
const (
	tagBarrier        = 0             // plus the round
	tagPairs          = 100           // allgatherPairs
	tagLeaderResult   = 102           // from the leader of a group to its members
	tagLeaders        = 103           // between the leaders of the groups of an intercommunicator
	tagProcessMessage = 104           // to the root of a group exchange
	tagVote           = 105           // consent: up the tree
	tagResult         = 106           // down
	tagInter          = p2p.TagSubset // with the tag of IntercommCreate
	tagGroup          = 1 << 30       // with the tag of CreateGroup
)

// barrier waits until all ranks of c have called it: in round k every rank
// receives from the one 2^k below it (dissemination barrier).
func (c *Comm) barrier(ctx context.Context) error {
	n := len(c.group)
	for k, d := 0, 1; d < n; k, d = k+1, 2*d {
		to, from := (c.comm.Rank+d)%n, (c.comm.Rank-d+n)%n
		if _, err := c.comm.Sendrecv(ctx, p2p.SlotComm, nil, to, tagBarrier+k, p2p.SlotComm, nil, from,
			tagBarrier+k); err != nil {
			return err
		}
	}
	return nil
}

// allgatherPairs gives every rank of c the two numbers of every rank.
func (c *Comm) allgatherPairs(ctx context.Context, a, b int64) ([][2]int64, error) {
	const size = 16
	n := len(c.group)
	all := make([]byte, size*n)
	own := all[size*c.comm.Rank:][:size]
	binary.BigEndian.PutUint64(own, uint64(a))
	binary.BigEndian.PutUint64(own[8:], uint64(b))
	if c.comm.Rank != 0 {
		if err := c.comm.Send(ctx, p2p.SlotComm, p2p.SendStandard, own, 0, tagPairs); err != nil {
			return nil, err
		}
		if _, err := c.comm.Recv(ctx, p2p.SlotComm, all, 0, tagPairs+1); err != nil {
			return nil, err
		}
	} else {
		for r := 1; r < n; r++ {
			if _, err := c.comm.Recv(ctx, p2p.SlotComm, all[size*r:][:size], r, tagPairs); err != nil {
				return nil, err
			}
		}
		for r := 1; r < n; r++ {
			if err := c.comm.Send(ctx, p2p.SlotComm, p2p.SendStandard, all, r, tagPairs+1); err != nil {
				return nil, err
			}
		}
	}
	out := make([][2]int64, n)
	for r := range out {
		out[r][0] = int64(binary.BigEndian.Uint64(all[size*r:]))
		out[r][1] = int64(binary.BigEndian.Uint64(all[size*r+8:]))
	}
	return out, nil
}
