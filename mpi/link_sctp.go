package mpi

// sctpOptions are the options of the SCTP transports.
type sctpOptions struct{}
