// Package reasm puts the fragments of received messages together and the messages of a
// stream in order (RFC 9260, Sections 6.5, 6.6 and 6.9; RFC 8260, Section 2.2.3), drops
// what a FORWARD-TSN skips (RFC 3758) and resets streams (RFC 6525). It accounts for
// the memory, and so for a_rwnd (RFC 9260, Section 6.2). A [Queue] belongs to one
// association; which TSNs came is the business of its seq.Map.
package reasm

import (
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/wire"
)

// Limits of reassembly. A peer can make it hold no more than this.
const (
	// maxHeldFragments bounds the fragments held, read or unread. It is above
	// MaxWindow, so that a full window of out-of-order chunks always fits.
	maxHeldFragments = 2 * seq.MaxWindow
	// maxHeldMessages bounds the message records held, those included that only
	// tell the user of an aborted message. A pause may make as many of whole
	// fragments again.
	maxHeldMessages = maxHeldFragments
	// fragCharge and messageRecord are the bytes of heap that the record of a
	// fragment, with room for a short payload, and that of a message take, with their
	// places in the tables. They are charged to the receive buffer, so that tiny
	// messages cannot outgrow it.
	fragCharge    = 208
	messageRecord = 208
	// staleMIDs is how far behind the last skipped MID an unordered I-DATA
	// message is taken for a remnant of a skipped one.
	staleMIDs = seq.MaxWindow
)

// Result is what reassembly says of a chunk.
type Result uint8

const (
	// taken: the chunk was taken.
	taken Result = iota
	// stale: the chunk belongs to a message that a FORWARD-TSN skipped. It
	// was dropped, and is acknowledged as if taken.
	stale
	// Full: a hard cap is reached. The chunk was not taken and must not be
	// acknowledged.
	Full
	// badStream: the stream does not exist (the caller checks that first
	// and reports it; RFC 9260, Section 6.5). Not taken, but acknowledged.
	badStream

	// What follows are protocol violations: the association must be aborted.

	// beginInside: a B bit, or the end of another message, where the next
	// fragment of an unfinished message had to be.
	beginInside
	// noBegin: a fragment that no message with a B bit leads up to.
	noBegin
	// mixed: a fragment of another stream, sequence number or U bit than
	// the message it continues.
	mixed
	// repeated: a message whose sequence number was used before.
	repeated
	// badFSN: a fragment sequence number twice, or beyond the last one.
	badFSN
)

// Violation reports whether the association must be aborted with a "Protocol
// Violation" cause (RFC 9260, Section 3.3.10.13).
func (r Result) Violation() bool { return r >= beginInside }

// String returns what the ABORT's cause says.
func (r Result) String() string {
	switch r {
	case taken:
		return "ok"
	case stale:
		return "stale"
	case Full:
		return "reassembly full"
	case badStream:
		return "no such stream"
	case beginInside:
		return "message begins inside another"
	case noBegin:
		return "fragment without beginning"
	case mixed:
		return "fragment does not continue its message"
	case repeated:
		return "message sequence number repeated"
	case badFSN:
		return "fragment sequence number out of place"
	}
	return "unknown"
}

// Config is the configuration of a reassembly queue.
type Config struct {
	Interleaved bool // I-DATA was negotiated (RFC 8260)
	Pieces      bool // deliver fragments at once: PopPiece rather than read
	Streams     int  // incoming streams
	Limit       int  // receive buffer in bytes: what a_rwnd begins with
	// partial is from how many bytes on read delivers an unfinished message
	// (partial delivery, RFC 9260, Section 6.9); 0 is half of limit. It also
	// begins when the buffer fills up.
	partial int
	// Seed keys the hash tables against peers that aim at collisions.
	Seed uint64
}

// Queue puts the fragments of user messages together and messages of a
// stream in order (RFC 9260, Sections 6.5, 6.6 and 6.9; RFC 8260, Section
// 2.2.3), and keeps them until the user takes them: whole or in parts with
// Read, or fragment by fragment with PopPiece. Each operation on a fragment is
// O(1), whatever the order of arrival.
//
// Payloads of slabMin bytes or more stay in the receive buffer they came in, of
// which a reference is kept; smaller ones are copied.
type Queue struct {
	cfg          Config
	streams      []*inStream // by SID; nil until used
	ready        streamList  // streams that have something to deliver
	unfragmented fragList    // fragments that do not wait in a stream: see unfragmented.go
	turn         bool        // the next piece is one of unfragmented
	current      *message    // that Read(AnyStream) is in the middle of

	// loose holds fragments that continue no message yet, by TSN for DATA and
	// by message and FSN for I-DATA. In DATA mode looseList links them all.
	loose     fragTable
	looseList fragList
	// numbered holds messages by stream, U bit and sequence number: ordered
	// DATA messages that wait for their turn, I-DATA messages also while
	// unfinished.
	numbered msgTable
	// open holds unfinished DATA messages by the TSN that continues them; last,
	// the one most recently touched, is kept out of it.
	open msgTable
	last *message
	edge *message // dead message that swallows remnants behind a FORWARD-TSN
	// partials are unfinished messages that could be delivered in part, but are
	// too short for it yet.
	partials  msgList
	checkedTo seq.TSN // by CheckUpTo
	deferAll  bool    // a reset of all streams waits for TSNs up to deferTSN
	deferTSN  seq.TSN
	skipped   []*inStream // streams with a skip that forward has to apply
	scratch   []*message

	msgID  uint64
	frags  int // held, those given out as pieces included
	msgs   int
	window window
	mem    fragPool

	freeMsgs  *message
	nfreeMsgs int

	// What most associations need, in the same place.
	first struct {
		bySID   [firstStreams]*inStream
		stream  inStream
		used    bool // stream
		message message
		frag    frag
		pin     pin
	}
}

// firstStreams is up to how many streams are found in the same place.
const firstStreams = 10

// newQueue returns an empty queue for a peer whose first TSN is initial.
func newQueue(cfg Config, initial seq.TSN) *Queue {
	return new(Queue).Init(cfg, initial)
}

// Init makes an empty queue of one that is all zero.
func (r *Queue) Init(cfg Config, initial seq.TSN) *Queue {
	if cfg.partial <= 0 {
		cfg.partial = cfg.Limit / 2
	}
	r.cfg, r.checkedTo = cfg, initial-1
	if r.streams = r.first.bySID[:0]; cfg.Streams > firstStreams {
		r.streams = make([]*inStream, 0, cfg.Streams)
	}
	r.streams = r.streams[:cfg.Streams]
	r.freeMsgs, r.nfreeMsgs = &r.first.message, 1
	r.mem.frags, r.mem.nfrags = &r.first.frag, 1
	r.mem.pins = &r.first.pin
	r.loose.seed, r.numbered.seed, r.open.seed = cfg.Seed, cfg.Seed, cfg.Seed
	r.open.link = linkOpen
	r.window.init(cfg.Limit)
	r.mem.window = &r.window
	r.mem.limit(cfg.Limit)
	return r
}

// Resume takes over what [Queue.Carried] returned for the queue of before a restart of
// the peer: the number of its last message, and the bytes that the user keeps of what
// it took.
func (r *Queue) Resume(msgID uint64, kept int) { r.msgID, r.window.kept = msgID, kept }

// SetLimit changes the receive buffer to n bytes. What is held stays.
func (r *Queue) SetLimit(n int) {
	if r.cfg.partial == r.cfg.Limit/2 {
		r.cfg.partial = n / 2
	}
	r.cfg.Limit, r.window.limit = n, n
	r.mem.limit(n)
}

// SetStreams changes the number of incoming streams; it never shrinks (RFC
// 6525, Section 5.2.5).
func (r *Queue) SetStreams(n int) {
	for len(r.streams) < n {
		r.streams = append(r.streams, nil)
	}
}

// Room reports whether a chunk with n bytes of payload and this TSN may be
// added; if not it is dropped unacknowledged. The TSN must be new to tracker m.
//
// RFC 9260, Section 6.2: with a closed window chunks beyond the largest TSN
// received are dropped, save for those that were under way before the peer could
// know; chunks that fill gaps are accepted. Instead of dropping the largest TSN
// for them, the buffer may be overdrawn: by half for the one chunk that lets
// everything else be delivered, by a quarter for others. A chunk that is refused is
// not acknowledged, so it comes again.
func (r *Queue) Room(m *seq.Map, t seq.TSN, n int) bool {
	if r.frags >= maxHeldFragments || r.msgs >= maxHeldMessages {
		return false
	}
	w := &r.window
	used := w.used()
	next := t == m.CumTSN()+1
	switch {
	case used+w.keeps() < w.size():
		return true
	case w.share < w.limit && used < w.bound():
		// Others want the memory. One chunk is taken if the user has nothing to do
		// without it, so that what is held goes.
		return next && r.stuck()
	case m.Highest().Less(t) && (n > w.credit || w.keeps() >= maxKept*w.limit) && !(next && r.starved()):
		return false
	case next:
		return used < w.bound()
	}
	return used < w.limit+w.limit/4
}

// stuck reports whether there is nothing that the user could take.
func (r *Queue) stuck() bool {
	if r.cfg.Pieces {
		return r.unfragmented.head == nil && r.ready.head == nil
	}
	return r.starved()
}

// starved reports whether the user has to wait although data is held: for the
// rest of the message it is in the middle of.
func (r *Queue) starved() bool { return !r.cfg.Pieces && r.pick(AnyStream) == nil }

// Add takes one DATA chunk, or I-DATA chunk if the queue is interleaved, whose
// TSN was never seen before. buf is the receive buffer d.Payload aliases; if it
// is nil the payload is copied. The caller keeps its own reference of buf.
func (r *Queue) Add(d *wire.Data, buf *slab.Buf) Result {
	if int(d.SID) >= len(r.streams) {
		return badStream
	}
	if r.frags >= maxHeldFragments || r.msgs >= maxHeldMessages {
		return Full
	}
	st := r.stream(d.SID)
	f := r.newFrag(d, buf)
	r.window.take(len(d.Payload))
	if st.deferred && st.lastTSN.Less(f.tsn) {
		// RFC 6525, Section 5.2.2, E2: "MUST be queued locally and held until".
		r.holdBack(st, f)
		return taken
	}
	return r.place(st, f)
}

// deliverPart begins the partial delivery of the DATA message that goes on behind the
// cumulative TSN, if it is long or the buffer is full. It begins no other: the user, who waits
// for the rest of a message behind a gap, would leave what fills the gap in the buffer, until
// there is no room for the chunks that the rest has to wait for.
func (r *Queue) deliverPart(cum seq.TSN) {
	m := r.last
	if m == nil || m.next != uint32(cum+1) {
		m = r.open.find(uint64(cum + 1))
	}
	if m != nil && m.partial && r.partDue(m) {
		r.link(m)
	}
}

// maxPartsLooked is how many unfinished I-DATA messages deliverParts looks at in a batch.
const maxPartsLooked = 64

// deliverParts is deliverPart for I-DATA messages: of several that are unfinished, those that begin
// with nothing missing before them, because messages of one stream do not take turns.
// The next batch looks at others if there are many.
func (r *Queue) deliverParts(cum seq.TSN) {
	for range min(r.partials.n, maxPartsLooked) {
		m := r.partials.head
		if m.head.tsn.LessEq(cum) && r.partDue(m) {
			r.link(m)
		} else {
			r.partials.remove(linkPartial, m)
			r.partials.push(linkPartial, m)
		}
	}
}

// partDue reports whether an unfinished message is to be delivered in part: it is long, or the
// buffer is full.
func (r *Queue) partDue(m *message) bool { return m.avail >= r.cfg.partial || r.window.pressed() }

// place puts a fragment where it belongs; it owns f.
func (r *Queue) place(st *inStream, f *frag) Result {
	if r.cfg.Interleaved {
		return r.placeIData(st, f)
	}
	return r.placeData(st, f)
}

// newFrag makes a record of d, with its own reference or copy of the payload.
func (r *Queue) newFrag(d *wire.Data, buf *slab.Buf) *frag {
	f := r.mem.get(d.Payload, buf)
	f.tsn, f.sid, f.ppid = seq.TSN(d.TSN), d.SID, d.PPID
	f.begin, f.end, f.unordered = d.Begin, d.End, d.Unordered
	if r.cfg.Interleaved {
		f.msg, f.seq = messageKey(d.SID, d.Unordered, d.MID), d.FSN
		f.slot = f.msg
	} else {
		num := uint32(d.SSN)
		if d.Unordered {
			num = 0 // RFC 9260, Section 6.6: the receiver ignores the SSN
		}
		f.msg, f.seq = messageKey(d.SID, d.Unordered, num), d.TSN
		f.slot = 0
	}
	r.hold(f)
	return f
}

// hold counts f, which is new.
func (r *Queue) hold(f *frag) {
	r.frags++
	r.window.held += f.charge
	r.window.payload += int(f.size)
	if w := &r.window; w.used() > w.limit {
		w.largest = max(w.largest, f.charge)
	}
}

// freeFrag releases the payload of f and recycles it.
func (r *Queue) freeFrag(f *frag) {
	r.frags--
	r.window.held -= f.charge
	r.window.payload -= int(f.size)
	r.mem.put(f)
}

// stream returns the state of an existing stream.
func (r *Queue) stream(sid uint16) *inStream {
	st := r.streams[sid]
	if st == nil {
		if st = &r.first.stream; r.first.used {
			st = new(inStream)
		}
		r.first.used = true
		st.sid, st.deferred, st.lastTSN = sid, r.deferAll, r.deferTSN
		r.streams[sid] = st
	}
	return st
}

// CheckUpTo is called once per receive batch with the cumulative TSN. Now that no
// fragment up to there is outstanding, one that still continues no message, or
// a message whose next fragment was something else, is a protocol violation. A message
// that is unfinished there may be delivered in part.
func (r *Queue) CheckUpTo(cum seq.TSN) Result {
	if r.partials.head != nil {
		if r.cfg.Interleaved {
			r.deliverParts(cum)
		} else {
			r.deliverPart(cum)
		}
	}
	if r.deferAll && r.deferTSN.Less(cum) {
		cum = r.deferTSN // what came beyond is held back
	}
	if r.cfg.Interleaved || cum.LessEq(r.checkedTo) {
		return taken
	}
	first := r.checkedTo + 1
	r.checkedTo = cum
	if m := r.last; m != nil && seq.TSN(m.next).LessEq(cum) && !m.dead {
		return beginInside
	}
	if r.loose.n+r.open.n == 0 {
		return taken
	}
	for t := first; t.LessEq(cum); t++ {
		if r.loose.n > 0 && r.loose.find(0, uint32(t)) != nil {
			return noBegin
		}
		if r.open.n > 0 {
			if m := r.open.find(uint64(t)); m != nil && !m.dead {
				return beginInside
			}
		}
	}
	return taken
}

// Close releases everything held. Pieces that were given out stay valid until
// they are released. The queue must not be used otherwise afterwards.
func (r *Queue) Close() {
	for _, st := range r.streams {
		if st != nil {
			r.clearStream(st)
		}
	}
	for f := r.looseList.head; f != nil; f = r.looseList.head {
		r.looseList.remove(f)
		r.loose.remove(f)
		r.freeFrag(f)
	}
	for f := r.unfragmented.head; f != nil; f = r.unfragmented.head {
		r.unfragmented.remove(f)
		r.freeFrag(f)
	}
	r.open.b, r.numbered.b, r.loose.b = nil, nil, nil // empty but for dead messages
	r.window.held -= r.msgs * messageRecord
	r.msgs = 0
	r.streams, r.skipped, r.scratch = nil, nil, nil
	r.last, r.edge, r.current = nil, nil, nil
}
