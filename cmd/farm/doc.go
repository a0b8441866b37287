// Command farm is a bulk processor farm: rank 0 splits a file into tasks, the
// other ranks compute the SHA-256 digest and the byte histogram of each piece,
// and rank 0 collects them and checks the result.
//
//	weft run -n 4 ./cmd/farm -input FILE
//	weft run -n 4 ./cmd/farm -tasks 10000 -task 300KB -fanout 10
//
// It is the bulk processor farm of Kamal's thesis on MPI over SCTP (2005) made
// into a tool: each worker keeps a number of requests outstanding, a request is
// answered with -fanout tasks, and tasks are of -tags different types, each its
// own message tag, so that a lost packet of one type need not hold up the
// others.
package main
