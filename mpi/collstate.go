package mpi

import (
	"math"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/coll"
)

// collState is what the collectives keep per communicator.
type collState struct {
	calls atomic.Uint32 // collectives started
	table atomic.Pointer[Tuning]
	sites atomic.Pointer[coll.Sites] // of the ranks that messages go to; nil: not asked for yet
	apart atomic.Int32               // see sitesApart; 0: not asked for yet
}

// nextTag returns the tag of the next collective. Ranks start the collectives
// of a communicator in the same order, so they agree on it; those of 2^31
// collectives ago are long done.
func (s *collState) nextTag() int { return int(s.calls.Add(1) & math.MaxInt32) }

// take reserves the next n tags for the parts of a collective. All of them are
// used up when done is called, however many the parts took.
func (s *collState) take(n uint32) (done func()) {
	end := s.calls.Load() + n
	return func() { s.calls.Store(end) }
}
