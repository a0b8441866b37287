package job

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
)

// RDMABulk is the BulkMover of the transport hybrid. It moves the bodies of requests with the RDMA device
// of the rank.
type RDMABulk struct {
	device func() (*rdmadev.Device, error) // opens the device of the rank
	Engine *p2p.Engine
	once   sync.Once // opens the device
	open   atomic.Pointer[rdmadev.Bulk]
	failed atomic.Bool // true once opening the device has failed
}

// Ready implements BulkMover. Opening a device takes locks of the transport, so it is not done in
// an upcall.
func (b *RDMABulk) Ready(later func()) bool {
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

// Prepare implements BulkMover.
func (b *RDMABulk) Prepare() {
	open := make(chan struct{})
	if !b.Ready(func() { close(open) }) {
		<-open
	}
}

var errNoBulk = errors.New("mpi: no RDMA device")

func (b *RDMABulk) openBulk() (*rdmadev.Bulk, error) {
	d, err := b.device()
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, errNoBulk
	}
	return d.OpenBulk()
}

// Open returns what moves bodies, or nil before the device has been opened.
func (b *RDMABulk) Open() *rdmadev.Bulk { return b.open.Load() }

// Poll implements BulkMover.
func (b *RDMABulk) Poll() bool {
	d := b.open.Load()
	return d != nil && d.Poll()
}

// Expose implements BulkMover.
func (b *RDMABulk) Expose(r *p2p.Request) (key envelope.Key, ok bool) {
	d := b.open.Load()
	if d == nil {
		return key, false
	}
	r.Place.Lock()
	defer r.Place.Unlock()
	if len(r.Buf) < r.Status.Bytes {
		return key, false // it has failed
	}
	x, key, ok := d.Expose(r.Buf[:r.Status.Bytes])
	if ok {
		r.Exposed = x
	}
	return key, ok
}

// BodyWrite is the write of the body of a send.
type BodyWrite struct {
	rdmadev.Write
	Request *p2p.Request
}

// Write implements BulkMover.
func (b *RDMABulk) Write(r *p2p.Request, v *envelope.Header) {
	w := &BodyWrite{Request: r}
	w.Write = rdmadev.Write{Sender: w, To: (*RDMAPeer)(r.Peer), ID: v.PeerID, Buf: r.Buf[:v.Length], Key: v.Key}
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
func (w *BodyWrite) WriteDone(err error) { w.Request.Event(err) }

// WriteLost implements rdmadev.Sender: it sends the body as a message, which overwrites bytes written before
// with the same bytes.
func (w *BodyWrite) WriteLost() {
	if err := w.Request.Peer.Failure(); err != nil {
		w.Request.Event(err)
		return
	}
	w.Request.Engine.SendBodyMessage(w.Request, w.ID, len(w.Buf), envelope.FlagAgain)
}

// HandleWriteFIN implements BulkMover.
func (b *RDMABulk) HandleWriteFIN(p *p2p.Peer, id uint64) {
	if d := b.open.Load(); d != nil {
		d.Confirm((*RDMAPeer)(p), id)
	}
}

// BodyOffer is the offering of a send whose receiver reads the body.
type BodyOffer struct{ *rdmadev.Offering }

// Offer implements BulkMover.
func (b *RDMABulk) Offer(r *p2p.Request) (key envelope.Key, ok bool) {
	d := b.open.Load()
	if d == nil {
		return key, false
	}
	x, key, ok := d.Offer(r.Buf)
	if ok {
		r.Offered = BodyOffer{x}
	}
	return key, ok
}

// Over implements Offer. It reports false, because responses to reads may have to be
// retransmitted even if the receiver has read everything.
func (BodyOffer) Over() bool { return false }

// Withdraw implements Offer. Read responses reference the buffer until they are acknowledged.
func (x BodyOffer) Withdraw(then func(bool)) {
	x.Offering.Withdraw()
	x.AfterDrain(func() { then(false) })
}

// bodyRead is the read of the body of a receive. It is the exposure of the receive.
type bodyRead struct {
	rdmadev.Read
	p2p.Fetch
}

// Read implements BulkMover.
func (b *RDMABulk) Read(f p2p.Fetch) {
	e, d := b.Engine, b.open.Load()
	if d == nil {
		e.ReadFailed(&f)
		return
	}
	x := &bodyRead{Fetch: f}
	f.Receive.Place.Lock()
	gone := f.Receive.Epoch != f.Epoch || len(f.Receive.Buf) < f.Len // it was unmatched, or has failed
	if !gone {
		x.Read = rdmadev.Read{Bulk: d, Receiver: x, From: (*RDMAPeer)(f.Peer), Key: f.From, Buf: f.Receive.Buf[:f.Len]}
		f.Receive.Exposed = x
	}
	f.Receive.Place.Unlock()
	if gone {
		e.ReadDone(&f, true)
		return
	}
	x.Start()
}

// ReadDone implements rdmadev.Receiver.
func (x *bodyRead) ReadDone(gone bool) { x.eng().ReadDone(&x.Fetch, gone) }

// ReadFailed implements rdmadev.Receiver.
func (x *bodyRead) ReadFailed() { x.eng().ReadFailed(&x.Fetch) }

// ReadAborted implements rdmadev.Receiver.
func (x *bodyRead) ReadAborted(err error) { x.Receive.Fail(err) }

func (x *bodyRead) eng() *p2p.Engine { return x.Peer.Engine }
