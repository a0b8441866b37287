package rdmadev

import (
	"context"
	"errors"
	"sync"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/verbs"
)

// Bulk moves bodies of messages by RDMA (rendezvous). A rank connects a queue pair to another one when it first
// writes or reads there. A body is written by RDMA Write with immediate data, the id of the receive: the
// immediate data is delivered after the body has been placed (RFC 7306, Section 6; RFC 5040,
// Section 5.5, rule 10). A body that is read needs none, because the reader gets the completion
// (rule 20).
type Bulk struct {
	// Segment is the longest write or read, in bytes. It may be set before the first of them.
	Segment int

	d    *Device
	cq   *verbs.CQ     // completion queue of all its queue pairs
	srq  *verbs.SRQ    // shared receive queue, for immediate data
	over chan struct{} // closed to end the goroutine
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex          // guards what follows
	shut    bool                // nothing can be exposed or written any more
	exposed map[*Exposure]bool  // what peers may write to
	offers  map[*Offering]bool  // what peers may read
	conns   map[int32]*bulkConn // by handle of the peer
	dying   []*bulkConn         // failed connections that have not ended
	writes  map[uint64]*Write   // in flight, by the id of their work requests
	unsure  map[bodyKey]*Write  // bodies that the receiver has not confirmed
	reads   map[uint64]*Read    // in flight, by the id of their work requests
	last    uint64              // last id used in writes or reads
}

// Limits of writing and reading bodies.
const (
	// MaxExposed bounds the receives of a rank that peers may write to at a time. Further receives
	// answer with CTS instead of CTSKey.
	MaxExposed = 1024
	// maxOffered bounds the sends of a rank that peers may read at a time. Further sends use RTS
	// without a key.
	maxOffered = 1024
	// BulkDepth is the send queue depth of a queue pair. Bodies beyond it are sent as messages.
	BulkDepth = 256
	// bulkReads is how many RDMA Reads of a queue pair are in flight at a time.
	bulkReads = 16
)

// OpenBulk prepares the device for the transfer of bodies, once.
func (d *Device) OpenBulk() (*Bulk, error) {
	b := &Bulk{d: d, Segment: MaxSegment, over: make(chan struct{}), done: make(chan struct{}),
		exposed: make(map[*Exposure]bool), conns: make(map[int32]*bulkConn), writes: make(map[uint64]*Write),
		unsure: make(map[bodyKey]*Write), offers: make(map[*Offering]bool), reads: make(map[uint64]*Read)}
	var err error
	if b.cq, err = d.dev.NewCQ(2 * MaxExposed); err != nil {
		return nil, err
	}
	// One receive more than exposures: see Expose.
	if b.srq, err = d.pd.NewSRQ(verbs.SRQConfig{Depth: MaxExposed + 1, MaxSGE: 1}); err != nil {
		return nil, errors.Join(err, b.cq.Close())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.regions == nil { // closed
		return nil, errors.Join(mpierr.ErrFinalized, b.srq.Close(), b.cq.Close())
	}
	d.bulk = b
	go b.run()
	return b, nil
}

// run processes completions that no polling goroutine has seen.
func (b *Bulk) run() {
	defer close(b.done)
	for {
		b.cq.Notify(false)
		b.poll()
		select {
		case <-b.cq.C():
		case <-b.over:
			return
		}
	}
}

// Poll processes completions, and reports whether there were any.
func (b *Bulk) Poll() bool { return b.cq.Len() > 0 && b.poll() }

func (b *Bulk) poll() (worked bool) {
	var wcs [16]verbs.WC
	for {
		n := b.cq.Poll(wcs[:])
		for i := range wcs[:n] {
			if wc := &wcs[i]; wc.Recv {
				b.received(wc)
			} else {
				b.sent(wc)
			}
		}
		worked = worked || n > 0
		if n < len(wcs) {
			return worked
		}
	}
}

// Exposure is a registered buffer of a receive.
type Exposure struct {
	b  *Bulk
	mr *verbs.MR
}

// Expose registers the buffer of a receive for RDMA Write and returns its key. It reports false if that is
// not possible. Each exposure has a posted receive. An exposure that ends without immediate data leaves its
// receive posted, and the next one uses that.
func (b *Bulk) Expose(buf []byte) (x *Exposure, key envelope.Key, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shut || len(b.exposed) >= MaxExposed {
		return nil, key, false
	}
	if b.srq.Query().Posted <= len(b.exposed) && b.srq.PostRecv(verbs.RecvWR{}) != nil {
		return nil, key, false
	}
	mr, err := b.d.pd.Register(buf, verbs.RemoteWrite)
	if err != nil {
		return nil, key, false
	}
	x = &Exposure{b: b, mr: mr}
	b.exposed[x] = true
	return x, b.d.key(mr), true
}

// Withdraw ends the access. After it has returned nothing is written any more.
func (x *Exposure) Withdraw() {
	x.b.mu.Lock()
	defer x.b.mu.Unlock()
	if x.b.exposed[x] {
		delete(x.b.exposed, x)
		_ = x.mr.Close() // no work request names it
	}
}

// Accessible returns how many buffers peers may access.
func (b *Bulk) Accessible() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.exposed) + len(b.offers)
}

// received processes immediate data: a body has been written.
func (b *Bulk) received(wc *verbs.WC) {
	if p, ok := wc.QP.Context().(Peer); ok && wc.Status == verbs.StatusSuccess && wc.Flags&verbs.WithImm != 0 {
		b.d.host.Written(p, wc.Imm)
	}
}

// serve returns a queue pair for the writes and reads of the peer with this name.
func (b *Bulk) serve(name []byte) (*verbs.QP, error) {
	p, ok := b.d.host.PeerNamed(name)
	if !ok {
		return nil, mpierr.ErrAuth
	}
	return b.d.pd.NewQP(verbs.QPConfig{SendCQ: b.d.idle, RecvCQ: b.cq, SRQ: b.srq, RecvDepth: BulkDepth,
		IRD: bulkReads, ORD: -1, Context: p})
}

// finish ends all accesses of peers, and returns the queue pairs to be closed.
func (b *Bulk) finish() (qps []*verbs.QP) {
	b.mu.Lock()
	b.shut = true
	conns := append([]*bulkConn(nil), b.dying...)
	for _, c := range b.conns {
		conns = append(conns, c)
	}
	for x := range b.exposed {
		_ = x.mr.Close() // no work request names it
	}
	for x := range b.offers {
		_ = x.mr.Close() // no work request names it
	}
	b.exposed, b.offers = nil, nil
	b.mu.Unlock()
	for _, c := range conns {
		if <-c.up; c.qp != nil {
			qps = append(qps, c.qp)
		}
	}
	return qps
}

// close frees the device, once its queue pairs have ended. Operations in flight fail.
func (b *Bulk) close(ctx context.Context) error {
	close(b.over)
	<-b.done
	b.poll()
	b.mu.Lock()
	var left []*Write
	for _, w := range b.writes { // the job was aborted
		left = append(left, w)
	}
	for _, w := range b.unsure {
		if w.released {
			left = append(left, w)
		}
	}
	clear(b.writes)
	clear(b.unsure)
	var unread []*Read
	for _, x := range b.reads {
		unread = append(unread, x)
	}
	clear(b.reads)
	b.mu.Unlock()
	for _, x := range unread {
		x.putRegs()
		x.Receiver.ReadAborted(errors.Join(mpierr.ErrFinalized, ctx.Err()))
	}
	for _, w := range left {
		w.Sender.WriteDone(errors.Join(mpierr.ErrFinalized, ctx.Err()))
	}
	return errors.Join(b.srq.Close(), b.cq.Close())
}
