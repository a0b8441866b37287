package mpi

import (
	"context"
	"fmt"
	"slices"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/p2p"
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
	return finish(c.alltoallwCall(ctx, send, recv))
}

// Ialltoallw starts [Comm.Alltoallw] (MPI_Ialltoallw). The slices of Buffers may be used again at once.
func (c *Comm) Ialltoallw(send, recv []Buffer) (*Request, error) {
	send, recv = cloneBuffers(send, recv)
	return start(c.alltoallwCall(nonblocking, send, recv))
}

// AlltoallwInit prepares [Comm.Ialltoallw] (MPI_Alltoallw_init).
func (c *Comm) AlltoallwInit(send, recv []Buffer) (*Persistent, error) {
	send, recv = cloneBuffers(send, recv)
	return prepare(c, func(c *Comm) (*Request, error) {
		return start(c.alltoallwCall(nonblocking, send, recv))
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

// checkBlocks checks the blocks of a call, of which there must be out and in.
func checkBlocks(send []Buffer, out int, recv []Buffer, in int) error {
	for _, list := range [2][]Buffer{send, recv} {
		for i := range list {
			if err := list[i].err; err != nil {
				return err
			}
		}
	}
	if len(send) != out || len(recv) != in {
		return fmt.Errorf("%w: %d blocks to send and %d to receive, want %d and %d", ErrCount, len(send), len(recv), out, in)
	}
	if !sameBuffers(send, recv) && datatype.Overlap(described(send), described(recv)) {
		return ErrOverlap
	}
	return nil
}

func described(list []Buffer) []datatype.Buffer {
	all := make([]datatype.Buffer, 0, len(list))
	for i := range list {
		if list[i].Len() > 0 {
			all = append(all, list[i].items.Described())
		}
	}
	return all
}

func (c *Comm) alltoallwCall(ctx context.Context, send, recv []Buffer) (*collective, error) {
	k, err := c.prepare(ctx, collAlltoallw, checked{}, 0)
	if err != nil {
		return nil, err
	}
	if err := checkBlocks(send, k.Size, recv, k.Size); err != nil {
		return k.refuse(err)
	}
	k.comm.slot = p2p.SlotColl // blocks are of any types
	k.run = func(k *collective) error {
		x := newBlockExchange(send, recv)
		defer x.release()
		var err error
		if k.comm.c.remote != nil {
			err = x.between(k)
		} else {
			err = x.pairwise(k)
		}
		if err == nil && k.comm.mismatch == nil {
			x.store()
		}
		return err
	}
	return k, nil
}

// A blockExchange is the blocks of a call in progress as they travel: those with gaps packed.
type blockExchange struct {
	out, in [][]byte
	own     []*bufpool.Buffer
	recv    []Buffer
}

func newBlockExchange(send, recv []Buffer) *blockExchange {
	x := &blockExchange{out: make([][]byte, len(send)), in: make([][]byte, len(recv)), recv: recv}
	for i := range send {
		var own *bufpool.Buffer
		if sameBuffers(send, recv) {
			x.out[i], own = send[i].items.Copied()
		} else {
			x.out[i], own = send[i].items.Packed()
		}
		x.own = append(x.own, own)
	}
	for i := range recv {
		var own *bufpool.Buffer
		x.in[i], own = recv[i].items.Room()
		x.own = append(x.own, own)
	}
	return x
}

func (x *blockExchange) release() {
	for _, b := range x.own {
		b.Put()
	}
}

// store stores what was received in items with gaps.
func (x *blockExchange) store() {
	for i := range x.recv {
		x.recv[i].items.Unpack(x.in[i], 0)
	}
}

// pairwise exchanges blocks with one rank at a time, as coll.AlltoallPairwise.
func (x *blockExchange) pairwise(k *collective) error {
	if mine, want := len(x.out[k.Rank]), len(x.in[k.Rank]); mine != want {
		_ = k.comm.tolerate(wrongLength("the rank's own block", mine, want)) // remembered
	}
	copy(x.in[k.Rank], x.out[k.Rank])
	for i := 1; i < k.Size; i++ {
		to, from := (k.Rank+i)%k.Size, (k.Rank-i+k.Size)%k.Size
		if err := k.Sendrecv(x.out[to], to, x.in[from], from); err != nil {
			return err
		}
	}
	return nil
}

// between exchanges blocks with all ranks of the other group at once.
func (x *blockExchange) between(k *collective) error {
	for i, b := range x.in {
		if err := k.StartRecv(b, i); err != nil {
			return err
		}
	}
	return k.each(k.StartSend, func(i int) []byte { return x.out[i] })
}
