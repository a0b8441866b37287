package p2p

import (
	"slices"
	"sync/atomic"
)

// Matching of receives and messages within one context, as a plain data structure: no
// locks, no I/O. The engine calls it under its lock.
//
// MPI-4.1, Section 3.5: "If a sender sends two messages in succession to the
// same destination, and both match the same receive, then this operation cannot
// receive the second message if the first one is still pending." Messages of
// different tags travel on different streams, so the second may arrive first.
// Such a message is early: there is a gap in the sequence numbers before it. Two messages
// of one tag never pass each other, so a receive that names the tag of an early message may
// have it at once, unless an older receive with AnyTag could get it after the gap is
// filled. Then the message is held until it is.

// Context is one matching context of a communicator: the posted receives and the
// unexpected messages.
type Context struct {
	id     uint64
	comm   *Comm  // nil until this rank has made the communicator
	offset uint32 // spreads contexts over streams

	posted     matchTable // posted receives
	unexpected matchTable // unexpected messages, under all keys that may find them

	order            uint64 // number of the next posted receive
	exact, anySource int    // posted receives that name a tag; those of them from AnySource
	anyTag, anyBoth  int    // posted AnyTag receives from one source, from AnySource
	sources          []sourceState
	early            int      // unexpected messages that are early
	probers          []prober // goroutines waiting for any message
	unacked          bool     // a member failed since the last AckFailed
	dead             error    // the communicator was freed or revoked: what its operations return
	// emptied is called once nothing waits in the context any more, if its communicator
	// has been freed; otherwise it is nil.
	emptied     func()
	internal    bool        // belongs to no communicator: see ftService
	exactLength atomic.Bool // messages must fill the buffers of their receives
	matches     *Message    // messages matched by the current call, see take
	matchesTail *Message
}

// sourceState is the sequence-number state of one sender in a context.
type sourceState struct {
	next    uint32              // the first message that has not arrived
	ahead   int                 // messages that arrived beyond next
	arrived []uint64            // bit set of those messages, indexed by seq modulo its size
	held    map[uint32]*Message // those of them that are not matched
}

// maxAhead bounds how far the sequence numbers of one sender may run ahead of
// a missing message: 2 MiB of bitmap.
const maxAhead = 1 << 24

// Source returns the state of the sender with rank src in the communicator.
func (x *Context) source(src int32) *sourceState {
	if int(src) >= len(x.sources) {
		x.sources = append(x.sources, make([]sourceState, int(src)+1-len(x.sources))...)
	}
	return &x.sources[src]
}

// match removes and returns the oldest posted receive for a message from src with tag. It
// returns nil if there is none, or if an early message must be held.
func (x *Context) match(src, tag int32, early bool) *Request {
	var best *matchElem
	if x.exact > 0 {
		best = x.posted.head(matchKey{src, tag})
		if x.anySource > 0 {
			best = older(best, x.posted.head(matchKey{AnySource, tag}))
		}
	}
	if x.anyTag > 0 {
		best = older(best, x.posted.head(matchKey{src, AnyTag}))
	}
	if x.anyBoth > 0 {
		best = older(best, x.posted.head(matchKey{AnySource, AnyTag}))
	}
	if best == nil || early && best.request.tag == AnyTag {
		return nil
	}
	r := best.request
	x.unpost(r)
	return r
}

// older returns the one of two posted receives that was posted first; one may be nil.
func older(a, b *matchElem) *matchElem {
	if a == nil || b != nil && b.request.order < a.request.order {
		return b
	}
	return a
}

// Arrive records that message seq of src has arrived. It reports whether the message is early; ok
// is false if the peer has violated the protocol.
func (x *Context) arrive(src int32, seq uint32) (early, ok bool) {
	s := x.source(src)
	d := seq - s.next
	if d == 0 {
		s.next++
		return false, true
	}
	if d >= maxAhead {
		return false, false // repeated (wrapped around), or too far ahead
	}
	if need := int(d) + 1; need > 64*len(s.arrived) {
		s.growArrived(need)
	}
	i := seq % uint32(64*len(s.arrived))
	if s.arrived[i/64]&(1<<(i%64)) != 0 {
		return false, false
	}
	s.arrived[i/64] |= 1 << (i % 64)
	s.ahead++
	return true, true
}

// growArrived makes room for the bits of need sequence numbers from s.next.
func (s *sourceState) growArrived(need int) {
	old := s.arrived
	words := max(4, 2*len(old))
	for 64*words < need {
		words *= 2
	}
	s.arrived = make([]uint64, words)
	n := uint32(64 * len(old))
	for d := uint32(1); d < n; d++ {
		if i := (s.next + d) % n; old[i/64]&(1<<(i%64)) != 0 {
			j := (s.next + d) % uint32(64*words)
			s.arrived[j/64] |= 1 << (j % 64)
		}
	}
}

// add queues the unexpected message m, which matches no posted receive that may have it.
func (x *Context) add(m *Message) {
	x.unexpected.push(matchKey{m.src, m.tag}, &m.elems[0])
	x.unexpected.push(matchKey{AnySource, m.tag}, &m.elems[1])
	if m.early {
		s := x.source(m.src)
		if s.held == nil {
			s.held = make(map[uint32]*Message)
		}
		s.held[m.seq] = m
		x.early++
	} else {
		x.addWild(m)
	}
	x.wakeProbers()
}

// addWild also queues m under the keys of receives with AnyTag.
func (x *Context) addWild(m *Message) {
	x.unexpected.push(matchKey{m.src, AnyTag}, &m.elems[2])
	x.unexpected.push(matchKey{AnySource, AnyTag}, &m.elems[3])
}

// wakeProbers wakes the goroutines that wait in a Probe.
func (x *Context) wakeProbers() {
	for _, p := range x.probers {
		p.w.signal()
	}
}

// removeMessage removes m from all queues.
func (x *Context) removeMessage(m *Message) {
	for i := range m.elems {
		x.unexpected.remove(&m.elems[i])
	}
	if m.early {
		m.early = false
		delete(x.source(m.src).held, m.seq)
		x.early--
	}
}

// take matches m with r. If m is complete, the engine delivers it after unlocking; otherwise its
// parser does when it is.
func (x *Context) take(m *Message, r *Request) {
	m.match, m.next = r, nil
	r.setMatch(m.peer, m.src, m.tag, m.length, m.sig)
	if !m.whole {
		return
	}
	if x.matchesTail == nil {
		x.matches = m
	} else {
		x.matchesTail.next = m
	}
	x.matchesTail = m
}

// taken returns and clears the list of matches that take made.
func (x *Context) taken() *Message {
	m := x.matches
	x.matches, x.matchesTail = nil, nil
	return m
}

// Advance is called when the gap of src may have closed: held messages that
// are no longer early are matched, or become visible to wildcard receives.
func (x *Context) advance(src int32) {
	s := x.source(src)
	wild := false
	for s.ahead > 0 {
		i := s.next % uint32(64*len(s.arrived))
		if s.arrived[i/64]&(1<<(i%64)) == 0 {
			break
		}
		s.arrived[i/64] &^= 1 << (i % 64)
		s.ahead--
		if m := s.held[s.next]; m != nil {
			wild = x.releaseHeld(s, m) || wild
		}
		s.next++
	}
	if wild {
		x.recheck()
	}
}

// releaseHeld matches a held message that is no longer early, or makes it visible to
// wildcard receives. It reports whether it matched a receive with AnyTag.
func (x *Context) releaseHeld(s *sourceState, m *Message) (wild bool) {
	delete(s.held, m.seq)
	m.early = false
	x.early--
	if r := x.match(m.src, m.tag, false); r != nil {
		x.removeMessage(m)
		x.take(m, r)
		return r.tag == AnyTag
	}
	x.addWild(m)
	x.wakeProbers()
	return false
}

// recheck is called after receives with AnyTag have left. Messages held because of them may
// now match a younger receive that names their tag.
func (x *Context) recheck() {
	if x.early == 0 || x.exact == 0 && len(x.probers) == 0 {
		return
	}
	x.wakeProbers()
	for i := range x.sources {
		s := &x.sources[i]
		if len(s.held) == 0 {
			continue
		}
		ms := make([]*Message, 0, len(s.held))
		for _, m := range s.held {
			ms = append(ms, m)
		}
		slices.SortFunc(ms, func(a, b *Message) int { return int(int32(a.seq - b.seq)) })
		for _, m := range ms {
			if r := x.match(m.src, m.tag, true); r != nil {
				x.removeMessage(m)
				x.take(m, r)
			}
		}
	}
}

// abandonGaps is called when src has failed: the missing messages will not come.
func (x *Context) abandonGaps(src int32) {
	if int(src) >= len(x.sources) {
		return
	}
	s := &x.sources[src]
	for s.ahead > 0 {
		s.next++
		x.advance(src)
	}
}

// lookup returns the oldest message that a receive for (src, tag) posted now would match, or nil.
// The message stays.
func (x *Context) lookup(src, tag int32) *Message {
	for e := x.unexpected.head(matchKey{src, tag}); e != nil; e = e.next {
		m := e.msg
		if !m.early || x.anyBoth == 0 && (x.anyTag == 0 || x.posted.head(matchKey{m.src, AnyTag}) == nil) {
			return m
		}
		if src != AnySource {
			break // the younger ones of that source are early as well
		}
	}
	return nil
}

// post matches r with the oldest unexpected message for it (see take), or queues r and returns nil.
func (x *Context) post(r *Request) *Message {
	r.order = x.order // also of one that matches at once, for repost
	x.order++
	if m := x.lookup(r.src, r.tag); m != nil {
		x.removeMessage(m)
		x.take(m, r)
		return m
	}
	r.elem.request = r
	x.posted.push(matchKey{r.src, r.tag}, &r.elem)
	x.count(r, 1)
	return nil
}

// Posted reports whether r waits among the posted receives. Engine.Mu is held.
func (r *Request) Posted() bool { return r.elem.queue != nil }

// unpost removes r from the posted receives and reports whether it was there. If r has AnyTag the
// caller must call recheck afterwards.
func (x *Context) unpost(r *Request) bool {
	if !r.Posted() {
		return false
	}
	x.posted.remove(&r.elem)
	x.count(r, -1)
	x.tellEmpty()
	return true
}

// count adds d to the number of posted receives of the kind of r.
func (x *Context) count(r *Request, d int) {
	switch {
	case r.tag != AnyTag:
		x.exact += d
		if r.src == AnySource {
			x.anySource += d
		}
	case r.src != AnySource:
		x.anyTag += d
	default:
		x.anyBoth += d
	}
}
