package mpi

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/coll"
)

// nonblocking is the context of nonblocking collectives, by which begin knows them. It is never done.
var nonblocking context.Context = nonblockingContext{context.Background()}

type nonblockingContext struct{ context.Context }

// collState is what the collectives keep per communicator.
type collState struct {
	calls [2]atomic.Uint32 // collectives started: blocking, nonblocking
	table atomic.Pointer[Tuning]
	sites atomic.Pointer[coll.Sites] // of the ranks that messages go to; nil: not asked for yet
	apart atomic.Int32               // see sitesApart; 0: not asked for yet
}

// flavor is the index of calls for the collectives with a context.
func (*collState) flavor(ctx context.Context) int {
	if ctx == nonblocking {
		return 1
	}
	return 0
}

// nextTag returns the tag of the next collective. Ranks start the collectives of a communicator in the same order,
// so they agree on it; those of 2^30 collectives ago are long done. Blocking collectives never match nonblocking ones
// (MPI-4.1, Section 6.12) and have other tags, so that programs run that order the former differently among the
// latter on some ranks: the standard forbids that, but other implementations do not mind.
func (s *collState) nextTag(ctx context.Context) int {
	f := s.flavor(ctx)
	return int((s.calls[f].Add(1)<<1 | uint32(f)) & math.MaxInt32)
}

// take reserves the next n tags for the parts of a collective. All of them are
// used up when done is called, however many the parts took.
func (s *collState) take(ctx context.Context, n uint32) (done func()) {
	calls := &s.calls[s.flavor(ctx)]
	end := calls.Load() + n
	return func() { calls.Store(end) }
}
