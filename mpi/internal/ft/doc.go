// Package ft holds the parts of fault tolerance (ULFM) that are independent of transports: the
// agreement among processes that may fail, the format of the messages between the failure services
// of two ranks, and the service, which reaches its rank through the interfaces Host and Comm.
// Package mpi has what the program calls: Comm.Revoke, Comm.Agree and Comm.Shrink.
package ft
