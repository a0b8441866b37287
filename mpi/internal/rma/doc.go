// Package rma is the engine of windows: memory of each rank of a communicator that the others read, write and
// update without its help (MPI-4.1, Chapter 12). It works on bytes, displacement units, runtime datatypes
// and operators.
//
// An operation takes the first way that the target allows: a copy to memory that is mapped here, or from process
// to process (cross-memory attach); RDMA on a queue pair of the device ([rdmadev.Conn]); else an active
// message, which a service of the target performs. Synchronization completes what is in flight. Ranks are
// reached through [Comm], memory of other processes of the host through [Memory].
package rma
