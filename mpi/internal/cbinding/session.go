package cbinding

import "github.com/weftstack/weft/mpi"

// A Session is an MPI_Session.
type Session struct {
	Object
	*mpi.Session
}
