// Package op holds reduction operators on elements that are known as bytes only (MPI-4.1,
// Section 6.9), for collectives and for updates of windows. Package mpi gives them the
// types of their elements, or asks For for the operator on a datatype that is known at run time
// only. UserItems is an operator of a program on items of such a datatype.
package op
