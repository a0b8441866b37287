// Package pointtopoint has the procedures of C for messages (MPI-5.0, Chapters 3 and 4): sends and receives,
// probes, partitioned communication, buffers for buffered sends, and the completion of requests, of whatever
// operation, with generalized requests (Chapter 13).
package pointtopoint
