package cbinding

import (
	"sync"
	"unsafe"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// generalized is what a request of the program has (MPI-4.1, Section 13.2): functions of C.
type generalized struct {
	g                    *mpi.Grequest
	queryFn, freeFn      uintptr
	cancelFn, extraState uintptr

	mu       sync.Mutex // guards what follows
	complete bool       // MPI_Grequest_complete was called
	given    bool       // MPI_Request_free was called
}

// GrequestStart is MPI_Grequest_start.
func GrequestStart(queryFn, freeFn, cancelFn, extraState, request uintptr) int {
	const proc = "MPI_Grequest_start"
	for _, f := range []struct {
		name string
		p    uintptr
	}{{"query_fn", queryFn}, {"free_fn", freeFn}, {"cancel_fn", cancelFn}, {"request", request}} {
		if f.p == 0 {
			return fail(proc, nullError(f.name))
		}
	}
	c, err := anyComm()
	if err != nil {
		return fail(proc, err)
	}
	u := &generalized{g: c.World().StartGrequest(nil), queryFn: queryFn, freeFn: freeFn, cancelFn: cancelFn,
		extraState: extraState}
	q := newUserRequest(u)
	h, err := q.put()
	if err == nil {
		setHandle(request, h)
	}
	return fail(proc, err)
}

func newUserRequest(u *generalized) *request { return &request{r: u.g.Request(), user: u} }

// GrequestComplete is MPI_Grequest_complete.
func GrequestComplete(request Handle) int {
	const proc = "MPI_Grequest_complete"
	q, err := requestOf(request)
	if err == nil && q.user == nil {
		err = argError(abi.ErrRequest, "request", request, "is no generalized request")
	}
	if err != nil {
		return fail(proc, err)
	}
	u := q.user
	u.mu.Lock()
	again, given := u.complete, u.given
	u.complete = true
	u.mu.Unlock()
	if again {
		return fail(proc, argError(abi.ErrRequest, "request", request, "was completed before"))
	}
	if given {
		requests.delete(request)
		u.g.Complete(mpi.Status{}, nil)
		return fail(proc, u.free())
	}
	u.g.Complete(mpi.Status{}, nil)
	return 0
}

// queryStatuses has the statuses that query functions fill.
var queryStatuses = sync.Pool{New: func() any { return new(abi.Status) }}

// query asks the program for the status of the operation, which is complete, and stores it. It returns the
// error that the query function has returned.
func (u *generalized) query(status uintptr) error {
	told := queryStatuses.Get().(*abi.Status) // on the heap: its address must not change. The function may call MPI
	defer queryStatuses.Put(told)
	*told = abi.Status{}
	p := uintptr(unsafe.Pointer(told))
	emptyStatus(p)
	code := CallGrequestQuery(u.queryFn, u.extraState, p)
	if status != abi.StatusIgnore {
		s := at[abi.Status](status)
		was := s.Error
		*s = *told
		s.Error = was
	}
	if code != abi.Success {
		return userCode(code)
	}
	return nil
}

// free calls the free function of the program.
func (u *generalized) free() error {
	if code := CallGrequestFree(u.freeFn, u.extraState); code != abi.Success {
		return userCode(code)
	}
	return nil
}

// giveUp is MPI_Request_free: the free function is called once the operation is complete, too.
func (u *generalized) giveUp(q *request) error {
	u.mu.Lock()
	u.given = true
	complete := u.complete
	u.mu.Unlock()
	if !complete {
		return nil // the program needs the handle for MPI_Grequest_complete
	}
	requests.delete(q.handle)
	return u.free()
}

// cancel is MPI_Cancel.
func (u *generalized) cancel() error {
	u.mu.Lock()
	complete := u.complete
	u.mu.Unlock()
	if code := CallGrequestCancel(u.cancelFn, u.extraState, complete); code != abi.Success {
		return userCode(code)
	}
	return nil
}
