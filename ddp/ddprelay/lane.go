package ddprelay

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/sctp/relay"
)

const (
	// lanes is how many flows in each direction the sessions between two processes share, by stream identifier: bulk
	// data of one seldom makes another one wait, and a flow for each would be too many in the gateways.
	lanes = 8
	// headLen is the largest head of an item: the prefix and a frame of ddp, or the header of one of a batch.
	headLen = prefixLen + 64
	// drainBatch is how many items are taken from the queue under one lock.
	drainBatch = 16
)

// item is a message that waits for the flow. Its payload is not copied before the flow takes it.
type item struct {
	head  [headLen]byte
	n     int // bytes of head
	body  []byte
	owner ddp.Owner
	a     *association // nil: of none
	ppid  uint32
	now   bool // the peer confirms it at once
}

// lane is a flow to the peer, with the messages that it has no room for. Those are bounded by the windows of the
// streams above.
type lane struct {
	p  *path
	no int

	mu    sync.Mutex
	s     *relay.Sender // guarded by mu: nil before the first message
	ring  []item        // guarded by mu; its length is a power of two
	head  int           // guarded by mu
	n     int           // guarded by mu
	busy  bool          // guarded by mu: a goroutine gives messages to the flow
	again bool          // guarded by mu: it must look once more
	err   error         // guarded by mu: the flow has ended

}

// scratch is memory for items on their way from the queue to the flow, and for the headers of a batch.
type scratch struct {
	items  [drainBatch]item
	frames [ddp.MaxTrain * ddp.MaxTrainFrame]byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// at returns where the ith item is.
func (l *lane) at(i int) *item { return &l.ring[(l.head+i)&(len(l.ring)-1)] } // mu is held

// push returns a place at the end of the queue, whose memory may hold a former item.
func (l *lane) push() *item { // mu is held
	if l.n == len(l.ring) {
		ring := make([]item, max(16, 2*l.n))
		for i := range l.n {
			ring[i] = *l.at(i)
		}
		l.ring, l.head = ring, 0
	}
	l.n++
	return l.at(l.n - 1)
}

// putBack makes items the first ones.
func (l *lane) putBack(items []item) { // mu is held
	for range items {
		l.push() // room
	}
	l.head = (l.head - len(items)) & (len(l.ring) - 1)
	for i := range items {
		*l.at(i) = items[i]
	}
}

// begin makes the flow, if there is none, and reports why nothing can be sent.
func (l *lane) begin() error { // mu is held
	if l.err != nil || l.s != nil {
		return l.err
	}
	n, stream := l.p.e.node, l.p.e.first+uint16(l.no)
	s, err := n.Sender(l.p.peer, stream)
	if err != nil {
		return err
	}
	if of, _ := s.Value().(*lane); of != nil && of.p.dead.Load() { // it may be to the former life of the peer
		s.Close()
		if s, err = n.Sender(l.p.peer, stream); err != nil {
			return err
		}
	}
	s.SetValue(l)
	l.s = s
	return nil
}

func (it *item) set(a *association, sid uint16, ppid uint32, body []byte, owner ddp.Owner, now bool) {
	binary.BigEndian.PutUint32(it.head[:], a.peerTag)
	binary.BigEndian.PutUint16(it.head[4:], sid)
	it.n, it.body, it.owner, it.a, it.ppid, it.now = prefixLen, body, owner, a, ppid, now
}

func (it *item) frame(f []byte) { it.n += copy(it.head[it.n:], f) }

// sendMessage sends a message of an association, or of none. With idle it does so only if nothing waits.
func (l *lane) sendMessage(a *association, m *message, idle bool) error {
	l.mu.Lock()
	if err := l.begin(); err != nil {
		l.mu.Unlock()
		return err
	}
	if idle && l.n > 0 {
		l.mu.Unlock()
		return nil
	}
	it := l.push()
	*it = item{body: appendMessage(nil, m), ppid: ppidAssociation, now: true}
	if m.kind == open || m.kind == opened { // else it outlives the association
		it.a = a
	}
	l.mu.Unlock()
	l.drain()
	return nil
}

// control sends a control message of a session.
func (l *lane) control(a *association, sid uint16, msg []byte, owner ddp.Owner) error {
	l.mu.Lock()
	if err := l.begin(); err != nil {
		l.mu.Unlock()
		return err
	}
	l.push().set(a, sid, ddpsctp.PPIDControl, msg, owner, true)
	l.mu.Unlock()
	l.drain()
	return nil
}

// segments sends segments of a session.
func (l *lane) segments(a *association, sid uint16, segs []ddp.Segment) (int, error) {
	l.mu.Lock()
	if err := l.begin(); err != nil {
		l.mu.Unlock()
		return 0, err
	}
	for i := range segs {
		s, it := &segs[i], l.push()
		it.set(a, sid, ddpsctp.PPIDSegment, s.Body, s.Owner, s.Urgent)
		it.frame(s.Frame())
	}
	l.mu.Unlock()
	l.drain()
	return len(segs), nil
}

// train sends a batch of segments of a session.
func (l *lane) train(a *association, sid, ssn uint16, t *ddp.Train) error {
	n, mem := t.Segments(), scratches.Get().(*scratch)
	defer scratches.Put(mem)
	frames := t.Frames(mem.frames[:0], ssn)
	l.mu.Lock()
	if err := l.begin(); err != nil {
		l.mu.Unlock()
		return err
	}
	size := len(frames) / n
	for i := range n {
		body := t.Body[i*t.Unit : min((i+1)*t.Unit, len(t.Body))]
		it := l.push()
		it.set(a, sid, ddpsctp.PPIDSegment, body, t.Owner, t.Urgent && i == n-1)
		it.frame(frames[i*size : (i+1)*size])
	}
	l.mu.Unlock()
	l.drain()
	return nil
}

// drain gives messages to the flow while it has room. One goroutine does it at a time; mu is not held while it sends.
func (l *lane) drain() {
	l.mu.Lock()
	if l.busy {
		l.again = true
		l.mu.Unlock()
		return
	}
	mem := scratches.Get().(*scratch)
	defer scratches.Put(mem)
	batch := &mem.items
	l.busy = true
	for l.err == nil && l.n > 0 {
		l.again = false
		n := min(l.n, drainBatch)
		for i := range n {
			it := l.at(i)
			batch[i] = *it
			it.body, it.owner, it.a = nil, nil, nil
		}
		l.head = (l.head + n) & (len(l.ring) - 1)
		l.n -= n
		more, s := l.n > 0, l.s
		l.mu.Unlock()
		sent, err := l.give(s, batch[:n], more)
		l.mu.Lock()
		if err != nil {
			l.putBack(batch[sent:n])
		}
		for i := range n {
			b := &batch[i]
			b.body, b.owner, b.a = nil, nil, nil
		}
		if err != nil && !errors.Is(err, relay.ErrWouldBlock) {
			l.fail(err)
		}
		if err != nil && !l.again {
			break
		}
	}
	l.busy = false
	if l.err != nil && l.n > 0 {
		go l.drop(nil, l.err) // the path may have ended while this goroutine had them
	}
	l.mu.Unlock()
}

// give gives messages to the flow, and returns how many it has taken.
func (l *lane) give(s *relay.Sender, items []item, more bool) (int, error) {
	for i := range items {
		it := &items[i]
		if it.a != nil && it.a.over.Load() {
			// The association has ended meanwhile; the message must be released, but not within a call of the stream.
			if it.owner != nil {
				go it.owner.Released(it.a.reason())
			}
			continue
		}
		o := relay.SendOptions{
			PPID: it.ppid, Header: it.head[:it.n], Unordered: true, AckNow: it.now, More: more || i < len(items)-1,
		}
		if it.owner != nil {
			o.Owner, o.Group = it.owner, it.a.tag
		}
		if err := s.TrySend(it.body, o); err != nil {
			return i, err
		}
		if o.Owner != nil && it.a.over.Load() { // since it was looked at above
			go s.Disown(it.a.tag, it.a.reason())
		}
	}
	return len(items), nil
}

// fail notes that the flow has ended, and has the associations end, not within this call.
func (l *lane) fail(err error) { // mu is held
	if l.err != nil {
		return
	}
	l.err = err
	e := l.p.e
	l.p.dead.Store(true)
	e.mu.Lock()
	if e.paths[l.p.peer] == l.p {
		delete(e.paths, l.p.peer)
	}
	e.mu.Unlock()
	go e.endPath(l.p, err)
}

// shrink frees the memory of an empty queue.
func (l *lane) shrink() {
	l.mu.Lock()
	if l.n == 0 {
		l.ring, l.head = nil, 0
	}
	l.mu.Unlock()
}

// progress is called when the flow has room, or has ended.
func (l *lane) progress(s *relay.Sender) {
	if _, err := s.Progress(); err != nil {
		l.mu.Lock()
		if l.s == s {
			l.fail(err)
		}
		l.mu.Unlock()
		return
	}
	l.drain()
}

// drop releases the messages of a, or all if it is nil: those that wait, and those that the flow has.
func (l *lane) drop(a *association, err error) {
	l.mu.Lock()
	var owners []ddp.Owner
	kept := 0
	for i := range l.n {
		it := l.at(i)
		if a != nil && it.a != a {
			*l.at(kept) = *it
			kept++
		} else if it.owner != nil {
			owners = append(owners, it.owner)
		}
	}
	for i := kept; i < l.n; i++ {
		*l.at(i) = item{}
	}
	l.n = kept
	s := l.s
	l.mu.Unlock()
	for _, o := range owners {
		o.Released(err)
	}
	if s != nil && a != nil {
		s.Disown(a.tag, err)
	}
}
