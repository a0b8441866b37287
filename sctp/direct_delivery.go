package sctp

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/weftstack/weft/sctp/internal/core"
)

// postedRead is the pre-posted receive buffer of a reader that polls. A short message that comes
// in a packet of its own is delivered there directly, without passing the reassembly queue.
type postedRead struct {
	state atomic.Uint32 // leaves bufferPosted with a.mu held
	core.PostedBuffer
	shared bool // another reader polls, too: the first of them takes the next message; guarded by a.mu
}

// States of a postedRead.
const (
	bufferNone   uint32 = iota // there is none
	bufferPosted               // a reader that polls has posted one
	bufferFilled               // a message was delivered there, and the buffer belongs to the reader
)

// postBuffer posts buf for a reader that found nothing and is about to poll. It reports
// whether it did; then takePosted has to follow. a.mu is held.
func (a *Association) postBuffer(stream int, buf []byte) bool {
	p := &a.posted
	if p.state.Load() != bufferNone {
		p.shared = true
		return false
	}
	if a.readers.head != nil || a.autoClose > 0 || a.onPiece != nil || len(buf) == 0 {
		return false
	}
	p.Stream, p.Dst, p.shared = stream, buf, false
	p.state.Store(bufferPosted)
	return true
}

// takePosted takes the posted buffer back. If a message was delivered there it describes the
// message in info and returns its length.
func (a *Association) takePosted(info *RecvInfo) (n int, ok bool) {
	p := &a.posted
	if p.state.Load() != bufferFilled {
		a.mu.Lock()
		defer a.mu.Unlock()
	}
	if ok = p.state.Load() == bufferFilled; ok {
		n = p.N
		info.set(a, &p.Info)
	}
	p.Dst = nil
	p.state.Store(bufferNone)
	return n, ok
}

// receiveSmall handles what was read if it is one packet with a message that a reader has
// posted a buffer for. It is called with mu locked. If it handles the packet it unlocks mu;
// otherwise nothing has changed, except that the core may have processed a deferred SACK.
func (s *socket) receiveSmall() bool {
	a, t := s.last, s.t
	if a == nil || a.posted.state.Load() != bufferPosted || t.cfg.Tap != nil || !t.suppression.on.Load() || !s.conn.CanPoll() {
		return false
	}
	d, m := s.bufs[0].B, &s.metas[0]
	if len(d) < 12 || len(d) >= minSlabBatch || len(d) > m.SegSize || binary.BigEndian.Uint32(d[4:]) != a.tag.Load() || s.deferredSACK != nil && s.deferredSACK != a {
		return false
	}
	now := t.now()
	c := a.core
	a.mu.Lock()
	if a.closing || a.dead || a.readers.head != nil || a.posted.shared || a.posted.state.Load() != bufferPosted ||
		!c.HandleSmall(now, &core.SmallPacket{Data: d, Local: &m.Local, Remote: &m.Remote, ECN: m.ECN}, &a.posted.PostedBuffer) {
		a.mu.Unlock()
		return false
	}
	late, idle := c.HasDeferredSack(), true
	if s.deferredSACK = nil; late {
		s.deferredSACK = a // processDeferredSACK sets its timer
	} else if idle = c.Idle(now); idle {
		a.arm()
	}
	a.posted.state.Store(bufferFilled)
	a.seq.Add(1)
	w := a.drainAndUnlock()
	s.mu.Unlock()
	t.count.received(1, len(d))
	if !idle {
		w |= a.flush()
	}
	a.runCallbacks(w)
	if late && !t.suppression.on.Load() {
		s.processDeferredSACK() // see handle
	}
	return true
}
