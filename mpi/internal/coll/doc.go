// Package coll has the algorithms of the collective operations, an algorithm or a family of them
// in each file. They work on byte buffers, counts and a runtime reduction operator, and send and
// receive through the interface Comm, so they know neither element types nor transports. A
// Schedule is one collective operation on one rank; Algorithms lists what may run it. The caller
// checks arguments and chooses the algorithm: package mpi does so by its tuning table.
package coll
