package mpi

// Free gives up c. Operations that wait on it, nonblocking ones and those that block in other
// goroutines, complete as if c were not freed (MPI-4.1, Section 7.4.3); later ones return ErrFreed.
// Messages that no receive waits for are dropped. It is local and does not block.
func (c *Comm) Free() {
	if c == c.w.world || c == c.w.self || !c.comm.Freed.CompareAndSwap(false, true) {
		return
	}
	c.attrs.dropAll()
	c.comm.Drop()
}

// forget releases what c has in addition to its contexts.
func (c *Comm) forget() {
	c.w.job.FT.Forget(c.comm.ID)
	c.w.eng.Release(c.comm.Peers)
	if c.local != nil {
		c.local.Free()
	}
}
