package tx

import (
	"errors"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

const (
	// MaxOutstanding is how many TSNs may be outstanding: what the receive side
	// of this package can track. Gap blocks reach 65,535 TSNs; beyond that a
	// SACK can only tell about the cumulative TSN.
	MaxOutstanding = 1 << 17
	// minOutstanding is the initial capacity of the scoreboard.
	minOutstanding = 8
	// MaxPaths is how many paths the scoreboard can tell apart.
	MaxPaths = 255
)

// ErrAckUnsent means that a SACK acknowledges a TSN that was never sent: a
// protocol violation, whether the peer is broken or attacks ("optimistic ACK").
var ErrAckUnsent = errors.New("core: SACK acknowledges a TSN that was not sent")

// recState is what is known about an outstanding chunk. A chunk in none of
// the first three is in flight.
type recState uint8

const (
	recAcked     recState = 1 << iota // by a gap block; may be reneged on
	recMarked                         // to be retransmitted
	recAbandoned                      // given up (RFC 3758, Section 3.4)
	recFast                           // was fast retransmitted: not eligible again
	recMulti                          // was sent on more than one path
	recBig                            // makes its packet larger than any path's base size
	recProbe                          // in flight, and larger than the peer's window was: see winprobe.go
	recOut       = recAcked | recMarked | recAbandoned
)

// record is one TSN that is not cumulatively acknowledged. It keeps no payload:
// a retransmission reads the message again, or the retransmission copy of its packet.
type record struct {
	msg        *outMsg
	off        int64      // of the payload in the message
	sent       clock.Time // last transmission
	fsn        uint32
	prev, next seq.TSN // neighbours in the order of sending on the path; RACK only
	size       uint16  // payload
	tx         uint16  // transmissions, saturating
	path       uint8
	state      recState
	miss       uint8  // miss indications
	rtxCopy    uint32 // where its payload is, see rtxCopies; 0: in the message
}

// tsnRun is the TSNs from lo up to but not including hi.
type tsnRun struct{ lo, hi seq.TSN }

// pathFlight is what is in flight on one path.
type pathFlight struct {
	bytes     int        // chunks, padded, headers included
	count     int        // chunks
	set       seq.Set    // their TSNs
	rttMark   seq.TSN    // the next RTT sample comes from this TSN or a later one
	recover   bool       // in fast recovery
	exit      seq.TSN    // its exit point
	reacted   clock.Time // when a loss or a timeout was reacted to last
	restart   bool       // T3 restarts: the earliest outstanding TSN was sent again
	ecnMark   seq.TSN    // congestion marks below it were answered
	ecnActive bool
	rack      rack
	size      sizeWatch
	undo      lossUndo
}

// Scoreboard tracks the chunks that were sent and not cumulatively acknowledged:
// what is in flight on each path, what SACKs tell about it, and what has to be
// retransmitted. It also keeps the peer's receiver window (RFC 9260, Section
// 6.2.1). Chunks leave the [Queue] through it.
type Scoreboard struct {
	q         *Queue
	recs      []record // ring indexed by TSN
	mask      uint32
	base      seq.TSN // the cumulative TSN ack point plus one
	next      seq.TSN // the next TSN to assign
	unsent    int     // TSNs before it that have not left, see openBatch
	adv       seq.TSN // Advanced.Peer.Ack.Point (RFC 3758, Section 3.5)
	paths     []pathFlight
	missing   seq.Set  // in flight and eligible for miss indications
	marked    seq.Set  // to be retransmitted
	gaps      []tsnRun // acknowledged by gap blocks: sorted, disjoint, apart
	scratch   []tsnRun
	gather    gather
	rtxCopies rtxCopies
	known     seq.TSN // the last SACK tells about TSNs below this one
	payload   int     // bytes of user data in flight
	rwnd      int     // what is left of the peer's receiver window
	awnd      int     // a_rwnd of the last SACK
	probes    int     // window probes in flight
	useRACK   bool
	cmt       bool
	noBulk    bool       // see ScoreboardConfig.NoBulk
	lastRtx   clock.Time // of the last retransmission
	ending    bool       // nothing more will be queued
	clock     clock.Time // of the last call that told the time
	dac       uint8      // packets that the SACK being processed was delayed for
	permit    bool       // one packet may be sent regardless of cwnd
	first     int        // the path whose fast recovery it is the first one of, or -1
	pr        prState
	res       SackResult
	stats     Stats

	// What most associations need, in the same place.
	firstRecs  [minOutstanding]record
	firstPath  [1]pathFlight
	firstAck   [1]PathAck
	firstWords [3][seq.SmallSet]uint64
}

// Stats counts what the scoreboard saw.
type Stats struct {
	Chunks, Retransmits, FastRetransmits   uint64 // chunks sent first, again, marked by SACKs or RACK
	TimeoutMarked, Reneged, Duplicates     uint64 // chunks marked by T3; TSNs taken back; duplicates reported
	Recoveries, Probes, OldSacks, Forwards uint64 // entries of fast recovery; loss probes; SACKs dropped; FORWARD-TSNs
}

// ScoreboardConfig configures a [Scoreboard].
type ScoreboardConfig struct {
	// TSN is the initial TSN, RWND the a_rwnd of the peer's INIT or INIT ACK.
	TSN  seq.TSN
	RWND int
	// Paths is the number of paths; it can grow later.
	Paths int
	// RACK detects losses by time (RFC 8985) in place of three miss indications
	// (RFC 9260, Section 7.2.4).
	RACK bool
	// CMT keeps miss indications and fast recovery per path, for concurrent
	// transfer over several of them ("split fast retransmit").
	CMT bool
	// NoBulk has acknowledgements look at every chunk: for tests.
	NoBulk bool
}

// NewScoreboard returns an empty scoreboard that takes fragments from q.
func NewScoreboard(q *Queue, c ScoreboardConfig) *Scoreboard {
	return new(Scoreboard).Init(q, c)
}

// Init makes a scoreboard of one that is all zero.
func (s *Scoreboard) Init(q *Queue, c ScoreboardConfig) *Scoreboard {
	s.q, s.recs, s.mask = q, s.firstRecs[:], minOutstanding-1
	s.base, s.next, s.adv = c.TSN, c.TSN, c.TSN-1
	s.missing, s.marked = seq.SetIn(s.firstWords[0][:], minOutstanding), seq.SetIn(s.firstWords[1][:], minOutstanding)
	s.rwnd, s.awnd, s.useRACK, s.cmt, s.noBulk = c.RWND, c.RWND, c.RACK, c.CMT, c.NoBulk
	s.paths, s.res.Paths = s.firstPath[:0], s.firstAck[:0]
	s.SetPaths(max(c.Paths, 1))
	q.sb = s
	return s
}

func (s *Scoreboard) rec(t seq.TSN) *record { return &s.recs[uint32(t)&s.mask] }

// chunkSize is the size of the chunk of r, header and padding included.
func (s *Scoreboard) chunkSize(r *record) int {
	return (int(r.size) + s.q.HeaderLen() + 3) &^ 3
}

// grow doubles the ring.
func (s *Scoreboard) grow() {
	old, mask := s.recs, s.mask
	size := 2 * len(old)
	s.recs, s.mask = make([]record, size), uint32(size-1)
	for t := s.base; t != s.next; t++ {
		s.recs[uint32(t)&s.mask] = old[uint32(t)&mask]
	}
	s.missing = s.missing.Grow(size, s.base, s.next)
	s.marked = s.marked.Grow(size, s.base, s.next)
	for i := range s.paths {
		s.paths[i].set = s.paths[i].set.Grow(size, s.base, s.next)
	}
}

// assign gives the next TSN to a record, which it returns cleared; nil when
// MaxOutstanding TSNs are outstanding.
func (s *Scoreboard) assign() (seq.TSN, *record) {
	if n := int(s.next - s.base); n == len(s.recs) {
		if n >= MaxOutstanding {
			return 0, nil
		}
		s.grow()
	}
	t := s.next
	s.next++
	return t, s.rec(t)
}

// AppendNew appends to b one chunk of new data with the next TSN, padded, to be
// sent on path now. It reports false, and changes nothing, when nothing waits,
// when the next fragment does not fit in r, and when the peer's window or the
// scoreboard has no room. Whether cwnd allows it is for the caller to know.
func (s *Scoreboard) AppendNew(b []byte, now clock.Time, path int, r Room) ([]byte, bool) {
	m, n, ok := s.q.pick(now, r)
	if !ok {
		return b, false
	}
	// RFC 9260, Section 6.1, A: no new data if "rwnd is smaller than the size of
	// the next DATA chunk", save for zero window probes; the caller times those
	// if the window is 0.
	//
	// Deviation: into a window that is not 0 but smaller than the chunk, one goes
	// at once (RFC 4960: "regardless of the value of rwnd […] the data sender can
	// always have one DATA chunk in flight"): it may be larger than all of the
	// peer's buffer.
	if n > s.rwnd && (s.payload > 0 || s.marked.Len() > 0) {
		return b, false
	}
	t, rec := s.assign()
	if rec == nil {
		return b, false
	}
	*rec = record{msg: m, off: m.sent, fsn: m.fsn, size: uint16(n)}
	if m.sent == 0 {
		m.first = t
	}
	m.last = t
	s.q.advance(m, n)
	return s.appendFirst(b, now, path, t, rec, r.Space), true
}

// appendFirst appends a chunk that is sent for the first time, to a packet with so much
// space.
func (s *Scoreboard) appendFirst(b []byte, now clock.Time, path int, t seq.TSN, rec *record, space int) []byte {
	s.transmit(t, rec, now, path)
	s.noteSize(t, rec, &s.paths[path], space)
	s.stats.Chunks++
	at := len(b) + s.q.HeaderLen()
	b = s.appendChunk(b, t, rec)
	rec.rtxCopy = s.rtxCopies.ref(at)
	return b
}

// transmit puts a record in flight.
func (s *Scoreboard) transmit(t seq.TSN, r *record, now clock.Time, path int) {
	f := &s.paths[path]
	if r.tx > 0 && int(r.path) != path {
		r.state |= recMulti
	}
	s.clock = now
	// What is sent again in the moment in which other chunks have been sent comes after
	// those, whose TSNs are higher.
	k := &f.rack
	if k.last < now {
		k.last = now
	} else if r.tx > 0 && s.useRACK && k.last < now+sameMoment {
		k.last++
	}
	r.path, r.sent = uint8(path), k.last
	if r.tx != ^uint16(0) {
		r.tx++
	}
	k.onSent(now)
	s.enter(t, r, f)
	s.noteProbe(r)
	s.rwnd -= int(r.size) // Section 6.2.1, B
}

// enter counts r as in flight on its path.
func (s *Scoreboard) enter(t seq.TSN, r *record, f *pathFlight) {
	f.bytes += s.chunkSize(r)
	f.count++
	f.set.Add(t)
	s.payload += int(r.size)
	if s.useRACK {
		s.rackAppend(&f.rack, t, r)
	} else if r.state&recFast == 0 {
		s.missing.Add(t)
	}
}

// leave takes r out of what is in flight.
func (s *Scoreboard) leave(t seq.TSN, r *record, f *pathFlight) {
	s.forgetProbe(r)
	f.bytes -= s.chunkSize(r)
	f.count--
	f.set.Remove(t)
	s.payload -= int(r.size)
	if s.useRACK {
		s.rackRemove(&f.rack, t, r)
	} else {
		s.missing.Remove(t)
	}
}

// appendChunk appends the DATA or I-DATA chunk of a record.
func (s *Scoreboard) appendChunk(b []byte, t seq.TSN, r *record) []byte {
	m := r.msg
	i, begin, end := m.bounds(r.off)
	var d wire.Data
	d.TSN, d.SID, d.SSN, d.MID, d.FSN, d.PPID = uint32(t), m.sid, uint16(m.mid), m.mid+i, r.fsn, m.ppid
	d.Begin = r.off == begin && m.flags&msgCont == 0
	d.End = r.off+int64(r.size) == end && m.flags&msgOpen == 0
	d.Unordered = m.flags&msgUnordered != 0
	// RFC 7053, Section 4: what repairs a loss is worth an immediate SACK.
	// RFC 9260, Section 6.1: so is the end of everything in SHUTDOWN-PENDING.
	d.Immediate = d.End && (m.flags&msgImmediate != 0 && end == m.length || s.ending && s.q.unsent == 0) || r.tx > 1
	b = s.q.appendHeader(b, &d, int(r.size))
	if r.rtxCopy != 0 {
		b = append(b, s.rtxCopies.bytes(r.rtxCopy, int(r.size))...)
	} else if m.segmented.size != 0 {
		b = m.copySegment(b, i, int(r.off-begin), int(r.size), &s.gather)
	} else {
		b = m.copyTo(b, r.off, int(r.size), &s.gather)
	}
	return wire.AppendPadding(b, int(r.size))
}

// appendHeader appends the header of a chunk with n bytes, of the kind that the queue
// makes.
func (q *Queue) appendHeader(b []byte, d *wire.Data, n int) []byte {
	if q.interleave {
		return d.AppendIHeader(b, n)
	}
	if d.Unordered {
		d.SSN = 0
	}
	return d.AppendHeader(b, n)
}

// OnlyNew reports whether new data may be sent and nothing is to go before it.
func (s *Scoreboard) OnlyNew() bool {
	return !s.HasRtx() && !s.ForwardDue() && !s.Permit() && !s.ZeroWindow()
}

// CumTSN returns the cumulative TSN ack point.
func (s *Scoreboard) CumTSN() seq.TSN { return s.base - 1 }

// NextTSN returns the TSN of the next new chunk.
func (s *Scoreboard) NextTSN() seq.TSN { return s.next }

// SetEnding has the end of everything that is queued ask for an immediate SACK: nothing
// more will be queued.
func (s *Scoreboard) SetEnding() { s.ending = true }

// SetDelayedPackets tells how many packets the next SACK was delayed for, 0 if the peer does
// not say.
func (s *Scoreboard) SetDelayedPackets(n uint8) { s.dac = n }

// HasGaps reports whether chunks are acknowledged by gap blocks.
func (s *Scoreboard) HasGaps() bool { return len(s.gaps) > 0 }

// Outstanding returns how many TSNs are not cumulatively acknowledged.
func (s *Scoreboard) Outstanding() int { return int(s.next - s.base) }

// Flight returns the bytes in flight on a path: chunks, padding included, that
// are neither acknowledged nor marked for retransmission nor abandoned.
func (s *Scoreboard) Flight(path int) int { return s.paths[path].bytes }

// FlightChunks returns how many chunks are in flight on a path.
func (s *Scoreboard) FlightChunks(path int) int { return s.paths[path].count }

// TotalFlight returns the bytes in flight on all paths.
func (s *Scoreboard) TotalFlight() int {
	n := 0
	for i := range s.paths {
		n += s.paths[i].bytes
	}
	return n
}

// Earliest returns the lowest TSN in flight on a path, which its T3 timer is
// about.
func (s *Scoreboard) Earliest(path int) (seq.TSN, bool) {
	return s.paths[path].set.Next(s.base, s.next)
}

// PeerWindow returns what is left of the peer's receiver window; at most what
// it advertised, at least 0.
func (s *Scoreboard) PeerWindow() int { return max(s.rwnd, 0) }

// ZeroWindow reports whether the peer advertised a window of 0 last: chunks in
// flight are probes, whose loss is no failure of the path while SACKs come
// (RFC 9260, Section 6.1, A).
func (s *Scoreboard) ZeroWindow() bool { return s.awnd == 0 }

// SetPeerWindow sets the peer's window from an INIT or INIT ACK.
func (s *Scoreboard) SetPeerWindow(rwnd int) { s.rwnd, s.awnd = rwnd-s.payload, rwnd }

// InRecovery reports whether a path is in fast recovery.
func (s *Scoreboard) InRecovery(path int) bool { return s.recovery(path).recover }

// recovery returns the path that keeps the recovery state for path. RFC 9260,
// Section 7.2.4 knows one fast recovery per association; CMT one per path.
func (s *Scoreboard) recovery(path int) *pathFlight {
	if s.cmt {
		return &s.paths[path]
	}
	return &s.paths[0]
}

// Stats returns a snapshot of the counters.
func (s *Scoreboard) Stats() Stats { return s.stats }

// ResetTSN restarts with another initial TSN when nothing is outstanding (RFC
// 6525, Section 5.2.4). It reports whether it did.
func (s *Scoreboard) ResetTSN(t seq.TSN) bool {
	if s.base != s.next {
		return false
	}
	s.releaseRtxCopies(true)
	s.base, s.next, s.adv, s.known = t, t, t-1, t
	s.pr = prState{}
	for i := range s.paths {
		f := &s.paths[i]
		f.rttMark, f.recover, f.restart, f.ecnActive = t, false, false, false
		f.rack = newRack(t)
	}
	return true
}

// drop forgets everything outstanding; the messages are released with err.
func (s *Scoreboard) drop(err error) {
	for t := s.base; t != s.next; t++ {
		r := s.rec(t)
		if r.state&recOut == 0 {
			s.leave(t, r, &s.paths[r.path])
		}
		s.marked.Remove(t)
		m := r.msg
		if m.flags&msgDone == 0 {
			if m.sent < m.length {
				s.q.unlink(&s.q.streams[m.sid], m)
			}
			s.q.finish(m, err)
		}
		s.q.unref(m, int(r.size))
		*r = record{}
	}
	s.base, s.gaps = s.next, s.gaps[:0]
	s.adv = s.next - 1
	s.unsent = 0
	s.releaseRtxCopies(true)
}
