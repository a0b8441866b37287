package pointtopoint

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// GrequestStart is MPI_Grequest_start.
func GrequestStart(queryFn, freeFn, cancelFn, extraState, request uintptr) int {
	const proc = "MPI_Grequest_start"
	for _, f := range []struct {
		name string
		p    uintptr
	}{{"query_fn", queryFn}, {"free_fn", freeFn}, {"cancel_fn", cancelFn}, {"request", request}} {
		if f.p == 0 {
			return cbinding.Fail(proc, cbinding.NullError(f.name))
		}
	}
	c, err := cbinding.AnyComm()
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	u := &cbinding.Generalized{Grequest: c.World().StartGrequest(nil),
		QueryFn: queryFn, FreeFn: freeFn, CancelFn: cancelFn, ExtraState: extraState}
	q := cbinding.NewUserRequest(u)
	h, err := q.Put()
	if err == nil {
		cbinding.SetHandle(request, h)
	}
	return cbinding.Fail(proc, err)
}

// GrequestComplete is MPI_Grequest_complete.
func GrequestComplete(request abi.Handle) int {
	const proc = "MPI_Grequest_complete"
	q, err := cbinding.RequestOf(request)
	if err == nil && q.User == nil {
		err = cbinding.ArgError(abi.ErrRequest, "request", request, "is no generalized request")
	}
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	u := q.User
	u.Mu.Lock()
	again, given := u.Complete, u.Given
	u.Complete = true
	u.Mu.Unlock()
	if again {
		return cbinding.Fail(proc, cbinding.ArgError(abi.ErrRequest, "request", request, "was completed before"))
	}
	if given {
		cbinding.Requests.Delete(request)
		u.Grequest.Complete(mpi.Status{}, nil)
		return cbinding.Fail(proc, u.Free())
	}
	u.Grequest.Complete(mpi.Status{}, nil)
	return 0
}
