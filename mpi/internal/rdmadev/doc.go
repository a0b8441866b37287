// Package rdmadev has the RDMA device of a rank: its queue pairs to other processes, the cache of registered
// buffers, and the transfer of message bodies by RDMA Write and Read (rendezvous). It serves both the
// message engine and windows, and knows neither: what they are told goes through [Host], [Sender] and [Receiver].
//
// A rank has up to three queue pairs to another process: one for the windows' accesses there ([Conn]), one
// for bodies that it writes or reads there ([Bulk]), and those that the other process has connected for
// the same purposes, which only serve here. Windows have a queue pair of their own, because a refused access
// ends it.
package rdmadev
