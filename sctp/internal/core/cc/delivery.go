package cc

import "github.com/weftstack/weft/sctp/internal/core/clock"

// sendMarks is how many transmissions of a flight are noted to take samples from. They are
// spread over the window, so that a round trip has some.
const sendMarks = 16

// A sendMark is the state of a path when a packet left.
type sendMark struct {
	sent    int64      // bytes sent up to and with the packet
	acked   int64      // bytes acknowledged by then
	at      clock.Time // when it left
	ackedAt clock.Time // when something had been acknowledged last
	first   clock.Time // when what had been acknowledged last had left
	limited bool       // the application was the limit
}

// A rateSample is the rate at which the path delivered over about a round trip.
type rateSample struct {
	rate    int64 // bytes per second; 0: none was taken
	limited bool  // the application was the limit, so the path may carry more
}

// delivery measures the rate at which a path delivers data: what was acknowledged from
// when a packet left until it was acknowledged, by the time that took or, if longer, the
// time in which that data had been sent, lest acknowledgements in bursts look like a fast
// path (draft-ietf-ccwg-bbr, Section 4.1). It notes a few packets of a window only.
type delivery struct {
	sent    int64 // bytes
	acked   int64
	flight  int
	ackedAt clock.Time // when something was acknowledged last
	first   clock.Time // when that had left
	limited clock.Time // until when the application counts as the limit
	head, n int
	marks   [sendMarks]sendMark
}

// passed returns how many of the bytes sent were acknowledged or lost.
func (d *delivery) passed() int64 { return d.sent - int64(d.flight) }

// lost returns how many of them were lost. It shrinks when they arrive all the same.
func (d *delivery) lost() int64 { return d.passed() - d.acked }

// onSent takes in n bytes that left, after which flight bytes are in flight. It notes
// those that are spacing bytes or more apart.
func (d *delivery) onSent(now clock.Time, n, flight, spacing int) {
	if flight <= n { // after a pause: its time is nobody's
		d.ackedAt, d.first = now, now
	}
	d.sent += int64(n)
	d.flight = flight
	if d.n == sendMarks || d.n > 0 && d.sent-d.marks[(d.head+d.n-1)%sendMarks].sent < int64(spacing) {
		return
	}
	d.marks[(d.head+d.n)%sendMarks] = sendMark{sent: d.sent, acked: d.acked, at: now, ackedAt: d.ackedAt, first: d.first,
		limited: now <= d.limited}
	d.n++
}

// onAck takes in a SACK. A sample over less than least is none: what was acknowledged was
// sent before.
func (d *delivery) onAck(a *Ack, least clock.Time) (s rateSample) {
	d.acked += int64(a.Acked)
	d.flight = a.Flight
	var m *sendMark
	for ; d.n > 0 && d.marks[d.head].sent <= d.passed(); d.n-- {
		m = &d.marks[d.head]
		d.head = (d.head + 1) % sendMarks
	}
	d.ackedAt = a.Now
	if m == nil {
		return rateSample{}
	}
	d.first = m.at
	took := max(a.Now-m.ackedAt, m.at-m.first)
	if took <= 0 || took < least {
		return rateSample{}
	}
	return rateSample{perSecond(int(d.acked-m.acked), took), m.limited}
}

// forget drops what was noted of the flight, of which nothing will tell anything.
func (d *delivery) forget() { d.head, d.n = 0, 0 }
