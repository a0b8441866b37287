package mpi

import (
	"math"
	"sync/atomic"
)

// collState is what the collectives keep per communicator.
type collState struct {
	calls atomic.Uint32 // collectives started
	table atomic.Pointer[Tuning]
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

// tuning returns the table in effect on c: the one that SetTuning gave, else
// that of the info key, else the default.
func (s *collState) tuning(c *Comm) *Tuning {
	if t := s.table.Load(); t != nil {
		return t
	}
	t := defaultTuning()
	if text := c.hint(InfoTuning); text != "" {
		// An unreadable hint has no effect (MPI-4.1, Section 10).
		if own, err := ParseTuning(text); err == nil {
			t = own
		}
	}
	s.table.CompareAndSwap(nil, t)
	return s.table.Load()
}

// hint returns one info value of c.
func (c *Comm) hint(key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info[key]
}
