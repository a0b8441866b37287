package collective

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Blocks are the blocks of a collective each of which is of a datatype of its own.
type Blocks struct {
	Send, Recv []datatype.Items
	InPlace    bool // Send is Recv
	Err        error
}

// check checks the blocks of a call that sends out and receives in of them.
func (b *Blocks) check(out, in int) error {
	if b.Err != nil {
		return b.Err
	}
	if len(b.Send) != out || len(b.Recv) != in {
		return fmt.Errorf("%w: %d blocks to send and %d to receive, want %d and %d",
			mpierr.ErrCount, len(b.Send), len(b.Recv), out, in)
	}
	if !b.InPlace && datatype.Overlap(described(b.Send), described(b.Recv)) {
		return mpierr.ErrOverlap
	}
	return nil
}

// described returns what the blocks with data describe.
func described(list []datatype.Items) []datatype.Buffer {
	all := make([]datatype.Buffer, 0, len(list))
	for i := range list {
		if list[i].Len() > 0 {
			all = append(all, list[i].Described())
		}
	}
	return all
}

// Alltoallw prepares Alltoallw.
func (c *Comm) Alltoallw(ctx context.Context, b Blocks) (*Call, error) {
	k, err := c.prepare(ctx, coll.Alltoallw, Args{}, 0)
	if err != nil {
		return nil, err
	}
	if err := b.check(k.Size, k.Size); err != nil {
		return k.refuse(err)
	}
	k.comm.slot = p2p.SlotColl // blocks are of any types
	k.run = func(k *Call) error {
		x := newBlockExchange(&b)
		defer x.release()
		var err error
		if k.comm.c.Local != nil {
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
	recv    []datatype.Items
}

func newBlockExchange(b *Blocks) *blockExchange {
	x := &blockExchange{out: make([][]byte, len(b.Send)), in: make([][]byte, len(b.Recv)), recv: b.Recv}
	for i := range b.Send {
		var own *bufpool.Buffer
		if b.InPlace {
			x.out[i], own = b.Send[i].Copied()
		} else {
			x.out[i], own = b.Send[i].Packed()
		}
		x.own = append(x.own, own)
	}
	for i := range b.Recv {
		var own *bufpool.Buffer
		x.in[i], own = b.Recv[i].Room()
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
		x.recv[i].Unpack(x.in[i], 0)
	}
}

// pairwise exchanges blocks with one rank at a time, as coll.AlltoallPairwise.
func (x *blockExchange) pairwise(k *Call) error {
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
func (x *blockExchange) between(k *Call) error {
	for i, b := range x.in {
		if err := k.StartRecv(b, i); err != nil {
			return err
		}
	}
	return k.each(k.StartSend, func(i int) []byte { return x.out[i] })
}
