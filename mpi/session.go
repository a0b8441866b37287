package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/hashid"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Process sets that every Session has (MPI-4.1, Section 11.3.2).
const (
	PsetWorld = "mpi://WORLD" // all processes of the job
	PsetSelf  = "mpi://SELF"  // the caller alone
)

// A Session is a use of MPI within a process, with communicators of its own (MPI-4.1, Section
// 11.3): a library can use MPI independent of what the program does with it. Its methods may be
// called from any goroutine.
type Session struct {
	w     *World
	info  Info
	ended atomic.Bool
	last  func(ctx context.Context) error // called by Finalize; may be nil

	mu    sync.Mutex
	comms []*Comm
}

// SessionInit begins a session of this process (MPI_Session_init). The first one joins the job as
// [Init] does, with these options, unless the program has called Init, and blocks until all ranks
// have joined; later ones share its links, and their options have no effect. After the last
// session, or the World that Init returned, has been finalized, SessionInit returns ErrFinalized.
// Of the hints it knows "thread_level", the name of one of MPI's four levels, and returns ErrOption
// for another value. See also [World.NewSession].
func SessionInit(ctx context.Context, info Info, opts ...Option) (*Session, error) {
	if err := checkThreadLevel(info); err != nil {
		return nil, err
	}
	var s *Session
	w, err := joinOnce(ctx, opts, func() error {
		var err error
		if s, err = process.w.NewSession(info); err == nil {
			process.sessions++
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.last = func(ctx context.Context) error {
		if leaveOnce() {
			return w.Finalize(ctx)
		}
		return nil
	}
	return s, nil
}

// threadLevel is the hint of sessions for what threads are to do (MPI-4.1, Section 11.3.1). Every
// session provides MPI_THREAD_MULTIPLE.
const threadLevel = "thread_level"

func checkThreadLevel(info Info) error {
	switch v, set := info[threadLevel]; {
	case !set:
		return nil
	case v == "MPI_THREAD_SINGLE", v == "MPI_THREAD_FUNNELED", v == "MPI_THREAD_SERIALIZED", v == "MPI_THREAD_MULTIPLE":
		return nil
	default:
		return fmt.Errorf("%w: hint %s=%q is no level of thread support", ErrOption, threadLevel, v)
	}
}

// NewSession begins a session on the links of w (MPI_Session_init). It is
// local. The session must not be used after w.Finalize. Errors to test for: ErrOption for
// a wrong "thread_level" among the hints.
func (w *World) NewSession(info Info) (*Session, error) {
	if err := checkThreadLevel(info); err != nil {
		return nil, err
	}
	if err := w.usable(); err != nil {
		return nil, err
	}
	return &Session{w: w, info: maps.Clone(info)}, nil
}

func (s *Session) usable() error {
	if s.ended.Load() {
		return fmt.Errorf("%w: session", ErrFinalized)
	}
	return s.w.usable()
}

// Info returns a copy of the hints that the session was begun with, and
// "thread_level" (MPI_Session_get_info).
func (s *Session) Info() Info {
	i := Info{threadLevel: "MPI_THREAD_MULTIPLE"}
	maps.Copy(i, s.info)
	return i
}

// Psets returns the names of the process sets, in order (MPI_Session_get_num_psets,
// MPI_Session_get_nth_pset).
func (s *Session) Psets() []string { return []string{PsetWorld, PsetSelf} }

// PsetInfo describes a process set: "mpi_size" is the number of its members
// (MPI_Session_get_pset_info).
func (s *Session) PsetInfo(name string) (Info, error) {
	g, err := s.Group(name)
	if err != nil {
		return nil, err
	}
	return Info{"mpi_size": strconv.Itoa(g.Size())}, nil
}

// Group returns the members of a process set (MPI_Group_from_session_pset). It
// is local.
func (s *Session) Group(pset string) (Group, error) {
	if err := s.usable(); err != nil {
		return Group{}, err
	}
	switch pset {
	case PsetWorld:
		return s.w.world.Group(), nil
	case PsetSelf:
		return s.w.self.Group(), nil
	}
	return Group{}, fmt.Errorf("%w: no process set %q", ErrOption, pset)
}

// CommFromGroup makes a communicator of the members of g, which all call it with the same tag and
// hints (MPI_Comm_create_from_group). Calls for the same group that are in progress at the same
// time need different tags. It does not communicate.
func (s *Session) CommFromGroup(ctx context.Context, g Group, tag string, info Info) (*Comm, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rank := slices.Index(g.ranks, int32(s.w.eng.Rank))
	if rank < 0 {
		return nil, fmt.Errorf("%w: the caller is no member of the group", ErrRank)
	}
	id := s.w.groupID("comm", tag, s.w.eng.AppendNames(nil, g.ranks))
	return s.made(s.w.newComm(id, slices.Clone(g.ranks), rank, info)), nil
}

// IntercommFromGroups makes an intercommunicator of two groups without common members
// (MPI_Intercomm_create_from_groups). All members of both must call it with the same tag and hints;
// only the leader, a rank of the local group, need give the remote group. It blocks until all members of
// the local group have called it, and fails on all of them if it does on one.
func (s *Session) IntercommFromGroups(
	ctx context.Context, local Group, leader int, remote Group, tag string, info Info,
) (*Comm, error) {
	c, err := s.CommFromGroup(ctx, local, "local\x00"+tag, nil)
	if err != nil {
		return nil, err
	}
	defer c.Free()
	bad := c.comm.CheckPeer(p2p.SlotComm, leader)
	e := s.w.eng
	ours, theirs := e.AppendNames(nil, local.ranks), e.AppendNames(nil, remote.ranks)
	var n uint64
	var counted []byte
	if c.comm.Rank == leader {
		if len(theirs) == 0 || commonNames(ours, theirs) {
			bad = fmt.Errorf("%w: groups that are empty or have common members", ErrRank)
		} else { // the remote group counts the call, whatever the other members of this one say
			_, counted = orderedNames(ours, theirs)
			n = s.w.countGroup("intercomm", tag, counted, 0)
		}
	}
	why := c.consent(ctx, bad, leader)
	if why != nil { // the call counts all the same
		if leader, err = c.agreeOnLeader(ctx, leader); err != nil || leader < 0 {
			return nil, why
		}
	}
	said := append(binary.BigEndian.AppendUint64(nil, n), theirs...)
	if said, err = (leaders{local: c, leader: leader}).spread(ctx, said); err != nil {
		return nil, orFirst(why, err)
	}
	if len(said) < 8 {
		return nil, fmt.Errorf("%w: group of %d bytes", ErrProtocol, len(said))
	}
	n, theirs = binary.BigEndian.Uint64(said), said[8:]
	side, both := orderedNames(ours, theirs)
	if n > 0 && !bytes.Equal(both, counted) {
		s.w.countGroup("intercomm", tag, both, n)
	}
	if why != nil {
		return nil, why
	}
	other, err := e.ParseNames(theirs)
	if err != nil {
		return nil, err
	}
	id := childID(hashid.Of("intercomm", tag, string(both)), n)
	return s.made(s.w.newIntercomm(id, slices.Clone(local.ranks), c.comm.Rank, other, side, info)), nil
}

// orderedNames returns the names of the members of two groups, in an order that is the same for both, and which of
// them the first group is.
func orderedNames(ours, theirs []byte) (side int, both []byte) {
	if slices.Compare(ours, theirs) > 0 {
		return 1, slices.Concat(theirs, ours)
	}
	return 0, slices.Concat(ours, theirs)
}

// made records c as one to free at the end of the session.
func (s *Session) made(c *Comm) *Comm {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.comms = slices.DeleteFunc(s.comms, func(c *Comm) bool { return c.comm.Freed.Load() })
	s.comms = append(s.comms, c)
	return c
}

// Finalize ends the session and frees the communicators made from groups in it
// (MPI_Session_finalize). If it is the last session of [SessionInit], and the program has not
// called Init, it ends this process's part in the job like [World.Finalize], and blocks until all
// other ranks do so, too. Only the first call counts.
func (s *Session) Finalize(ctx context.Context) error {
	if !s.ended.CompareAndSwap(false, true) {
		return nil
	}
	s.mu.Lock()
	comms := s.comms
	s.comms = nil
	s.mu.Unlock()
	if s.last != nil {
		// What was sent on them must arrive: the barrier of the World comes first.
		if err := s.last(ctx); err != nil {
			return err
		}
	}
	for _, c := range comms {
		c.Free()
	}
	return nil
}

// Abort ends the whole job: see [World.Abort] (MPI_Abort).
func (s *Session) Abort(code int, msg string) { s.w.Abort(code, msg) }

// groupID returns the id of the next communicator made for a tag of what is
// described by members. All of its members count such calls alike.
func (w *World) groupID(kind, tag string, members []byte) uint64 {
	return childID(hashid.Of(kind, tag, string(members)), w.countGroup(kind, tag, members, 0))
}

// countGroup counts a communicator made for a tag of what is described by members. It returns its number, which is
// least at least.
func (w *World) countGroup(kind, tag string, members []byte, least uint64) uint64 {
	h := hashid.Of(kind, tag, string(members))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fromGroup == nil {
		w.fromGroup = make(map[uint64]uint64)
	}
	w.fromGroup[h] = max(w.fromGroup[h]+1, least)
	return w.fromGroup[h]
}

// spread gives all ranks of the group the message of the leader.
func (x leaders) spread(ctx context.Context, said []byte) ([]byte, error) {
	c := x.local
	if c.comm.Rank != x.leader {
		return x.recvResult(ctx, maxLeaderMessage)
	}
	for r := range c.group {
		if r == c.comm.Rank {
			continue
		}
		if err := x.sendResult(ctx, r, said, nil); err != nil {
			return nil, err
		}
	}
	return said, nil
}
