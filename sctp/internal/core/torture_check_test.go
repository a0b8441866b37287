package core

import (
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// checkReasons checks the reasons for the slow path before a flush finds them anew.
func (w *world) checkReasons() {
	for _, e := range w.end {
		if e.assoc != nil {
			if err := checkSlowReasons(e.assoc); err != nil {
				w.fail("%s: %v", e.name, err)
			}
		}
	}
}

// check checks one end after each step.
func (w *world) check(e *tend) {
	a := e.assoc
	if err := checkInvariants(a); err != nil {
		w.fail("%s: %v", e.name, err)
	}
	was, sb := e.last, a.tx.sb
	is := snapshot{assoc: a, tag: a.tag, ack: sb.CumTSN(), cum: a.rx.tsns.CumTSN(), peer: a.peer.tag, state: a.state, sent: sb.Stats().Chunks}
	e.last = is
	if was.assoc != a || was.tag != a.tag || was.peer != a.peer.tag || was.state == Closed || was.state < CookieEchoed {
		return
	}
	// Cumulative TSNs move forward, save for a reset of all TSNs, which moves
	// them by 2^31 and what comes with it, or to wherever a forged answer says.
	for _, d := range []int{is.ack.Sub(was.ack), is.cum.Sub(was.cum)} {
		if d < 0 && !(a.rc.OtherSpace(1<<30+1) && (d < -1<<28 || w.hostile)) {
			w.fail("%s: a cumulative TSN went back by %d", e.name, -d)
		}
	}
	if is.state < was.state && is.state != Closed && !(was.state == CookieEchoed && is.state == CookieWait) &&
		!(was.state == ShutdownSent || was.state == ShutdownReceived) {
		w.fail("%s: from %v to %v", e.name, was.state, is.state)
	}
	// Whoever waits for something has a timer that will tell that it does not
	// come.
	if a.state != Closed && a.NextTimeout() == 0 && !a.silent() {
		waits := a.state != Established || !a.tx.dry() && !(a.tx.sb.Outstanding() == 0 && !a.tx.q.Pending())
		if waits {
			w.fail("%s: %v with %d TSNs outstanding and %d bytes queued, and no timer", e.name, a.state, sb.Outstanding(), a.tx.q.Buffered())
		}
	}
}

// tortureLimit is how much virtual time a healed network gets.
const tortureLimit = clock.Time(30 * time.Minute)

// heal ends all faults and waits until nothing is left to do, then shuts down.
func (w *world) heal() {
	w.logf("the network heals")
	clear(w.cut)
	w.mtu, w.loss = 0, 0
	for _, e := range w.end {
		e.reading = true
		if e.assoc != nil {
			e.releasePieces()
		}
	}
	w.ending = true
	w.quiesce()
	w.until("everything is delivered", w.quiet)
	w.wantDelivered()
	a, z := w.end[0], w.end[1]
	e := w.end[w.rng.IntN(2)]
	if e.assoc == nil || e.assoc.State() == Closed {
		e = e.peer()
	}
	if e.assoc != nil {
		w.logf("%s shuts down", e.name)
		e.assoc.Shutdown(w.now)
		e.flush()
		w.until("both ends have closed", func() bool { return a.gone() && z.gone() })
	}
	w.wantReleased()
	w.mem.buf, w.mem.read = [2][]byte{a.buf, z.buf}, [2][]byte{a.read, z.read}
}

func (e *tend) gone() bool { return e.assoc == nil || e.assoc.State() == Closed }

// until lets time pass until cond holds.
func (w *world) until(what string, cond func() bool) {
	limit := w.now + tortureLimit
	for n := 0; !cond(); n++ {
		for _, e := range w.end {
			if e.assoc != nil {
				e.consume(1000)
				e.releasePieces()
				e.endOpen()
				e.flush()
			}
		}
		if cond() {
			return
		}
		if n > 20_000 || !w.next(limit) {
			if w.hostile { // the ends may not agree any more on what was sent
				return
			}
			if w.orphan() {
				w.hostile = true
				return
			}
			a, z := w.end[0].state(), w.end[1].state()
			w.fail("never: %s: after %v and %d steps A is %s and Z is %s", what, time.Duration(w.now), n, a, z)
		}
	}
}

// orphan reports whether an end is gone and the other does not believe its ABORT,
// which is not authenticated (RFC 4895, Section 6.3: "it may take longer to detect
// that the peer is no longer available").
func (w *world) orphan() bool {
	for _, e := range w.end {
		if e.gone() && e.peer().needs(wire.ChunkAbort) {
			return true
		}
	}
	return false
}

func (e *tend) state() string {
	if e.assoc == nil {
		return "not there"
	}
	a := e.assoc
	s := a.state.String()
	if !a.tx.dry() {
		s += " with data"
	}
	if a.rc.Len() > 0 {
		s += " with RE-CONFIG requests"
	}
	if a.asc.Pending() > 0 {
		s += " with ASCONF requests"
	}
	return s
}

// quiet reports whether both ends have sent everything, had all requests
// answered, and agree that there is an association or none.
func (w *world) quiet() bool {
	a, z := w.end[0].assoc, w.end[1].assoc
	if z == nil {
		return a.State() == Closed
	}
	for _, e := range w.end {
		x := e.assoc
		if x.State() == Closed {
			continue
		}
		if x.State() != Established || !x.tx.dry() || len(e.open) > 0 || x.rc.Len()+x.asc.Pending()+len(e.requests) > 0 {
			return false
		}
		if e.peer().gone() && !w.mayFail {
			return false
		}
	}
	return true
}

// wantDelivered checks that every message has come that was not given up.
func (w *world) wantDelivered() {
	if w.hostile {
		return
	}
	for _, e := range w.end {
		if e.assoc != nil {
			e.consume(1 << 20)
			e.releasePieces()
			e.flush()
		}
	}
	failed := false
	for _, e := range w.end {
		failed = failed || e.assoc == nil || e.assoc.Err() != nil
	}
	for _, m := range w.sent {
		switch {
		case m.void || failed || m.open || m.early && m.err == tx.ErrStream:
		case m.released == 1 && m.err == nil && !m.got:
			w.fail("message %d of %s was acknowledged and not delivered", m.id, m.from.name)
		case m.released == 0:
			w.fail("message %d of %s was neither delivered nor given up", m.id, m.from.name)
		case m.reliable && !m.got:
			w.fail("message %d of %s was given up: %v", m.id, m.from.name, m.err)
		}
	}
}

// wantReleased checks that nothing is held on to when the associations have
// ended.
func (w *world) wantReleased() {
	for _, e := range w.end {
		if e.assoc == nil {
			continue
		}
		gone := e.gone()
		e.releasePieces()
		e.flush()
		if gone {
			w.check(e)
		}
		e.assoc.Release()
		e.flush()
		if len(e.requests) > 0 {
			w.fail("%s: %d requests have no outcome", e.name, len(e.requests))
		}
	}
	for _, m := range w.sent {
		if m.open && m.pieces == 0 && m.released == 0 {
			continue // it was never ended
		}
		if m.released != 1 {
			w.fail("message %d of %s was released %d times", m.id, m.from.name, m.released)
		}
		if m.err == tx.ErrAbandoned && m.reliable {
			w.fail("message %d of %s was abandoned", m.id, m.from.name)
		}
	}
	if w.slabs != nil && w.slabs.Live() != 0 {
		w.fail("%d receive buffers are held", w.slabs.Live())
	}
}
