package relay

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay/frame"
)

const (
	// MaxDirect bounds the processes that a node has direct paths to, or from.
	MaxDirect = 4096
	// directIdle is after how long without use a direct leg is closed, directRetry after how long flows try their gateways
	// again when these could not reach a process.
	directIdle, directRetry = 10 * time.Second, 5 * time.Second
)

// directPath is the way to a process beside the gateways. It is guarded by the mutex of the node.
type directPath struct {
	n       *Node
	peer    Address
	out, in *conn // legs that are up: opened by this side, by the other one
	dialing bool  // a goroutine keeps out
	used    bool  // since the timer looked
	idle    int   // looks of the timer since it was used
	refused int   // looks of the timer until gateways are tried again; 0: they are not known to fail
}

// leg returns the leg in use: of two that of the process with the lower address.
func (d *directPath) leg() *conn {
	if d.out == nil || d.in != nil && less(d.peer, d.n.cfg.Address) {
		return d.in
	}
	return d.out
}

func less(a, b Address) bool {
	switch {
	case a.Site != b.Site:
		return a.Site < b.Site
	case a.Node != b.Node:
		return a.Node < b.Node
	}
	return a.Process < b.Process
}

// direct returns the direct path to a process, nil if there can be none. mu is held.
func (n *Node) direct(peer Address) *directPath {
	if n.cfg.Direct == nil || peer == n.cfg.Address {
		return nil
	}
	d := n.directs[peer]
	if d == nil && len(n.directs) < MaxDirect {
		d = &directPath{n: n, peer: peer}
		n.directs[peer] = d
	}
	return d
}

// legTo returns the leg for the flows to a process, nil if there is none at the moment. mu is held.
func (n *Node) legTo(peer Address, hash uint32) *conn {
	g := choose(n.conns, hash)
	if n.cfg.Direct == nil || g != nil && !n.cfg.DirectFirst && len(n.directs) == 0 {
		return g
	}
	d := n.directs[peer]
	if d == nil && (g == nil || n.cfg.DirectFirst) {
		d = n.direct(peer)
	}
	if d == nil || g != nil && !n.cfg.DirectFirst && d.refused == 0 {
		return g
	}
	d.want()
	if c := d.leg(); c != nil {
		return c
	}
	return g
}

// legBack returns the leg for what answers frames that came by via: a direct one as long as it is up.
// mu is held.
func (n *Node) legBack(via *conn, peer Address, hash uint32) *conn {
	if via != nil && via.direct && via.attached {
		return via
	}
	if g := choose(n.conns, hash); g != nil {
		return g
	}
	if d := n.directs[peer]; d != nil {
		return d.leg()
	}
	return nil
}

// want has the path connected. mu is held.
func (d *directPath) want() {
	if d.used = true; d.dialing || d.leg() != nil || d.n.closed {
		return
	}
	d.dialing = true
	d.n.tasks.Go(d.keep)
}

// keep connects to the process, again and again, until the path is not used any more.
func (d *directPath) keep() {
	n := d.n
	for wait := redialMin; ; wait = min(2*wait, redialMax) {
		if to, ok := n.cfg.Direct(d.peer); ok {
			began := time.Now()
			err := n.connectOnce(n, n.dialer, to, n.cfg.Key, frame.Greeting{
				Role: frame.RoleNode, From: n.cfg.Address, Job: n.cfg.Job, Incarnation: n.cfg.Incarnation,
				Site: d.peer.Site, Node: d.peer.Node, Process: d.peer.Process,
			})
			if time.Since(began) > redialMax {
				wait = redialMin // it was up
			}
			n.note(slog.LevelInfo, "no direct leg", slog.String("to", d.peer.String()), slog.String("addr", to.String()), slog.Any("error", err))
		}
		n.mu.Lock()
		over := n.closed || !d.used && d.idle > 0
		if over {
			d.dialing = false
		}
		n.mu.Unlock()
		if over {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-n.ctx.Done():
			timer.Stop()
		}
	}
}

// attachDirect makes c a leg to its process, and returns the one that it replaces. mu is held.
func (n *Node) attachDirect(c *conn) (former *conn, err error) {
	d := n.direct(c.peer)
	if d == nil {
		return nil, fmt.Errorf("%w: %d direct paths", ErrLimit, MaxDirect)
	}
	at := &d.out
	if !c.dialed {
		at = &d.in
	}
	if former = *at; former != nil && int32(c.incarnation-former.incarnation) < 0 {
		return nil, fmt.Errorf("relay: a later incarnation of %v is connected", c.peer)
	}
	*at, d.used = c, true
	if d.refused > 0 {
		d.move()
	}
	return former, nil
}

// detachDirect forgets c. mu is held.
func (n *Node) detachDirect(c *conn) {
	if d := n.directs[c.peer]; d != nil {
		if d.out == c {
			d.out = nil
		}
		if d.in == c {
			d.in = nil
		}
	}
}

// unreachable has the flows to a process take the direct path, since a gateway cannot reach it. mu is held.
func (n *Node) unreachable(peer Address) {
	d := n.direct(peer)
	if d == nil {
		return
	}
	d.refused = int(directRetry / (n.cfg.LegTimeout / checks))
	d.want()
	d.move()
}

// move has the flows to the process, which wait for gateways, take the direct leg. mu is held.
func (d *directPath) move() {
	c := d.leg()
	if c == nil {
		return
	}
	for id, s := range d.n.senders {
		if id.peer != d.peer || s.leg == nil || s.leg.direct || s.err != nil {
			continue
		}
		s.leg.withdraw(&s.q)
		s.leg = nil
		s.goBack()
		s.push()
	}
}

// onTimer looks after the direct paths. mu is held.
func (n *Node) onDirectTimer() {
	most := int(directIdle / (n.cfg.LegTimeout / checks))
	for peer, d := range n.directs {
		if d.refused > 0 {
			d.refused--
		}
		if d.idle++; d.used {
			d.used, d.idle = false, 0
		}
		for _, c := range [...]*conn{d.out, d.in} {
			if c != nil {
				n.legs = append(n.legs, c)
			}
		}
		if d.idle < most {
			continue
		}
		switch {
		case d.out != nil:
			n.unused = append(n.unused, d.out)
		case d.in == nil && !d.dialing && d.refused == 0:
			delete(n.directs, peer)
		}
	}
}

// closeUnused ends the direct legs that the timer has found idle.
func (n *Node) closeUnused() {
	for i, c := range n.unused {
		c.a.Abort(closing)
		n.unused[i] = nil
	}
	n.unused = n.unused[:0]
}

// mark has pump look at c. mu is held.
func (n *Node) mark(c *conn) {
	if c.direct && !c.dirty {
		c.dirty = true
		n.dirty = append(n.dirty, c)
	}
}

// mayMake reports whether the process at the other end of a direct leg may send f. It notes that the leg is used.
func (n *Node) mayMake(c *conn, f *frame.Frame) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d := n.directs[c.peer]; d != nil {
		d.used = true
	}
	return f.From == c.peer && (int32(f.Incarnation-c.incarnation) >= 0 || f.Type == frame.Refuse)
}

// Addr returns where other processes connect to for direct paths: see NodeConfig.Direct.
func (n *Node) Addr() sctp.Addr { return n.ep.Addr() }
