package sctp

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/weftstack/weft/sctp/internal/core"
)

// posting is the buffer of one reader that polls: a short message that comes alone goes
// straight there, and who handles its packet need not stop at the queues that are for
// everybody.
type posting struct {
	state atomic.Uint32 // leaves postOpen with a.mu held
	core.Posted
	shared bool // another reader polls as well: what comes is for who is first; guarded by a.mu
}

// States of a posting.
const (
	postNone uint32 = iota // nobody's
	postOpen               // of a reader that waits
	postDone               // it has a message, and belongs to the reader
)

// postRead posts buf for a reader that found nothing and is about to poll. It reports
// whether it did; then collect has to follow. a.mu is held.
func (a *Association) postRead(stream int, buf []byte) bool {
	p := &a.post
	if p.state.Load() != postNone {
		p.shared = true
		return false
	}
	if a.readers.head != nil || a.autoClose > 0 || a.onPiece != nil || len(buf) == 0 {
		return false
	}
	p.Stream, p.Dst, p.shared = stream, buf, false
	p.state.Store(postOpen)
	return true
}

// collect takes back what postRead posted, and tells of the message that has come there.
func (a *Association) collect(info *RecvInfo) (n int, ok bool) {
	p := &a.post
	if p.state.Load() != postDone {
		a.mu.Lock()
		defer a.mu.Unlock()
	}
	if ok = p.state.Load() == postDone; ok {
		n = p.N
		info.set(a, &p.Info)
	}
	p.Dst = nil
	p.state.Store(postNone)
	return n, ok
}

// lone takes in what was read if it is one packet with a message that a reader has posted
// a buffer for. It is called with mu locked, and unlocks it if it did; else nothing has
// happened.
func (s *socket) lone() bool {
	a, t := s.last, s.t
	if a == nil || a.post.state.Load() != postOpen || t.cfg.Tap != nil || !t.polling.quiet.Load() || !s.conn.CanPoll() {
		return false
	}
	d, m := s.bufs[0].B, &s.metas[0]
	if len(d) < 12 || len(d) >= copyTrain || len(d) > m.SegSize || binary.BigEndian.Uint32(d[4:]) != a.tag.Load() || s.late != nil && s.late != a {
		return false
	}
	now := t.now()
	c := a.core
	a.mu.Lock()
	if a.closing || a.dead || a.readers.head != nil || a.post.shared || a.post.state.Load() != postOpen ||
		!c.HandleLone(now, &core.LonePacket{Data: d, Local: &m.Local, Remote: &m.Remote, ECN: m.ECN}, &a.post.Posted) {
		a.mu.Unlock()
		return false
	}
	late, idle := c.HasLateSack(), true
	if s.late = nil; late {
		s.late = a // its timer is set when that is settled
	} else if idle = c.Idle(now); idle {
		a.arm()
	}
	a.post.state.Store(postDone)
	a.seq.Add(1)
	w := a.unlock()
	s.mu.Unlock()
	t.count.received(1, len(d))
	if !idle {
		w |= a.flush()
	}
	a.settle(w)
	if late && !t.polling.quiet.Load() {
		s.settleLate() // see handle
	}
	return true
}
