package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/verbs"
)

// rdmaBulk is the bulkMover of the transport hybrid. A rank connects a queue pair to another one
// when it first writes or reads there. Windows have a queue pair of their own, because a refused
// access ends it. A body is written by RDMA Write with immediate data, the id of the receive: the
// immediate data is delivered after the body has been placed (RFC 7306, Section 6; RFC 5040,
// Section 5.5, rule 10). A body that is read needs none, because the reader gets the completion
// (rule 20).
type rdmaBulk struct {
	w      *World
	once   sync.Once // opens the device
	open   atomic.Pointer[bulkDevice]
	failed atomic.Bool // true once opening the device has failed
}

// bulkDevice is the open device of rdmaBulk.
type bulkDevice struct {
	*rmaDevice
	piece int           // longest write or read, in bytes
	cq    *verbs.CQ     // completion queue of all its queue pairs
	srq   *verbs.SRQ    // shared receive queue, for immediate data
	over  chan struct{} // closed to end the goroutine
	done  chan struct{} // closed when the goroutine has ended

	bmu     sync.Mutex             // guards what follows
	shut    bool                   // nothing can be exposed or written any more
	exposed map[*bulkExposure]bool // what peers may write to
	offers  map[*bulkOffer]bool    // what peers may read
	conns   map[int32]*bulkConn    // by handle of the peer
	dying   []*bulkConn            // failed connections that have not ended
	moves   map[uint64]*bulkMove   // writes in flight, by the id of their work requests
	unsure  map[moveKey]*bulkMove  // bodies without a WriteFIN
	reads   map[uint64]*bulkRead   // reads in flight, by the id of their work requests
	last    uint64                 // last id used in moves or reads
}

// Limits of writing and reading bodies.
const (
	// bulkGrants bounds the receives of a rank that peers may write to at a time. Further receives
	// answer with CTS instead of CTSKey.
	bulkGrants = 1024
	// bulkOffers bounds the sends of a rank that peers may read at a time. Further sends use RTS
	// without a key.
	bulkOffers = 1024
	// bulkDepth is the send queue depth of a queue pair. Bodies beyond it are sent as messages.
	bulkDepth = 256
	// bulkReads is how many RDMA Reads of a queue pair are in flight at a time.
	bulkReads = 16
)

// ready implements bulkMover. Opening a device takes locks of the transport, so it is not done in
// an upcall.
func (b *rdmaBulk) ready(later func()) bool {
	if b.open.Load() != nil || b.failed.Load() {
		return true
	}
	go func() {
		b.once.Do(func() {
			d, err := openBulk(b.w)
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
func (b *rdmaBulk) prepare() {
	open := make(chan struct{})
	if !b.ready(func() { close(open) }) {
		<-open
	}
}

func openBulk(w *World) (*bulkDevice, error) {
	dev, err := w.rmaDevice()
	if err != nil {
		return nil, err
	}
	if dev == nil {
		return nil, errNoBulk
	}
	d := &bulkDevice{rmaDevice: dev, piece: rmaPiece, over: make(chan struct{}), done: make(chan struct{}),
		exposed: make(map[*bulkExposure]bool), conns: make(map[int32]*bulkConn), moves: make(map[uint64]*bulkMove),
		unsure: make(map[moveKey]*bulkMove), offers: make(map[*bulkOffer]bool), reads: make(map[uint64]*bulkRead)}
	if d.cq, err = dev.dev.NewCQ(2 * bulkGrants); err != nil {
		return nil, err
	}
	// One receive more than grants: see expose.
	if d.srq, err = dev.pd.NewSRQ(verbs.SRQConfig{Depth: bulkGrants + 1, MaxSGE: 1}); err != nil {
		return nil, errors.Join(err, d.cq.Close())
	}
	dev.mu.Lock()
	defer dev.mu.Unlock()
	if dev.windows == nil { // closed
		return nil, errors.Join(ErrFinalized, d.srq.Close(), d.cq.Close())
	}
	dev.bulk = d
	go d.run()
	return d, nil
}

var errNoBulk = errors.New("mpi: no RDMA device")

// run processes completions that no polling goroutine has seen.
func (d *bulkDevice) run() {
	defer close(d.done)
	for {
		d.cq.Notify(false)
		d.poll()
		select {
		case <-d.cq.C():
		case <-d.over:
			return
		}
	}
}

// poll implements bulkMover.
func (b *rdmaBulk) poll() bool {
	d := b.open.Load()
	return d != nil && d.cq.Len() > 0 && d.poll()
}

func (d *bulkDevice) poll() (worked bool) {
	var wcs [16]verbs.WC
	for {
		n := d.cq.Poll(wcs[:])
		for i := range wcs[:n] {
			if wc := &wcs[i]; wc.Recv {
				d.received(wc)
			} else {
				d.sent(wc)
			}
		}
		worked = worked || n > 0
		if n < len(wcs) {
			return worked
		}
	}
}

// bulkExposure is a registered buffer of a receive.
type bulkExposure struct {
	d  *bulkDevice
	mr *verbs.MR
}

// expose implements bulkMover. Each grant has a posted receive. A grant that ends without immediate
// data leaves its receive posted, and the next grant uses that.
func (b *rdmaBulk) expose(r *Request) (g envelope.Key, ok bool) {
	d := b.open.Load()
	if d == nil {
		return g, false
	}
	x := &bulkExposure{d: d}
	d.bmu.Lock()
	defer d.bmu.Unlock()
	if d.shut || len(d.exposed) >= bulkGrants {
		return g, false
	}
	if d.srq.Query().Posted <= len(d.exposed) && d.srq.PostRecv(verbs.RecvWR{}) != nil {
		return g, false
	}
	r.place.Lock()
	defer r.place.Unlock()
	if len(r.buf) < r.status.Bytes {
		return g, false // it has failed
	}
	var err error
	if x.mr, err = d.pd.Register(r.buf[:r.status.Bytes], verbs.RemoteWrite); err != nil {
		return g, false
	}
	d.exposed[x] = true
	r.exposed = x
	g.STag, g.Port, g.Token = x.mr.STag(), d.dev.Addr().Port, d.token
	return g, true
}

// withdraw implements exposure.
func (x *bulkExposure) withdraw() {
	x.d.bmu.Lock()
	defer x.d.bmu.Unlock()
	if x.d.exposed[x] {
		delete(x.d.exposed, x)
		_ = x.mr.Close() // no work request names it
	}
}

// received processes immediate data: a body has been written.
func (d *bulkDevice) received(wc *verbs.WC) {
	if p, ok := wc.QP.Context().(*peer); ok && wc.Status == verbs.StatusSuccess && wc.Flags&verbs.WithImm != 0 {
		d.w.eng.written(p, wc.Imm)
	}
}

// serveBulk returns a queue pair for the writes and reads of the peer with this name.
func (d *bulkDevice) serveBulk(name []byte) (*verbs.QP, error) {
	h, ok := d.w.eng.handle(procName{binary.BigEndian.Uint64(name), binary.BigEndian.Uint32(name[8:])})
	if !ok {
		return nil, ErrAuth
	}
	return d.pd.NewQP(verbs.QPConfig{SendCQ: d.idle, RecvCQ: d.cq, SRQ: d.srq, RecvDepth: bulkDepth,
		IRD: bulkReads, ORD: -1, Context: d.w.eng.peer(h)})
}

// finish ends all accesses of peers, and returns the queue pairs to be closed.
func (d *bulkDevice) finish() (qps []*verbs.QP) {
	d.bmu.Lock()
	d.shut = true
	conns := append([]*bulkConn(nil), d.dying...)
	for _, c := range d.conns {
		conns = append(conns, c)
	}
	for x := range d.exposed {
		_ = x.mr.Close() // no work request names it
	}
	for x := range d.offers {
		_ = x.mr.Close() // no work request names it
	}
	d.exposed, d.offers = nil, nil
	d.bmu.Unlock()
	for _, c := range conns {
		if <-c.up; c.qp != nil {
			qps = append(qps, c.qp)
		}
	}
	return qps
}

// close frees the device, once its queue pairs have ended. Operations in flight fail.
func (d *bulkDevice) close(ctx context.Context) error {
	close(d.over)
	<-d.done
	d.poll()
	d.bmu.Lock()
	var left []*bulkMove
	for _, m := range d.moves { // the job was aborted
		left = append(left, m)
	}
	for _, m := range d.unsure {
		if m.released {
			left = append(left, m)
		}
	}
	clear(d.moves)
	clear(d.unsure)
	var unread []*bulkRead
	for _, x := range d.reads {
		unread = append(unread, x)
	}
	clear(d.reads)
	d.bmu.Unlock()
	for _, x := range unread {
		x.putRegs()
		x.r.fail(errors.Join(ErrFinalized, ctx.Err()))
	}
	for _, m := range left {
		m.r.event(errors.Join(ErrFinalized, ctx.Err()))
	}
	return errors.Join(d.srq.Close(), d.cq.Close())
}
