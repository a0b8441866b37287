// Package onesided has the procedures of C for windows (MPI-5.0, Chapter 12): their creation, memory and
// attributes, the operations on memory of other ranks, and the synchronization of both.
package onesided
