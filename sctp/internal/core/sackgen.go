package core

import (
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
)

// Limits and defaults of SACK generation (RFC 9260, Section 6.2).
const (
	// defaultSackDelay is SACK.Delay (RFC 9260, Section 16).
	defaultSackDelay = clock.Time(200 * time.Millisecond)
	// maxSackDelay: "MUST NOT allow the maximum delay … to be configured to be
	// more than 500 ms".
	maxSackDelay = clock.Time(500 * time.Millisecond)
	// defaultSackStride: "for at least every second packet".
	defaultSackStride = 2
	// lossMemory is how long losses are taken to go on after the last sign of
	// one.
	lossMemory = clock.Time(100 * time.Millisecond)
	// maxSackStride bounds what can be configured: a sender that counts bytes
	// still sees an acknowledgement often enough to keep its window moving.
	maxSackStride = 64
	// earlyBatch is after how many packets of a receive batch the first early SACK
	// leaves: where batches are smaller there is one SACK for a few packets anyway.
	earlyBatch = 4
)

// sackGen decides when to acknowledge. The caller tells it of every chunk
// (data), then of the end of every packet that had some (endPacket), and asks
// once per receive batch (due); it sends the SACK and says so (sent).
//
// Deviation (RFC 9260, Section 6.2, SHOULD): packets of one receive batch are
// acknowledged together, by one SACK; on a path that loses packets by a few more
// (early).
type sackGen struct {
	delay  clock.Time
	stride int

	began     bool       // first DATA of the association was seen
	hadGaps   bool       // at the end of the previous packet
	immediate bool       // do not delay
	asked     bool       // by force, not for what was received
	noDelay   bool       // never delay: setNoDelay
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

// init sets the delay and the stride: acknowledge every stride-th packet. Zero
// means the default, and both are bounded by the constants above.
func (s *sackGen) init(delay clock.Time, stride int) {
	if delay <= 0 {
		delay = defaultSackDelay
	}
	if stride <= 0 {
		stride = defaultSackStride
	}
	*s = sackGen{delay: min(delay, maxSackDelay), stride: min(stride, maxSackStride)}
}

// data notes one DATA or I-DATA chunk of the current packet: what the tracker
// said of its TSN and whether its I bit was set (RFC 7053).
func (s *sackGen) data(r seq.Result, immediate bool) {
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

// refused notes a chunk that was dropped for want of room: "the receiver MUST
// immediately send back a SACK" (RFC 9260, Section 6.2).
func (s *sackGen) refused() { s.sawImmediate = true }

// forwarded notes a FORWARD-TSN or I-FORWARD-TSN. It counts as DATA; one that
// is out of date is answered at once, as the last SACK may be lost (RFC 3758,
// Section 3.6).
func (s *sackGen) forwarded(moved bool) {
	s.sawNew = true
	s.sawImmediate = s.sawImmediate || !moved
}

// endPacket closes the packet whose chunks were noted. It came on the given
// path at now; gaps is the tracker's HasGaps. Without chunks it does nothing.
func (s *sackGen) endPacket(now clock.Time, path int, gaps bool) {
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

// pending reports whether something is unacknowledged, so that a packet that
// leaves anyway should carry a SACK in front of its data.
func (s *sackGen) pending() bool { return s.deadline != 0 || s.immediate }

// due reports whether a SACK must be sent now. Ask at the end of a receive
// batch and when nextTimeout has come.
func (s *sackGen) due(now clock.Time) bool {
	return s.immediate || s.packets >= s.stride || s.deadline != 0 && s.deadline <= now
}

// delayable reports whether the SACK for a packet with the next chunk in order, that
// comes at now, may be delayed: nothing is or was lately missing, and the sender need
// not hear of it at once.
func (s *sackGen) delayable(now clock.Time) bool {
	return s.began && !s.hadGaps && !s.noDelay && now-s.lastAt <= s.delay && now >= s.lossy
}

// noneDueAfterNext reports whether no SACK is due after one more packet with the next
// chunk in order, on the only path.
func (s *sackGen) noneDueAfterNext(now clock.Time) bool {
	return s.delayable(now) && !s.immediate && !s.multipath && s.packets+1 < s.stride && (s.deadline == 0 || now < s.deadline)
}

// samePath reports whether packets on path come as those before did: always, unless the
// peer may use several paths at once.
func (s *sackGen) samePath(path int) bool { return !s.multipath || path == s.from }

// packetsInOrder counts k packets of a receive batch on path, each with the next chunk in
// order. The SACK for them must be delayable.
func (s *sackGen) packetsInOrder(now clock.Time, path, k int) {
	s.packets += k
	s.batch += k
	s.lastAt = now
	s.from = path
	if s.deadline == 0 {
		s.deadline = now + s.delay
	}
}

// early reports, after endPacket, whether a SACK is due in the midst of a receive
// batch. It is on a path that loses packets, after the fourth, eighth, sixteenth …
// packet: a sender without RACK takes a chunk for lost when three SACKs have missed
// it (RFC 9260, Section 7.2.4), and one batch may hold most of its window, so that
// the loss of the only SACK stops it until T3 expires.
func (s *sackGen) early(now clock.Time) bool {
	return now < s.lossy && s.batch >= earlyBatch && s.batch&(s.batch-1) == 0 && s.due(now)
}

// endBatch ends a receive batch.
func (s *sackGen) endBatch() { s.batch = 0 }

// nextTimeout returns when a delayed SACK falls due; 0 if none is waiting.
func (s *sackGen) nextTimeout() clock.Time { return s.deadline }

// since returns when the first packet came that the next SACK acknowledges, if it is only
// pending.
func (s *sackGen) since() clock.Time { return s.deadline - s.delay }

// path returns the path the last DATA came on: a SACK goes to the source of
// what it acknowledges (RFC 9260, Section 6.4).
func (s *sackGen) path() int { return s.from }

// dataPackets returns how many packets with DATA the next SACK acknowledges;
// concurrent multipath transfer needs it to tell delayed acks from losses.
func (s *sackGen) dataPackets() int { return s.packets }

// force asks for a SACK at the next due: a window update, or a peer in
// SHUTDOWN-SENT (RFC 9260, Section 9.2).
func (s *sackGen) force() { s.immediate, s.asked = true, true }

// forced reports whether the next SACK was asked for by force.
func (s *sackGen) forced() bool { return s.asked }

// setMultipath sets whether the peer may send over several paths at once.
func (s *sackGen) setMultipath(on bool) { s.multipath = on }

// forMultipath reports whether SACKs are for a peer that may do so: they tell for how many
// packets each is.
func (s *sackGen) forMultipath() bool { return s.multipath }

// setNoDelay turns the delay off or on again. In SHUTDOWN-SENT every packet with
// DATA is acknowledged at once (RFC 9260, Section 9.2).
func (s *sackGen) setNoDelay(on bool) { s.noDelay = on }

// dropPath forgets path as the source of the last DATA: a path was removed, and
// the ones after it moved down by one.
func (s *sackGen) dropPath(path int) {
	switch {
	case s.from == path:
		s.from = 0
	case s.from > path:
		s.from--
	}
}

// sent notes that a SACK with the current state of the tracker was built.
func (s *sackGen) sent() {
	s.immediate, s.asked = false, false
	s.packets = 0
	s.deadline = 0
}
