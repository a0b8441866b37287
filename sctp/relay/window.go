package relay

import "github.com/weftstack/weft/sctp/relay/frame"

// store keeps f for the reader. It reports false if there is no room. mu is held.
func (r *Receiver) store(f *frame.Frame, t Fragment) bool {
	n := r.n
	p := newPacket(max(len(f.Payload), 1))
	cost := p.cost()
	if !r.hasRoom(cost) {
		p.release()
		return false
	}
	p.n = copy(p.bytes(), f.Payload)
	r.held += cost
	n.recvHeld += cost
	u := unread{p: p, fragment: t}
	if f.Type == frame.Single {
		r.single.Push(u)
	} else {
		r.data.Push(u)
	}
	return true
}

// hasRoom reports whether n bytes more may be held: always, unless the origin ignores the window, or all flows together
// hold what the node may. mu is held.
func (r *Receiver) hasRoom(n int) bool {
	return r.held+n <= FlowReserve || r.n.recvHeld+n <= r.n.cfg.RecvMemory && r.held+n <= 2*r.n.cfg.FlowWindow
}

// Hold counts n bytes, which may be negative, against the window of the flow and the memory of the node: what the program
// keeps of the fragments that it got by OnFragment, so that their origin stops in time. What has been held must be taken back
// by the same Receiver, also when the flow has ended. It does not block.
func (r *Receiver) Hold(n int) {
	r.n.mu.Lock()
	r.held += n
	r.n.recvHeld += n
	if n < 0 {
		r.grow()
	}
	r.n.mu.Unlock()
	if n < 0 {
		r.n.pump()
	}
}

// free gives the memory of p back to the node. mu is held.
func (r *Receiver) free(p *packet) {
	r.held -= p.cost()
	r.n.recvHeld -= p.cost()
}

// window is how much the origin may have under way. mu is held.
func (r *Receiver) window() int {
	room := max(FlowReserve, (r.n.cfg.RecvMemory-r.n.recvHeld+r.held)/8)
	w := min(r.n.cfg.FlowWindow, room) - r.held
	if w < maxCredit {
		return 0
	}
	return w
}

// grow sends an ack if the window has grown much. mu is held.
func (r *Receiver) grow() {
	if r.err != nil {
		return
	}
	if w := r.window(); w-r.granted >= r.n.cfg.FlowWindow/4 || r.granted < maxCredit && w > r.granted {
		r.answer(0)
	}
}
