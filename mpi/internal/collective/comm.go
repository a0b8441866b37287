package collective

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Nonblocking is the context of nonblocking collectives, by which begin knows them. It is never done.
var Nonblocking context.Context = nonblockingContext{context.Background()}

type nonblockingContext struct{ context.Context }

// Comm is a communicator as the collectives on it see it.
type Comm struct {
	P2P   *p2p.Comm // messages to its ranks; of an intercommunicator, to those of the remote group
	Local *Comm     // of the local group of an intercommunicator; nil: it is none
	// Pick chooses the algorithm of a collective of some bytes.
	Pick func(s *coll.Schedule, kind coll.Kind, bytes int) (*coll.Algorithm, error)

	calls [2]atomic.Uint32           // collectives started: blocking, nonblocking
	sites atomic.Pointer[coll.Sites] // of the ranks that messages go to; nil: not asked for yet
	apart atomic.Int32               // see sitesApart; 0: not asked for yet
}

// Size returns the number of ranks of the local group.
func (c *Comm) Size() int {
	if c.Local != nil {
		return len(c.Local.P2P.Peers)
	}
	return len(c.P2P.Peers)
}

// Sites returns where the ranks are that messages go to, or nil if they are at one site. It is
// the same on all ranks.
func (c *Comm) Sites() *coll.Sites {
	s := c.sites.Load()
	if s == nil {
		s = coll.NewSites(len(c.P2P.Peers), func(rank int) string { return c.P2P.Peers[rank].Site })
		c.sites.Store(s)
	}
	if len(s.Ranks) < 2 {
		return nil
	}
	return s
}

// flavor is the index of calls for the collectives with a context.
func (*Comm) flavor(ctx context.Context) int {
	if ctx == Nonblocking {
		return 1
	}
	return 0
}

// nextTag returns the tag of the next collective. Ranks start the collectives of a communicator in the same order,
// so they agree on it; those of 2^30 collectives ago are long done. Blocking collectives never match nonblocking ones
// (MPI-4.1, Section 6.12) and have other tags, so that programs run that order the former differently among the
// latter on some ranks: the standard forbids that, but other implementations do not mind.
func (c *Comm) nextTag(ctx context.Context) int {
	f := c.flavor(ctx)
	return int((c.calls[f].Add(1)<<1 | uint32(f)) & math.MaxInt32)
}

// interParts is how many collectives of the local group are part of one of an intercommunicator; 0 for other kinds.
var interParts = [coll.Kinds]uint32{
	coll.Barrier: 2, coll.Bcast: 1, coll.Reduce: 1, coll.Allreduce: 2, coll.Allgather: 2, coll.Allgatherv: 2,
	coll.ReduceScatter: 2, coll.ReduceScatterBlock: 2,
}

// Skip uses up the tags of a collective that the caller refuses before it begins: the other ranks count it.
func (c *Comm) Skip(ctx context.Context, kind coll.Kind) {
	c.nextTag(ctx)
	if kind == coll.Neighbor {
		c.nextTag(ctx)
	}
	if c.Local != nil && int(kind) < len(interParts) {
		c.Local.take(ctx, interParts[kind])()
	}
}

// take reserves the next n tags for the parts of a collective. All of them are
// used up when done is called, however many the parts took.
func (c *Comm) take(ctx context.Context, n uint32) (done func()) {
	calls := &c.calls[c.flavor(ctx)]
	end := calls.Load() + n
	return func() { calls.Store(end) }
}
