package mpi

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/collective"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Comm is a communicator: an ordered group of ranks with matching contexts of its own (MPI_Comm).
// It is safe for concurrent use, except that collective operations (those that all ranks must call)
// on one Comm must be called in the same order on all ranks.
type Comm struct {
	comm p2p.Comm // what the engine needs of it

	w        *World
	group    []int32       // handle of each member, see ProcName
	remote   []int32       // those of the remote group; nil if c is no intercommunicator
	local    *Comm         // of the local group of an intercommunicator
	side     int           // tells the groups of an intercommunicator apart
	children atomic.Uint64 // communicators made from it by all ranks
	groups   atomic.Uint64 // by CreateGroup with this rank as the first member
	prof     Profiler      // of the calls on it; nil: they are not recorded
	topology Topology      // that c has; nil: none. Set before c is given to the program.

	mu        sync.Mutex // guards name, operation and info
	name      string
	operation string // the partitioned message that c was made for, in words; empty for other communicators
	info      Info

	parts   partChannels
	attrs   attributes
	onError atomic.Pointer[ErrorHandler]

	tuning atomic.Pointer[Tuning] // nil: that of the hints
	coll   collective.Comm        // as the collectives see it
}

// Rank returns the caller's rank in c, in the local group of an
// intercommunicator (MPI_Comm_rank).
func (c *Comm) Rank() int { return c.comm.Rank }

// Size returns the number of ranks in c, in the local group of an
// intercommunicator (MPI_Comm_size).
func (c *Comm) Size() int { return len(c.group) }

// World returns the World c belongs to.
func (c *Comm) World() *World { return c.w }

// Group returns the members of c, those of the local group of an
// intercommunicator (MPI_Comm_group).
func (c *Comm) Group() Group { return Group{ranks: c.group} }

// Name returns the name given with SetName (MPI_Comm_get_name).
func (c *Comm) Name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// SetName names c, for messages and traces (MPI_Comm_set_name). It is local.
func (c *Comm) SetName(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name = name
}

// serve says that c was made for one operation on a communicator of that name.
func (c *Comm) serve(name, operation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name, c.operation = name, operation
}

// served returns the operation that c was made for, in words, or "".
func (c *Comm) served() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.operation
}

// SetInfo changes the hints in info and keeps the others (MPI_Comm_set_info). All ranks of c must
// call it with the same hints; it does not communicate.
func (c *Comm) SetInfo(info Info) {
	c.mu.Lock()
	maps.Copy(c.info, info)
	c.readHints()
	c.mu.Unlock()
	c.w.eng.PrepareRendezvous(c.comm.Hints.Load())
}

// Info returns a copy of the hints of c, with the value of InfoRendezvous that is in effect
// (MPI_Comm_get_info).
func (c *Comm) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(Info, len(c.info))
	maps.Copy(out, c.info)
	out[InfoRendezvous] = rendezvousNames[c.comm.Hints.Load().Rendezvous]
	return out
}

// String returns the name, or the size and rank.
func (c *Comm) String() string {
	if n := c.Name(); n != "" {
		return n
	}
	if c.remote != nil {
		return fmt.Sprintf("intercommunicator of %d and %d ranks, rank %d", len(c.group), len(c.remote), c.comm.Rank)
	}
	return fmt.Sprintf("communicator of %d ranks, rank %d", len(c.group), c.comm.Rank)
}

// Dup returns a new communicator with the same group, hints, error handler, topology, and those
// attributes that are copied (MPI_Comm_dup). All ranks of c must call it. It does not communicate
// or block, so an error of a function that copies attributes is returned on this rank only.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) { return c.DupWithInfo(ctx, c.Info()) }

// DupWithInfo is [Comm.Dup] with other hints (MPI_Comm_dup_with_info). All ranks must give the same
// hints. It does not block.
func (c *Comm) DupWithInfo(ctx context.Context, info Info) (*Comm, error) {
	t := c.enter()
	d, err := c.dup(ctx, info)
	if err == nil {
		if c.topology != nil {
			d.topology = c.topology.on(d)
		}
		if err = c.attrs.copyTo(d); err != nil {
			d.Free()
			d = nil
		}
	}
	c.leave(t, "Comm.Dup", NoPeer, 0, 0, err)
	return d, c.raise(err)
}

func (c *Comm) dup(ctx context.Context, info Info) (*Comm, error) {
	if err := c.comm.Usable(); err != nil {
		return nil, err
	}
	// A context that has ended on this rank only must not make it lose count.
	id := childID(c.comm.ID, c.children.Add(1))
	if c.remote != nil {
		return c.child(c.w.newIntercomm(id, c.group, c.comm.Rank, c.remote, c.side, info)), nil
	}
	return c.child(c.w.newComm(id, c.group, c.comm.Rank, info)), nil
}

// private is Dup for the use of the library: calls on the result are not profiled.
func (c *Comm) private(ctx context.Context, use string) (*Comm, error) {
	d, err := c.dup(ctx, c.Info())
	if err == nil {
		d.prof = nil
		d.SetName(use + " of " + strings.Trim(string(appendComm(nil, c)), `"`))
		d.onError.Store(nil)
	}
	return d, err
}

// Split divides c: the ranks that give the same color form a new communicator, ordered by key, then
// by rank in c (MPI-4.1, Section 7.4.2). A rank with color [Undefined] gets nil. All ranks of c
// must call it; it blocks until all have. Of an intercommunicator it makes intercommunicators of
// the ranks of both groups with the same color; ranks with a color that no rank of the other group
// gave get nil.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	if err := c.comm.Usable(); err != nil {
		return nil, err
	}
	if c.remote != nil {
		return c.splitInter(ctx, color, key)
	}
	id := childID(c.comm.ID, c.children.Add(1))
	t := c.enter()
	all, err := c.allgatherPairs(ctx, int64(color), int64(key))
	if err == nil {
		err = checkColors(all)
	}
	c.leave(t, "Comm.Split", NoPeer, 0, 0, err)
	if err != nil {
		return nil, err
	}
	if color == Undefined {
		return nil, nil
	}
	group, rank := colorGroup(c.group, all, color, c.comm.Rank)
	return c.child(c.w.newComm(id, group, rank, c.Info())), nil
}

// checkColors returns an error for an impossible color, the same on all ranks.
func checkColors(all [][2]int64) error {
	for rank, x := range all {
		if x[0] < 0 && x[0] != Undefined {
			return fmt.Errorf("%w: color %d of rank %d", ErrOption, x[0], rank)
		}
	}
	return nil
}

// colorGroup returns the members of group that gave a color, in the order of their keys, and the
// index of member rank among them, or -1.
func colorGroup(group []int32, all [][2]int64, color, rank int) ([]int32, int) {
	var members []int
	for r := range all {
		if all[r][0] == int64(color) {
			members = append(members, r)
		}
	}
	slices.SortStableFunc(members, func(a, b int) int { return cmp.Compare(all[a][1], all[b][1]) })
	out := make([]int32, len(members))
	for i, r := range members {
		out[i] = group[r]
	}
	return out, slices.Index(members, rank)
}

// Create makes a communicator of the ranks in g, which must be a subset of c's group and the same
// on all its members (MPI_Comm_create). All ranks of c must call it; it blocks until all have.
// Ranks outside g get nil. It fails on all ranks alike; groups that differ give ErrNotSame. Of an
// intercommunicator it makes one of both groups that are given, or nil if one of them is empty.
func (c *Comm) Create(ctx context.Context, g Group) (*Comm, error) {
	if err := c.comm.Usable(); err != nil {
		return nil, err
	}
	var bad error
	places := make([]int, len(g.ranks))
	for i, r := range g.ranks {
		if places[i] = slices.Index(c.group, r); places[i] < 0 {
			bad = fmt.Errorf("%w: group member %d", ErrRank, r)
		}
	}
	err := c.consent(ctx, bad, places)
	if c.remote != nil {
		return c.createInter(ctx, g, err)
	}
	if err != nil {
		return nil, err
	}
	return c.create(g), nil
}

// create is Create of a group that is known to be the same everywhere.
func (c *Comm) create(g Group) *Comm {
	id := childID(c.comm.ID, c.children.Add(1))
	rank := slices.Index(g.ranks, c.group[c.comm.Rank])
	if rank < 0 {
		return nil
	}
	return c.child(c.w.newComm(id, slices.Clone(g.ranks), rank, c.Info()))
}

// Abort ends the whole job: the launcher kills all ranks, with the given exit code and message, and
// all operations of this rank fail (MPI_Abort).
func (c *Comm) Abort(code int, msg string) { c.w.Abort(code, msg) }

// child lets d, which was made from c, inherit what it does.
func (c *Comm) child(d *Comm) *Comm {
	d.onError.Store(c.onError.Load())
	return d
}

// childID derives the id of the nth communicator made from the one with id parent. All members
// count the collective calls on the parent alike, so they compute the same id without a message.
// The id is a 62-bit hash: two communicators have the same one with a probability of 2^-62.
func childID(parent, n uint64) uint64 {
	x := parent ^ n*0x9e3779b97f4a7c15
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return x &^ uint64(p2p.SlotMask)
}

func (c *Comm) attributes() *attributes { return &c.attrs }
