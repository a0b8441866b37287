// Package datatype has the procedures of C that make and describe datatypes, that pack and unpack, and the
// attributes of datatypes (MPI-5.0, Chapter 5). The type of a datatype, and how it remembers what it was made
// of, are in package cbinding.
package datatype
