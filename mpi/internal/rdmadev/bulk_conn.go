package rdmadev

import (
	"context"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/verbs"
)

// bulkConn is a queue pair to a peer, for RDMA Writes and Reads of bodies.
type bulkConn struct {
	b    *Bulk
	p    Peer
	up   chan struct{} // closed when the attempt to connect has ended
	qp   *verbs.QP     // set before up is closed; may be nil
	dead atomic.Bool   // true once it cannot be used any more

	gone   context.Context // ends the attempt to connect
	giveUp context.CancelFunc
}

// transfer is a Write or Read that needs a connection.
type transfer interface{ start(c *bulkConn) }

// begin starts x on the connection to a peer once it is up or has failed, at once or on another goroutine. It
// reports false if there can be none. key is of memory of the peer.
func (b *Bulk) begin(x transfer, p Peer, key *envelope.Key) bool {
	c, mine := b.conn(p)
	if c == nil {
		return false
	}
	select {
	case <-c.up:
		x.start(c)
	default:
		go func() {
			if mine {
				c.connect(key)
			}
			<-c.up
			x.start(c)
		}()
	}
	return true
}

// Connect connects the queue pair to a peer, with the key of memory of the peer, and returns it, or nil if
// there can be none.
func (b *Bulk) Connect(p Peer, key *envelope.Key) *verbs.QP {
	c, mine := b.conn(p)
	if c == nil {
		return nil
	}
	if mine {
		c.connect(key)
	}
	<-c.up
	return c.qp
}

// QPs returns the queue pairs that are connected to peers.
func (b *Bulk) QPs() (qps []*verbs.QP) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		select {
		case <-c.up:
			if c.qp != nil {
				qps = append(qps, c.qp)
			}
		default:
		}
	}
	return qps
}

// conn returns the connection to a peer. mine says that it is new, and that the caller connects it.
func (b *Bulk) conn(p Peer) (c *bulkConn, mine bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c = b.conns[p.Handle()]; c != nil || b.shut {
		return c, false
	}
	c = &bulkConn{b: b, p: p, up: make(chan struct{})}
	c.gone, c.giveUp = context.WithCancel(b.d.life)
	b.conns[p.Handle()] = c
	return c, true
}

// connect connects the queue pair. A connection that cannot be made stays in conns, so that it is
// not tried again.
func (c *bulkConn) connect(key *envelope.Key) {
	defer close(c.up)
	defer c.giveUp()
	b := c.b
	if c.p.Failure() != nil || c.makeQP() != nil {
		c.dead.Store(true)
		return
	}
	private := append(key.Token[:], b.d.name...)
	if err := b.d.dial(c.gone, c.p, key, c.qp, private); err != nil {
		c.dead.Store(true)
	}
	go c.watch()
}

// makeQP makes the queue pair, and enlarges the completion queue for it.
func (c *bulkConn) makeQP() (err error) {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shut {
		return mpierr.ErrFinalized
	}
	if need := 2*MaxExposed + (len(b.conns)+len(b.dying))*(BulkDepth+1); b.cq.Depth() < need {
		if err := b.cq.Resize(2 * need); err != nil {
			return err
		}
	}
	c.qp, err = b.d.pd.NewQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.d.idle, SendDepth: BulkDepth, RecvDepth: 1,
		MaxSendSGE: 1, IRD: -1, ORD: bulkReads, Context: c})
	return err
}

// watch waits for the end of a connection. Bodies that were written over it and not confirmed are
// sent again as messages.
func (c *bulkConn) watch() {
	<-c.qp.Done()
	b := c.b
	b.drop(c)
	var again []*Write
	b.mu.Lock()
	for k, w := range b.unsure {
		if w.c != c {
			continue
		}
		delete(b.unsure, k)
		if w.lost = true; w.released {
			again = append(again, w)
		}
	}
	b.mu.Unlock()
	for _, w := range again {
		w.Sender.WriteLost()
	}
}

// drop closes a connection that has failed. The next write or read makes another.
func (b *Bulk) drop(c *bulkConn) {
	c.dead.Store(true)
	if c.qp == nil {
		return // it stays, so that connecting is not tried again
	}
	_ = c.qp.Close() // closed already, perhaps
	b.mu.Lock()      // after Close: finish does not wait for a connection that it does not find
	if b.conns[c.p.Handle()] == c {
		delete(b.conns, c.p.Handle())
		live := b.dying[:0]
		for _, old := range append(b.dying, c) {
			select {
			case <-old.qp.Done():
			default:
				live = append(live, old)
			}
		}
		b.dying = live
	}
	b.mu.Unlock()
}

// peerDown closes the connection to a peer that has failed.
func (b *Bulk) peerDown(p Peer) {
	b.mu.Lock()
	c := b.conns[p.Handle()]
	b.mu.Unlock()
	if c != nil {
		c.giveUp()
		<-c.up
		b.drop(c)
	}
}
