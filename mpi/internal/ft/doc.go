// Package ft holds the parts of fault tolerance (ULFM) that know no communicator and no
// transport: the agreement among processes of which some may fail, and the format of the
// messages between the failure services of two ranks. Package mpi has the service itself and
// its face, Comm.Revoke, Comm.Agree and Comm.Shrink.
package ft
