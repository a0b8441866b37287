// Package sackgen decides when received data is acknowledged (RFC 9260, Section 6.2;
// RFC 7053). A [Generator] belongs to one association; what the SACK says comes from
// its tracker of TSNs, a seq.Map.
package sackgen

import (
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
)

// Limits and defaults of SACK generation (RFC 9260, Section 6.2).
const (
	// defaultDelay is SACK.Delay (RFC 9260, Section 16).
	defaultDelay = clock.Time(200 * time.Millisecond)
	// maxDelay: "MUST NOT allow the maximum delay … to be configured to be
	// more than 500 ms".
	maxDelay = clock.Time(500 * time.Millisecond)
	// defaultStride: "for at least every second packet".
	defaultStride = 2
	// lossMemory is how long losses are taken to go on after the last sign of
	// one.
	lossMemory = clock.Time(100 * time.Millisecond)
	// maxStride bounds what can be configured: a sender that counts bytes
	// still sees an acknowledgement often enough to keep its window moving.
	maxStride = 64
	// earlyBatch is after how many packets of a receive batch the first early SACK
	// leaves: where batches are smaller there is one SACK for a few packets anyway.
	earlyBatch = 4
)

// Generator decides when to acknowledge. The caller reports every chunk
// ([Generator.Data]) and the end of every packet that had some
// ([Generator.EndPacket]), asks once per receive batch ([Generator.Due]), sends
// the SACK and reports it ([Generator.Sent]).
//
// Deviation (RFC 9260, Section 6.2, SHOULD): packets of one receive batch are
// acknowledged together, by one SACK; on a path that loses packets by a few more
// ([Generator.Early]).
type Generator struct {
	delay  clock.Time
	stride int

	began     bool       // first DATA of the association was seen
	hadGaps   bool       // at the end of the previous packet
	immediate bool       // do not delay
	asked     bool       // by Force, not for what was received
	noDelay   bool       // never delay: SetNoDelay
	packets   int        // packets with DATA since the last SACK
	deadline  clock.Time // of the delayed SACK; 0: nothing to acknowledge
	lastAt    clock.Time // when the last packet with DATA came
	from      int        // path of the last packet with DATA
	batch     int        // packets with DATA in this receive batch
	lossy     clock.Time // until when the path is taken to lose packets

	// With concurrent multipath transfer gaps come with every other packet, as
	// paths differ. multipath is true if the peer may do that; until mixed it is
	// assumed to do it.
	multipath bool
	mixed     clock.Time

	// Of the packet being processed.
	sawNew, sawDup, sawImmediate bool
}

// Init sets the delay and the stride: acknowledge every stride-th packet. Zero
// means the default, and both are bounded by the constants above.
func (s *Generator) Init(delay clock.Time, stride int) {
	if delay <= 0 {
		delay = defaultDelay
	}
	if stride <= 0 {
		stride = defaultStride
	}
	*s = Generator{delay: min(delay, maxDelay), stride: min(stride, maxStride)}
}

// Data notes one DATA or I-DATA chunk of the current packet: what the tracker
// said of its TSN and whether its I bit was set (RFC 7053).
func (s *Generator) Data(r seq.Result, immediate bool) {
	switch r {
	case seq.New:
		s.sawNew = true
	case seq.Duplicate, seq.Old:
		s.sawDup = true
	case seq.OutOfWindow:
		s.sawImmediate = true
	}
	if immediate {
		s.sawImmediate = true
	}
}

// Refused notes a chunk that was dropped for want of room: "the receiver MUST
// immediately send back a SACK" (RFC 9260, Section 6.2).
func (s *Generator) Refused() { s.sawImmediate = true }

// Forwarded notes a FORWARD-TSN or I-FORWARD-TSN. It counts as DATA; one that
// is out of date is answered at once, as the last SACK may be lost (RFC 3758,
// Section 3.6).
func (s *Generator) Forwarded(moved bool) {
	s.sawNew = true
	s.sawImmediate = s.sawImmediate || !moved
}

// EndPacket closes the packet whose chunks were noted. It came on the given
// path at now; gaps is the tracker's HasGaps. Without chunks it does nothing.
func (s *Generator) EndPacket(now clock.Time, path int, gaps bool) {
	if !s.sawNew && !s.sawDup && !s.sawImmediate {
		return
	}
	if s.multipath && s.began && path != s.from {
		s.mixed = now + lossMemory
	}
	switch {
	case s.sawImmediate, s.sawDup, s.noDelay:
		// Section 6.2: a packet of duplicates alone MUST, one that also has new
		// chunks MAY, be acknowledged without delay.
		s.immediate = true
	case (gaps || s.hadGaps) && now >= s.mixed:
		// Section 6.7: immediately when a gap appears and for every packet
		// while it lasts; and when it closes, as RFC 5681 wants.
		s.immediate = true
	case !s.began:
		// Section 5.1: "After the reception of the first DATA chunk in an
		// association the endpoint MUST immediately respond with a SACK".
		s.immediate = true
	case now-s.lastAt > s.delay:
		// After a pause the peer may have a small window and nothing else to
		// clock it: acknowledge the first packet of a burst at once.
		s.immediate = true
	}
	if gaps && now >= s.mixed || s.sawDup {
		s.lossy = now + lossMemory
	}
	s.began = true
	s.hadGaps = gaps
	s.packets++
	s.batch++
	s.lastAt = now
	s.from = path
	if s.deadline == 0 {
		s.deadline = now + s.delay
	}
	s.sawNew, s.sawDup, s.sawImmediate = false, false, false
}

// Pending reports whether something is unacknowledged, so that a packet that
// leaves anyway should carry a SACK in front of its data.
func (s *Generator) Pending() bool { return s.deadline != 0 || s.immediate }

// Due reports whether a SACK must be sent now. Ask at the end of a receive
// batch and when NextTimeout has come.
func (s *Generator) Due(now clock.Time) bool {
	return s.immediate || s.packets >= s.stride || s.deadline != 0 && s.deadline <= now
}

// Delayable reports whether the SACK for a packet with the next chunk in order, that
// comes at now, may be delayed: nothing is or was lately missing, and the sender need
// not hear of it at once.
func (s *Generator) Delayable(now clock.Time) bool {
	return s.began && !s.hadGaps && !s.noDelay && now-s.lastAt <= s.delay && now >= s.lossy
}

// NoneDueAfterNext reports whether no SACK is due after one more packet with the next
// chunk in order, on the only path.
func (s *Generator) NoneDueAfterNext(now clock.Time) bool {
	return s.Delayable(now) && !s.immediate && !s.multipath && s.packets+1 < s.stride &&
		(s.deadline == 0 || now < s.deadline)
}

// SamePath reports whether packets on path come as those before did: always, unless the
// peer may use several paths at once.
func (s *Generator) SamePath(path int) bool { return !s.multipath || path == s.from }

// PacketsInOrder counts k packets of a receive batch on path, each with the next chunk in
// order. The SACK for them must be delayable.
func (s *Generator) PacketsInOrder(now clock.Time, path, k int) {
	s.packets += k
	s.batch += k
	s.lastAt = now
	s.from = path
	if s.deadline == 0 {
		s.deadline = now + s.delay
	}
}

// Early reports, after EndPacket, whether a SACK is due in the midst of a receive
// batch. It is on a path that loses packets, after the fourth, eighth, sixteenth …
// packet: a sender without RACK takes a chunk for lost when three SACKs have missed
// it (RFC 9260, Section 7.2.4), and one batch may hold most of its window, so that
// the loss of the only SACK stops it until T3 expires.
func (s *Generator) Early(now clock.Time) bool {
	return now < s.lossy && s.batch >= earlyBatch && s.batch&(s.batch-1) == 0 && s.Due(now)
}

// EndBatch ends a receive batch.
func (s *Generator) EndBatch() { s.batch = 0 }

// NextTimeout returns when a delayed SACK falls due; 0 if none is waiting.
func (s *Generator) NextTimeout() clock.Time { return s.deadline }

// Since returns when the first packet came that the next SACK acknowledges, if it is only
// pending.
func (s *Generator) Since() clock.Time { return s.deadline - s.delay }

// Path returns the path the last DATA came on: a SACK goes to the source of
// what it acknowledges (RFC 9260, Section 6.4).
func (s *Generator) Path() int { return s.from }

// DataPackets returns how many packets with DATA the next SACK acknowledges;
// concurrent multipath transfer needs it to tell delayed acks from losses.
func (s *Generator) DataPackets() int { return s.packets }

// Force asks for a SACK at the next due: a window update, or a peer in
// SHUTDOWN-SENT (RFC 9260, Section 9.2).
func (s *Generator) Force() { s.immediate, s.asked = true, true }

// Forced reports whether the next SACK was asked for by Force.
func (s *Generator) Forced() bool { return s.asked }

// SetMultipath sets whether the peer may send over several paths at once.
func (s *Generator) SetMultipath(on bool) { s.multipath = on }

// ForMultipath reports whether SACKs are for a peer that may do so: they tell for how many
// packets each is.
func (s *Generator) ForMultipath() bool { return s.multipath }

// SetNoDelay turns the delay off or on again. In SHUTDOWN-SENT every packet with
// DATA is acknowledged at once (RFC 9260, Section 9.2), and in SHUTDOWN-PENDING as well.
func (s *Generator) SetNoDelay(on bool) { s.noDelay = on }

// dropPath forgets path as the source of the last DATA: a path was removed, and
// the ones after it moved down by one.
func (s *Generator) dropPath(path int) {
	switch {
	case s.from == path:
		s.from = 0
	case s.from > path:
		s.from--
	}
}

// Sent notes that a SACK with the current state of the tracker was built.
func (s *Generator) Sent() {
	s.immediate, s.asked = false, false
	s.packets = 0
	s.deadline = 0
}
