// Package p2p is the message engine of a rank: it matches messages with receives and moves their bytes.
//
// An [Engine] has a [Peer] for each process that it exchanges messages with, and a [Comm] for each communicator. An
// operation is a [Request]; a goroutine that waits for one polls the transport, and parks on a [Waiter] after a while.
// What arrives goes through the [Parser] of its stream. The engine knows links as package transport defines them, and
// none of the types of the program: package mpi, its face, sets what it needs from above in a [Config].
package p2p
