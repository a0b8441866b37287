package mpi

import (
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// A Grequest is an operation of the program with a [Request], so that calls that wait for requests
// can wait for it (generalized requests, MPI-4.1, Section 13.2).
type Grequest struct {
	req       *Request
	canceled  func(done bool)
	completed atomic.Bool
}

// StartGrequest makes a generalized request, which is done when the program calls
// [Grequest.Complete] (MPI_Grequest_start). [Request.Cancel] calls canceled, which may be nil, and
// passes whether the operation is done already; if it is not, the program should complete it soon,
// with ErrCanceled.
func (w *World) StartGrequest(canceled func(done bool)) *Grequest {
	g := &Grequest{req: newRequest(w), canceled: canceled}
	g.req.generalized = g
	return g
}

// Request returns the request (MPI_Grequest_start).
func (g *Grequest) Request() *Request { return g.req }

// Complete ends the operation with the result that Wait and Test return (MPI_Grequest_complete).
// Only the first call counts.
func (g *Grequest) Complete(st Status, err error) {
	if !g.completed.CompareAndSwap(false, true) {
		return
	}
	g.req.request.Status = p2p.Status(st)
	g.req.request.Complete(err)
}
