package p2p

import (
	"context"
	"sync"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
)

// This file sends and receives items of datatypes, in messages of the program. Only the data travels, so the
// datatypes of the two sides may differ in layout (MPI-4.1, Section 5.1.11). Items that are one run of memory
// are sent in place, and so are long runs that the link sends from there, or that a peer of the same host
// copies; others by way of a packed copy. What is received is placed in the runs of the items as it comes,
// unless RDMA needs one run for all of it.

// slotOf returns the slot of the program for messages of the items.
func slotOf(x *datatype.Items) Slot { return SlotUser.Of(x.Sig) }

// SendItems is Send of items.
func (c *Comm) SendItems(ctx context.Context, mode SendMode, x *datatype.Items, dst, tag int) error {
	if x.Dense() || dst == ProcNull {
		return c.Send(ctx, slotOf(x), mode, x.Mem, dst, tag)
	}
	r := GetRequest(c.Engine)
	return c.sendAs(ctx, r, slotOf(x), mode, c.from(r, x, dst, true), dst, tag)
}

// from makes r, which will be a send to dst, send items from where they lie, or by a packed copy, and returns
// the buffer of others and of the copy.
func (c *Comm) from(r *Request, x *datatype.Items, dst int, blocks bool) []byte {
	if x.Dense() {
		return x.Mem
	}
	if c.offersRuns(x, dst) || c.sendsRuns(x, dst, blocks) {
		r.Gaps = x.Gaps
		return nil
	}
	b, own := x.Packed()
	r.packed = newPackedCopy(nil, b, own)
	return b
}

// RecvItems is Recv into items.
func (c *Comm) RecvItems(ctx context.Context, x *datatype.Items, src, tag int) (Status, error) {
	if x.Dense() {
		return c.Recv(ctx, slotOf(x), x.Mem, src, tag)
	}
	if src == ProcNull {
		return noMessage, c.Usable()
	}
	if err := c.CheckSource(slotOf(x), src); err != nil {
		return Status{}, err
	}
	r := GetRequest(c.Engine)
	r.into(x)
	c.StartRecv(r, slotOf(x), nil, src, tag)
	return c.Engine.FinishRecv(ctx, r)
}

// into makes r, which will be a receive, place what it gets in items with gaps, and returns the buffer
// of others.
func (r *Request) into(x *datatype.Items) []byte {
	r.Gaps = x.Gaps
	return x.Mem
}

// Room returns how many bytes a receive has room for.
func (r *Request) Room() int {
	if t := r.Gaps.Type; t != nil {
		return t.Size() * r.Gaps.Count
	}
	return len(r.Buf)
}

// LongRuns reports whether r has items with gaps, in runs of at least n bytes on average.
func (r *Request) LongRuns(n int) bool { return r.Gaps.Type != nil && r.Gaps.Type.LongRuns(n) }

// Runs stores the memory of the items of r that holds the data between two places, as far as to has
// room. It returns how many runs there are, and how many bytes they hold.
func (r *Request) Runs(to [][]byte, from, end int) (k, n int) {
	var runs [64]datatype.Run
	k, n = r.Gaps.Type.FillRuns(runs[:min(len(runs), len(to))], r.Gaps.Count, from, end)
	for i, run := range runs[:k] {
		to[i] = r.Gaps.Mem.Bytes(run.Off, run.Len)
	}
	return k, n
}

// Limits of items that are sent by offering their runs.
const (
	// minOfferRun is their mean length, in bytes. The system maps the pages of each run by themselves, which
	// for runs of 4 KiB takes longer than packing them does.
	minOfferRun = 16 << 10
	// MaxOfferRuns bounds how many there are: a table of them takes 64 KiB.
	MaxOfferRuns = 4096
)

// offersRuns reports whether a message of items is one that the peer copies, run by run, from where
// they lie. If it does not, the items are packed when it asks for the body.
func (c *Comm) offersRuns(x *datatype.Items, dst int) bool {
	if x.Dense() || dst < 0 || dst >= len(c.Peers) {
		return false
	}
	p, hints := c.Peers[dst], c.Hints.Load()
	if x.Len() <= p.eager(hints) || hints.Rendezvous != RendezvousMessage {
		return false
	}
	t := x.Gaps.Type
	return p.Shared.Load() != nil && t.LongRuns(minOfferRun) && t.RunCount()*x.Gaps.Count <= MaxOfferRuns
}

// pack gives r, a send of items that lie in runs, a packed copy of them.
func (r *Request) pack() {
	if r.Gaps.Type == nil {
		return
	}
	x := datatype.Items{Gaps: r.Gaps}
	b, own := x.Packed()
	r.packed = newPackedCopy(nil, b, own)
	r.Buf, r.Gaps = b, datatype.Buffer{}
}

// gather gives r, a receive into items with gaps, a buffer for a body that must be placed in one run of
// memory. It is unpacked when r is complete.
func (r *Request) gather() {
	r.Place.Lock()
	defer r.Place.Unlock()
	if r.Gaps.Type == nil { // it has failed
		return
	}
	x := datatype.Items{Gaps: r.Gaps}
	b, own := x.Room()
	r.packed = newPackedCopy(&x, b, own)
	r.Buf, r.Gaps = b, datatype.Buffer{}
}

// SendrecvItems is Sendrecv of items.
func (c *Comm) SendrecvItems(
	ctx context.Context, send *datatype.Items, dst, stag int, recv *datatype.Items, src, rtag int,
) (Status, error) {
	if send.Dense() {
		return c.sendrecvPacked(ctx, slotOf(send), send.Mem, dst, stag, recv, src, rtag)
	}
	if src == ProcNull {
		return noMessage, c.SendItems(ctx, SendStandard, send, dst, stag)
	}
	if err := c.CheckSource(slotOf(recv), src); err != nil {
		return Status{}, err
	}
	r := GetRequest(c.Engine)
	if err := c.beforeSendWith(ctx, r, slotOf(send), dst); err != nil {
		return Status{}, err
	}
	c.StartRecv(r, slotOf(recv), r.into(recv), src, rtag)
	serr := c.SendItems(ctx, SendStandard, send, dst, stag)
	return c.afterSendWith(ctx, r, slotOf(send), dst, serr)
}

// ReplaceItems is Sendrecv that sends a copy of the items and receives into them.
func (c *Comm) ReplaceItems(ctx context.Context, x *datatype.Items, dst, stag, src, rtag int) (Status, error) {
	sb, sown := x.Copied()
	st, err := c.sendrecvPacked(ctx, slotOf(x), sb, dst, stag, x, src, rtag)
	if err == nil {
		sown.Put()
	}
	return st, err
}

func (c *Comm) sendrecvPacked(
	ctx context.Context, s Slot, sb []byte, dst, stag int, recv *datatype.Items, src, rtag int,
) (Status, error) {
	if recv.Dense() || src == ProcNull {
		return c.Sendrecv(ctx, s, sb, dst, stag, slotOf(recv), recv.Mem, src, rtag)
	}
	if err := c.CheckSource(slotOf(recv), src); err != nil {
		return Status{}, err
	}
	r := GetRequest(c.Engine)
	return c.SendWith(ctx, r, s, sb, dst, stag, slotOf(recv), r.into(recv), src, rtag)
}

// BeginSendItems is BeginSend of items. With a copy the memory of the items is free at once.
func (c *Comm) BeginSendItems(r *Request, mode SendMode, copies bool, x *datatype.Items, dst, tag int) error {
	var b []byte
	switch {
	case dst == ProcNull:
	case copies:
		var own *bufpool.Buffer
		b, own = x.Copied()
		r.packed = newPackedCopy(nil, b, own)
	default:
		b = c.from(r, x, dst, false)
	}
	err := c.BeginSend(r, slotOf(x), mode, b, dst, tag)
	if err != nil {
		r.packed = nil // the collector takes it
	}
	return err
}

// BeginRecvItems is BeginRecv into items.
func (c *Comm) BeginRecvItems(r *Request, x *datatype.Items, src, tag int) error {
	err := c.BeginRecv(r, slotOf(x), r.into(x), src, tag)
	if err != nil {
		r.Gaps = datatype.Buffer{}
	}
	return err
}

// BeginSendPart is BeginSend of n bytes of the data of the items, from an offset on (partitioned
// communication, MPI-4.1, Chapter 4).
func (c *Comm) BeginSendPart(r *Request, x *datatype.Items, from, n, dst, tag int) error {
	b := r.partRoom(nil, x, from, n)
	if r.packed != nil {
		x.Gaps.Pack(b, from)
	}
	err := c.BeginSend(r, slotOf(x), SendStandard, b, dst, tag)
	if err != nil {
		r.packed = nil // the collector takes it
	}
	return err
}

// BeginRecvPart is BeginRecv into n bytes of the data of the items, from an offset on.
func (c *Comm) BeginRecvPart(r *Request, x *datatype.Items, from, n, src, tag int) error {
	err := c.BeginRecv(r, slotOf(x), r.partRoom(x, x, from, n), src, tag)
	if err != nil {
		r.packed = nil
	}
	return err
}

// partRoom returns the memory of a part of the data: in place, or a packed copy, which the end of r
// stores in the items to.
func (r *Request) partRoom(to, x *datatype.Items, from, n int) []byte {
	if x.Dense() {
		return x.Mem[from : from+n]
	}
	own := bufpool.Get(n)
	b := own.Bytes(n)
	r.packed = newPackedCopy(to, b, own)
	r.packed.from = from
	return b
}

// StartProbedItems is StartProbed into items.
func (c *Comm) StartProbedItems(r *Request, x *datatype.Items, m *Message) bool {
	return c.StartProbed(r, slotOf(x), r.into(x), m)
}

// packedCopy is the copy by which items that are not one run of memory travel.
type packedCopy struct {
	data  []byte
	own   *bufpool.Buffer // has data
	items datatype.Items  // where a receive stores it; of a send the zero Items
	from  int             // offset in the data of the items
}

var packedCopies = sync.Pool{New: func() any { return new(packedCopy) }}

// newPackedCopy returns a packedCopy from the pool; x is nil for a send.
func newPackedCopy(x *datatype.Items, data []byte, own *bufpool.Buffer) *packedCopy {
	p := packedCopies.Get().(*packedCopy)
	p.data, p.own = data, own
	if x != nil {
		p.items = *x
	}
	return p
}

// takePacked returns the memory of the packed copy of r, a send. It belongs to the caller then.
func (r *Request) takePacked() *bufpool.Buffer {
	p := r.packed
	r.packed = nil
	own := p.own
	*p = packedCopy{}
	packedCopies.Put(p)
	return own
}

// end is called when r is over: it stores what was received in the items, and gives the copy back.
func (p *packedCopy) end(r *Request, err error) {
	if !p.items.Dense() && (err == nil || r.Length > uint64(r.Status.Bytes)) { // as in AwaitRecv
		p.items.Unpack(p.data[:r.Status.Bytes], p.from)
	}
	if err == nil { // else something may still refer to it
		p.own.Put()
	}
	*p = packedCopy{}
	packedCopies.Put(p)
}
