package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/wire"
)

// Concurrent multipath transfer (Iyengar, Amer, Stewart, 2006): new data goes
// over all active paths at once, each with its own congestion control, pacer and
// loss detection. RACK compares chunks of one path only, and so do miss
// indications ("split fast retransmit"); windows grow by what was acknowledged
// of their own path ("cwnd update"); retransmissions take the path with the
// largest ssthresh (RTX-SSTHRESH).

// spread reports whether new data goes over all active paths.
func (t *sender) spread() bool { return t.cfg.Multipath && len(*t.paths) > 1 }

// carries reports whether new data may go to path i while d is the data path.
func (t *sender) carries(i, d int) bool { return i == d || t.spread() && t.path(i).usable() }

// newPath returns the path for the next packet of new data: of those with room
// the one with the shortest round trip. If there is none it is d, the data path,
// on which nothing will be sent either.
func (t *sender) newPath(now clock.Time, d int) int {
	best, wake := -1, clock.Time(0)
	for i := range *t.paths {
		p := t.path(i)
		if !p.usable() {
			continue
		}
		switch at := t.roomAt(now, i); {
		case at > now:
			wake = timer.Earliest(wake, at)
		case at == now && (best < 0 || p.rto.SRTT() < t.path(best).rto.SRTT()):
			best = i
		}
	}
	if best >= 0 && (best == d || !t.wouldBlock(best)) {
		return best
	}
	if wake != 0 {
		t.paceUntil(now, wake)
	}
	return d
}

// wouldBlock reports whether data on path k, if it takes twice as long as it did
// lately, as it will after a loss, could stop faster paths: until it has arrived the peer's buffer, and
// ours, have to hold all that they deliver meanwhile.
func (t *sender) wouldBlock(k int) bool {
	slow := t.path(k).rto.SRTT()
	need := t.path(k).pmdcs()
	for i := range *t.paths {
		p := t.path(i)
		if fast := p.rto.SRTT(); p.usable() && 0 < fast && fast < slow {
			need += max(int(2*clock.Time(p.cc.Cwnd())*(slow/1000)/max(fast/1000, 1))-t.sb.Flight(i), 0)
		}
	}
	return min(int64(t.sb.PeerWindow()), t.q.FlightLimit()) < int64(need)
}

// slowest returns the round-trip time of the slowest path that data takes, 0 if
// it takes one only. Until the slowest has delivered, what faster ones did stays
// in the send buffer.
func (t *sender) slowest() (rtt clock.Time) {
	if t.spread() {
		for i := range *t.paths {
			if p := t.path(i); p.usable() {
				rtt = max(rtt, p.rto.SRTT())
			}
		}
	}
	return rtt
}

// repairPath returns the path for retransmissions: of those with room the one
// with the largest slow start threshold, as it has lost the least. d is the
// answer if there is none.
func (t *sender) repairPath(now clock.Time, d int) int {
	if i := t.detour - 1; i >= 0 && i < len(*t.paths) && t.path(i).usable() {
		return i
	}
	best := -1
	for i := range *t.paths {
		p := t.path(i)
		if !p.usable() || !t.sb.Permit() && t.roomAt(now, i) != now {
			continue
		}
		if best < 0 || p.cc.Ssthresh() > t.path(best).cc.Ssthresh() ||
			p.cc.Ssthresh() == t.path(best).cc.Ssthresh() && p.rto.SRTT() < t.path(best).rto.SRTT() {
			best = i
		}
	}
	if best < 0 {
		return d
	}
	return best
}

// unblock sends the chunk that keeps the peer's buffer full once more, by a
// faster path that has nothing else to do: a slow path must not set the pace of
// all. It reports whether there is such a chunk, which then is marked.
func (t *sender) unblock(now clock.Time) bool {
	if !t.q.Pending() || t.sb.HasRtx() {
		return false
	}
	slow, since, ok := t.sb.Blocker()
	if !ok {
		return false
	}
	for i := range *t.paths {
		p := t.path(i)
		if i == slow || !p.usable() || t.sb.PeerWindow() >= p.pmdcs() || t.roomAt(now, i) != now {
			continue
		}
		// Not at once: the buffer may just be full because it is small. Nor if the
		// chunk is about to arrive anyway.
		rtt, takes := p.rto.SRTT(), t.path(slow).rto.SRTT()
		switch from := since + rtt + takes/4; {
		case rtt == 0 || from+rtt >= since+takes || now+rtt >= since+takes:
		case from > now:
			t.paceUntil(now, from)
		default:
			t.sb.MarkBlocker()
			t.q.PickKey()
			t.detour = i + 1
			return true
		}
	}
	return false
}

// sackPacketsShift is where in the flags of a SACK the delayed-ack algorithm of
// concurrent multipath transfer (DAC) keeps the number of packets that the SACK
// is for, up to three. Receivers that do not know it ignore the flags.
const sackPacketsShift = 6

// setSackPackets notes in a SACK chunk for how many packets with data it is.
func setSackPackets(chunk []byte, n int) { chunk[1] |= uint8(min(n, 3)) << sackPacketsShift }

// sackPackets returns what setSackPackets noted, 0 if the peer does not.
func sackPackets(c wire.Chunk) uint8 { return c.Flags >> sackPacketsShift }
