package collective

import (
	"context"
	"fmt"
	"slices"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Args is what the collectives use of the buffers of a call: the memory itself, or packed copies
// of items with gaps.
type Args struct {
	Send, Recv []byte
	Elem       int
	Sig        datatype.Sig
	Err        error

	Units [2]int             // bytes that counts of Send and of Recv count; 0: Elem
	Own   [2]*bufpool.Buffer // have packed copies; nil: there is none
	Into  *datatype.Items    // where what is received is stored; nil: Recv is the memory itself
	Red   op.Reducer         // of a reduction of items
	Gaps  [2]*datatype.Items // of Send and of Recv, of which only blocks are used; nil: they are above
}

// NoData is the unit of items without data: counts and displacements of them say nothing.
const NoData = -1

// Of stores what the items are.
func (b *Args) Of(x, y *datatype.Items) {
	b.Units = [2]int{x.Elem, y.Elem}
	switch {
	case x.Elem == 0 || x.Elem == y.Elem && x.Sig == y.Sig:
		b.Elem, b.Sig = y.Elem, y.Sig
	case y.Elem == 0:
		b.Elem, b.Sig = x.Elem, x.Sig
	default:
		b.Elem, b.Sig = 1, datatype.SigAny
	}
}

// prepare begins a call on the buffers; size is what the tuning table goes by.
func (c *Comm) prepare(ctx context.Context, kind coll.Kind, b Args, size int) (*Call, error) {
	k, err := c.begin(ctx, kind)
	if err != nil {
		return nil, err
	}
	if b.Err != nil {
		return k.refuse(b.Err)
	}
	if c.Local != nil && !interHas[kind] {
		return k.refuse(mpierr.ErrComm)
	}
	k.SendBuf, k.RecvBuf, k.Elem, k.bytes, k.comm.slot = b.Send, b.Recv, max(b.Elem, 1), size, p2p.SlotColl.Of(b.Sig)
	k.units, k.own, k.into, k.gaps = [2]int{k.Elem, k.Elem}, b.Own, b.Into, b.Gaps
	for i, n := range b.Units {
		if n != 0 {
			k.units[i] = n
		}
	}
	return k, nil
}

// refuse ends a call with bad arguments.
func (k *Call) refuse(err error) (*Call, error) {
	err = fmt.Errorf("%w (in %v)", err, k.Kind)
	k.release()
	return nil, err
}

func (k *Call) setRoot(root int) error {
	if root < 0 || root >= k.Size {
		return fmt.Errorf("%w: %d of %d", mpierr.ErrRoot, root, k.Size)
	}
	k.Root = root
	return nil
}

func wrongLength(what string, got, want int) error {
	return fmt.Errorf("%w: %s holds %d bytes, not %d", mpierr.ErrCount, what, got, want)
}

// Barrier prepares Barrier.
func (c *Comm) Barrier(ctx context.Context) (*Call, error) {
	if c.Local != nil {
		return c.interBarrier(ctx)
	}
	return c.prepare(ctx, coll.Barrier, Args{}, 0)
}

// Bcast prepares Bcast.
func (c *Comm) Bcast(ctx context.Context, b Args, root int) (*Call, error) {
	if c.Local != nil {
		return c.interBcast(ctx, b, root)
	}
	k, err := c.prepare(ctx, coll.Bcast, b, len(b.Recv))
	if err != nil {
		return nil, err
	}
	if err := k.setRoot(root); err != nil {
		return k.refuse(err)
	}
	if root == c.P2P.Rank {
		k.into = nil // its buffer is only read
	}
	return k, nil
}

// Reduce prepares Reduce, Allreduce, Scan and Exscan; root is -1 if all
// ranks get a result.
func (c *Comm) Reduce(ctx context.Context, kind coll.Kind, b Args, red op.Reducer, root int) (*Call, error) {
	if c.Local != nil {
		return c.interReduce(ctx, kind, b, red, root)
	}
	k, err := c.prepare(ctx, kind, b, len(b.Send))
	if err != nil {
		return nil, err
	}
	if red == nil {
		return k.refuse(mpierr.ErrOp)
	}
	k.setOp(red)
	if kind == coll.Reduce {
		if err := k.setRoot(root); err != nil {
			return k.refuse(err)
		}
		if k.Rank != root {
			k.RecvBuf = nil
			return k, nil
		}
	}
	if len(k.RecvBuf) != len(k.SendBuf) {
		return k.refuse(wrongLength("recv", len(k.RecvBuf), len(k.SendBuf)))
	}
	if coll.Overlap(k.SendBuf, k.RecvBuf) && !coll.Same(k.SendBuf, k.RecvBuf) {
		return k.refuse(mpierr.ErrOverlap)
	}
	return k, nil
}

// ReduceScatter prepares ReduceScatter, and with counts nil
// ReduceScatterBlock.
func (c *Comm) ReduceScatter(
	ctx context.Context, kind coll.Kind, b Args, counts []int, red op.Reducer,
) (*Call, error) {
	if c.Local != nil {
		return c.interReduceScatter(ctx, kind, b, counts, red)
	}
	k, err := c.prepare(ctx, kind, b, len(b.Send))
	if err != nil {
		return nil, err
	}
	if red == nil {
		return k.refuse(mpierr.ErrOp)
	}
	k.setOp(red)
	if kind == coll.ReduceScatterBlock {
		if k.Block = len(k.RecvBuf); len(k.SendBuf) != k.Block*k.Size {
			return k.refuse(wrongLength("send", len(k.SendBuf), k.Block*k.Size))
		}
	} else {
		if k.SendLayout, err = k.layout(&k.sendMem, counts, nil, len(k.SendBuf)); err != nil {
			return k.refuse(err)
		}
		if end := k.SendLayout.Displs[k.Size-1] + k.SendLayout.Counts[k.Size-1]; end != len(k.SendBuf) {
			return k.refuse(wrongLength("send", len(k.SendBuf), end))
		}
		if len(k.RecvBuf) != k.SendLayout.Counts[k.Rank] {
			return k.refuse(wrongLength("recv", len(k.RecvBuf), k.SendLayout.Counts[k.Rank]))
		}
	}
	if coll.Overlap(k.SendBuf, k.RecvBuf) && !coll.Same(k.RecvBuf, k.SendBuf[:len(k.RecvBuf)]) {
		return k.refuse(mpierr.ErrOverlap)
	}
	return k, nil
}

// Gather prepares Gather and Scatter, which differ in which buffer is
// that of all ranks.
func (c *Comm) Gather(ctx context.Context, kind coll.Kind, b Args, root int) (*Call, error) {
	if c.Local != nil {
		return c.interGather(ctx, kind, b, nil, nil, root)
	}
	one := len(b.Send)
	if kind == coll.Scatter {
		one = len(b.Recv)
	}
	k, err := c.prepare(ctx, kind, b, one)
	if err != nil {
		return nil, err
	}
	if err := k.setRoot(root); err != nil {
		return k.refuse(err)
	}
	k.Block = one
	all, mine, name := &k.RecvBuf, k.SendBuf, "recv"
	if kind == coll.Scatter {
		all, mine, name = &k.SendBuf, k.RecvBuf, "send"
	}
	if k.Rank != root {
		*all = nil
		return k, nil
	}
	if len(*all) != k.Block*k.Size {
		return k.refuse(wrongLength(name, len(*all), k.Block*k.Size))
	}
	if coll.Overlap(*all, mine) && !coll.Same(coll.BlockOf(*all, nil, k.Block, root), mine) {
		return k.refuse(mpierr.ErrOverlap)
	}
	return k, nil
}

// Gatherv prepares Gatherv and Scatterv.
func (c *Comm) Gatherv(
	ctx context.Context, kind coll.Kind, b Args, counts, displs []int, root int,
) (*Call, error) {
	if c.Local != nil {
		return c.interGather(ctx, kind, b, counts, displs, root)
	}
	k, err := c.prepare(ctx, kind, b, 0)
	if err != nil {
		return nil, err
	}
	if err := k.setRoot(root); err != nil {
		return k.refuse(err)
	}
	all, mine, v, mem := &k.RecvBuf, k.SendBuf, &k.RecvLayout, &k.recvMem
	if kind == coll.Scatterv {
		all, mine, v, mem = &k.SendBuf, k.RecvBuf, &k.SendLayout, &k.sendMem
	}
	if k.Rank != root {
		*all = nil
		return k, nil
	}
	if *v, err = k.layout(mem, counts, displs, len(*all)); err != nil {
		return k.refuse(err)
	}
	own := coll.BlockOf(*all, *v, 0, root)
	if len(own) != len(mine) {
		return k.refuse(wrongLength("the root's own block", len(own), len(mine)))
	}
	if overlaps(*all, *v, mine, nil) && !coll.Same(own, mine) {
		return k.refuse(mpierr.ErrOverlap)
	}
	return k, nil
}

// Allgather prepares Allgather, and with counts Allgatherv.
func (c *Comm) Allgather(ctx context.Context, kind coll.Kind, b Args, counts, displs []int) (*Call, error) {
	if c.Local != nil {
		return c.interAllgather(ctx, kind, b, counts, displs)
	}
	k, err := c.prepare(ctx, kind, b, len(b.Send))
	if err != nil {
		return nil, err
	}
	if kind == coll.Allgather {
		if k.Block = len(k.SendBuf); len(k.RecvBuf) != k.Block*k.Size {
			return k.refuse(wrongLength("recv", len(k.RecvBuf), k.Block*k.Size))
		}
	} else {
		if k.RecvLayout, err = k.layout(&k.recvMem, counts, displs, len(k.RecvBuf)); err != nil {
			return k.refuse(err)
		}
		if len(k.SendBuf) != k.RecvLayout.Counts[k.Rank] {
			return k.refuse(wrongLength("send", len(k.SendBuf), k.RecvLayout.Counts[k.Rank]))
		}
		k.bytes = 0
		for _, n := range k.RecvLayout.Counts {
			k.bytes += n
		}
		k.bytes /= k.Size
	}
	if overlaps(k.SendBuf, nil, k.RecvBuf, k.RecvLayout) && !coll.Same(k.RecvBlock(k.Rank), k.SendBuf) {
		return k.refuse(mpierr.ErrOverlap)
	}
	return k, nil
}

// Alltoall prepares Alltoall.
func (c *Comm) Alltoall(ctx context.Context, b Args) (*Call, error) {
	if c.Local != nil {
		return c.interAlltoall(ctx, b)
	}
	size := c.Size()
	k, err := c.prepare(ctx, coll.Alltoall, b, len(b.Send)/size)
	if err != nil {
		return nil, err
	}
	if k.Block = k.bytes; k.Block*size != len(k.SendBuf) || k.Block%k.Elem != 0 {
		return k.refuse(fmt.Errorf("%w: send holds %d bytes, no multiple of %d elements", mpierr.ErrCount, len(k.SendBuf), size))
	}
	if len(k.RecvBuf) != len(k.SendBuf) {
		return k.refuse(wrongLength("recv", len(k.RecvBuf), len(k.SendBuf)))
	}
	if err := k.sendApart(); err != nil {
		return k.refuse(err)
	}
	return k, nil
}

// Alltoallv prepares Alltoallv.
func (c *Comm) Alltoallv(
	ctx context.Context, b Args, scounts, sdispls, rcounts, rdispls []int,
) (*Call, error) {
	k, err := c.prepare(ctx, coll.Alltoallv, b, 0)
	if err != nil {
		return nil, err
	}
	if k.SendLayout, err = k.layout(&k.sendMem, scounts, sdispls, len(k.SendBuf)); err != nil {
		return k.refuse(err)
	}
	if k.RecvLayout, err = k.layout(&k.recvMem, rcounts, rdispls, len(k.RecvBuf)); err != nil {
		return k.refuse(err)
	}
	if c.Local != nil {
		k.plain, k.run = true, betweenGroups
		return k, nil
	}
	if own, want := len(k.SendBlock(k.Rank)), len(k.RecvBlock(k.Rank)); own != want {
		return k.refuse(wrongLength("the rank's own block", own, want))
	}
	if err := k.sendApart(); err != nil {
		return k.refuse(err)
	}
	return k, nil
}

// sendApart makes an in-place exchange one of two buffers.
func (k *Call) sendApart() error {
	if !overlaps(k.SendBuf, k.SendLayout, k.RecvBuf, k.RecvLayout) {
		return nil
	}
	if !coll.Same(k.SendBuf, k.RecvBuf) {
		return mpierr.ErrOverlap
	}
	if k.SendLayout == nil {
		k.SendBuf = k.Scratch(len(k.RecvBuf))
		copy(k.SendBuf, k.RecvBuf)
		return nil
	}
	// Only the blocks are copied: what is between them may be changed by others.
	n := 0
	for _, count := range k.SendLayout.Counts {
		n += count
	}
	from := k.SendBuf
	k.SendBuf, n = k.Scratch(n), 0
	for i, at := range k.SendLayout.Displs {
		count := k.SendLayout.Counts[i]
		copy(k.SendBuf[n:], from[at:at+count])
		k.SendLayout.Displs[i], n = n, n+count
	}
	return nil
}

// layout fills l, which is sendMem or recvMem, from counts and displacements in elements of that
// buffer; without displs the blocks follow one another. The blocks must lie within length bytes.
func (k *Call) layout(l *coll.Layout, counts, displs []int, length int) (*coll.Layout, error) {
	if len(counts) != k.Size || displs != nil && len(displs) != k.Size {
		return nil, fmt.Errorf("%w: %d counts and %d displacements for %d ranks", mpierr.ErrCount, len(counts), len(displs), k.Size)
	}
	l.Counts = slices.Grow(l.Counts[:0], k.Size)[:k.Size]
	l.Displs = slices.Grow(l.Displs[:0], k.Size)[:k.Size]
	side := 1
	if l == &k.sendMem {
		side = 0
	}
	unit := k.units[side]
	if unit == NoData {
		clear(l.Counts)
		clear(l.Displs)
		return l, nil
	}
	room := k.room(side, length) / unit
	next := 0
	for i, n := range counts {
		at := next
		if displs != nil {
			at = displs[i]
		}
		if n < 0 || at < 0 || n > room || at > room-n {
			return nil, fmt.Errorf("%w: block of rank %d is %d elements at %d of %d", mpierr.ErrCount, i, n, at, room)
		}
		l.Counts[i], l.Displs[i] = n*unit, at*unit
		next = at + n
	}
	k.pack(side, l.Counts, l.Displs)
	return l, nil
}

// total returns the sum of counts.
func total(counts []int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// room returns the bytes of data of one side, or length if that has no gaps.
func (k *Call) room(side, length int) int {
	if items := k.gaps[side]; items != nil {
		return items.Len()
	}
	return length
}

// pack packs the blocks of one side, if it has gaps: block i is counts[i] bytes at at[i] of the packed data,
// and gets its place in the send or receive buffer.
func (k *Call) pack(side int, counts, at []int) {
	items := k.gaps[side]
	if items == nil {
		return
	}
	n := total(counts)
	own := bufpool.Get(n)
	b := own.Bytes(n)
	k.own[side] = own
	if side == 0 {
		k.SendBuf = b
	} else {
		k.RecvBuf, k.into = b, items
	}
	n = 0
	for i, count := range counts {
		if side == 0 {
			items.Gaps.Pack(b[n:n+count], at[i])
		} else {
			k.from = append(k.from, at[i])
		}
		at[i], n = n, n+count
	}
}
