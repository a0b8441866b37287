// Package mpierr holds the errors of package mpi and their classes (MPI-4.1,
// Section 9.4), for all packages below it.
//
// Package mpi exports each error under the same name, with the comment that its users read; which call returns it is
// said there. The classes, with their texts, are listed here for both faces of package mpi, with the numbers of the
// ABI. This package imports no other of mpi but the constants.
package mpierr
