// Package collective has the collective procedures of C (MPI-5.0, Chapter 6), blocking, nonblocking and
// persistent, those on the neighbors of a topology (Chapter 8.6), and the operators of reductions.
//
// A file has the procedures of one pattern. Each of the three forms gives a [collCall] the function of
// package mpi that it stands for; what the forms have in common, which is the check of the arguments, is
// there once. The operators themselves, which one-sided accumulations need too, are in package cbinding.
package collective
