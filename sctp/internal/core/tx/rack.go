package tx

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

const (
	// rackPersist is how many recoveries an enlarged reordering window outlives
	// (RFC 8985, Section 6.2, step 4).
	rackPersist = 16
	// minRTTWindow is the span of the windowed minimum of round-trip times.
	minRTTWindow clock.Time = 10_000_000_000
	// probeNoRTT is the probe timeout without an RTT estimate (Section 7.2).
	probeNoRTT clock.Time = 1_000_000_000
	// probeAckDelay is TLP.max_ack_delay: the SACK delay of RFC 9260.
	probeAckDelay clock.Time = 200_000_000
	// OnePacket is what counts as a flight of one packet, of which the peer may
	// delay the SACK.
	OnePacket = 1500
	// probeSlack is added to every probe timeout: timers are no finer and the
	// peer may be late to run.
	probeSlack clock.Time = 2_000_000
	// maxProbes is how many probes go out, each after twice the time of the one
	// before, until something is acknowledged or T3 expires.
	maxProbes = 6
	// sameMoment is by how much transmissions in one moment are told apart at most.
	sameMoment clock.Time = 1000
	// minDelays is how many SACKs must have come before what is known of their
	// delay replaces probeAckDelay.
	minDelays = 8
)

// rack is the state of RACK-TLP (RFC 8985) of one path, with TSNs in place of
// sequence numbers. Chunks in flight are in a list in the order of their last
// transmission.
type rack struct {
	head, tail seq.TSN
	n          int
	last       clock.Time // transmission; never twice the same before a retransmission

	xmit clock.Time // RACK.xmit_ts and RACK.end_seq: the latest sent that was delivered
	end  seq.TSN
	any  bool
	rtt  clock.Time // RACK.rtt
	fack seq.TSN    // highest TSN acknowledged

	minRTT, minPrev clock.Time // minima of this window and the one before
	minUntil        clock.Time
	srtt            clock.Time // smoothed over all acknowledged chunks

	reordering bool
	mult       int
	persist    int
	dsackRound seq.TSN
	dsackOn    bool
	sacked     int        // chunks acknowledged by gap blocks
	reorder    clock.Time // when the reordering timer fires, or 0

	probeOut   bool       // a tail loss probe is in flight
	probeRtx   bool       // it was a retransmission
	probeEnd   seq.TSN    // TLP.end_seq: the highest TSN when it was sent
	probes     int        // sent since something was acknowledged
	probeBase  clock.Time // the PTO counts from here; 0 when not armed
	recovering bool       // in RTO recovery until acknowledged data comes

	slowest  clock.Time // longest round trip that this SACK shows
	ackDelay clock.Time // recent maximum of how much longer than the shortest that was
	delays   int        // SACKs that it was measured with, up to minDelays
}

func newRack(next seq.TSN) rack { return rack{mult: 1, fack: next - 1} }

// sampleDelay takes in, at the end of a SACK, how long the peer delayed it.
func (k *rack) sampleDelay() {
	if k.slowest == 0 {
		return
	}
	d := max(0, k.slowest-k.minimum())
	k.ackDelay = max(d, k.ackDelay-k.ackDelay/8)
	k.slowest = 0
	k.delays = min(k.delays+1, minDelays)
}

// delay returns how much longer than a round trip the peer may take to
// acknowledge a single packet.
func (k *rack) delay() clock.Time {
	if k.delays < minDelays {
		return probeAckDelay
	}
	return min(k.ackDelay, probeAckDelay)
}

func (k *rack) minimum() clock.Time {
	if k.minPrev != 0 && k.minPrev < k.minRTT {
		return k.minPrev
	}
	return k.minRTT
}

func (k *rack) sampleRTT(now, rtt clock.Time) {
	k.slowest = max(k.slowest, rtt)
	if k.srtt == 0 {
		k.srtt = rtt
	}
	k.srtt += (rtt - k.srtt) / 8
	if now >= k.minUntil {
		k.minPrev, k.minRTT, k.minUntil = k.minRTT, rtt, now+minRTTWindow
	}
	if k.minRTT == 0 || rtt < k.minRTT {
		k.minRTT = rtt
	}
}

// onSent arms the probe timer.
func (k *rack) onSent(now clock.Time) { k.probeBase = now }

// onAcked is RACK_update and RACK_detect_reordering for one newly acknowledged
// chunk. Chunks come in the order of TSNs.
func (k *rack) onAcked(now clock.Time, t seq.TSN, r *record) {
	rtt := max(now-r.sent, 1)
	if r.tx == 1 {
		k.sampleRTT(now, rtt)
	}
	if k.fack.Less(t) {
		k.fack = t
	} else if r.tx == 1 && t != k.fack {
		// Step 3: a chunk never retransmitted, below what was acknowledged
		// before, arrived late.
		k.reordering = true
	}
	// Step 2: "The segment was last retransmitted less than RACK.min_rtt ago":
	// then the acknowledgement is of an earlier transmission.
	if r.tx > 1 && rtt < k.minimum()-sameMoment {
		return
	}
	k.rtt = rtt
	if !k.any || k.xmit < r.sent || k.xmit == r.sent && k.end.Less(t) {
		k.xmit, k.end, k.any = r.sent, t, true
	}
}

func (k *rack) onRecovered() {
	if k.persist--; k.persist <= 0 {
		k.mult, k.persist = 1, 0
	}
}

func (k *rack) onTimeout() {
	k.probeOut, k.reorder = false, 0
	k.recovering = true
}

// window is RACK_update_reo_wnd without the adaptation.
func (k *rack) window(inRecovery bool) clock.Time {
	if !k.reordering && (inRecovery || k.recovering || k.sacked >= dupThresh) {
		return 0
	}
	return min(clock.Time(k.mult)*k.minimum()/4, k.srtt)
}

// adapt enlarges the reordering window, once per round trip, when duplicates
// show that a retransmission was not needed.
func (k *rack) adapt(cum, next seq.TSN, dups int) {
	if k.dsackOn && k.dsackRound.LessEq(cum+1) {
		k.dsackOn = false
	}
	if dups > 0 && !k.dsackOn {
		k.dsackOn, k.dsackRound = true, next
		k.mult = min(k.mult+1, 1<<16)
		k.persist = rackPersist
	}
}

// tooRecent reports whether a timeout leaves a chunk in flight.
func (k *rack) tooRecent(now clock.Time, r *record) bool {
	return k.rtt > 0 && r.sent+k.rtt+k.window(false) > now
}

// MinRTT returns the least round-trip time of a chunk on a path lately, 0 if
// none was measured.
func (s *Scoreboard) MinRTT(path int) clock.Time { return s.paths[path].rack.minimum() }

// rackAppend puts a record at the end of the list: it was sent last.
func (s *Scoreboard) rackAppend(k *rack, t seq.TSN, r *record) {
	if k.n == 0 {
		k.head = t
	} else {
		r.prev = k.tail
		s.rec(k.tail).next = t
	}
	k.tail = t
	k.n++
}

// rackPrepend puts a record that was reneged on first. Its place by the time of
// sending is not known; it was sent a while ago.
func (s *Scoreboard) rackPrepend(k *rack, t seq.TSN, r *record) {
	if k.n == 0 {
		k.tail = t
	} else {
		r.next = k.head
		s.rec(k.head).prev = t
	}
	k.head = t
	k.n++
}

func (s *Scoreboard) rackRemove(k *rack, t seq.TSN, r *record) {
	k.n--
	switch {
	case k.n == 0:
	case t == k.head:
		k.head = r.next
	case t == k.tail:
		k.tail = r.prev
	default:
		s.rec(r.prev).next, s.rec(r.next).prev = r.next, r.prev
	}
}

// rackOnSack does what a SACK brings for RACK-TLP on every path.
func (s *Scoreboard) rackOnSack(now clock.Time, sk *wire.Sack, cum seq.TSN) {
	for i := range s.paths {
		f, p := &s.paths[i], &s.res.Paths[i]
		k := &f.rack
		if s.res.CumAdvanced || p.Acked > 0 {
			k.probeBase = max(k.probeBase, now) // for a deferred SACK now is in the past
		}
		if p.Acked > 0 {
			k.recovering, k.probes = false, 0
		}
		k.sampleDelay()
		if s.probeLost(k, sk, cum) {
			p.Loss = true
		}
		k.adapt(cum, s.next, s.res.Duplicates)
		s.rackDetect(now, i)
	}
}

// rackDetect is RACK_detect_loss: it marks chunks as lost if one sent later was
// delivered and the reordering window has passed. It sets the reordering timer
// for those whose window has not, and returns how many it marked.
func (s *Scoreboard) rackDetect(now clock.Time, path int) int {
	f := &s.paths[path]
	k := &f.rack
	k.reorder = 0
	if !k.any {
		return 0
	}
	w := k.window(s.recovery(path).recover)
	n := 0
	for k.n > 0 {
		t := k.head
		r := s.rec(t)
		if r.sent > k.xmit || r.sent == k.xmit && !t.Less(k.end) || s.known.LessEq(t) {
			break
		}
		if r.sent+k.rtt+w > now {
			// The timer fires when all chunks sent before the delivered one
			// would be deemed lost.
			k.reorder = max(k.xmit+k.rtt+w, now+1)
			break
		}
		if r.sent >= f.reacted && r.state&recProbe == 0 {
			p := &s.res.Paths[path]
			p.lost, p.again = true, p.again || r.tx > 1
		}
		s.mark(t, r)
		s.stats.FastRetransmits++
		n++
	}
	return n
}

// probeLost is TLP_process_ack (RFC 8985, Section 7.4.2): it reports whether a
// probe repaired a loss that nothing else showed.
func (s *Scoreboard) probeLost(k *rack, sk *wire.Sack, cum seq.TSN) bool {
	if !k.probeOut || cum.Less(k.probeEnd) {
		return false
	}
	if !k.probeRtx {
		k.probeOut = false // the new data of the probe was delivered
		return false
	}
	for i := range sk.Dups.Len() {
		if seq.TSN(sk.Dups.At(i)) == k.probeEnd {
			k.probeOut = false // both transmissions arrived
			return false
		}
	}
	if k.probeEnd.Less(cum) {
		k.probeOut = false
		return true
	}
	if !s.res.CumAdvanced && len(s.gaps) == 0 {
		k.probeOut = false
	}
	return false
}

// LossDeadline returns when [Scoreboard.OnLossTimer] is due on a path: to look
// again for reordered chunks, or to send a tail loss probe. It is 0 for never,
// and always without RACK. Where it is not before the T3 timer, T3 goes first.
//
// Deviation (RFC 8985, Section 7.2): several probes may follow each other, and
// they are sent in recovery too, also where chunks wait to be retransmitted: those
// before them, which fill the window, may be lost again. A lost retransmission at the
// tail of a message, or of a window, would cost a T3 timeout otherwise, a thousand round
// trips in a local network.
func (s *Scoreboard) LossDeadline(path int) clock.Time {
	f := &s.paths[path]
	k := &f.rack
	if !s.useRACK || f.count == 0 {
		return 0
	}
	if k.reorder != 0 {
		return k.reorder
	}
	if k.probeBase == 0 || k.probes == maxProbes {
		return 0
	}
	pto := probeNoRTT
	if k.srtt > 0 {
		pto = 2 * k.srtt
		// Section 7.2 adds the time for which the peer may delay the SACK of a
		// single packet. Retransmissions have the I bit set, and a peer with gaps
		// does not delay.
		if f.bytes <= OnePacket && k.sacked == 0 && s.rec(k.tail).tx == 1 {
			pto += k.delay()
		}
	}
	return k.probeBase + (pto+probeSlack)<<k.probes
}

// FirstProbe reports whether the probe that OnLossTimer asked for is the first
// since something was acknowledged.
func (s *Scoreboard) FirstProbe(path int) bool { return s.paths[path].rack.probes == 1 }

// inRepair reports whether a path has losses to make up for.
func (s *Scoreboard) inRepair(path int) bool {
	k := &s.paths[path].rack
	return s.recovery(path).recover || k.recovering || k.sacked > 0
}

// OnLossTimer runs when LossDeadline of a path has come; early calls do nothing.
// It reports whether chunks were found lost, in which case the caller applies
// the reaction to loss if loss is set, and whether a probe is to be sent. For a
// probe, one packet may go regardless of cwnd (see Permit): new data if canSend
// says that there is some and the peer's window allows it, else the last chunk
// sent, which then is marked for retransmission. After a probe T3 restarts.
func (s *Scoreboard) OnLossTimer(now clock.Time, path int, canSend bool) (loss, probe bool) {
	s.clock = now
	f := &s.paths[path]
	k := &f.rack
	d := s.LossDeadline(path)
	if d == 0 || now < d {
		return false, false
	}
	if k.reorder != 0 {
		for i := range s.res.Paths {
			s.res.Paths[i].lost, s.res.Paths[i].again, s.res.Paths[i].Loss = false, false, false
		}
		if s.rackDetect(now, path) > 0 {
			s.enterRecovery()
			return s.res.Paths[path].Loss, false
		}
		return false, false
	}
	k.probes++
	s.permit, s.first = true, -1
	s.stats.Probes++
	if s.marked.Len() > 0 {
		return false, true // what is lost goes first, see LossDeadline
	}
	if s.unsent > 0 { // the open batch is to leave
		k.probeOut, k.probeRtx, k.probeEnd = true, false, s.next
		return false, true
	}
	if s.inRepair(path) {
		// A retransmission was lost, or its acknowledgement: RACK sees that only
		// from what is sent later, and there is nothing.
		t, _ := f.set.Next(s.base, s.next)
		s.mark(t, s.rec(t))
		return false, true
	}
	canSend = canSend && !k.probeOut
	k.probeOut, k.probeRtx = true, !canSend
	k.probeEnd = s.next
	if !canSend {
		k.probeEnd = k.tail
		s.mark(k.tail, s.rec(k.tail))
	}
	return false, true
}
