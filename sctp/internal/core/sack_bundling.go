package core

import (
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// sackBundlingDelay is how long a SACK that need not leave yet waits for the end of what is
// being sent.
const sackBundlingDelay = clock.Time(time.Millisecond)

// bundlesSack decides whether the SACK that is pending goes with the next packet, which has
// new data and nothing else, or with a later one. A segment of a segmented send, which is not
// fragmented, is so long that a SACK has room besides; the packet that has one is longer
// than those behind it, and ends the GSO batch after one of them. With the last message,
// which is shorter, it goes for nothing.
//
// Deviation (RFC 9260, Section 6.1, SHOULD): it is not bundled with the next DATA chunk.
func (a *Assoc) bundlesSack(now clock.Time) bool {
	t := &a.tx
	switch {
	case t.segSize == 0:
		t.sackAtEnd = a.sackCanWait(now) && a.moreSegments(now)
		return !t.sackAtEnd
	case t.sackAtEnd:
		return a.sackFits(now)
	}
	return true
}

// sackCanWait reports whether the SACK that is pending need not leave yet, and data is
// all that it could go with.
func (a *Assoc) sackCanWait(now clock.Time) bool {
	s, t := &a.rx.sack, &a.tx
	return !s.Due(now) && now-s.Since() < sackBundlingDelay && a.slow&slowBundleSack == 0 && t.q.routed == 0 && t.sb.onlyNew()
}

// moreSegments reports whether the message that is sent next is a segment, and not
// the last.
func (a *Assoc) moreSegments(now clock.Time) bool {
	m := a.tx.q.head(now)
	return m != nil && m.segmented.size != 0 && m.length-m.sent > int64(m.segmented.size)
}

// sackFits reports whether the next packet of a batch, which ends a message or a segmented send,
// is with a SACK no longer than the others; or nothing is behind it with which the SACK
// could go.
func (a *Assoc) sackFits(now clock.Time) bool {
	q := a.tx.q
	m := q.head(now)
	if m == nil || m.end != m.length {
		return false
	}
	left := m.length - m.sent
	return q.Unsent() == left || int64(wire.HeaderLen+wire.SackHeaderLen+q.headerLen())+(left+3)&^3 <= int64(a.tx.segSize)
}
