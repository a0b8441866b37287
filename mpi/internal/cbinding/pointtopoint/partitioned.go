package pointtopoint

import (
	"math"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// PsendInit is MPI_Psend_init. The hints of info are not used.
func PsendInit(buf uintptr, partitions, count int, datatype abi.Handle, dest, tag int, comm, info abi.Handle,
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
		return cbinding.DoneOf(commObject(m.c), proc, err)
	}
	p, err := m.c.PsendInit(m.b, partitions, m.rank, m.tag)
	if err != nil {
		return m.c.Done(proc, err)
	}
	return m.c.Prepared(proc, request, &cbinding.Request{Owner: &m.c.Object, Start: p.Start, Drop: p.Free, Sends: p})
}

// PrecvInit is MPI_Precv_init. The hints of info are not used.
func PrecvInit(buf uintptr, partitions, count int, datatype abi.Handle, source, tag int, comm, info abi.Handle,
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
		return cbinding.DoneOf(commObject(m.c), proc, err)
	}
	p, err := m.c.PrecvInit(m.b, partitions, m.rank, m.tag)
	if err != nil {
		return m.c.Done(proc, err)
	}
	return m.c.Prepared(proc, request, &cbinding.Request{Owner: &m.c.Object, Start: p.Start, Drop: p.Free, Recvs: p})
}

// partitionedCount returns the items of all partitions of count items each.
func partitionedCount(partitions, count int) (int, error) {
	switch {
	case partitions < 1 || partitions > mpi.MaxPartitions:
		return 0, cbinding.ArgError(abi.ErrArg, "partitions", partitions, "is not between 1 and the most, 1048576")
	case count < 0:
		return 0, cbinding.Negative("count", count)
	case count > math.MaxInt/partitions:
		return 0, cbinding.ArgError(abi.ErrCount, "count", count, "is too much for so many partitions")
	}
	return partitions * count, nil
}

// checkHints checks an info that is not used, and where a request is stored.
func checkHints(info abi.Handle, request uintptr) error {
	if info != abi.InfoNull {
		if _, err := cbinding.Infos.Lookup(info); err != nil {
			return err
		}
	}
	return cbinding.RequestRoom(request)
}

// Pready is MPI_Pready.
func Pready(partition int, request abi.Handle) int {
	const proc = "MPI_Pready"
	q, err := partitionedSend(request)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if err := q.Sends.Pready(partition); err != nil {
		return cbinding.DoneOf(q.Owner, proc, err)
	}
	return 0
}

// PreadyRange is MPI_Pready_range.
func PreadyRange(partitionLow, partitionHigh int, request abi.Handle) int {
	const proc = "MPI_Pready_range"
	q, err := partitionedSend(request)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if partitionHigh < partitionLow {
		err = cbinding.ArgError(abi.ErrArg, "partition_high", partitionHigh, "is less than partition_low")
	} else {
		err = q.Sends.PreadyRange(partitionLow, partitionHigh)
	}
	return cbinding.DoneOf(q.Owner, proc, err)
}

// PreadyList is MPI_Pready_list.
func PreadyList(length int, partitions uintptr, request abi.Handle) int {
	const proc = "MPI_Pready_list"
	q, err := partitionedSend(request)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	err = cbinding.Negative("length", length)
	if err == nil && partitions == 0 && length > 0 {
		err = cbinding.NullError("array_of_partitions")
	}
	if err == nil {
		for _, i := range cbinding.Array[int32](partitions, length) {
			if err = q.Sends.Pready(int(i)); err != nil {
				break
			}
		}
	}
	return cbinding.DoneOf(q.Owner, proc, err)
}

// partitionedSend returns the request of MPI_Psend_init, which is active.
func partitionedSend(h abi.Handle) (*cbinding.Request, error) {
	q, err := cbinding.RequestOf(h)
	switch {
	case err != nil:
		return nil, err
	case q.Sends == nil:
		return nil, cbinding.ArgError(abi.ErrRequest, "request", cbinding.HandleName(h), "is not of MPI_Psend_init")
	case q.Operation == nil:
		return nil, cbinding.ArgError(abi.ErrRequest, "request", cbinding.HandleName(h), "is inactive")
	}
	return q, nil
}

// Parrived is MPI_Parrived. A request that is inactive, or MPI_REQUEST_NULL, has arrived.
func Parrived(request abi.Handle, partition int, flag uintptr) int {
	const proc = "MPI_Parrived"
	q, err := cbinding.RequestAtOf(request)
	if err == nil {
		err = cbinding.Out("flag", flag)
	}
	if err == nil && q != nil && q.Recvs == nil {
		err = cbinding.ArgError(abi.ErrRequest, "request", request, "is not of MPI_Precv_init")
	}
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if !q.Active() {
		return cbinding.Fail(proc, cbinding.SetFlag(flag, true))
	}
	arrived, err := q.Recvs.Parrived(partition)
	if err != nil {
		return cbinding.DoneOf(q.Owner, proc, err)
	}
	return cbinding.DoneOf(q.Owner, proc, cbinding.SetFlag(flag, arrived))
}
