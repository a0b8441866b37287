// Package fileio is the engine of parallel file I/O (MPI-4.1, Chapter 14): views, individual and
// shared file pointers, reading with gaps (data sieving), two-phase collective reads and writes,
// atomic mode, data representations, hints. It works on items of datatypes in memory; it reaches the
// other ranks through the interfaces Comm and SharedPointer. Package mpi adds the element types,
// requests and profiling.
package fileio
