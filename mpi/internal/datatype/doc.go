// Package datatype describes what lies in the buffers of messages, windows and files at
// run time, as bytes, counts and datatypes (MPI-4.1, Chapter 5). Package mpi puts Go types
// in front of it.
//
//   - Type is a datatype, made by Of and the constructors. It lists the runs of
//     memory of its items.
//   - Buffer is items of a datatype in a Memory, a Go slice or a bare address. It is packed
//     and unpacked in parts; a Cursor goes through it. Overlap compares two sets of them.
//   - Items are what an operation sends or receives.
//   - Named is a predefined datatype of C or Fortran, also of elements that Go has not; a
//     FloatFormat computes with its numbers.
//   - Sig is the signature by which a receive recognizes a message of another type.
//   - Layout is the layout of one element, also in the representation external32.
//   - Bytes and View convert between slices of elements and of bytes.
package datatype
