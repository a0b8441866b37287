package mpi

// Nonblocking collectives (MPI-4.1, Section 6.12) start the operation of their blocking forms and
// return at once; a goroutine carries it on, so it makes progress independent of the program.
// Buffers must not be touched until the request is done. All ranks must start the collectives of a
// communicator, blocking or not, in the same order; any number may be in progress. Bad arguments
// are returned at once.

// Ibarrier starts [Barrier] (MPI_Ibarrier).
func Ibarrier(c *Comm) (*Request, error) { return start(c.barrierCall(nonblocking)) }

// Ibcast starts [Bcast] (MPI_Ibcast).
func Ibcast[T Element](c *Comm, buf []T, root int) (*Request, error) {
	return c.Ibcast(Elements(buf), root)
}

// Ireduce starts [Reduce] (MPI_Ireduce).
func Ireduce[T Element](c *Comm, send, recv []T, op Op[T], root int) (*Request, error) {
	return start(c.reduceCall(nonblocking, CollReduce, check(send, recv), op.reducer(), root))
}

// Iallreduce starts [Allreduce] (MPI_Iallreduce).
func Iallreduce[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	return start(c.reduceCall(nonblocking, CollAllreduce, check(send, recv), op.reducer(), -1))
}

// IreduceScatter starts [ReduceScatter] (MPI_Ireduce_scatter).
func IreduceScatter[T Element](c *Comm, send, recv []T, counts []int, op Op[T]) (*Request, error) {
	return start(c.reduceScatterCall(nonblocking, CollReduceScatter, check(send, recv), counts, op.reducer()))
}

// IreduceScatterBlock starts [ReduceScatterBlock] (MPI_Ireduce_scatter_block).
func IreduceScatterBlock[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	return start(c.reduceScatterCall(nonblocking, CollReduceScatterBlock, check(send, recv), nil, op.reducer()))
}

// Iscan starts [Scan] (MPI_Iscan).
func Iscan[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	return start(c.reduceCall(nonblocking, CollScan, check(send, recv), op.reducer(), -1))
}

// Iexscan starts [Exscan] (MPI_Iexscan).
func Iexscan[T Element](c *Comm, send, recv []T, op Op[T]) (*Request, error) {
	return start(c.reduceCall(nonblocking, CollExscan, check(send, recv), op.reducer(), -1))
}

// Igather starts [Gather] (MPI_Igather).
func Igather[T Element](c *Comm, send, recv []T, root int) (*Request, error) {
	return c.Igather(Elements(send), Elements(recv), root)
}

// Igatherv starts [Gatherv] (MPI_Igatherv).
func Igatherv[T Element](c *Comm, send, recv []T, counts, displs []int, root int) (*Request, error) {
	return c.Igatherv(Elements(send), Elements(recv), counts, displs, root)
}

// Iscatter starts [Scatter] (MPI_Iscatter).
func Iscatter[T Element](c *Comm, send, recv []T, root int) (*Request, error) {
	return c.Iscatter(Elements(send), Elements(recv), root)
}

// Iscatterv starts [Scatterv] (MPI_Iscatterv).
func Iscatterv[T Element](c *Comm, send, recv []T, counts, displs []int, root int) (*Request, error) {
	return c.Iscatterv(Elements(send), Elements(recv), counts, displs, root)
}

// Iallgather starts [Allgather] (MPI_Iallgather).
func Iallgather[T Element](c *Comm, send, recv []T) (*Request, error) {
	return c.Iallgather(Elements(send), Elements(recv))
}

// Iallgatherv starts [Allgatherv] (MPI_Iallgatherv).
func Iallgatherv[T Element](c *Comm, send, recv []T, counts, displs []int) (*Request, error) {
	return c.Iallgatherv(Elements(send), Elements(recv), counts, displs)
}

// Ialltoall starts [Alltoall] (MPI_Ialltoall).
func Ialltoall[T Element](c *Comm, send, recv []T) (*Request, error) {
	return c.Ialltoall(Elements(send), Elements(recv))
}

// Ialltoallv starts [Alltoallv] (MPI_Ialltoallv).
func Ialltoallv[T Element](
	c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int,
) (*Request, error) {
	return c.Ialltoallv(Elements(send), scounts, sdispls, Elements(recv), rcounts, rdispls)
}

// start performs a prepared call in the background.
func start(k *collective, err error) (*Request, error) {
	if err != nil {
		return nil, err
	}
	c := k.comm.c
	var r *Request
	if c.prof != nil {
		r = startRecorded(k)
	} else {
		r = goRequest(c.w, k.inBackground)
	}
	r.comm = c
	return r, nil
}

// inBackground runs the call for goRequest. If an operator of the program does not
// return, it withdraws what is under way: the buffers are the program's again.
func (k *collective) inBackground() (Status, error) {
	returned := false
	defer func() {
		if !returned {
			_ = k.comm.abandon(ErrGoexit)
		}
	}()
	err := k.end()
	returned = true
	return Status{}, err
}
