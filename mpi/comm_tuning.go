package mpi

import "github.com/weftstack/weft/mpi/internal/coll"

// Tuning returns the table in effect on c (MPI_T_cvar_read): the one that SetTuning
// gave, else that of the info key, else the default. It must not be changed.
func (c *Comm) Tuning() *Tuning {
	if t := c.tuning.Load(); t != nil {
		return t
	}
	t := defaultTuning()
	if text := c.hint(InfoTuning); text != "" {
		// An unreadable hint has no effect (MPI-4.1, Section 10).
		if own, err := ParseTuning(text); err == nil {
			t = own
		}
	}
	c.tuning.CompareAndSwap(nil, t)
	return c.tuning.Load()
}

// SetTuning makes the collectives that are started on c from now on use t; nil
// returns to the default (MPI_T_cvar_write). All ranks must do so between the
// same collectives. It does not communicate. t must not be changed afterwards.
func (c *Comm) SetTuning(t *Tuning) {
	if t != nil {
		t = &Tuning{Deterministic: t.Deterministic, table: t.table.Clone()}
	}
	c.tuning.Store(t)
}

// hint returns one info value of c.
func (c *Comm) hint(key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info[key]
}

// pickAlgorithm chooses the algorithm of a collective of some bytes.
func (c *Comm) pickAlgorithm(s *coll.Schedule, kind coll.Kind, bytes int) (*coll.Algorithm, error) {
	t := c.Tuning()
	return t.table.Pick(s, kind, bytes, t.Deterministic)
}
