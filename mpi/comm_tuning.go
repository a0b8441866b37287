package mpi

// Tuning returns the table in effect on c (MPI_T_cvar_read): the one that SetTuning
// gave, else that of the info key, else the default. It must not be changed.
func (c *Comm) Tuning() *Tuning {
	if t := c.coll.table.Load(); t != nil {
		return t
	}
	t := defaultTuning()
	if text := c.hint(InfoTuning); text != "" {
		// An unreadable hint has no effect (MPI-4.1, Section 10).
		if own, err := ParseTuning(text); err == nil {
			t = own
		}
	}
	c.coll.table.CompareAndSwap(nil, t)
	return c.coll.table.Load()
}

// SetTuning makes the collectives that are started on c from now on use t; nil
// returns to the default (MPI_T_cvar_write). All ranks must do so between the
// same collectives. It does not communicate. t must not be changed afterwards.
func (c *Comm) SetTuning(t *Tuning) {
	if t != nil {
		t = &Tuning{Deterministic: t.Deterministic, table: t.table.Clone()}
	}
	c.coll.table.Store(t)
}

// hint returns one info value of c.
func (c *Comm) hint(key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info[key]
}
