package mpi

import (
	"context"
	"fmt"
	"slices"

	"github.com/weftstack/weft/mpi/internal/collective"
	"github.com/weftstack/weft/mpi/internal/datatype"
)

// Alltoallw is [Alltoallv] with a datatype for each rank: it sends scounts[i] items of stypes[i]
// that begin sdispls[i] bytes into send to rank i, and stores what comes from rank i as rcounts[i]
// items of rtypes[i] at rdispls[i] bytes into recv. The data must be as long as what the other side
// expects (MPI-4.1, Section 6.8). It blocks until all data is there; until then send and recv
// belong to the call. Errors to test for: ErrCount, ErrDatatype, ErrOverlap, ErrTypeMismatch,
// [RankError].
func Alltoallw[T Element](ctx context.Context, c *Comm, send []T, scounts, sdispls []int, stypes []*Datatype,
	recv []T, rcounts, rdispls []int, rtypes []*Datatype) error {
	return c.Alltoallw(ctx, blocksIn(send, scounts, sdispls, stypes), blocksIn(recv, rcounts, rdispls, rtypes))
}

// Ialltoallw starts [Alltoallw] (MPI_Ialltoallw).
func Ialltoallw[T Element](c *Comm, send []T, scounts, sdispls []int, stypes []*Datatype,
	recv []T, rcounts, rdispls []int, rtypes []*Datatype) (*Request, error) {
	return c.Ialltoallw(blocksIn(send, scounts, sdispls, stypes), blocksIn(recv, rcounts, rdispls, rtypes))
}

// Alltoallw sends the items of send[i] to rank i, and stores what comes from rank i in those of recv[i]
// (MPI_Alltoallw): each block is a Buffer of its own, in any memory. If send and recv are the same
// slice the exchange is in place. It blocks until all data is there; until then the memory of the
// Buffers belongs to the call. Errors to test for: ErrCount, ErrDatatype, ErrOverlap, ErrTypeMismatch,
// [RankError].
func (c *Comm) Alltoallw(ctx context.Context, send, recv []Buffer) error {
	return c.finish(c.coll.Alltoallw(ctx, blocksOf(send, recv)))
}

// Ialltoallw starts [Comm.Alltoallw] (MPI_Ialltoallw). The slices of Buffers may be used again at once.
func (c *Comm) Ialltoallw(send, recv []Buffer) (*Request, error) {
	return c.start(c.coll.Alltoallw(collective.Nonblocking, blocksOf(send, recv)))
}

// AlltoallwInit prepares [Comm.Ialltoallw] (MPI_Alltoallw_init).
func (c *Comm) AlltoallwInit(send, recv []Buffer) (*Persistent, error) {
	send, recv = cloneBuffers(send, recv)
	return prepare(c, func(c *Comm) (*Request, error) {
		return c.start(c.coll.Alltoallw(collective.Nonblocking, blocksOf(send, recv)))
	})
}

// cloneBuffers copies both slices; what is one stays one.
func cloneBuffers(send, recv []Buffer) (s, r []Buffer) {
	r = slices.Clone(recv)
	if sameBuffers(send, recv) {
		return r, r
	}
	return slices.Clone(send), r
}

// sameBuffers reports whether an exchange is in place.
func sameBuffers(send, recv []Buffer) bool {
	return len(send) > 0 && len(send) == len(recv) && &send[0] == &recv[0]
}

// blocksIn returns counts[i] items of types[i] at displs[i] bytes of buf.
func blocksIn[T Element](buf []T, counts, displs []int, types []*Datatype) []Buffer {
	if len(counts) != len(displs) || len(counts) != len(types) {
		err := fmt.Errorf("%w: %d counts, %d displacements, %d datatypes", ErrCount, len(counts), len(displs), len(types))
		return []Buffer{{err: err}}
	}
	mem, err := datatype.CheckedBytes(buf)
	list := make([]Buffer, len(counts))
	for i, n := range counts {
		b := &list[i]
		if b.err = err; err == nil {
			b.of = types[i].typ()
			x := datatype.Buffer{Mem: datatype.In(mem).At(displs[i]), Count: n, Type: types[i].typ()}
			if b.items, b.err = datatype.ItemsOf(x); b.err != nil {
				b.err = fmt.Errorf("%w (block %d)", b.err, i)
			}
		}
	}
	return list
}

// blocksOf returns the blocks that lists of buffers describe, or what is wrong with one of them.
func blocksOf(send, recv []Buffer) collective.Blocks {
	b := collective.Blocks{InPlace: sameBuffers(send, recv)}
	if b.Send, b.Err = itemsOfAll(send); b.Err != nil {
		return b
	}
	if b.InPlace {
		b.Recv = b.Send
		return b
	}
	b.Recv, b.Err = itemsOfAll(recv)
	return b
}

// itemsOfAll returns the items of all buffers of a list.
func itemsOfAll(list []Buffer) ([]datatype.Items, error) {
	all := make([]datatype.Items, len(list))
	for i := range list {
		if err := list[i].err; err != nil {
			return nil, err
		}
		all[i] = list[i].items
	}
	return all, nil
}
