package mpi

import "iter"

// OneRun reports whether the data of count items of t is one run of memory, which begins at off bytes
// from the beginning of the items and has n bytes (MPI-4.1, Section 5.1: the type map). Items without
// data are a run of 0 bytes at 0.
func (t *Datatype) OneRun(count int) (off, n int, ok bool) { return t.rt.OneRun(count) }

// Runs returns the runs of memory that hold the data of count items of t, in the order in which they
// are packed: where they begin, in bytes from the beginning of the items, and how long they are
// (MPI-4.1, Section 5.1: the type map). Neighbours may touch.
func (t *Datatype) Runs(count int) iter.Seq2[int, int] { return t.rt.Runs(count) }

// ItemsIn returns how many items of t there are in n bytes of data, and false if n holds a part of one
// too (MPI_Get_count, where that is MPI_UNDEFINED). Items without data are 0 in 0 bytes.
func (t *Datatype) ItemsIn(n int) (int, bool) { return t.rt.Items(n) }

// ElementsIn returns how many basic elements, of which t is made, there are in n bytes of data, and
// false if n ends within one (MPI_Get_elements, where that is MPI_UNDEFINED).
func (t *Datatype) ElementsIn(n int) (int, bool) { return t.rt.Elements(n) }
