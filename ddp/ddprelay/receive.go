package ddprelay

import (
	"encoding/binary"
	"fmt"

	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/sctp/relay"
)

// maxPartial bounds a message in several frames. Segments fit one frame, but for those that were cut before a leg
// with a smaller path MTU was there.
const maxPartial = 1 << 16

// incoming is the state of a flow that comes in. Only its upcall uses it.
type incoming struct {
	last    *association // that the last message was for
	partial []byte       // of a message in several frames
	ppid    uint32       // of that
	begun   bool
}

// onFragment is the upcall of the relay.
func (e *Endpoint) onFragment(r *relay.Receiver, f *relay.Fragment) {
	in, _ := r.Value().(*incoming)
	if in == nil {
		in = new(incoming)
		r.SetValue(in)
	}
	if f.Err != nil {
		r.Hold(-cap(in.partial))
		*in = incoming{}
		e.endFlow(r, f.Err)
		return
	}
	if f.Begin && f.End {
		e.dispatch(r, in, f.PPID, f.Data)
		return
	}
	if f.Begin {
		in.begun, in.ppid, in.partial = true, f.PPID, in.partial[:0]
	}
	switch {
	case !in.begun:
		return
	case f.Aborted || len(in.partial)+len(f.Data) > maxPartial:
		e.malformed.Add(1)
		in.begun = false
	default:
		was := cap(in.partial)
		in.partial = append(in.partial, f.Data...)
		r.Hold(cap(in.partial) - was)
		if !f.End {
			return
		}
		in.begun = false
		e.dispatch(r, in, in.ppid, in.partial)
	}
	r.Hold(-cap(in.partial))
	in.partial = nil
}

// endFlow ends the associations whose peer has sent on a flow that has ended.
func (e *Endpoint) endFlow(r *relay.Receiver, err error) {
	var gone []*association
	e.mu.Lock()
	if p := e.paths[r.Origin()]; p != nil {
		for _, a := range p.assocs {
			if a.in[r.Stream()-e.first].Load() == r {
				gone = append(gone, a)
			}
		}
	}
	e.mu.Unlock()
	for _, a := range gone {
		e.end(a, err)
	}
}

// dispatch takes a message.
func (e *Endpoint) dispatch(r *relay.Receiver, in *incoming, ppid uint32, b []byte) {
	switch ppid {
	case ppidAssociation:
		m, err := parseMessage(b)
		if err != nil || r.Stream() != e.first { // they come on the first lane
			e.malformed.Add(1)
			return
		}
		e.message(r, &m)
	case ddpsctp.PPIDSegment, ddpsctp.PPIDControl:
		if len(b) < prefixLen {
			e.malformed.Add(1)
			return
		}
		a, tag := in.last, binary.BigEndian.Uint32(b)
		if a == nil || a.tag != tag || a.over.Load() {
			if a = e.find(r, tag); a == nil {
				in.last = nil
				return
			}
			in.last = a
		}
		a.receive(r, binary.BigEndian.Uint16(b[4:]), ppid, b[prefixLen:])
	default:
		e.malformed.Add(1)
	}
}

// find returns the association with a tag that the origin of r may use, and notes that both sides know of it; nil if
// there is none, which the peer is told.
func (e *Endpoint) find(r *relay.Receiver, tag uint32) *association {
	e.mu.Lock()
	a := e.tags[tag]
	if a == nil || a.p.peer != r.Origin() || a.state == opening {
		e.tellUnknown(r.Origin(), tag)
		return nil
	}
	up := a.state == answered
	if up {
		a.state = established
		close(a.done)
	}
	e.mu.Unlock()
	a.heard.Store(true)
	if f := e.cfg.OnNotify; f != nil && up {
		f(a.p.peer, true, nil)
	}
	return a
}

// tellUnknown answers a message with a tag that is of no association. mu is held, and is unlocked.
func (e *Endpoint) tellUnknown(peer relay.Address, tag uint32) {
	e.unknown.Add(1)
	if e.closed {
		e.mu.Unlock()
		return
	}
	e.reply(peer, &message{kind: unknown, tag: tag})
}

// reply sends a message that belongs to no association, unless others wait already. mu is held, and is unlocked.
func (e *Endpoint) reply(peer relay.Address, m *message) {
	p := e.pathTo(peer)
	e.trim(p)
	e.mu.Unlock()
	_ = p.lanes[0].sendMessage(nil, m, true)
}

// message takes a message of an association.
func (e *Endpoint) message(r *relay.Receiver, m *message) {
	switch m.kind {
	case open:
		e.accept(r, m)
	case opened:
		e.answered(r, m)
	case ready, ping:
		e.find(r, m.tag)
	case abort:
		e.mu.Lock()
		a := e.tags[m.tag]
		e.mu.Unlock()
		if a != nil && a.p.peer == r.Origin() {
			e.end(a, &AbortError{Peer: a.p.peer, Reason: m.reason, ByPeer: true})
		}
	case unknown:
		var gone *association
		e.mu.Lock()
		if p := e.paths[r.Origin()]; p != nil {
			for _, a := range p.assocs {
				if a.peerTag == m.tag {
					gone = a
				}
			}
		}
		e.mu.Unlock()
		if gone != nil {
			e.end(gone, &AbortError{Peer: gone.p.peer, Reason: "the peer does not know it any more", ByPeer: true})
		}
	}
}

// accept takes the request of a peer for an association. A peer that opens one has none, or has given up the one that
// it opened before.
func (e *Endpoint) accept(r *relay.Receiver, m *message) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return
	}
	p := e.pathTo(r.Origin())
	var former *association
	var own []*association
	for _, a := range p.assocs {
		switch {
		case a.active:
			own = append(own, a)
		case a.peerTag == m.own:
			e.mu.Unlock()
			return // repeated: the answer is on its way
		default:
			former = a
		}
	}
	if e.trials >= MaxTrials && (former == nil || !former.onTrial) {
		e.refused.Add(1)
		reason := fmt.Sprintf("%d associations without a connection", MaxTrials)
		e.reply(p.peer, &message{kind: abort, tag: m.own, reason: reason})
		return
	}
	a := e.add(p, false)
	a.state, a.peerTag = answered, m.own
	a.until = a.quiet.Add(probation)
	a.onTrial = true
	a.in[0].Store(r)
	e.trials++
	a.ddp = ddpsctp.NewAssociation(a, int(min(m.streams, e.cfg.Streams)), e.acc)
	e.mu.Unlock()
	if former != nil {
		e.end(former, fmt.Errorf("%w: %v", ErrReplaced, p.peer))
	}
	for _, o := range own { // of a peer that has restarted they end by that
		o.ping()
	}
	_ = p.lanes[0].sendMessage(a, &message{kind: opened, streams: e.cfg.Streams, tag: a.peerTag, own: a.tag}, false)
}

// answered takes the answer to a request for an association.
func (e *Endpoint) answered(r *relay.Receiver, m *message) {
	e.mu.Lock()
	a := e.tags[m.tag]
	if a == nil || a.p.peer != r.Origin() || !a.active {
		e.tellUnknown(r.Origin(), m.tag)
		return
	}
	if a.state != opening {
		e.mu.Unlock()
		return
	}
	a.peerTag = m.own
	a.in[0].Store(r)
	a.ddp = ddpsctp.NewAssociation(a, int(min(m.streams, e.cfg.Streams)), e.acc)
	a.state = established
	close(a.done)
	e.mu.Unlock()
	a.heard.Store(true)
	if f := e.cfg.OnNotify; f != nil {
		f(a.p.peer, true, nil)
	}
	_ = a.p.lanes[0].sendMessage(a, &message{kind: ready, tag: a.peerTag}, false)
}
