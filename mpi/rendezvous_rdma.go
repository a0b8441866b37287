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

// rdmaBulk is the bulkMover of the transport hybrid. A rank connects a queue pair
// to another one when it first writes or reads there, besides the one for windows,
// which a refused access would end. A body that is written is an RDMA Write with
// immediate data, the id of the receive: it is delivered after the body has been
// placed (RFC 7306, Section 6; RFC 5040, Section 5.5, rule 10). One that is read
// needs none: the completion is the reader's (rule 20).
type rdmaBulk struct {
	w      *World
	once   sync.Once // opens the device
	open   atomic.Pointer[bulkDevice]
	failed atomic.Bool // it cannot be opened
}

// bulkDevice is what rdmaBulk has once it is open.
type bulkDevice struct {
	*rmaDevice
	piece int        // longest write or read
	cq    *verbs.CQ  // of all its queue pairs
	srq   *verbs.SRQ // for immediate data
	over  chan struct{}
	done  chan struct{} // closed when the goroutine has ended

	bmu     sync.Mutex             // guards what follows
	shut    bool                   // nothing can be exposed or written any more
	exposed map[*bulkExposure]bool // what peers may write to
	offers  map[*bulkOffer]bool    // what peers may read
	conns   map[int32]*bulkConn    // by handle of the peer
	dying   []*bulkConn            // those that failed
	moves   map[uint64]*bulkMove   // writes under way, by the id of their work requests
	unsure  map[moveKey]*bulkMove  // bodies that are not known to have been placed
	reads   map[uint64]*bulkRead   // reads under way, by the id of their work requests
	last    uint64                 // the last such id
}

// Limits of writing and reading bodies.
const (
	// bulkGrants bounds the receives of a rank that peers may write to at a time.
	// More ask for messages.
	bulkGrants = 1024
	// bulkOffers bounds the sends of a rank that peers may read at a time. More are
	// announced without.
	bulkOffers = 1024
	// bulkDepth is the number of writes and reads posted to one peer. Further bodies are
	// sent as messages.
	bulkDepth = 256
	// bulkReads is how many of these reads are under way at a time.
	bulkReads = 16
)

// ready implements bulkMover. Opening a device takes locks of the transport, so
// it is not done within an upcall.
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

// run acts on completions that nobody else has seen.
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

// expose implements bulkMover. There is always a posted receive for each grant:
// what ends otherwise leaves one, which the next grant finds.
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

// received acts on immediate data: a body has been written.
func (d *bulkDevice) received(wc *verbs.WC) {
	if p, ok := wc.QP.Context().(*peer); ok && wc.Status == verbs.StatusSuccess && wc.Flags&verbs.WithImm != 0 {
		d.w.eng.written(p, wc.Imm)
	}
}

// serveBulk returns a queue pair for the writes and reads of a peer that names itself.
func (d *bulkDevice) serveBulk(name []byte) (*verbs.QP, error) {
	h, ok := d.w.eng.handle(procName{binary.BigEndian.Uint64(name), binary.BigEndian.Uint32(name[8:])})
	if !ok {
		return nil, ErrAuth
	}
	return d.pd.NewQP(verbs.QPConfig{SendCQ: d.idle, RecvCQ: d.cq, SRQ: d.srq, RecvDepth: bulkDepth,
		IRD: bulkReads, ORD: -1, Context: d.w.eng.peer(h)})
}

// finish ends what peers may do, and returns the queue pairs to be closed.
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

// close frees the rest, when the queue pairs are at their end.
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
