package core

import (
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// sackBundlingDelay is how long a SACK that need not leave yet waits for the last packet of a
// segmented send.
const sackBundlingDelay = clock.Time(time.Millisecond)

// bundlesSack decides whether the pending SACK goes with the next packet, which has new data and nothing else, or
// with a later one. Packets of a segmented send leave room for a SACK, but a SACK lengthens its packet, and a GSO
// batch ends with the first packet that is shorter: a SACK in the first packet ends the batch after the second.
// On the last, shorter packet it is free.
//
// Deviation (RFC 9260, Section 6.1, SHOULD): the SACK is not bundled with the next DATA chunk.
func (a *Assoc) bundlesSack(now clock.Time) bool {
	t := &a.tx
	switch {
	case t.segSize == 0:
		t.sackAtEnd = a.sackCanWait(now) && a.tx.q.MoreSegments(now)
		return !t.sackAtEnd
	case t.sackAtEnd:
		return a.tx.sackFits(now)
	}
	return true
}

// sackCanWait reports whether the SACK that is pending need not leave yet, and data is
// all that it could go with.
func (a *Assoc) sackCanWait(now clock.Time) bool {
	s, t := &a.rx.sack, &a.tx
	return !s.Due(now) && now-s.Since() < sackBundlingDelay && a.slow&slowBundleSack == 0 && !t.q.Routed() &&
		t.sb.OnlyNew()
}

// sackFits reports whether the next packet of a batch ends a message or a segmented send, and
// is no longer than the others with a SACK in it, or is the last for which there is data.
func (t *sender) sackFits(now clock.Time) bool {
	q := t.q
	left, ok := q.LastPart(now)
	return ok &&
		(q.Unsent() == left || int64(wire.HeaderLen+wire.SackHeaderLen+q.HeaderLen())+(left+3)&^3 <= int64(t.segSize))
}
