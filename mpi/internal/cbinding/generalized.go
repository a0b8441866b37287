package cbinding

import (
	"sync"
	"unsafe"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// Generalized is what a request of the program has (MPI-4.1, Section 13.2): functions of C.
type Generalized struct {
	Grequest             *mpi.Grequest
	QueryFn, FreeFn      uintptr
	CancelFn, ExtraState uintptr

	Mu       sync.Mutex // guards what follows
	Complete bool       // MPI_Grequest_complete was called
	Given    bool       // MPI_Request_free was called
}

// NewUserRequest makes the request of a generalized one.
func NewUserRequest(u *Generalized) *Request {
	return &Request{Operation: u.Grequest.Request(), User: u}
}

// queryStatuses has the statuses that query functions fill.
var queryStatuses = sync.Pool{New: func() any { return new(abi.Status) }}

// query asks the program for the status of the operation, which is complete, and stores it. It returns the
// error that the query function has returned.
func (u *Generalized) query(status uintptr) error {
	told := queryStatuses.Get().(*abi.Status) // on the heap: its address must not change. The function may call MPI
	defer queryStatuses.Put(told)
	*told = abi.Status{}
	p := uintptr(unsafe.Pointer(told))
	EmptyStatus(p)
	code := CallGrequestQuery(u.QueryFn, u.ExtraState, p)
	if status != abi.StatusIgnore {
		s := At[abi.Status](status)
		was := s.Error
		*s = *told
		s.Error = was
	}
	if code != abi.Success {
		return userCode(code)
	}
	return nil
}

// Free calls the free function of the program.
func (u *Generalized) Free() error {
	if code := CallGrequestFree(u.FreeFn, u.ExtraState); code != abi.Success {
		return userCode(code)
	}
	return nil
}

// GiveUp is MPI_Request_free: the free function is called once the operation is complete, too.
func (u *Generalized) GiveUp(q *Request) error {
	u.Mu.Lock()
	u.Given = true
	complete := u.Complete
	u.Mu.Unlock()
	if !complete {
		return nil // the program needs the handle for MPI_Grequest_complete
	}
	Requests.Delete(q.Handle)
	return u.Free()
}

// Cancel is MPI_Cancel.
func (u *Generalized) Cancel() error {
	u.Mu.Lock()
	complete := u.Complete
	u.Mu.Unlock()
	if code := CallGrequestCancel(u.CancelFn, u.ExtraState, complete); code != abi.Success {
		return userCode(code)
	}
	return nil
}
