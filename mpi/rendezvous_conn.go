package mpi

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
)

// Sending side of rendezvous by RDMA Write, and the queue pairs of both it and the receiving side
// of rendezvous by RDMA Read.

// bulkMove is an RDMA Write of a body.
type bulkMove struct {
	c    *bulkConn
	r    *Request
	id   uint64 // of the receive
	n    int
	regs []*registration

	// Guarded by bulkDevice.bmu.
	released  bool // the queue pair has completed the writes
	confirmed bool // the receiver has sent WriteFIN
	lost      bool // the connection has ended: the body is to be sent as a message
}

// moveKey identifies a body by its peer and the id of the receive.
type moveKey struct {
	p  *peer
	id uint64
}

// bulkConn is a queue pair to a peer, for RDMA Writes and Reads of bodies.
type bulkConn struct {
	d    *bulkDevice
	p    *peer
	up   chan struct{} // closed when the attempt to connect has ended
	qp   *verbs.QP     // set before up is closed; may be nil
	dead atomic.Bool   // true once it cannot be used any more

	gone   context.Context // ends the attempt to connect
	giveUp context.CancelFunc
}

// write implements bulkMover.
func (b *rdmaBulk) write(r *Request, v *envelope.Header) {
	move := &bulkMove{r: r, id: v.PeerID, n: int(v.Length)}
	g := v.Key
	start := func() { b.start(move, &g) }
	if b.ready(start) {
		start()
	}
}

// start posts the writes once there is a connection.
func (b *rdmaBulk) start(move *bulkMove, g *envelope.Key) {
	d := b.open.Load()
	if d == nil {
		move.asMessage(b.w.eng)
		return
	}
	c, mine := d.conn(move.r.peer)
	if c == nil {
		move.asMessage(b.w.eng)
		return
	}
	move.c = c
	select {
	case <-c.up:
		c.post(move, g.STag)
	default:
		go func() {
			if mine {
				c.connect(g)
			}
			<-c.up
			c.post(move, g.STag)
		}()
	}
}

// conn returns the connection to a peer. mine says that it is new, and that the caller connects it.
func (d *bulkDevice) conn(p *peer) (c *bulkConn, mine bool) {
	d.bmu.Lock()
	defer d.bmu.Unlock()
	if c = d.conns[p.handle]; c != nil || d.shut {
		return c, false
	}
	c = &bulkConn{d: d, p: p, up: make(chan struct{})}
	c.gone, c.giveUp = context.WithCancel(d.life)
	d.conns[p.handle] = c
	return c, true
}

// connect connects the queue pair. A connection that cannot be made stays in conns, so that it is
// not tried again.
func (c *bulkConn) connect(g *envelope.Key) {
	defer close(c.up)
	defer c.giveUp()
	d := c.d
	if c.p.failure() != nil || c.makeQP() != nil {
		c.dead.Store(true)
		return
	}
	private := d.w.eng.appendNames(g.Token[:], []int32{int32(d.w.Rank())})
	addr := sctp.Addr{Addrs: d.tr.addrsOf(c.p), Port: g.Port}
	if _, err := d.dev.Connect(c.gone, addr, c.qp, verbs.ConnParams{PrivateData: private, Timeout: -1}); err != nil {
		c.dead.Store(true)
	}
	go c.watch()
}

// makeQP makes the queue pair, and enlarges the completion queue for it.
func (c *bulkConn) makeQP() (err error) {
	d := c.d
	d.bmu.Lock()
	defer d.bmu.Unlock()
	if d.shut {
		return ErrFinalized
	}
	if need := 2*bulkGrants + (len(d.conns)+len(d.dying))*(bulkDepth+1); d.cq.Depth() < need {
		if err := d.cq.Resize(2 * need); err != nil {
			return err
		}
	}
	c.qp, err = d.pd.NewQP(verbs.QPConfig{SendCQ: d.cq, RecvCQ: d.idle, SendDepth: bulkDepth, RecvDepth: 1,
		MaxSendSGE: 1, IRD: -1, ORD: bulkReads, Context: c})
	return err
}

// post posts the writes of a body, or sends it as a message.
func (c *bulkConn) post(m *bulkMove, stag uint32) {
	if c.dead.Load() || !c.tryPost(m, stag) {
		m.asMessage(c.d.w.eng)
	}
}

func (c *bulkConn) tryPost(m *bulkMove, stag uint32) bool {
	d := c.d
	var one [1]verbs.SendWR
	wrs := one[:0]
	for off := 0; off < m.n; off += d.piece {
		end := min(off+d.piece, m.n)
		g, err := d.regs.get(d.pd, m.r.buf[off:end], 0)
		if err != nil {
			m.putRegs()
			return false
		}
		m.regs = append(m.regs, g)
		wr := verbs.SendWR{Op: verbs.OpWrite, SGL: g.sgl[:], Remote: verbs.RemoteBuf{STag: stag, TO: uint64(off), Len: uint64(end - off)}}
		if end == m.n {
			wr.Op, wr.Imm, wr.Flags = verbs.OpWriteImm, m.id, verbs.Signaled
		}
		wrs = append(wrs, wr)
	}
	d.bmu.Lock()
	if d.shut {
		d.bmu.Unlock()
		m.putRegs()
		return false
	}
	d.last++
	key := d.last
	d.moves[key], d.unsure[moveKey{c.p, m.id}] = m, m
	d.bmu.Unlock()
	for i := range wrs {
		wrs[i].ID = key << 1
		c.p.rdma.count(&wrs[i])
	}
	wrs[len(wrs)-1].ID |= 1
	if err := c.qp.PostSend(wrs...); err != nil {
		d.bmu.Lock()
		delete(d.moves, key)
		delete(d.unsure, moveKey{c.p, m.id})
		d.bmu.Unlock()
		m.putRegs()
		c.p.rdma.writes.messages.Add(-uint64(len(wrs)))
		c.p.rdma.writes.bytes.Add(-uint64(m.n))
		if !errors.Is(err, verbs.ErrQueueFull) {
			d.drop(c)
		}
		return false
	}
	return true
}

// sent processes the completion of a write or read. A connection with a failed one is closed, which
// watch notices.
func (d *bulkDevice) sent(wc *verbs.WC) {
	if wc.Op == verbs.OpRead {
		d.haveRead(wc)
		return
	}
	key, last := wc.ID>>1, wc.ID&1 != 0
	d.bmu.Lock()
	m := d.moves[key]
	if m == nil {
		d.bmu.Unlock()
		return
	}
	if last {
		delete(d.moves, key)
		m.released = true
	}
	confirmed, lost := m.confirmed, m.lost
	d.bmu.Unlock()
	if wc.Status != verbs.StatusSuccess {
		d.drop(m.c)
	}
	if !last {
		return
	}
	m.putRegs()
	switch {
	case confirmed:
		m.r.event(nil)
	case lost:
		m.asMessage(d.w.eng)
	}
}

// onWriteFIN implements bulkMover.
func (b *rdmaBulk) onWriteFIN(p *peer, id uint64) {
	d := b.open.Load()
	if d == nil {
		return
	}
	d.bmu.Lock()
	m := d.unsure[moveKey{p, id}]
	if m == nil {
		d.bmu.Unlock()
		return
	}
	delete(d.unsure, moveKey{p, id})
	m.confirmed = true
	released := m.released
	d.bmu.Unlock()
	if released {
		m.r.event(nil)
	}
}

// watch waits for the end of a connection. Bodies that were written over it and not confirmed are
// sent again as messages.
func (c *bulkConn) watch() {
	<-c.qp.Done()
	d := c.d
	d.drop(c)
	var again []*bulkMove
	d.bmu.Lock()
	for k, m := range d.unsure {
		if m.c != c {
			continue
		}
		delete(d.unsure, k)
		if m.lost = true; m.released {
			again = append(again, m)
		}
	}
	d.bmu.Unlock()
	for _, m := range again {
		m.asMessage(d.w.eng)
	}
}

// putRegs gives the registrations back.
func (m *bulkMove) putRegs() {
	for _, g := range m.regs {
		_ = m.c.d.regs.put(g) // no work request names it any more
	}
	m.regs = nil
}

// asMessage sends the body as a message, which overwrites bytes written before with the same bytes.
func (m *bulkMove) asMessage(e *engine) {
	if err := m.r.peer.failure(); err != nil {
		m.r.event(err)
		return
	}
	e.sendBodyMessage(m.r, m.id, m.n, envelope.FlagAgain)
}

// drop closes a connection that has failed. The next write or read makes another.
func (d *bulkDevice) drop(c *bulkConn) {
	c.dead.Store(true)
	if c.qp == nil {
		return // it stays, so that connecting is not tried again
	}
	_ = c.qp.Close() // closed already, perhaps
	d.bmu.Lock()     // after Close: finish does not wait for a connection that it does not find
	if d.conns[c.p.handle] == c {
		delete(d.conns, c.p.handle)
		live := d.dying[:0]
		for _, old := range append(d.dying, c) {
			select {
			case <-old.qp.Done():
			default:
				live = append(live, old)
			}
		}
		d.dying = live
	}
	d.bmu.Unlock()
}

// rankDown closes the connection to a peer that has failed, and aborts the association under it, so
// that memory of unacknowledged data is released.
func (d *bulkDevice) rankDown(p *peer) {
	d.bmu.Lock()
	c := d.conns[p.handle]
	d.bmu.Unlock()
	if c != nil {
		c.giveUp()
		<-c.up
		d.drop(c)
	}
	addrs := d.tr.addrsOf(p)
	ofPeer := func(a netip.AddrPort) bool { return slices.Contains(addrs, a) }
	for _, a := range d.dev.Associations() {
		if slices.ContainsFunc(a.ConfirmedAddr().Addrs, ofPeer) {
			a.Abort("rank is gone")
		}
	}
}
