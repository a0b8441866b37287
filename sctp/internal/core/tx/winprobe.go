package tx

import "github.com/weftstack/weft/sctp/internal/core/clock"

// A window probe is a chunk that is larger than the window which the peer advertised
// last (RFC 9260, Section 6.1, A). The receiver may drop it for lack of room, whether it
// came for the first time, after a retransmission timeout, or as a tail loss probe. Its
// loss therefore says nothing about the path: neither about congestion, nor whether the
// peer can be reached, nor about the size of packets. Once the window has room for it,
// it is sent again without waiting for a timer, whose interval has grown meanwhile.

// noteProbe remembers whether the chunk that is being sent is a window probe.
func (s *Scoreboard) noteProbe(r *record) {
	if int(r.size) > s.awnd {
		r.state |= recProbe
		s.probes++
	}
}

// forgetProbe ends what noteProbe remembered: the chunk is not in flight any more.
func (s *Scoreboard) forgetProbe(r *record) {
	if r.state&recProbe != 0 {
		r.state &^= recProbe
		s.probes--
	}
}

// Probing reports whether window probes are in flight.
func (s *Scoreboard) Probing() bool { return s.probes > 0 }

// OnlyProbes reports whether all that is in flight on a path are window probes.
func (s *Scoreboard) OnlyProbes(path int) bool {
	f := &s.paths[path]
	if s.probes == 0 || f.count > s.probes {
		return false
	}
	for t, ok := f.set.Next(s.base, s.next); ok; t, ok = f.set.Next(t+1, s.next) {
		if s.rec(t).state&recProbe == 0 {
			return false
		}
	}
	return f.count > 0
}

// ResendProbes marks the window probes on a path for retransmission that the peer's
// window has room for by now and that were sent at least rtt ago, so that the last SACK,
// which does not acknowledge them, left the peer after they had come. It reports whether
// any probe of the path fits.
func (s *Scoreboard) ResendProbes(now clock.Time, path int, rtt clock.Time) (fits bool) {
	f := &s.paths[path]
	for t, ok := f.set.Next(s.base, s.next); ok; t, ok = f.set.Next(t+1, s.next) {
		r := s.rec(t)
		if r.state&recProbe == 0 || int(r.size) > s.awnd {
			continue
		}
		fits = true
		if r.sent+rtt <= now {
			s.mark(t, r)
		}
	}
	if fits {
		f.rack.probes, f.rack.probeBase = 0, now
	}
	return fits
}
