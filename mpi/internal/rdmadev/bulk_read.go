package rdmadev

import (
	"errors"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/verbs"
)

// Offering is a registered buffer of a send.
type Offering struct {
	b  *Bulk
	mr *verbs.MR
}

// Offer registers the buffer of a send for RDMA Read and returns its key. It reports false if that is not
// possible.
func (b *Bulk) Offer(buf []byte) (x *Offering, key envelope.Key, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shut || len(b.offers) >= maxOffered {
		return nil, key, false
	}
	mr, err := b.d.pd.Register(buf, verbs.RemoteRead)
	if err != nil {
		return nil, key, false
	}
	x = &Offering{b: b, mr: mr}
	b.offers[x] = true
	return x, b.d.key(mr), true
}

// Withdraw ends the access.
func (x *Offering) Withdraw() {
	x.b.mu.Lock()
	defer x.b.mu.Unlock()
	if x.b.offers[x] {
		delete(x.b.offers, x)
		_ = x.mr.Close() // no work request names it
	}
}

// AfterDrain calls f once the access has ended and nothing refers to the buffer: read responses do until
// they are acknowledged.
func (x *Offering) AfterDrain(f func()) { x.mr.AfterDrain(f) }

// Read is an RDMA Read of a body.
type Read struct {
	Bulk     *Bulk
	Receiver Receiver
	From     Peer
	Key      envelope.Key // of the buffer of the send
	Buf      []byte       // what the body is read to

	c    *bulkConn
	regs []*Registration

	state readState // guarded by Bulk.mu
}

// Receiver is the receive that a read body belongs to. One of its methods is called once, by any goroutine.
type Receiver interface {
	// ReadDone says that the body was read, or, if gone is true, that Withdraw was called before. No
	// bytes are placed any more.
	ReadDone(gone bool)
	// ReadFailed says that the body cannot be read: it is to be sent as a message.
	ReadFailed()
	// ReadAborted says that the device was closed.
	ReadAborted(err error)
}

// readState is the state of a Read.
type readState uint8

const (
	readWaits   readState = iota // waits for the connection
	readPosted                   // posted, or about to be
	readEnded                    // no bytes are placed any more
	readStopped                  // the receive has ended
)

// Start reads the body, and then calls its receiver, perhaps before it returns. It does not block.
func (x *Read) Start() {
	if !x.Bulk.begin(x, x.From, &x.Key) {
		x.end(false)
	}
}

// Withdraw stops a read. A read in flight can be stopped only by closing the connection; other transfers on
// it are repeated. After Withdraw has returned nothing is placed any more.
func (x *Read) Withdraw() {
	x.Bulk.mu.Lock()
	was := x.state
	x.state = readStopped
	x.Bulk.mu.Unlock()
	if was == readPosted {
		x.Bulk.drop(x.c)
	}
}

// start implements transfer: it posts the reads, or has the body sent as a message.
func (x *Read) start(c *bulkConn) {
	x.c = c
	if c.dead.Load() || !x.post() {
		x.end(false)
	}
}

func (x *Read) post() bool {
	b, n := x.Bulk, len(x.Buf)
	var one [1]verbs.SendWR
	wrs := one[:0]
	for off := 0; off < n; off += b.Segment {
		end := min(off+b.Segment, n)
		g, err := b.d.Registrations.Get(b.d.pd, x.Buf[off:end], verbs.LocalWrite)
		if err != nil {
			x.putRegs()
			return false
		}
		x.regs = append(x.regs, g)
		wrs = append(wrs, verbs.SendWR{Op: verbs.OpRead, SGL: g.sgl[:],
			Remote: verbs.RemoteBuf{STag: x.Key.STag, TO: uint64(off), Len: uint64(end - off)}})
	}
	b.mu.Lock()
	if b.shut || x.state != readWaits {
		b.mu.Unlock()
		x.putRegs()
		return false
	}
	x.state = readPosted
	b.last++
	key := b.last
	b.reads[key] = x
	b.mu.Unlock()
	count := x.From.Counters()
	for i := range wrs {
		wrs[i].ID = key << 1
		count.count(&wrs[i])
	}
	wrs[len(wrs)-1].ID |= 1
	wrs[len(wrs)-1].Flags = verbs.Signaled
	if err := x.c.qp.PostSend(wrs...); err != nil {
		b.mu.Lock()
		delete(b.reads, key)
		b.mu.Unlock()
		x.putRegs()
		count.Reads.Add(-len(wrs), -n)
		if !errors.Is(err, verbs.ErrQueueFull) {
			b.drop(x.c)
		}
		return false
	}
	return true
}

// haveRead processes the completion of a read. The reads of a body complete in order, and after a
// failed one the rest fail.
func (b *Bulk) haveRead(wc *verbs.WC) {
	key, last := wc.ID>>1, wc.ID&1 != 0
	b.mu.Lock()
	x := b.reads[key]
	if last {
		delete(b.reads, key)
	}
	b.mu.Unlock()
	if x == nil {
		return
	}
	if wc.Status != verbs.StatusSuccess {
		b.drop(x.c)
	}
	if last {
		x.putRegs()
		x.end(wc.Status == verbs.StatusSuccess)
	}
}

// end ends the read: it places no bytes any more.
func (x *Read) end(whole bool) {
	x.Bulk.mu.Lock()
	gone := x.state == readStopped
	x.state = readEnded
	x.Bulk.mu.Unlock()
	if whole || gone {
		x.Receiver.ReadDone(gone)
	} else {
		x.Receiver.ReadFailed()
	}
}

// putRegs gives the registrations back.
func (x *Read) putRegs() {
	for _, g := range x.regs {
		_ = x.Bulk.d.Registrations.Put(g) // no work request names it any more
	}
	x.regs = nil
}
