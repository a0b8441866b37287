// Package file has the procedures of C for files (MPI-5.0, Chapter 14): opening, views, access with
// individual, shared and explicit offsets, and data representations of the program.
package file
