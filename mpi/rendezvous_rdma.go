package mpi

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
)

// rdmaBulk is the bulkMover of the transport hybrid. It moves the bodies of requests with the RDMA device
// of the rank.
type rdmaBulk struct {
	device func() (*rdmadev.Device, error) // opens the device of the rank
	eng    *engine
	once   sync.Once // opens the device
	open   atomic.Pointer[rdmadev.Bulk]
	failed atomic.Bool // true once opening the device has failed
}

// ready implements bulkMover. Opening a device takes locks of the transport, so it is not done in
// an upcall.
func (b *rdmaBulk) Ready(later func()) bool {
	if b.open.Load() != nil || b.failed.Load() {
		return true
	}
	go func() {
		b.once.Do(func() {
			d, err := b.openBulk()
			if err != nil {
				b.failed.Store(true)
				return
			}
			b.open.Store(d)
		})
		later()
	}()
	return false
}

// prepare implements bulkMover.
func (b *rdmaBulk) Prepare() {
	open := make(chan struct{})
	if !b.Ready(func() { close(open) }) {
		<-open
	}
}

var errNoBulk = errors.New("mpi: no RDMA device")

func (b *rdmaBulk) openBulk() (*rdmadev.Bulk, error) {
	d, err := b.device()
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, errNoBulk
	}
	return d.OpenBulk()
}

// poll implements bulkMover.
func (b *rdmaBulk) Poll() bool {
	d := b.open.Load()
	return d != nil && d.Poll()
}

// expose implements bulkMover.
func (b *rdmaBulk) Expose(r *request) (key envelope.Key, ok bool) {
	d := b.open.Load()
	if d == nil {
		return key, false
	}
	r.place.Lock()
	defer r.place.Unlock()
	if len(r.buf) < r.status.Bytes {
		return key, false // it has failed
	}
	x, key, ok := d.Expose(r.buf[:r.status.Bytes])
	if ok {
		r.exposed = x
	}
	return key, ok
}

// bodyWrite is the write of the body of a send.
type bodyWrite struct {
	rdmadev.Write
	r *request
}

// write implements bulkMover.
func (b *rdmaBulk) Write(r *request, v *envelope.Header) {
	w := &bodyWrite{r: r}
	w.Write = rdmadev.Write{Sender: w, To: (*rdmaPeer)(r.peer), ID: v.PeerID, Buf: r.buf[:v.Length], Key: v.Key}
	start := func() {
		if w.Bulk = b.open.Load(); w.Bulk == nil {
			w.WriteLost()
			return
		}
		w.Start()
	}
	if b.Ready(start) {
		start()
	}
}

// WriteDone implements rdmadev.Sender.
func (w *bodyWrite) WriteDone(err error) { w.r.event(err) }

// WriteLost implements rdmadev.Sender: it sends the body as a message, which overwrites bytes written before
// with the same bytes.
func (w *bodyWrite) WriteLost() {
	if err := w.r.peer.failure(); err != nil {
		w.r.event(err)
		return
	}
	w.r.eng.sendBodyMessage(w.r, w.ID, len(w.Buf), envelope.FlagAgain)
}

// HandleWriteFIN implements bulkMover.
func (b *rdmaBulk) HandleWriteFIN(p *peer, id uint64) {
	if d := b.open.Load(); d != nil {
		d.Confirm((*rdmaPeer)(p), id)
	}
}

// bulkOffer is the offering of a send whose receiver reads the body.
type bulkOffer struct{ *rdmadev.Offering }

// offer implements bulkMover.
func (b *rdmaBulk) Offer(r *request) (key envelope.Key, ok bool) {
	d := b.open.Load()
	if d == nil {
		return key, false
	}
	x, key, ok := d.Offer(r.buf)
	if ok {
		r.offered = bulkOffer{x}
	}
	return key, ok
}

// Over implements Offer. It reports false, because responses to reads may have to be
// retransmitted even if the receiver has read everything.
func (bulkOffer) Over() bool { return false }

// Withdraw implements Offer. Read responses reference the buffer until they are acknowledged.
func (x bulkOffer) Withdraw(then func(bool)) {
	x.Offering.Withdraw()
	x.AfterDrain(func() { then(false) })
}

// bodyRead is the read of the body of a receive. It is the exposure of the receive.
type bodyRead struct {
	rdmadev.Read
	fetch
}

// read implements bulkMover.
func (b *rdmaBulk) Read(f fetch) {
	e, d := b.eng, b.open.Load()
	if d == nil {
		e.readFailed(&f)
		return
	}
	x := &bodyRead{fetch: f}
	f.r.place.Lock()
	gone := f.r.epoch != f.epoch || len(f.r.buf) < f.n // it was unmatched, or has failed
	if !gone {
		x.Read = rdmadev.Read{Bulk: d, Receiver: x, From: (*rdmaPeer)(f.p), Key: f.from, Buf: f.r.buf[:f.n]}
		f.r.exposed = x
	}
	f.r.place.Unlock()
	if gone {
		e.readDone(&f, true)
		return
	}
	x.Start()
}

// ReadDone implements rdmadev.Receiver.
func (x *bodyRead) ReadDone(gone bool) { x.eng().readDone(&x.fetch, gone) }

// ReadFailed implements rdmadev.Receiver.
func (x *bodyRead) ReadFailed() { x.eng().readFailed(&x.fetch) }

// ReadAborted implements rdmadev.Receiver.
func (x *bodyRead) ReadAborted(err error) { x.r.fail(err) }

func (x *bodyRead) eng() *engine { return x.p.e }
