// Package ft holds the parts of fault tolerance (ULFM) that are independent of communicators and
// transports: the agreement among processes that may fail, and the format of the messages between
// the failure services of two ranks. Package mpi holds the service itself and its interface:
// Comm.Revoke, Comm.Agree and Comm.Shrink.
package ft
