package relay

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weftstack/weft/internal/fifo"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay/frame"
)

// flowID names a flow for one of its ends: by the address of the other one.
type flowID struct {
	peer   Address
	stream uint16
}

// Node is a process: the origin and target of flows. It is safe for concurrent use.
//
// One mutex guards its flows. Frames are sent, and upcalls made, without it.
type Node struct {
	station
	cfg     NodeConfig
	clocked bool    // cfg.Incarnation is from the clock
	upcalls Handler // of the configuration
	ep      *sctp.Endpoint
	dialer  *sctp.Endpoint // for direct legs; may be nil

	readable chan struct{} // something is in ready

	mu        sync.Mutex
	closed    bool
	attached  chan struct{} // closed when the first leg is up
	conns     []*conn       // legs to gateways that are up
	directs   map[Address]*directPath
	dirty     []*conn // direct legs with frames
	senders   map[flowID]*Sender
	receivers map[flowID]*Receiver
	busy      []*Sender             // that wait for a confirmation or for credit
	answers   []*Receiver           // that owe an ack
	ready     fifo.Queue[*Receiver] // with something to read
	sendHeld  int                   // memory of frames that are kept, in bytes
	recvHeld  int                   // memory of frames that are unread, in bytes
	spare     []*confirmation
	told      fifo.Queue[*Sender]  // for OnProgress
	released  fifo.Queue[released] // for owners of messages
	ranges    []*handled
	frames    int                   // size of a frame when there was a leg last
	ended     fifo.Queue[*Receiver] // for OnFragment
	counters  NodeCounters

	legs, unused []*conn // of the timer
}

// NewNode makes the node of this process and connects it to its gateways. It returns when one of them
// has authenticated it, or, with NodeConfig.Direct, after the leg timeout at most; or with the error of ctx, or with ErrConfig.
func NewNode(ctx context.Context, cfg NodeConfig) (*Node, error) {
	clocked := cfg.Incarnation == 0
	if err := cfg.check(); err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, clocked: clocked, readable: make(chan struct{}, 1), attached: make(chan struct{}),
		senders: make(map[flowID]*Sender), receivers: make(map[flowID]*Receiver),
	}
	n.upcalls = Handler{OnFragment: cfg.OnFragment, OnProgress: cfg.OnProgress}
	n.init(cfg.Log)
	var err error
	if n.ep, err = n.listen(n, cfg.Transport, cfg.Port, cfg.SCTP, lanStreams); err != nil {
		n.cancel()
		return nil, err
	}
	if cfg.Direct != nil { // with a port of its own, so that two processes may connect to each other
		if n.dialer, err = n.listen(n, cfg.Transport, 0, cfg.SCTP, lanStreams); err != nil {
			_ = n.ep.Close()
			n.cancel()
			return nil, err
		}
		n.directs = make(map[Address]*directPath)
	}
	greeting := frame.Greeting{
		Role: frame.RoleNode, From: cfg.Address, Job: cfg.Job, Incarnation: cfg.Incarnation, Site: cfg.Address.Site,
	}
	for _, to := range cfg.Gateways {
		n.keepConnected(n, n.ep, to, cfg.Key, greeting)
	}
	n.tasks.Go(n.timer)
	var alone <-chan time.Time
	if cfg.Direct != nil {
		alone = time.After(cfg.LegTimeout)
	}
	select {
	case <-n.attached:
		return n, nil
	case <-alone:
		return n, nil
	case <-ctx.Done():
		_ = n.Close()
		return nil, ctx.Err()
	}
}

// Address returns the address of this process.
func (n *Node) Address() Address { return n.cfg.Address }

// identity implements host.
func (n *Node) identity() (site, gateway uint16, incarnation uint32) {
	return n.cfg.Address.Site, 0, n.cfg.Incarnation
}

// keyOf implements host: other processes of the job connect to a node.
func (n *Node) keyOf(g *frame.Greeting) ([]byte, error) {
	var err error
	switch {
	case n.cfg.Direct == nil:
		err = fmt.Errorf("relay: process %v takes no direct legs", n.cfg.Address)
	case g.Role != frame.RoleNode || g.To() != n.cfg.Address:
		err = fmt.Errorf("relay: this is process %v, not %v", n.cfg.Address, g.To())
	case !valid(g.From) || g.From == n.cfg.Address:
		err = fmt.Errorf("relay: direct leg from %v", g.From)
	case g.Job != n.cfg.Job:
		err = fmt.Errorf("relay: unknown job %d", g.Job)
	default:
		return n.cfg.Key, nil
	}
	n.count(func(c *NodeCounters) { c.PeersRefused++ })
	return nil, err
}

// attach implements host.
func (n *Node) attach(c *conn) error {
	n.mu.Lock()
	former, err := n.add(c)
	n.mu.Unlock()
	if former != nil {
		former.a.Abort("relay: replaced by another association of the same process")
	}
	return err
}

// add makes c a leg, and returns the one that it replaces. mu is held.
func (n *Node) add(c *conn) (former *conn, err error) {
	if n.closed {
		return nil, ErrClosed
	}
	if c.direct {
		if former, err = n.attachDirect(c); err != nil {
			return nil, err
		}
		c.attached = true
		n.note(slog.LevelInfo, "direct leg up", slog.String("peer", c.peer.String()), slog.String("addr", c.a.RemoteAddr().String()))
		for _, s := range n.busy {
			s.push()
		}
		return former, nil
	}
	for _, o := range n.conns {
		if o.peer == c.peer {
			return nil, errAuth // the same gateway is listed twice
		}
	}
	c.attached = true
	if n.conns = append(n.conns, c); len(n.conns) == 1 {
		select {
		case <-n.attached:
		default:
			close(n.attached)
		}
	}
	n.note(slog.LevelInfo, "gateway up", slog.Int("gateway", int(c.peer.Node)),
		slog.String("addr", c.a.RemoteAddr().String()))
	for _, s := range n.busy {
		s.push()
	}
	return nil, nil
}

// detach implements host.
func (n *Node) detach(c *conn, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !c.attached {
		return
	}
	c.attached = false
	same := func(o *conn) bool { return o == c }
	n.conns, n.dirty = slices.DeleteFunc(n.conns, same), slices.DeleteFunc(n.dirty, same)
	if c.direct {
		n.detachDirect(c)
	}
	switch {
	case n.closed:
	case closed(err):
		n.note(slog.LevelInfo, "leg closed", slog.String("peer", c.peer.String()))
	default:
		n.counters.LegsLost++
		n.note(slog.LevelWarn, "leg down", slog.String("peer", c.peer.String()), slog.Any("error", err))
	}
	for _, s := range n.senders {
		if s.leg == c {
			s.leg = nil
			s.goBack()
			s.push()
		}
	}
}

// flush implements host.
func (n *Node) flush(*conn) { n.pump() }

// pump sends what is queued on the legs.
func (n *Node) pump() {
	var few [8]*conn
	n.mu.Lock()
	conns := append(few[:0], n.conns...)
	for i, c := range n.dirty {
		conns = append(conns, c)
		c.dirty = false
		n.dirty[i] = nil
	}
	n.dirty = n.dirty[:0]
	n.mu.Unlock()
	for _, c := range conns {
		c.pump()
	}
}

// onFrame implements host.
func (n *Node) onFrame(c *conn, f *frame.Frame, b []byte, p *packet) {
	if p != nil {
		defer p.release()
	}
	if f.To != n.cfg.Address || f.Job != n.cfg.Job {
		n.count(func(c *NodeCounters) { c.Misrouted++ })
		return
	}
	if c.direct && !n.mayMake(c, f) {
		n.count(func(c *NodeCounters) { c.Forged++ })
		return
	}
	switch f.Type {
	case frame.Ack:
		n.onAck(f)
	case frame.Refuse:
		n.onRefuse(c, f)
	default:
		n.onData(c, f)
	}
}

func (n *Node) count(add func(*NodeCounters)) {
	n.mu.Lock()
	add(&n.counters)
	n.mu.Unlock()
}

// tick is the period of the timer of a node.
const tick = 25 * time.Millisecond

// timer runs until Close.
func (n *Node) timer() {
	t := time.NewTicker(tick)
	defer t.Stop()
	every := max(1, n.cfg.LegTimeout/checks/tick) // ticks between two looks at the legs
	for i := time.Duration(1); ; i++ {
		select {
		case <-n.ctx.Done():
			return
		case now := <-t.C:
			n.onTimer(now, i%every == 0)
		}
	}
}

func (n *Node) onTimer(now time.Time, legs bool) {
	n.mu.Lock()
	n.legs = n.legs[:0]
	if legs {
		n.legs = append(n.legs, n.conns...)
		n.onDirectTimer()
	}
	for i := 0; i < len(n.busy); {
		if s := n.busy[i]; s.onTimer(now) {
			i++
		} else {
			last := len(n.busy) - 1
			s.busy = false
			n.busy[i] = n.busy[last]
			n.busy[last] = nil
			n.busy = n.busy[:last]
		}
	}
	for i, r := range n.answers {
		n.answers[i] = nil
		r.owes = false
		if r.unacked > 0 {
			r.answer(0)
		}
	}
	n.answers = n.answers[:0]
	n.mu.Unlock()
	checkLegs(n.legs)
	n.closeUnused()
	n.pump()
	n.runUpcalls()
	n.write()
}

// control makes a frame without payload and queues it on q of c, or on its control queue. mu is held.
func (n *Node) control(c *conn, q *queue, f *frame.Frame, hash uint32) {
	var buf [64]byte
	b := frame.Append(buf[:0], f)
	p := newPacket(len(b))
	copy(p.bytes(), b)
	p.hash = hash
	if q == nil {
		q = &c.leg.control
	}
	c.enqueue(q, p)
	n.mark(c)
}

// Next waits for a flow of which something has arrived, or that has ended, and returns it; nil with the error of ctx
// or ErrClosed. A flow is returned again when more arrives, or a Recv has left something.
func (n *Node) Next(ctx context.Context) (*Receiver, error) {
	for {
		n.mu.Lock()
		if n.ready.Len() > 0 {
			r := n.ready.Pop()
			r.listed = false
			if n.ready.Len() > 0 {
				wake(n.readable)
			}
			n.mu.Unlock()
			return r, nil
		}
		closed := n.closed
		n.mu.Unlock()
		if closed {
			return nil, ErrClosed
		}
		select {
		case <-n.readable:
		case <-n.ctx.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// wake makes one receive of ch succeed.
func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Shutdown waits until the targets have confirmed everything, or ctx is done, and closes the node. It returns the
// error of ctx, or of a flow whose messages were not confirmed.
func (n *Node) Shutdown(ctx context.Context) error {
	n.mu.Lock()
	senders := make([]*Sender, 0, len(n.senders))
	for _, s := range n.senders {
		senders = append(senders, s)
	}
	n.mu.Unlock()
	var err error
	for _, s := range senders {
		if e := s.Flush(ctx); e != nil && err == nil {
			err = e
		}
	}
	if e := n.Close(); e != nil && err == nil {
		err = e
	}
	return err
}

// Close ends the node at once: messages that were not confirmed may be lost, as when the process dies. Calls that block
// return ErrClosed. What was received is acknowledged before. It must not be called from an upcall.
func (n *Node) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return ErrClosed
	}
	for _, r := range n.answers {
		r.answer(0)
	}
	n.answers = nil
	conns := slices.Clone(n.conns)
	for _, d := range n.directs {
		for _, c := range [...]*conn{d.out, d.in} {
			if c != nil {
				conns = append(conns, c)
			}
		}
	}
	n.mu.Unlock()
	for _, c := range conns {
		c.pump()
	}
	n.mu.Lock()
	n.closed = true
	for _, s := range n.senders {
		s.fail(ErrClosed)
	}
	for _, r := range n.receivers {
		r.end(ErrClosed)
		r.discard()
	}
	n.mu.Unlock()
	n.cancel()
	for _, c := range conns {
		c.a.Abort(closing)
	}
	err := n.ep.Close()
	if n.dialer != nil {
		_ = n.dialer.Close()
	}
	n.tasks.Wait()
	n.runUpcalls()
	n.write()
	return err
}
