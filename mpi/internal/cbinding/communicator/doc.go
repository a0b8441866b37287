// Package communicator has the procedures of C that make, compare and free groups and communicators, with
// their names, info objects and attributes (MPI-5.0, Chapter 7). The types of communicators and groups,
// which all chapters need, are in package cbinding.
package communicator
