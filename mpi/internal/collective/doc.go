// Package collective makes calls of collective operations: it checks their arguments, gives each call its tag, and
// runs it on a communicator with an algorithm of package coll, or for intercommunicators and neighbours with what is
// here. It works on bytes and items; the layer above makes them of typed buffers.
//
// Even a call with bad arguments takes its tag, so that the ranks still agree about later ones. A call that has been
// made is ended by [Call.End], or of a nonblocking collective started by [Call.Start]; those that cannot be
// recorded are ended by [Call.InBackground].
package collective
