package reasm

import "github.com/weftstack/weft/sctp/internal/core/seq"

// message is one user message being received.
type message struct {
	st   *inStream // nil for a dead message
	key  uint64    // see messageKey
	id   uint64    // unique within the association
	num  uint32    // SSN or MID
	ppid uint32

	// next is what continues the message: an FSN for I-DATA, a TSN for DATA.
	next       uint32
	lastFSN    uint32 // FSN of the fragment with the E bit, if ended
	maxFSN     uint32 // largest FSN among the loose fragments, if there are any
	head, tail *frag  // contiguous from the beginning, not yet consumed
	loose      fragList
	avail      int    // bytes from head to tail
	offset     uint64 // bytes consumed before head

	unordered bool
	begun     bool // the fragment with the B bit is there
	ended     bool // the one with the E bit was seen (I-DATA)
	complete  bool // contiguous up to the E bit; nothing will be appended
	turn      bool // ordered, and the next one of its stream, or before that
	started   bool // the user has got some of it
	aborted   bool // will not be completed, which the user must be told
	dead      bool // belongs to a skipped message: swallows its fragments
	linked    bool // in st.ready
	pending   bool // in st.pending
	partial   bool // in reassembly.partials

	links  [msgLinks]struct{ next, prev *message }
	hnext  [hashLinks]*message
	hashed [hashLinks]bool
}

// deliverable reports whether what is contiguous may go to the user.
func (m *message) deliverable() bool { return m.begun && (m.unordered || m.turn) }

// Kinds of msgList, and of the link in a message it uses.
const (
	linkReady   = iota // of the stream; also the free list
	linkPending        // of the stream
	linkPartial        // of the association
	msgLinks
)

// msgList is a doubly linked list of messages, of a kind given with each call.
type msgList struct {
	head, tail *message
	n          int
}

func (l *msgList) push(kind int, m *message) {
	k := &m.links[kind]
	k.prev, k.next = l.tail, nil
	if l.tail != nil {
		l.tail.links[kind].next = m
	} else {
		l.head = m
	}
	l.tail = m
	l.n++
}

func (l *msgList) remove(kind int, m *message) {
	k := &m.links[kind]
	if k.prev != nil {
		k.prev.links[kind].next = k.next
	} else {
		l.head = k.next
	}
	if k.next != nil {
		k.next.links[kind].prev = k.prev
	} else {
		l.tail = k.prev
	}
	k.next, k.prev = nil, nil
	l.n--
}

// inStream is the receiving half of a stream.
type inStream struct {
	sid     uint16
	next    uint32   // SSN or MID of the next ordered message
	head    *message // that message, if some of it is there
	ready   msgList  // messages with something for the user, in delivery order
	current *message // that read is in the middle of
	// pending are the messages that are unfinished or wait for their turn:
	// ordered and unordered ones.
	pending [2]msgList

	paused       bool // see PausePieces
	queued       bool // in reassembly.ready
	unfragmented int  // fragments in Queue.unfragmented
	rnext        *inStream
	rprev        *inStream

	skips    bool // a FORWARD-TSN skipped ordered messages before next
	toSkip   bool // in reassembly.skipped
	skipTo   [2]uint32
	hasSkip  [2]bool // skipTo is to be applied
	uSkipped bool    // unordered messages up to uSkip were skipped
	uSkip    uint32

	deferred bool // a reset waits for TSNs up to lastTSN
	lastTSN  seq.TSN
	held     fragList // fragments of after the reset
}

// streamList is a queue of streams.
type streamList struct {
	head, tail *inStream
}

func (l *streamList) push(st *inStream) {
	st.rprev, st.rnext = l.tail, nil
	if l.tail != nil {
		l.tail.rnext = st
	} else {
		l.head = st
	}
	l.tail = st
	st.queued = true
}

func (l *streamList) remove(st *inStream) {
	if st.rprev != nil {
		st.rprev.rnext = st.rnext
	} else {
		l.head = st.rnext
	}
	if st.rnext != nil {
		st.rnext.rprev = st.rprev
	} else {
		l.tail = st.rprev
	}
	st.rnext, st.rprev = nil, nil
	st.queued = false
}

// newMessage returns a record for the message named by key; see messageKey.
func (r *Queue) newMessage(st *inStream, key uint64, unordered bool) *message {
	m := r.freeMsgs
	if m != nil {
		r.freeMsgs = m.links[linkReady].next
		r.freeMsgs.prefetch() // for the next message
		r.nfreeMsgs--
		m.links[linkReady].next = nil
	} else {
		m = new(message)
	}
	r.msgs++
	r.window.held += messageRecord
	r.msgID++
	m.st, m.key, m.id, m.num, m.unordered = st, key, r.msgID, uint32(key), unordered
	return m
}

// freeMessage recycles m, which must be out of every list and hold no fragment.
func (r *Queue) freeMessage(m *message) {
	r.msgs--
	r.window.held -= messageRecord
	*m = message{}
	if r.nfreeMsgs < r.mem.maxFree {
		m.links[linkReady].next, r.freeMsgs = r.freeMsgs, m
		r.nfreeMsgs++
	}
}

// append adds f, which continues m; a dead message swallows it.
func (r *Queue) append(m *message, f *frag) {
	m.next++
	m.complete = f.end
	if m.dead {
		r.freeFrag(f)
		return
	}
	if f.begin {
		m.begun, m.ppid = true, f.ppid
	}
	m.avail += len(f.data)
	f.prev, f.next = nil, nil
	if m.tail != nil {
		m.tail.next = f
	} else {
		m.head = f
	}
	m.tail = f
}

// extend appends to m the loose fragments that continue it.
func (r *Queue) extend(m *message) Result {
	list, slot := &r.looseList, uint64(0)
	if r.cfg.Interleaved {
		list, slot = &m.loose, m.key
	}
	for !m.complete {
		f := r.loose.find(slot, m.next)
		if f == nil {
			break
		}
		if f.msg != m.key && !m.dead {
			return mixed
		}
		r.loose.remove(f)
		list.remove(f)
		r.append(m, f)
	}
	return taken
}

// deliver brings m up to date after it got a fragment or its turn: it becomes
// ready for the user as far as it may, and when an ordered one is complete the
// next of its stream gets its turn.
func (r *Queue) deliver(m *message) {
	for m != nil && m.deliverable() {
		if m.complete {
			r.finish(m)
		}
		if r.due(m) {
			r.link(m)
		} else if !m.linked && !m.partial && m.head != nil {
			m.partial = true
			r.partials.push(linkPartial, m)
		}
		if !m.complete || m.unordered {
			return
		}
		m = r.promote(m.st, m.num+1)
	}
}

// due reports whether m, which is deliverable, has to become ready now. The partial delivery of
// a message begins at the end of a receive batch, see deliverPart.
func (r *Queue) due(m *message) bool {
	return !m.linked && (m.head != nil || m.aborted) &&
		(m.complete || m.started || r.cfg.Pieces)
}

// promote makes num the next message of st, and returns it if some of it is
// there.
func (r *Queue) promote(st *inStream, num uint32) *message {
	if !r.cfg.Interleaved {
		num = uint32(uint16(num))
	}
	st.next, st.head = num, nil
	m := r.numbered.find(messageKey(st.sid, false, num))
	if m == nil {
		return nil
	}
	if !r.cfg.Interleaved {
		r.numbered.remove(m)
	}
	m.turn = true
	st.head = m
	return m
}

// finish takes m, to which nothing will be appended any more, out of the tables
// and lists by which fragments find it.
func (r *Queue) finish(m *message) {
	r.numbered.remove(m)
	if r.last == m {
		r.last = nil
	}
	r.open.remove(m)
	if m.pending {
		m.st.pending[flag(m.unordered)].remove(linkPending, m)
		m.pending = false
	}
}

// wait puts m on the list of unfinished messages of its stream.
func (r *Queue) wait(m *message) {
	if !m.pending {
		m.pending = true
		m.st.pending[flag(m.unordered)].push(linkPending, m)
	}
}

// link makes m ready for the user.
func (r *Queue) link(m *message) {
	r.unpartial(m)
	m.linked = true
	m.st.ready.push(linkReady, m)
	r.requeue(m.st)
}

// unlink takes m off the ready list of its stream.
func (r *Queue) unlink(m *message) {
	if m.linked {
		m.linked = false
		m.st.ready.remove(linkReady, m)
	}
}

func (r *Queue) unpartial(m *message) {
	if m.partial {
		m.partial = false
		r.partials.remove(linkPartial, m)
	}
}

// requeue puts st into the queue of streams with something to deliver, or takes
// it out.
func (r *Queue) requeue(st *inStream) {
	want := !st.paused && st.deliverable()
	if want && !st.queued {
		r.ready.push(st)
	} else if !want && st.queued {
		r.ready.remove(st)
	}
}

// deliverable reports whether st has something for the user. While read is in
// the middle of a message, only that message counts.
func (st *inStream) deliverable() bool {
	return st.ready.head != nil && (st.current == nil || st.current.linked)
}

// drop gives up m, unfinished or not. If the user has got some of it, it stays
// as a notice that the rest will not come.
func (r *Queue) drop(m *message) {
	r.finish(m)
	r.unpartial(m)
	for f := m.head; f != nil; f = m.head {
		m.head = f.next
		r.freeFrag(f)
	}
	m.tail, m.avail = nil, 0
	for f := m.loose.head; f != nil; f = m.loose.head {
		m.loose.remove(f)
		r.loose.remove(f)
		r.freeFrag(f)
	}
	if m == r.edge {
		r.edge = nil
	}
	st := m.st
	if st == nil {
		r.freeMessage(m)
		return
	}
	if st.head == m {
		st.head = nil
	}
	if m.started {
		m.complete, m.aborted = true, true
		if !m.linked {
			r.link(m)
		}
		return
	}
	r.unlink(m)
	r.requeue(st)
	r.freeMessage(m)
}

// clearStream releases everything st holds.
func (r *Queue) clearStream(st *inStream) {
	for m := st.ready.head; m != nil; m = st.ready.head {
		m.started = false
		r.drop(m)
	}
	for i := range st.pending {
		for m := st.pending[i].head; m != nil; m = st.pending[i].head {
			m.started = false
			r.drop(m)
		}
	}
	for f := st.held.head; f != nil; f = st.held.head {
		st.held.remove(f)
		r.freeFrag(f)
	}
}

// flag returns 1 for true.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
