package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/cpuset"
	"github.com/weftstack/weft/mpi/internal/dynamic"
	"github.com/weftstack/weft/mpi/internal/fileio"
	"github.com/weftstack/weft/mpi/internal/ft"
	"github.com/weftstack/weft/mpi/internal/hashid"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport"
	"github.com/weftstack/weft/mpi/internal/transport/inproc"
	"github.com/weftstack/weft/mpi/internal/transport/shm"
)

// World is one rank's membership in a job (the state between MPI_Init and MPI_Finalize). It is safe
// for concurrent use.
type World struct {
	eng       *p2p.Engine
	opts      *options
	boot      bootstrap
	transport jobTransport
	world     *Comm
	self      *Comm
	joined    atomic.Bool     // the links are up
	ft        *ftService      // failure service
	rdma      rdmaState       // RDMA device
	shared    *shm.Memory     // nil: none
	datareps  fileio.Datareps // that the program has registered
	ports     dynamic.Ports   // that are open
	spawned   dynamic.Spawned // jobs that it starts
	log       *slog.Logger    // nil: nothing is logged

	mu         sync.Mutex
	closers    []func(context.Context) error // see onFinalize
	fromGroup  map[uint64]uint64             // calls of groupID, by what they were for
	linkSetups map[uint64]*linkSetup
	parent     *Comm
	toolsOver  chan struct{} // closed when the profilers of the environment end; nil: none
	finalize   sync.Once
	finErr     error

	finalizing atomic.Bool // Finalize has been called
	finalized  atomic.Bool // and has ended
}

// bootstrap is how ranks find each other: a store of short strings, which Barrier makes visible to
// all. *pmi.Client implements it.
type bootstrap interface {
	Put(ctx context.Context, key, value string) error
	Get(ctx context.Context, key string) (string, error)
	Barrier(ctx context.Context) error
	Abort(code int, msg string) error
	Finalize(ctx context.Context) error
}

// jobTransport is how a World reaches the other ranks.
type jobTransport interface {
	// addr returns the address that peers connect to.
	addr() string
	// connect makes the links to all other ranks, by their addresses. It returns when all are up or
	// one has failed.
	connect(ctx context.Context, addrs []string, key []byte) error
	// connectRemote makes a link to a process of another job; listen lets those of other
	// jobs do so. Both notify the link setup.
	connectRemote(ctx context.Context, m *linkSetup, number int) error
	listen() error
	// polling returns how the transport is polled, see progress, and how goroutines
	// wait for it, see WaiterPool; both may be nil.
	polling(spins bool) (poll func() bool, park func() transport.Parker)
	// close releases everything. Links still up are aborted.
	close() error
}

// Ids of the communicators that exist from the start.
const (
	worldID = 1 << 8
	selfID  = 2 << 8
)

func newWorld(rank, size int, o *options, b bootstrap) *World {
	w := &World{opts: o, boot: b}
	w.eng = p2p.New(&p2p.Config{
		Rank: rank, Size: size, Eager: o.eager, Unexpected: o.unexpected, Streams: o.streams, Method: o.rendezvous,
		PeerError: rankError, OnDown: w.peerDown,
	})
	if o.log != nil {
		w.log = o.log.With(slog.Int("rank", rank))
	}
	w.ft = newFTService(w)
	if o.transport == TransportHybrid {
		w.eng.Bulk = &rdmaBulk{device: w.rdmaDevice, eng: w.eng}
	}
	group := make([]int32, size)
	for i := range group {
		group[i] = int32(i)
	}
	w.world = w.newComm(worldID, group, rank, nil)
	w.world.name = "world"
	w.self = w.newComm(selfID, []int32{int32(rank)}, 0, nil)
	w.self.name = "self"
	self := w.eng.Peers[rank]
	out := &inproc.Link{To: self}
	out.Rev = out
	self.Link = out
	self.Credit.Store(w.eng.Window)
	return w
}

// rankError makes the error of operations with a peer that has failed.
func rankError(p *p2p.Peer, err error) error {
	return &RankError{Rank: p.Rank, Other: p.Remote != nil, Err: err}
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
	c.comm.Init(w.eng, peers, c, c.forget)
	c.readHints()
	c.comm.CheckMembers()
	w.ft.Adopt(ftComm{c})
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
func (w *World) Transport() string { return w.opts.transport }

// onFinalize registers f to be called by Finalize, before the final barrier,
// the last registered first.
func (w *World) onFinalize(f func(context.Context) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closers = append(w.closers, f)
}

// usable returns why no operation can start, or nil.
func (w *World) usable() error { return w.eng.Usable() }

// Finalize ends this rank's part in the job (MPI-4.1, Section 11.2.2): it waits until all ranks
// have called it, and the processes of other jobs that are connected have called it or
// [Comm.Disconnect]; it delivers everything that was sent, and closes the links. It blocks; if ctx
// ends first, links are closed without waiting for the peers. Requests that are not done fail with
// ErrFinalized. It ends the sessions that share the World, too. Only the first call counts.
func (w *World) Finalize(ctx context.Context) error {
	w.finalize.Do(func() {
		w.finalizing.Store(true)
		w.finErr = errors.Join(w.doFinalize(ctx), w.closeTools())
		w.finalized.Store(true)
		w.record(slog.LevelInfo, "finalized", cause(w.finErr))
	})
	return w.finErr
}

func (w *World) doFinalize(ctx context.Context) error {
	var errs []error
	w.mu.Lock()
	closers := w.closers
	w.closers = nil
	w.mu.Unlock()
	w.self.attrs.dropAll()
	w.ports.CloseAll()
	aborted := w.usable() != nil
	for i := len(closers) - 1; i >= 0; i-- {
		if err := closers[i](ctx); err != nil && !aborted {
			errs = append(errs, err)
		}
	}
	if !aborted {
		if err := w.finalBarrier(ctx); err != nil {
			errs = append(errs, fmt.Errorf("finalize: %w", err))
		}
		w.awaitRemotes(ctx)
		errs = append(errs, w.shutdownLinks(ctx))
	}
	w.eng.End(ErrFinalized)
	errs = append(errs, w.transport.close())
	if !aborted {
		errs = append(errs, w.boot.Finalize(ctx))
	}
	return errors.Join(errs...)
}

// finalBarrier waits for all ranks, in a fault-tolerant job for those that are alive.
func (w *World) finalBarrier(ctx context.Context) error {
	if !w.opts.tolerant {
		return w.world.barrier(ctx)
	}
	wait, err := w.ft.Start(ftComm{w.world}, func() *ft.Ballot { return w.world.ballot(0) })
	if err != nil {
		return err
	}
	_, _, err = wait(ctx)
	return err
}

// shutdownLinks shuts the links to all peers down, at the same time.
func (w *World) shutdownLinks(ctx context.Context) error {
	var wg sync.WaitGroup
	peers := w.eng.AllPeers()
	errs := make([]error, len(peers))
	for i, p := range peers {
		if p.Link == nil || p.Failure() != nil && !p.Disconnected.Load() {
			continue
		}
		wg.Go(func() {
			p.Goodbye()
			if err := p.Link.Shutdown(ctx); err != nil && p.Remote == nil && (!w.opts.tolerant || p.Failure() == nil) {
				errs[i] = fmt.Errorf("mpi: closing the link to rank %d: %w", p.Rank, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Abort ends the whole job: the launcher kills all ranks, with the given exit code and message, and
// all operations of this rank fail with ErrAborted (MPI_Abort). It does not block on peers.
func (w *World) Abort(code int, msg string) {
	err := fmt.Errorf("%w by rank %d: %s", ErrAborted, w.eng.Rank, msg)
	w.record(slog.LevelError, "job aborted", slog.Int("code", code), cause(err))
	w.flushTools()
	_ = w.boot.Abort(code, msg) // a launcher that is gone cannot be told
	w.eng.End(err)
	for _, p := range w.eng.AllPeers() {
		if p.Link != nil {
			p.Link.Abort(msg)
		}
	}
}

// join exchanges addresses with the other ranks and connects to them.
func (w *World) join(ctx context.Context, f jobTransport) error {
	w.transport = f
	if err := checkSite(w.Site()); err != nil {
		return err
	}
	size := w.Size()
	c := businessCard{Transport: w.opts.transport, Host: w.host(), Streams: w.opts.streams,
		Window: w.eng.Window, Addr: f.addr(), CPUs: cpuset.Allowed(),
		Site: w.Site()}
	if w.opts.shares() && size > 1 {
		if w.shared = shm.New(&w.eng.Progress.Spinning); w.shared != nil {
			c.Memory = &w.shared.Segment
			defer w.shared.Close()
		}
	}
	if w.Rank() == 0 {
		if err := w.boot.Put(ctx, jobKeyName, newJobKey()); err != nil {
			return err
		}
	}
	if err := w.boot.Put(ctx, businessCardKey(w.Rank()), c.String()); err != nil {
		return err
	}
	if err := w.boot.Barrier(ctx); err != nil {
		return err
	}
	key, err := w.boot.Get(ctx, jobKeyName)
	if err != nil {
		return err
	}
	addrs := make([]string, size)
	memory := make([]*shm.Segment, size)
	w.eng.SetJob(hashid.Of("job", key))
	var local []cpuset.Set
	for r := range addrs {
		s, err := w.boot.Get(ctx, businessCardKey(r))
		if err != nil {
			return err
		}
		pc, err := parseBusinessCard(s)
		if err != nil {
			return fmt.Errorf("mpi: business card of rank %d: %w", r, err)
		}
		if pc.Transport != c.Transport || pc.Streams != c.Streams {
			return fmt.Errorf("%w: rank %d uses %s with %d streams, rank %d %s with %d",
				ErrOption, w.Rank(), c.Transport, c.Streams, r, pc.Transport, pc.Streams)
		}
		if err := checkSite(pc.Site); err != nil {
			return fmt.Errorf("mpi: business card of rank %d: %w", r, err)
		}
		w.eng.Peers[r].Credit.Store(min(pc.Window, p2p.MaxCredit))
		w.eng.Peers[r].Host, w.eng.Peers[r].Site = colorOf(pc.Host), pc.Site
		if pc.Host == c.Host {
			memory[r] = pc.Memory
			local = append(local, pc.CPUs)
		}
		addrs[r] = pc.Addr
	}
	w.setSpin(cpuset.Crowded(c.CPUs, local, runtime.GOMAXPROCS(0)), f)
	if err := f.connect(ctx, addrs, []byte(key)); err != nil {
		return err
	}
	if w.shared != nil {
		w.shared.Connect(w.eng, memory)
		if w.shared.All(size) && w.opts.spin == spinAuto {
			if w.eng.Progress.Choose.Max() == 0 {
				w.shared.SetCrowded()
				w.eng.Progress.SpinAlways(p2p.CrowdedSpin, true)
			} else {
				w.eng.Progress.SpinAlways(p2p.DefaultSpin, false)
			}
		}
	}
	go w.ft.run()
	w.joined.Store(true)
	w.recordJoined()
	w.eng.PrepareRendezvous(w.world.comm.Hints.Load())
	return w.boot.Barrier(ctx)
}

// setSpin decides how long waiting goroutines poll: not at all if that would take the processor
// from a rank that has work, as when there are more ranks than processors.
func (w *World) setSpin(crowded bool, f jobTransport) {
	spin := w.opts.spin
	if spin == spinAuto {
		spin = p2p.DefaultSpin
		if crowded {
			spin = 0
		}
	}
	poll, park := f.polling(spin > 0)
	if b := w.eng.Bulk; b != nil && poll != nil {
		base := poll
		poll = func() bool {
			worked := base()
			return b.Poll() || worked
		}
	}
	if w.shared != nil && poll != nil {
		poll = w.shared.Polling(poll)
		w.eng.Progress.Observer = w.shared
	}
	w.eng.Progress.BacksOff = w.shared == nil // which backs off itself
	w.eng.Progress.Init(poll, spin)
	w.eng.Waiters.Make = park
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

// recordJoined logs that the links to all ranks are up.
func (w *World) recordJoined() {
	w.record(slog.LevelInfo, "links are up", slog.String("transport", w.opts.transport),
		slog.Int("ranks", w.Size()), slog.Int("shared_memory", w.shared.LinkCount()))
}
