package mpi

import (
	"errors"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/verbs"
)

// Rendezvous by RDMA Read: the registered buffers of the sender, and the reads of the receiver.

// bulkOffer is a registered buffer of a send.
type bulkOffer struct {
	d  *bulkDevice
	mr *verbs.MR
}

// offer implements bulkMover.
func (b *rdmaBulk) offer(r *Request) (g envelope.Key, ok bool) {
	d := b.open.Load()
	if d == nil {
		return g, false
	}
	x := &bulkOffer{d: d}
	d.bmu.Lock()
	defer d.bmu.Unlock()
	if d.shut || len(d.offers) >= bulkOffers {
		return g, false
	}
	var err error
	if x.mr, err = d.pd.Register(r.buf, verbs.RemoteRead); err != nil {
		return g, false
	}
	d.offers[x] = true
	r.offered = x
	g.STag, g.Port, g.Token = x.mr.STag(), d.dev.Addr().Port, d.token
	return g, true
}

// over implements offering. It reports false, because responses to reads may have to be
// retransmitted even if the receiver has read everything.
func (x *bulkOffer) over() bool { return false }

// withdraw implements offering. Read responses reference the buffer until they are acknowledged.
func (x *bulkOffer) withdraw(then func(bool)) {
	x.d.bmu.Lock()
	if x.d.offers[x] {
		delete(x.d.offers, x)
		_ = x.mr.Close() // no work request names it
	}
	x.d.bmu.Unlock()
	x.mr.AfterDrain(func() { then(false) })
}

// bulkRead is an RDMA Read of a body. It is the exposure of its receive.
type bulkRead struct {
	fetch
	c    *bulkConn
	buf  []byte
	regs []*registration

	state readState // guarded by bulkDevice.bmu
}

// readState is the state of a bulkRead.
type readState uint8

const (
	readWaits   readState = iota // waits for the connection
	readPosted                   // posted, or about to be
	readEnded                    // no bytes are placed any more
	readStopped                  // the receive has ended
)

// read implements bulkMover.
func (b *rdmaBulk) read(f fetch) {
	e, d := b.w.eng, b.open.Load()
	if d == nil {
		e.readFailed(&f)
		return
	}
	c, mine := d.conn(f.p)
	if c == nil {
		e.readFailed(&f)
		return
	}
	x := &bulkRead{fetch: f, c: c}
	f.r.place.Lock()
	gone := f.r.epoch != f.epoch || len(f.r.buf) < f.n // it was unmatched, or has failed
	if !gone {
		x.buf = f.r.buf[:f.n]
		f.r.exposed = x
	}
	f.r.place.Unlock()
	if gone {
		e.readDone(&f, true)
		return
	}
	select {
	case <-c.up:
		x.post()
	default:
		go func() {
			if mine {
				c.connect(&x.from)
			}
			<-c.up
			x.post()
		}()
	}
}

// withdraw implements exposure. A read in flight can be stopped only by closing the connection;
// other transfers on it are repeated.
func (x *bulkRead) withdraw() {
	d := x.c.d
	d.bmu.Lock()
	was := x.state
	x.state = readStopped
	d.bmu.Unlock()
	if was == readPosted {
		d.drop(x.c)
	}
}

// post posts the reads of a body, or falls back to CTS.
func (x *bulkRead) post() {
	if !x.c.dead.Load() && x.tryPost() {
		return
	}
	x.end(false)
}

func (x *bulkRead) tryPost() bool {
	d := x.c.d
	var one [1]verbs.SendWR
	wrs := one[:0]
	for off := 0; off < x.n; off += d.piece {
		end := min(off+d.piece, x.n)
		g, err := d.regs.get(d.pd, x.buf[off:end], verbs.LocalWrite)
		if err != nil {
			x.putRegs()
			return false
		}
		x.regs = append(x.regs, g)
		wrs = append(wrs, verbs.SendWR{Op: verbs.OpRead, SGL: g.sgl[:],
			Remote: verbs.RemoteBuf{STag: x.from.STag, TO: uint64(off), Len: uint64(end - off)}})
	}
	d.bmu.Lock()
	if d.shut || x.state != readWaits {
		d.bmu.Unlock()
		x.putRegs()
		return false
	}
	x.state = readPosted
	d.last++
	key := d.last
	d.reads[key] = x
	d.bmu.Unlock()
	for i := range wrs {
		wrs[i].ID = key << 1
		x.p.rdma.count(&wrs[i])
	}
	wrs[len(wrs)-1].ID |= 1
	wrs[len(wrs)-1].Flags = verbs.Signaled
	if err := x.c.qp.PostSend(wrs...); err != nil {
		d.bmu.Lock()
		delete(d.reads, key)
		d.bmu.Unlock()
		x.putRegs()
		x.p.rdma.reads.messages.Add(-uint64(len(wrs)))
		x.p.rdma.reads.bytes.Add(-uint64(x.n))
		if !errors.Is(err, verbs.ErrQueueFull) {
			d.drop(x.c)
		}
		return false
	}
	return true
}

// haveRead processes the completion of a read. The reads of a body complete in order, and after a
// failed one the rest fail.
func (d *bulkDevice) haveRead(wc *verbs.WC) {
	key, last := wc.ID>>1, wc.ID&1 != 0
	d.bmu.Lock()
	x := d.reads[key]
	if last {
		delete(d.reads, key)
	}
	d.bmu.Unlock()
	if x == nil {
		return
	}
	if wc.Status != verbs.StatusSuccess {
		d.drop(x.c)
	}
	if last {
		x.putRegs()
		x.end(wc.Status == verbs.StatusSuccess)
	}
}

// end ends the fetch: it places no bytes any more.
func (x *bulkRead) end(whole bool) {
	d := x.c.d
	d.bmu.Lock()
	gone := x.state == readStopped
	x.state = readEnded
	d.bmu.Unlock()
	switch e := d.w.eng; {
	case whole || gone:
		e.readDone(&x.fetch, gone)
	default:
		e.readFailed(&x.fetch)
	}
}

// putRegs gives the registrations back.
func (x *bulkRead) putRegs() {
	for _, g := range x.regs {
		_ = x.c.d.regs.put(g) // no work request names it any more
	}
	x.regs = nil
}
