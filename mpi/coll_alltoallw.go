package mpi

import (
	"context"
	"fmt"
)

// Alltoallw is Alltoallv with a datatype for each rank: it sends scounts[i]
// items of stypes[i] that begin sdispls[i] bytes into send to rank i, and
// stores what comes from rank i as rcounts[i] items of rtypes[i] at rdispls[i]
// bytes into recv. The data must be as long as what the other side expects
// (MPI-4.1, Section 6.8).
func Alltoallw[T Element](ctx context.Context, c *Comm, send []T, scounts, sdispls []int, stypes []*Datatype,
	recv []T, rcounts, rdispls []int, rtypes []*Datatype) error {
	b := check(send, recv)
	if b.err != nil {
		return b.err
	}
	size := len(c.group)
	slens, sbytes, err := typedBlocks(b.send, scounts, sdispls, stypes, size)
	if err != nil {
		return err
	}
	rlens, rbytes, err := typedBlocks(b.recv, rcounts, rdispls, rtypes, size)
	if err != nil {
		return err
	}
	out, in := getScratch(sbytes), getScratch(rbytes)
	defer out.put()
	defer in.put()
	packed, came := out.bytes(sbytes), in.bytes(rbytes)
	for i, at := 0, 0; i < size; i++ {
		stypes[i].packAll(packed[at:], b.send[sdispls[i]:], scounts[i])
		at += slens[i]
	}
	if err := Alltoallv(ctx, c, packed, slens, nil, came, rlens, nil); err != nil {
		return err
	}
	for i, at := 0, 0; i < size; i++ {
		rtypes[i].unpackAll(b.recv[rdispls[i]:], came[at:at+rlens[i]], rcounts[i])
		at += rlens[i]
	}
	return nil
}

// typedBlocks returns the packed lengths of the blocks, and their sum.
func typedBlocks(buf []byte, counts, displs []int, types []*Datatype, size int) (lens []int, total int, err error) {
	if len(counts) != size || len(displs) != size || len(types) != size {
		return nil, 0, fmt.Errorf("%w: %d counts, %d displacements, %d datatypes for %d ranks",
			ErrCount, len(counts), len(displs), len(types), size)
	}
	lens = make([]int, size)
	for i, t := range types {
		if displs[i] < 0 || displs[i] > len(buf) {
			return nil, 0, fmt.Errorf("%w: block of rank %d at %d of %d bytes", ErrCount, i, displs[i], len(buf))
		}
		if lens[i], err = t.span(counts[i], len(buf)-displs[i]); err != nil {
			return nil, 0, err
		}
		total += lens[i]
	}
	return lens, total, nil
}
