// Package datatype describes what lies in the buffers of messages, windows and files at
// run time, as bytes, counts and datatypes (MPI-4.1, Chapter 5). Package mpi puts Go types
// in front of it.
//
//   - Type is a datatype, made by Of and the constructors. It packs, unpacks and lists
//     the runs of memory of its items.
//   - Sig is the signature by which a receive recognizes a message of another type.
//   - Layout is the layout of one element, also in the representation external32.
//   - Bytes and View convert between slices of elements and of bytes.
package datatype
