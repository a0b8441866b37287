// Package datatype describes the elements of messages at run time: views of typed
// buffers as bytes, the layout of an element in memory, and the signature by which a
// receive recognizes a message of another type (MPI-4.1, Sections 3.3.1 and 5.1).
package datatype
