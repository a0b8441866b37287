package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/wire"
)

// shutdown is the state of the graceful end of an association (RFC 9260,
// Section 9.2).
type shutdown struct {
	wanted  bool       // by the user, before the association was established
	sendReq bool       // a SHUTDOWN is to be sent
	sendAck bool       // a SHUTDOWN ACK is to be sent
	tries   int        // expirations of T2 in a row
	path    int        // where SHUTDOWN and SHUTDOWN ACK go
	gotData bool       // in SHUTDOWN-SENT, in the current packet
	since   clock.Time // when T2 started after the last SHUTDOWN or DATA
}

// maxT2Delay is how many times RTO packets without DATA can delay T2.
const maxT2Delay = 10

func (s *shutdown) clear() { *s = shutdown{wanted: s.wanted} }

// Shutdown begins a graceful shutdown: nothing more can be sent, and once
// everything sent is acknowledged the association ends (RFC 9260, Section 9.2).
// If a message was given in pieces and not to its end, it is aborted then. Before
// the association is established it takes effect then.
func (a *Assoc) Shutdown(now clock.Time) {
	a.ProcessDeferredSack()
	switch a.state {
	case CookieWait, CookieEchoed:
		a.shut.wanted = true
	case Established:
		a.setState(ShutdownPending, "the user shuts down")
		a.tx.sb.SetEnding()
		a.stopDelayingSacks()
		a.progressShutdown(now)
	}
	// Section 9.2: in SHUTDOWN-RECEIVED "it MUST ignore ULP shutdown requests".
	a.slow = a.findSlowReasons()
}

// stopDelayingSacks acknowledges now what was received, and what comes later at once: there
// will be no data to bundle a SACK with, and a peer that shuts down at the same time waits for
// it in SHUTDOWN-PENDING (RFC 9260, Section 6.2: the delay is an upper bound).
func (a *Assoc) stopDelayingSacks() {
	a.rx.sack.SetNoDelay(true)
	if a.rx.sack.Pending() {
		a.rx.sack.Force()
	}
}

// progressShutdown moves on when nothing is left to send and nothing is
// outstanding. RE-CONFIG requests are finished before a SHUTDOWN, because none can
// be sent after it; an SSN/TSN reset also before a SHUTDOWN ACK: what the peer
// sent is held back until it answers.
func (a *Assoc) progressShutdown(now clock.Time) {
	switch a.state {
	case ShutdownPending:
		if !a.tx.dry() || a.tx.q.Unfinished() {
			a.abortUnfinished(now)
			return
		}
		if a.rc.DropResets(ErrShutdown); a.rc.Len() == 0 {
			a.setState(ShutdownSent, "all data is acknowledged")
			a.shut.sendReq = true
			a.startT2(now, a.dataPath())
			if g := clock.Time(a.cfg.ShutdownGuard); g > 0 {
				a.timers.Start(timer.T5, now+g)
			}
			a.stopHeartbeats()
		}
	case ShutdownReceived:
		// While no address of ours is known to the peer nothing else may be sent,
		// and no ASCONF after a SHUTDOWN ACK (RFC 5061, Section 5.1.1, C4).
		if a.tx.dry() && !a.tx.q.Unfinished() && !a.rc.ResettingTSNs() && !a.asc.Muted() {
			a.enterShutdownAckSent(now, "all data is acknowledged")
		}
		a.abortUnfinished(now)
	}
}

// abortUnfinished aborts an association that shuts down if everything that can be
// sent is acknowledged and a message has been given in part: it cannot be ended,
// because the association on each end is to "stop accepting new data from its user and
// only deliver data in queue" (RFC 9260, Section 9); and what is behind it may have to
// wait for its end.
func (a *Assoc) abortUnfinished(now clock.Time) {
	if a.tx.q.Unfinished() && a.tx.allSent() {
		a.Abort(now, []byte("a message was not ended"))
	}
}

// runDry is called when there was nothing to send: the last messages may have
// expired rather than been acknowledged, or data may wait for its path to be
// confirmed. It reports whether there is something now; due tells that a
// FORWARD-TSN was due before.
func (a *Assoc) runDry(now clock.Time, due bool) bool {
	a.tx.report(a)
	was, waits := a.state, !a.rc.Due()
	a.rc.Begin(now)
	a.progressShutdown(now)
	return a.state != was || waits && a.rc.Due() || !due && a.tx.sb.ForwardDue() || a.probeNow()
}

func (a *Assoc) enterShutdownAckSent(now clock.Time, reason string) {
	a.setState(ShutdownAckSent, reason)
	a.shut.sendReq, a.shut.sendAck = false, true
	// RFC 5061, Section 5.1.1, C4: neither is sent in this state.
	a.asc.Hold()
	a.ctl.drop(wire.ChunkAsconfAck)
	a.startT2(now, a.dataPath())
	a.stopHeartbeats()
}

func (r *reachability) stopHeartbeats() {
	for i := range r.paths {
		if !r.probes(i) {
			r.timers.StartPath(timer.Heartbeat, i, 0)
			r.paths[i].hb.pending, r.paths[i].hb.waiting = false, false
		}
	}
}

// startT2 starts T2-shutdown anew for a chunk that goes to path i.
func (a *Assoc) startT2(now clock.Time, i int) {
	a.shut.tries, a.shut.path, a.shut.since = 0, i, now
	a.timers.Start(timer.T2, now+a.paths[i].rto.Value())
}

// t2Timeout sends the SHUTDOWN or SHUTDOWN ACK again, by another path if there
// is one (RFC 9260, Section 9.2).
func (a *Assoc) t2Timeout(now clock.Time) {
	s := &a.shut
	s.tries++
	a.stats.Timeouts++
	if s.tries > a.cfg.AssocMaxRetrans {
		a.close(ErrUnreachable)
		return
	}
	a.paths[s.path].rto.Backoff()
	if !a.timedOut(s.path) {
		return
	}
	s.path, s.since = a.otherPath(s.path), now
	a.timers.Start(timer.T2, now+a.paths[s.path].rto.Value())
	s.sendReq = a.state == ShutdownSent
	s.sendAck = a.state == ShutdownAckSent
}

// t5Timeout gives up: "At the expiration of this timer, the sender SHOULD abort
// the association by sending an ABORT chunk."
func (a *Assoc) t5Timeout() { a.violate("shutdown takes too long") }

// handleShutdown takes in a SHUTDOWN chunk.
func (a *Assoc) handleShutdown(now clock.Time, c wire.Chunk) {
	x, err := wire.ParseShutdown(c)
	if err != nil {
		return
	}
	switch a.state {
	case Established, ShutdownPending:
		a.setState(ShutdownReceived, "SHUTDOWN received")
		a.events.push(Event{Kind: EventPeerShutdown})
		a.rc.DropResets(ErrShutdown)
	case ShutdownReceived:
	case ShutdownSent:
		// "SHOULD respond immediately with a SHUTDOWN ACK chunk … and move into
		// the SHUTDOWN-ACK-SENT state, restarting its T2-shutdown timer."
		if !a.asc.Muted() {
			a.enterShutdownAckSent(now, "both ends shut down")
		}
		return
	case ShutdownAckSent:
		a.shut.sendAck = true // ours was lost
		return
	default:
		return // "In COOKIE-WAIT or COOKIE ECHOED … SHOULD be silently discarded."
	}
	if a.handleCumAck(now, seq.TSN(x.CumTSN)) {
		a.progressShutdown(now)
	}
}

// handleShutdownAck takes in a SHUTDOWN ACK in a packet with our tag.
func (a *Assoc) handleShutdownAck() {
	switch a.state {
	case ShutdownSent, ShutdownAckSent:
		a.sendAlone(a.paths[a.replyPath(a.in.path)].Tuple, a.header(), func(b []byte) []byte {
			return wire.AppendShutdownComplete(b, wire.ShutdownComplete{})
		})
		a.close(nil)
	}
}

// handleShutdownComplete takes in a SHUTDOWN COMPLETE whose tag was checked.
func (a *Assoc) handleShutdownComplete() {
	if a.state == ShutdownAckSent {
		a.close(nil)
	}
}

// shutdownHeard notes, at the end of a packet, that the peer is alive: "The
// reception of any packet from its peer … SHOULD clear the endpoint's
// retransmission count and restart the T2-shutdown timer". DATA is answered
// with a SHUTDOWN, and with a SACK if that alone cannot acknowledge it.
//
// Deviation (9.2, SHOULD): packets without DATA do not restart the timer for
// ever, because heartbeats on several paths could keep a lost SHUTDOWN from being
// sent again.
func (a *Assoc) shutdownHeard(now clock.Time) {
	if a.state != ShutdownSent {
		return
	}
	s, rto := &a.shut, a.paths[a.shut.path].rto.Value()
	s.tries = 0
	if a.shut.gotData {
		a.startT2(now, s.path)
	} else {
		a.timers.Start(timer.T2, min(now+rto, max(s.since+maxT2Delay*rto, now+1)))
	}
	if a.shut.gotData {
		a.shut.gotData = false
		a.shut.sendReq = true
		a.shut.path = a.replyPath(a.in.path)
	}
}
