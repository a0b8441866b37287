package pointtopoint

import (
	"sync"
	"unsafe"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

const (
	handleSize = unsafe.Sizeof(abi.Handle(0))
	statusSize = unsafe.Sizeof(abi.Status{})
)

// A waitList is what a call on an array of requests works on. Lists are used again, so that such calls
// do not allocate.
type waitList struct {
	at       uintptr             // the array of handles
	statuses uintptr             // MPI_STATUSES_IGNORE: none
	handles  []abi.Handle        // as they were when the call began
	entries  []*cbinding.Request // nil for MPI_REQUEST_NULL
	reqs     []*mpi.Request      // nil if there is no started operation
	active   int                 // how many are not nil
	done     []int
	sts      []mpi.Status
	errs     []error

	failed bool
	o      *cbinding.Object // of the first operation that has failed
}

var waitLists = sync.Pool{New: func() any { return new(waitList) }}

// maxKeptList bounds the lists that are kept, in requests.
const maxKeptList = 1 << 12

// waitListOf returns the list of n requests at p. Nothing happens if one of the handles is bad.
func waitListOf(n int, p, statuses uintptr) (*waitList, error) {
	hs, err := requestArray(n, p)
	if err != nil {
		return nil, err
	}
	l := waitLists.Get().(*waitList)
	l.at, l.statuses = p, statuses
	for _, h := range hs {
		q, err := cbinding.RequestAtOf(h)
		if err != nil {
			l.recycle()
			return nil, err
		}
		l.entries, l.handles = append(l.entries, q), append(l.handles, h)
		var r *mpi.Request
		if q.Active() {
			r = q.Operation
			l.active++
		}
		l.reqs = append(l.reqs, r)
	}
	return l, nil
}

// freed reports whether request i was freed by this call, because it is in the list twice. Another thread may have made
// a request of its memory by now, with another handle.
func (l *waitList) freed(i int) bool {
	return l.entries[i] != nil && cbinding.Requests.Get(l.handles[i]) != l.entries[i]
}

// pending reports whether request i has a started operation that this call has not completed.
func (l *waitList) pending(i int) bool { return !l.freed(i) && l.entries[i].Active() }

// results makes room for the results.
func (l *waitList) results() {
	for n := len(l.reqs); len(l.done) < n; {
		l.done, l.sts, l.errs = append(l.done, 0), append(l.sts, mpi.Status{}), append(l.errs, nil)
	}
}

func (l *waitList) recycle() {
	if cap(l.reqs) > maxKeptList {
		return
	}
	clear(l.entries)
	clear(l.reqs)
	clear(l.errs)
	*l = waitList{
		handles: l.handles[:0], entries: l.entries[:0], reqs: l.reqs[:0], done: l.done[:0], sts: l.sts[:0], errs: l.errs[:0],
	}
	waitLists.Put(l)
}

// handleAt returns where the handle of request i is.
func (l *waitList) handleAt(i int) uintptr { return l.at + uintptr(i)*handleSize }

// status returns where the k-th status is stored.
func (l *waitList) status(k int) uintptr {
	if l.statuses == abi.StatusesIgnore {
		return abi.StatusIgnore
	}
	return l.statuses + uintptr(k)*statusSize
}

// note records the error of the operation of q, which belongs to the k-th status. The field MPI_ERROR is
// touched only once an operation has failed (MPI-4.1, Section 3.7.5).
func (l *waitList) note(k int, o *cbinding.Object, err error) {
	if err != nil && !l.failed {
		l.failed, l.o = true, o
		for i := range k {
			cbinding.SetStatusError(l.status(i), abi.Success)
		}
	}
	if l.failed {
		cbinding.SetStatusError(l.status(k), cbinding.CodeOf(err))
	}
}

// complete completes request i of the list with its result, which belongs to the k-th status.
func (l *waitList) complete(i, k int, st mpi.Status, err error) {
	q := l.entries[i]
	if !l.pending(i) {
		if l.freed(i) {
			cbinding.SetHandle(l.handleAt(i), abi.RequestNull)
		}
		cbinding.EmptyStatus(l.status(k))
		l.note(k, nil, nil)
		return
	}
	o := q.Owner
	if !goesOn(err) {
		err = q.Complete(l.handleAt(i), l.status(k), st, err)
	}
	l.note(k, o, err)
}

// end ends a call that has stored several statuses.
func (l *waitList) end(proc string) int {
	failed, o := l.failed, l.o
	l.recycle()
	if failed {
		return cbinding.DoneOf(o, proc, errInStatus)
	}
	return 0
}

var errInStatus = &cbinding.CallError{Class: abi.ErrInStatus, Text: "an operation has failed, the field MPI_ERROR of its status says why"}

// Waitall is MPI_Waitall.
func Waitall(count int, requests, statuses uintptr) int {
	const proc = "MPI_Waitall"
	l, err := waitListOf(count, requests, statuses)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	for i, q := range l.entries {
		var st mpi.Status
		var err error
		if l.pending(i) { // not one that was in the list before
			st, err = q.Operation.Wait(cbinding.Background)
		}
		l.complete(i, i, st, err)
	}
	return l.end(proc)
}

// Testall is MPI_Testall.
func Testall(count int, requests, flag, statuses uintptr) int {
	const proc = "MPI_Testall"
	if flag == 0 {
		return cbinding.Fail(proc, cbinding.NullError("flag"))
	}
	l, err := waitListOf(count, requests, statuses)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	l.results()
	done, _ := mpi.TestallInto(l.reqs, l.sts, l.errs)
	*cbinding.At[int32](flag) = 0
	if done {
		*cbinding.At[int32](flag) = 1
		for i := range l.reqs {
			l.complete(i, i, l.sts[i], l.errs[i])
		}
	}
	return l.end(proc)
}

// Waitany is MPI_Waitany.
func Waitany(count int, requests, index, status uintptr) int {
	const proc = "MPI_Waitany"
	if index == 0 {
		return cbinding.Fail(proc, cbinding.NullError("index"))
	}
	l, err := waitListOf(count, requests, status)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if l.active == 0 {
		l.recycle()
		*cbinding.At[int32](index) = abi.Undefined
		cbinding.EmptyStatus(status)
		return 0
	}
	i, st, err := mpi.Waitany(cbinding.Background, l.reqs...)
	return l.one(proc, index, i, st, err)
}

// one ends a call that has found request i done.
func (l *waitList) one(proc string, index uintptr, i int, st mpi.Status, err error) int {
	*cbinding.At[int32](index) = int32(i)
	q, status := l.entries[i], l.statuses
	o := q.Owner
	if !goesOn(err) {
		err = q.Complete(l.handleAt(i), status, st, err)
	}
	l.recycle()
	if err != nil {
		return cbinding.DoneOf(o, proc, err)
	}
	return 0
}

// Testany is MPI_Testany.
func Testany(count int, requests, index, flag, status uintptr) int {
	const proc = "MPI_Testany"
	switch {
	case index == 0:
		return cbinding.Fail(proc, cbinding.NullError("index"))
	case flag == 0:
		return cbinding.Fail(proc, cbinding.NullError("flag"))
	}
	l, err := waitListOf(count, requests, status)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	*cbinding.At[int32](flag), *cbinding.At[int32](index) = 1, abi.Undefined
	if l.active == 0 {
		l.recycle()
		cbinding.EmptyStatus(status)
		return 0
	}
	i, st, err := mpi.Testany(l.reqs...)
	if i != mpi.Undefined {
		return l.one(proc, index, i, st, err)
	}
	*cbinding.At[int32](flag) = 0
	l.recycle()
	return 0
}

// Waitsome is MPI_Waitsome.
func Waitsome(incount int, requests, outcount, indices, statuses uintptr) int {
	return some("MPI_Waitsome", true, incount, requests, outcount, indices, statuses)
}

// Testsome is MPI_Testsome.
func Testsome(incount int, requests, outcount, indices, statuses uintptr) int {
	return some("MPI_Testsome", false, incount, requests, outcount, indices, statuses)
}

// some is MPI_Waitsome, or without waiting MPI_Testsome.
func some(proc string, waits bool, n int, requests, outcount, indices, statuses uintptr) int {
	l, err := someListOf(n, requests, outcount, indices, statuses)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if l.active == 0 {
		l.recycle()
		*cbinding.At[int32](outcount) = abi.Undefined
		return 0
	}
	l.results()
	var k int
	if waits {
		k, err = mpi.WaitsomeInto(cbinding.Background, l.reqs, l.done, l.sts, l.errs)
	} else {
		k = mpi.TestsomeInto(l.reqs, l.done, l.sts, l.errs)
	}
	if err != nil { // a receive that cannot complete now goes on
		l.recycle()
		return cbinding.Fail(proc, err)
	}
	k = max(k, 0) // another thread has completed the last one: erroneous
	*cbinding.At[int32](outcount) = int32(k)
	out := cbinding.Array[int32](indices, k)
	for j := range k {
		out[j] = int32(l.done[j])
		l.complete(l.done[j], j, l.sts[j], l.errs[j])
	}
	return l.end(proc)
}

// someListOf is waitListOf of calls that return several indices.
func someListOf(n int, requests, outcount, indices, statuses uintptr) (*waitList, error) {
	if outcount == 0 {
		return nil, cbinding.NullError("outcount")
	}
	if indices == 0 && n > 0 {
		return nil, cbinding.NullError("array_of_indices")
	}
	return waitListOf(n, requests, statuses)
}

// RequestGetStatusAll is MPI_Request_get_status_all: MPI_Testall that leaves the requests as they are.
func RequestGetStatusAll(count int, requests, flag, statuses uintptr) int {
	const proc = "MPI_Request_get_status_all"
	if flag == 0 {
		return cbinding.Fail(proc, cbinding.NullError("flag"))
	}
	l, err := waitListOf(count, requests, statuses)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	*cbinding.At[int32](flag) = 0
	if !mpi.Testall(l.reqs...) {
		l.recycle()
		return 0
	}
	*cbinding.At[int32](flag) = 1
	for i, q := range l.entries {
		_, err := q.Look(l.status(i))
		l.note(i, q.Object(), err)
	}
	return l.end(proc)
}

// RequestGetStatusAny is MPI_Request_get_status_any: MPI_Testany that leaves the requests as they are.
func RequestGetStatusAny(count int, requests, index, flag, status uintptr) int {
	const proc = "MPI_Request_get_status_any"
	switch {
	case index == 0:
		return cbinding.Fail(proc, cbinding.NullError("index"))
	case flag == 0:
		return cbinding.Fail(proc, cbinding.NullError("flag"))
	}
	l, err := waitListOf(count, requests, status)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	defer l.recycle()
	*cbinding.At[int32](flag), *cbinding.At[int32](index) = 1, abi.Undefined
	if l.active == 0 {
		cbinding.EmptyStatus(status)
		return 0
	}
	for i, q := range l.entries {
		if !q.Active() {
			continue
		}
		if done, err := q.Look(status); done || err != nil {
			*cbinding.At[int32](index) = int32(i)
			if err != nil {
				return cbinding.DoneOf(q.Owner, proc, err)
			}
			return 0
		}
	}
	*cbinding.At[int32](flag) = 0
	return 0
}

// RequestGetStatusSome is MPI_Request_get_status_some: MPI_Testsome that leaves the requests as they are.
func RequestGetStatusSome(incount int, requests, outcount, indices, statuses uintptr) int {
	const proc = "MPI_Request_get_status_some"
	l, err := someListOf(incount, requests, outcount, indices, statuses)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if l.active == 0 {
		l.recycle()
		*cbinding.At[int32](outcount) = abi.Undefined
		return 0
	}
	out := cbinding.Array[int32](indices, incount)
	k := 0
	for i, q := range l.entries {
		if !q.Active() {
			continue
		}
		if done, err := q.Look(l.status(k)); done || err != nil {
			out[k] = int32(i)
			l.note(k, q.Owner, err)
			k++
		}
	}
	*cbinding.At[int32](outcount) = int32(k)
	return l.end(proc)
}
