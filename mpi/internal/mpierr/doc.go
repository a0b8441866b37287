// Package mpierr holds the errors of package mpi and their classes (MPI-4.1,
// Section 9.4), for all packages below it.
//
// Package mpi exports each error under the same name, with the comment that its users
// read; which call returns it is said there. This package imports no other of mpi.
package mpierr
