// Package environment has the procedures of C about MPI itself: its begin and end in the World model
// (MPI-5.0, Chapter 11), error handlers, classes and codes, versions and memory (Chapter 9), info
// objects (Chapter 10) and the ABI (Chapter 20).
package environment
