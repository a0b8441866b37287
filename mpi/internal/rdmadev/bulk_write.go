package rdmadev

import (
	"errors"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/verbs"
)

// Write is an RDMA Write of a body.
type Write struct {
	Bulk   *Bulk
	Sender Sender
	To     Peer
	ID     uint64       // of the receive
	Buf    []byte       // the body
	Key    envelope.Key // of the buffer of the receive

	c    *bulkConn
	regs []*Registration

	// Guarded by Bulk.mu.
	released  bool // the queue pair has completed the writes
	confirmed bool // the receiver has confirmed the body
	lost      bool // the connection has ended: the body is to be sent as a message
}

// Sender is the send that a written body belongs to. One of its methods is called once, by any goroutine.
type Sender interface {
	// WriteDone says that the receiver has the body and nothing refers to the buffer, or, with an
	// error, that the device was closed.
	WriteDone(err error)
	// WriteLost says that the body cannot be written, perhaps because the connection is lost: it is to
	// be sent as a message.
	WriteLost()
}

// bodyKey identifies a body by its peer and the id of the receive.
type bodyKey struct {
	p  Peer
	id uint64
}

// Start writes the body to the memory that its key names, and then notifies the receiver. It does not
// block. Once the receiver has confirmed the body (Confirm) and the queue pair has released the buffer, the
// sender is called. If the connection is lost before, the body is sent as a message.
func (w *Write) Start() {
	if !w.Bulk.begin(w, w.To, &w.Key) {
		w.Sender.WriteLost()
	}
}

// start implements transfer: it posts the writes, or has the body sent as a message.
func (w *Write) start(c *bulkConn) {
	w.c = c
	if c.dead.Load() || !w.post() {
		w.Sender.WriteLost()
	}
}

func (w *Write) post() bool {
	c, b, n := w.c, w.Bulk, len(w.Buf)
	var one [1]verbs.SendWR
	wrs := one[:0]
	for off := 0; off < n; off += b.Segment {
		end := min(off+b.Segment, n)
		g, err := b.d.Registrations.Get(b.d.pd, w.Buf[off:end], 0)
		if err != nil {
			w.putRegs()
			return false
		}
		w.regs = append(w.regs, g)
		wr := verbs.SendWR{Op: verbs.OpWrite, SGL: g.sgl[:],
			Remote: verbs.RemoteBuf{STag: w.Key.STag, TO: uint64(off), Len: uint64(end - off)}}
		if end == n {
			wr.Op, wr.Imm, wr.Flags = verbs.OpWriteImm, w.ID, verbs.Signaled
		}
		wrs = append(wrs, wr)
	}
	b.mu.Lock()
	if b.shut {
		b.mu.Unlock()
		w.putRegs()
		return false
	}
	b.last++
	key := b.last
	b.writes[key], b.unsure[bodyKey{c.p, w.ID}] = w, w
	b.mu.Unlock()
	count := c.p.Counters()
	for i := range wrs {
		wrs[i].ID = key << 1
		count.count(&wrs[i])
	}
	wrs[len(wrs)-1].ID |= 1
	if err := c.qp.PostSend(wrs...); err != nil {
		b.mu.Lock()
		delete(b.writes, key)
		delete(b.unsure, bodyKey{c.p, w.ID})
		b.mu.Unlock()
		w.putRegs()
		count.Writes.Add(-len(wrs), -n)
		if !errors.Is(err, verbs.ErrQueueFull) {
			b.drop(c)
		}
		return false
	}
	return true
}

// sent processes the completion of a write or read. A connection with a failed one is closed, which
// watch notices.
func (b *Bulk) sent(wc *verbs.WC) {
	if wc.Op == verbs.OpRead {
		b.haveRead(wc)
		return
	}
	key, last := wc.ID>>1, wc.ID&1 != 0
	b.mu.Lock()
	w := b.writes[key]
	if w == nil {
		b.mu.Unlock()
		return
	}
	if last {
		delete(b.writes, key)
		w.released = true
	}
	confirmed, lost := w.confirmed, w.lost
	b.mu.Unlock()
	if wc.Status != verbs.StatusSuccess {
		b.drop(w.c)
	}
	if !last {
		return
	}
	w.putRegs()
	switch {
	case confirmed:
		w.Sender.WriteDone(nil)
	case lost:
		w.Sender.WriteLost()
	}
}

// Confirm records that p has the body of its receive id.
func (b *Bulk) Confirm(p Peer, id uint64) {
	b.mu.Lock()
	w := b.unsure[bodyKey{p, id}]
	if w == nil {
		b.mu.Unlock()
		return
	}
	delete(b.unsure, bodyKey{p, id})
	w.confirmed = true
	released := w.released
	b.mu.Unlock()
	if released {
		w.Sender.WriteDone(nil)
	}
}

// putRegs gives the registrations back.
func (w *Write) putRegs() {
	for _, g := range w.regs {
		_ = w.Bulk.d.Registrations.Put(g) // no work request names it any more
	}
	w.regs = nil
}
