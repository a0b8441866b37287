package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// This file checks the arguments of collectives and makes calls of them. Even
// a call with bad arguments takes its tag, so that the ranks still agree about
// later ones.

// checked is what the collectives use of the buffers of a call: the memory itself, or packed copies
// of items with gaps.
type checked struct {
	send, recv []byte
	elem       int
	sig        datatype.Sig
	err        error

	units [2]int             // bytes that counts of send and of recv count; 0: elem
	own   [2]*bufpool.Buffer // have packed copies; nil: there is none
	into  *datatype.Items    // where what is received is stored; nil: recv is the memory itself
	red   op.Reducer         // of a reduction of Buffers
	gaps  [2]*datatype.Items // of send and of recv, of which only blocks are used; nil: they are above
}

func check[T Element](send, recv []T) (b checked) {
	if b.sig, b.err = datatype.ElementSig[T](); b.err == nil {
		b.send, b.recv, b.elem = datatype.Bytes(send), datatype.Bytes(recv), datatype.SizeOf[T]()
	}
	return b
}

// checkBuffers is check of what a call describes. Either may be the zero Buffer.
func checkBuffers(send, recv *Buffer) checked {
	return checkBuffersInto(send, recv, true) // what is not received stays as it was
}

// checkBlocked is checkBuffers for collectives that use only blocks of send, or of recv, which their counts
// and displacements say: items with gaps are not packed before these are known.
func checkBlocked(send, recv *Buffer, ofSend, ofRecv bool) (b checked) {
	x, y := send, recv
	var gaps [2]*datatype.Items
	if ofSend && send.err == nil && !send.items.Dense() {
		items := send.items
		gaps[0], x = &items, &Buffer{}
	}
	if ofRecv && recv.err == nil && !recv.items.Dense() {
		items := recv.items
		gaps[1], y = &items, &Buffer{}
	}
	if b = checkBuffers(x, y); b.err == nil {
		b.gaps = gaps
		b.of(&send.items, &recv.items)
		for i, side := range [2]*Buffer{send, recv} {
			if side.of != nil && side.items.Elem == 0 {
				b.units[i] = noData
			}
		}
	}
	return b
}

// noData is the unit of items without data: counts and displacements of them say nothing.
const noData = -1

// of stores what the items are.
func (b *checked) of(x, y *datatype.Items) {
	b.units = [2]int{x.Elem, y.Elem}
	switch {
	case x.Elem == 0 || x.Elem == y.Elem && x.Sig == y.Sig:
		b.elem, b.sig = y.Elem, y.Sig
	case y.Elem == 0:
		b.elem, b.sig = x.Elem, x.Sig
	default:
		b.elem, b.sig = 1, datatype.SigAny
	}
}

// checkBuffersInto is checkBuffers; keep says that not all of recv is written for sure.
func checkBuffersInto(send, recv *Buffer, keep bool) (b checked) {
	if b.err = errors.Join(send.err, recv.err); b.err != nil {
		return b
	}
	x, y := &send.items, &recv.items
	b.send, b.own[0] = x.Packed()
	if keep {
		b.recv, b.own[1] = y.Packed()
	} else {
		b.recv, b.own[1] = y.Room()
	}
	if b.own[1] != nil {
		into := *y
		b.into = &into
	}
	b.of(x, y)
	return b
}

// prepare begins a call on the buffers; size is what the tuning table goes by.
func (c *Comm) prepare(ctx context.Context, kind Coll, b checked, size int) (*collective, error) {
	k, err := c.begin(ctx, kind)
	if err != nil {
		return nil, c.raise(err)
	}
	if b.err != nil {
		return k.refuse(b.err)
	}
	if c.remote != nil && !interHas[kind] {
		return k.refuse(ErrComm)
	}
	k.SendBuf, k.RecvBuf, k.Elem, k.bytes, k.comm.slot = b.send, b.recv, max(b.elem, 1), size, p2p.SlotColl.Of(b.sig)
	k.units, k.own, k.into, k.gaps = [2]int{k.Elem, k.Elem}, b.own, b.into, b.gaps
	for i, n := range b.units {
		if n != 0 {
			k.units[i] = n
		}
	}
	return k, nil
}

// refuse ends a call with bad arguments.
func (k *collective) refuse(err error) (*collective, error) {
	err = fmt.Errorf("%w (in %v)", err, k.kind)
	c := k.comm.c
	k.release()
	return nil, c.raise(err)
}

func (k *collective) setRoot(root int) error {
	if root < 0 || root >= k.Size {
		return fmt.Errorf("%w: %d of %d", ErrRoot, root, k.Size)
	}
	k.Root = root
	return nil
}

func wrongLength(what string, got, want int) error {
	return fmt.Errorf("%w: %s holds %d bytes, not %d", ErrCount, what, got, want)
}

func (c *Comm) barrierCall(ctx context.Context) (*collective, error) {
	if c.remote != nil {
		return c.interBarrier(ctx)
	}
	return c.prepare(ctx, CollBarrier, checked{}, 0)
}

func (c *Comm) bcastCall(ctx context.Context, b checked, root int) (*collective, error) {
	if c.remote != nil {
		return c.interBcast(ctx, b, root)
	}
	k, err := c.prepare(ctx, CollBcast, b, len(b.recv))
	if err != nil {
		return nil, err
	}
	if err := k.setRoot(root); err != nil {
		return k.refuse(err)
	}
	return k, nil
}

// reduceCall prepares Reduce, Allreduce, Scan and Exscan; root is -1 if all
// ranks get a result.
func (c *Comm) reduceCall(ctx context.Context, kind Coll, b checked, red op.Reducer, root int) (*collective, error) {
	if c.remote != nil {
		return c.interReduce(ctx, kind, b, red, root)
	}
	k, err := c.prepare(ctx, kind, b, len(b.send))
	if err != nil {
		return nil, err
	}
	if red == nil {
		return k.refuse(ErrOp)
	}
	k.setOp(red)
	if kind == CollReduce {
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
		return k.refuse(ErrOverlap)
	}
	return k, nil
}

// reduceScatterCall prepares ReduceScatter, and with counts nil
// ReduceScatterBlock.
func (c *Comm) reduceScatterCall(
	ctx context.Context, kind Coll, b checked, counts []int, red op.Reducer,
) (*collective, error) {
	if c.remote != nil {
		return c.interReduceScatter(ctx, kind, b, counts, red)
	}
	k, err := c.prepare(ctx, kind, b, len(b.send))
	if err != nil {
		return nil, err
	}
	if red == nil {
		return k.refuse(ErrOp)
	}
	k.setOp(red)
	if kind == CollReduceScatterBlock {
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
		return k.refuse(ErrOverlap)
	}
	return k, nil
}

// gatherCall prepares Gather and Scatter, which differ in which buffer is
// that of all ranks.
func (c *Comm) gatherCall(ctx context.Context, kind Coll, b checked, root int) (*collective, error) {
	if c.remote != nil {
		return c.interGather(ctx, kind, b, nil, nil, root)
	}
	one := len(b.send)
	if kind == CollScatter {
		one = len(b.recv)
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
	if kind == CollScatter {
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
		return k.refuse(ErrOverlap)
	}
	return k, nil
}

// gathervCall prepares Gatherv and Scatterv.
func (c *Comm) gathervCall(
	ctx context.Context, kind Coll, b checked, counts, displs []int, root int,
) (*collective, error) {
	if c.remote != nil {
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
	if kind == CollScatterv {
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
		return k.refuse(ErrOverlap)
	}
	return k, nil
}

// allgatherCall prepares Allgather, and with counts Allgatherv.
func (c *Comm) allgatherCall(ctx context.Context, kind Coll, b checked, counts, displs []int) (*collective, error) {
	if c.remote != nil {
		return c.interAllgather(ctx, kind, b, counts, displs)
	}
	k, err := c.prepare(ctx, kind, b, len(b.send))
	if err != nil {
		return nil, err
	}
	if kind == CollAllgather {
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
		return k.refuse(ErrOverlap)
	}
	return k, nil
}

func (c *Comm) alltoallCall(ctx context.Context, b checked) (*collective, error) {
	if c.remote != nil {
		return c.interAlltoall(ctx, b)
	}
	size := len(c.group)
	k, err := c.prepare(ctx, CollAlltoall, b, len(b.send)/size)
	if err != nil {
		return nil, err
	}
	if k.Block = k.bytes; k.Block*size != len(k.SendBuf) || k.Block%k.Elem != 0 {
		return k.refuse(fmt.Errorf("%w: send holds %d bytes, no multiple of %d elements", ErrCount, len(k.SendBuf), size))
	}
	if len(k.RecvBuf) != len(k.SendBuf) {
		return k.refuse(wrongLength("recv", len(k.RecvBuf), len(k.SendBuf)))
	}
	if err := k.sendApart(); err != nil {
		return k.refuse(err)
	}
	return k, nil
}

func (c *Comm) alltoallvCall(
	ctx context.Context, b checked, scounts, sdispls, rcounts, rdispls []int,
) (*collective, error) {
	k, err := c.prepare(ctx, CollAlltoallv, b, 0)
	if err != nil {
		return nil, err
	}
	if k.SendLayout, err = k.layout(&k.sendMem, scounts, sdispls, len(k.SendBuf)); err != nil {
		return k.refuse(err)
	}
	if k.RecvLayout, err = k.layout(&k.recvMem, rcounts, rdispls, len(k.RecvBuf)); err != nil {
		return k.refuse(err)
	}
	if c.remote != nil {
		k.run = betweenGroups
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
func (k *collective) sendApart() error {
	if !overlaps(k.SendBuf, k.SendLayout, k.RecvBuf, k.RecvLayout) {
		return nil
	}
	if !coll.Same(k.SendBuf, k.RecvBuf) {
		return ErrOverlap
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
func (k *collective) layout(l *coll.Layout, counts, displs []int, length int) (*coll.Layout, error) {
	if len(counts) != k.Size || displs != nil && len(displs) != k.Size {
		return nil, fmt.Errorf("%w: %d counts and %d displacements for %d ranks", ErrCount, len(counts), len(displs), k.Size)
	}
	l.Counts = slices.Grow(l.Counts[:0], k.Size)[:k.Size]
	l.Displs = slices.Grow(l.Displs[:0], k.Size)[:k.Size]
	side := 1
	if l == &k.sendMem {
		side = 0
	}
	unit := k.units[side]
	if unit == noData {
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
			return nil, fmt.Errorf("%w: block of rank %d is %d elements at %d of %d", ErrCount, i, n, at, room)
		}
		l.Counts[i], l.Displs[i] = n*unit, at*unit
		next = at + n
	}
	k.pack(side, l.Counts, l.Displs)
	return l, nil
}

// room returns the bytes of data of one side, or length if that has no gaps.
func (k *collective) room(side, length int) int {
	if items := k.gaps[side]; items != nil {
		return items.Len()
	}
	return length
}

// pack packs the blocks of one side, if it has gaps: block i is counts[i] bytes at at[i] of the packed data,
// and gets its place in the send or receive buffer.
func (k *collective) pack(side int, counts, at []int) {
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
