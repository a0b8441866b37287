package cbinding

import (
	"math"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// PsendInit is MPI_Psend_init. The hints of info are not used.
func PsendInit(buf uintptr, partitions, count int, datatype Handle, dest, tag int, comm, info Handle,
	request uintptr) int {
	const proc = "MPI_Psend_init"
	n, bad := partitionedCount(partitions, count)
	var m outgoing
	err := m.set(buf, n, datatype, dest, tag, comm)
	if err == nil {
		err = bad
	}
	if err == nil {
		err = checkHints(info, request)
	}
	if err != nil {
		return doneOf(m.c.obj(), proc, err)
	}
	p, err := m.c.PsendInit(m.b, partitions, m.rank, m.tag)
	if err != nil {
		return m.c.done(proc, err)
	}
	return m.c.prepared(proc, request, &requestType{o: &m.c.object, start: p.Start, drop: p.Free, sends: p})
}

// PrecvInit is MPI_Precv_init. The hints of info are not used.
func PrecvInit(buf uintptr, partitions, count int, datatype Handle, source, tag int, comm, info Handle,
	request uintptr) int {
	const proc = "MPI_Precv_init"
	n, bad := partitionedCount(partitions, count)
	// Wildcards are not allowed, so the arguments are those of a send.
	var m outgoing
	err := m.set(buf, n, datatype, source, tag, comm)
	if err == nil {
		err = bad
	}
	if err == nil {
		err = checkHints(info, request)
	}
	if err != nil {
		return doneOf(m.c.obj(), proc, err)
	}
	p, err := m.c.PrecvInit(m.b, partitions, m.rank, m.tag)
	if err != nil {
		return m.c.done(proc, err)
	}
	return m.c.prepared(proc, request, &requestType{o: &m.c.object, start: p.Start, drop: p.Free, recvs: p})
}

// partitionedCount returns the items of all partitions of count items each.
func partitionedCount(partitions, count int) (int, error) {
	switch {
	case partitions < 1 || partitions > mpi.MaxPartitions:
		return 0, argError(abi.ErrArg, "partitions", partitions, "is not between 1 and the most, 1048576")
	case count < 0:
		return 0, negative("count", count)
	case count > math.MaxInt/partitions:
		return 0, argError(abi.ErrCount, "count", count, "is too much for so many partitions")
	}
	return partitions * count, nil
}

// checkHints checks an info that is not used, and where a request is stored.
func checkHints(info Handle, request uintptr) error {
	if info != abi.InfoNull {
		if _, err := infos.lookup(info); err != nil {
			return err
		}
	}
	return out("request", request)
}

// Pready is MPI_Pready.
func Pready(partition int, request Handle) int {
	const proc = "MPI_Pready"
	q, err := partitionedSend(request)
	if err != nil {
		return fail(proc, err)
	}
	if err := q.sends.Pready(partition); err != nil {
		return doneOf(q.o, proc, err)
	}
	return 0
}

// PreadyRange is MPI_Pready_range.
func PreadyRange(partitionLow, partitionHigh int, request Handle) int {
	const proc = "MPI_Pready_range"
	q, err := partitionedSend(request)
	if err != nil {
		return fail(proc, err)
	}
	if partitionHigh < partitionLow {
		err = argError(abi.ErrArg, "partition_high", partitionHigh, "is less than partition_low")
	} else {
		err = q.sends.PreadyRange(partitionLow, partitionHigh)
	}
	return doneOf(q.o, proc, err)
}

// PreadyList is MPI_Pready_list.
func PreadyList(length int, partitions uintptr, request Handle) int {
	const proc = "MPI_Pready_list"
	q, err := partitionedSend(request)
	if err != nil {
		return fail(proc, err)
	}
	err = negative("length", length)
	if err == nil && partitions == 0 && length > 0 {
		err = nullError("array_of_partitions")
	}
	if err == nil {
		for _, i := range array[int32](partitions, length) {
			if err = q.sends.Pready(int(i)); err != nil {
				break
			}
		}
	}
	return doneOf(q.o, proc, err)
}

// partitionedSend returns the request of MPI_Psend_init, which is active.
func partitionedSend(h Handle) (*request, error) {
	q, err := requestOf(h)
	switch {
	case err != nil:
		return nil, err
	case q.sends == nil:
		return nil, argError(abi.ErrRequest, "request", h, "is not of MPI_Psend_init")
	case q.r == nil:
		return nil, argError(abi.ErrRequest, "request", h, "is inactive")
	}
	return q, nil
}

// Parrived is MPI_Parrived. A request that is inactive, or MPI_REQUEST_NULL, has arrived.
func Parrived(request Handle, partition int, flag uintptr) int {
	const proc = "MPI_Parrived"
	q, err := requestAtOf(request)
	if err == nil {
		err = out("flag", flag)
	}
	if err == nil && q != nil && q.recvs == nil {
		err = argError(abi.ErrRequest, "request", request, "is not of MPI_Precv_init")
	}
	if err != nil {
		return fail(proc, err)
	}
	if !q.active() {
		return fail(proc, setFlag(flag, true))
	}
	arrived, err := q.recvs.Parrived(partition)
	if err != nil {
		return doneOf(q.o, proc, err)
	}
	return doneOf(q.o, proc, setFlag(flag, arrived))
}
