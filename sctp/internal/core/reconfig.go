package core

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/reconfig"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// openReconfig begins anew: the association was established or restarted.
func (a *Assoc) openReconfig(peerTSN seq.TSN) {
	a.rc.Fail(tx.ErrRestart)
	cfg := reconfig.Config{Deny: a.cfg.DenyReconfig, InStreams: a.cfg.InStreams, MaxOutStreams: a.cfg.MaxOutStreams}
	a.rc.Open(cfg, reconfigHost{a}, a.tsn, peerTSN)
}

// checkReconfig returns why the user cannot ask for a re-configuration.
func (a *Assoc) checkReconfig() error {
	switch {
	case a.state == Closed:
		return ErrClosed
	case a.state > Established:
		return ErrShutdown
	case a.state != Established || !a.peer.features.Has(feature.Reconfig):
		return requests.ErrNotSupported
	case a.rc.Full():
		return requests.ErrBusy
	}
	return nil
}

// checkReset returns why the user cannot have streams reset, of so many that there are.
func (a *Assoc) checkReset(sids []uint16, streams int) error {
	if err := a.checkReconfig(); err != nil {
		return err
	}
	for _, sid := range sids {
		if int(sid) >= streams {
			return tx.ErrStream
		}
	}
	return nil
}

// newReconfig returns the number of a new request, which the caller is to queue.
func (a *Assoc) newReconfig() uint32 {
	a.slow |= slowReconfig
	return a.reqs.Next()
}

// ResetWaits reports whether a reset of the peer's waits for data, or for the user to take all
// pieces of its streams: after PopPiece has taken the last of them PerformReset performs it.
func (a *Assoc) ResetWaits() bool { return a.rc.Deferred() && a.state != Closed }

// PerformReset performs a reset of the peer's that needs to wait no longer, if there is one. It
// may produce events and pieces.
func (a *Assoc) PerformReset(now clock.Time) { a.rc.Progress(now) }

// ResetStreams restarts the sequence numbers of outgoing streams at 0, all of
// them if sids is empty (RFC 6525, Section 5.1.2). Messages queued before are
// still sent under the old numbers; later ones wait for the reset. The result
// names the request in the EventRequestDone that tells the outcome.
//
// More streams than fit a packet take several requests to the peer in sequence.
// The first that fails ends it: an EventOutStreamsReset tells which streams were
// reset by then, and another which were not.
func (a *Assoc) ResetStreams(now clock.Time, sids []uint16) (uint32, error) {
	if err := a.checkReset(sids, a.tx.streams); err != nil {
		return 0, err
	}
	id := a.newReconfig()
	a.rc.ResetStreams(now, id, sids)
	return id, nil
}

// ResetIncoming asks the peer to reset streams that it sends on, all of them if
// sids is empty (RFC 6525, Section 5.1.3).
func (a *Assoc) ResetIncoming(now clock.Time, sids []uint16) (uint32, error) {
	if err := a.checkReset(sids, a.rx.streams); err != nil {
		return 0, err
	}
	id := a.newReconfig()
	a.rc.ResetIncoming(now, id, sids)
	return id, nil
}

// ResetAssoc restarts the sequence numbers of all streams, and the TSNs, in both
// directions (RFC 6525, Section 5.1.4). Everything queued before is sent first.
func (a *Assoc) ResetAssoc(now clock.Time) (uint32, error) {
	if err := a.checkReconfig(); err != nil {
		return 0, err
	}
	id := a.newReconfig()
	a.rc.ResetTSNs(now, id)
	return id, nil
}

// AddStreams asks the peer to accept more outgoing streams and to use more
// incoming ones (RFC 6525, Sections 5.1.5 and 5.1.6). The new streams can be
// used once the request is done.
func (a *Assoc) AddStreams(now clock.Time, out, in uint16) (uint32, error) {
	if err := a.checkReconfig(); err != nil {
		return 0, err
	}
	switch {
	case a.tx.streams+int(out) > reconfig.MaxStreams || a.rx.streams+int(in) > int(a.cfg.InStreams):
		return 0, requests.ErrTooMany
	case out == 0 && in == 0:
		return 0, ErrParams
	}
	id := a.newReconfig()
	a.rc.AddStreams(now, id, out, in)
	return id, nil
}

// handleReconfig takes in a RE-CONFIG chunk (RFC 6525, Section 5.2.1).
func (a *Assoc) handleReconfig(now clock.Time, c wire.Chunk) {
	if !a.peer.features.Has(feature.Reconfig) || !a.state.connected() || a.state == ShutdownAckSent {
		return
	}
	x, ok := reconfig.Parse(c)
	switch {
	case !ok:
	case !x.Allowed():
		// RFC 6525, Section 3.1: "the receiver SHOULD send an ERROR chunk with a
		// Protocol Violation cause".
		a.ctl.reply(a.replyPath(a.in.path), wire.ChunkError, 0,
			wire.AppendProtocolViolation(nil, "combination of RE-CONFIG parameters"))
	default:
		a.rc.Handle(now, a.in.path, x)
		a.progressShutdown(now) // it may have waited for an answer
	}
}

// reconfigPath returns the path that a request is to go to now.
func (a *Assoc) reconfigPath(now clock.Time) (int, bool) {
	r := &a.rc
	r.Begin(now)
	if !r.Due() {
		return 0, false
	}
	if !a.paths[r.Path()].confirmed {
		r.SetPath(a.dataPath())
	}
	return r.Path(), a.paths[r.Path()].confirmed
}

// appendReconfig appends the outstanding request, if it is to go to path i.
func (a *Assoc) appendReconfig(b []byte, now clock.Time, i, room int) []byte {
	r := &a.rc
	if !r.Due() || r.Path() != i || r.Size() > room || !a.paths[i].confirmed {
		return b
	}
	a.timers.Start(timer.Reconfig, now+a.paths[i].rto.Value())
	a.paths[i].lastSent = now
	return r.Append(b)
}

// reconfigTimeout sends the outstanding request again: "besides doubling the
// value, the sender MUST retransmit the RE-CONFIG chunk, increment the
// appropriate error counts … and perform threshold management" (RFC 6525,
// Section 5.1.1).
func (a *Assoc) reconfigTimeout(now clock.Time) {
	r := &a.rc
	if !r.Outstanding() {
		r.Begin(now) // a pause is over
		return
	}
	if !a.state.canSendData() {
		return
	}
	a.stats.Timeouts++
	if a.state == ShutdownReceived && a.tx.dry() && r.GiveUp(now, ErrShutdown) {
		a.progressShutdown(now)
		return
	}
	i := r.Path()
	// After "in progress" "the corresponding error counters MUST NOT be
	// incremented" (Section 5.2.7, H2): for the transmission that was answered.
	if !r.TakeAnswered() {
		a.paths[i].rto.Backoff()
		if !a.timedOut(i) {
			return
		}
		i = a.otherPath(i)
	}
	if !a.paths[i].usable() {
		i = a.dataPath()
	}
	r.Repeat(i)
}

// reconfigSender is the sending side as RE-CONFIG sees it: see [reconfig.Sender].
type reconfigSender struct{ t *sender }

func (s reconfigSender) Streams() int { return s.t.streams }

func (s reconfigSender) SetStreams(n int) {
	s.t.streams = n
	s.t.q.SetStreams(n)
}

func (s reconfigSender) NextTSN() seq.TSN              { return s.t.sb.NextTSN() }
func (s reconfigSender) ResetTSN(next seq.TSN) bool    { return s.t.sb.ResetTSN(next) }
func (s reconfigSender) Idle() bool                    { return s.t.allSent() && !s.t.q.Unfinished() }
func (s reconfigSender) Drained(sid uint16) bool       { return s.t.q.Drained(sid) }
func (s reconfigSender) Fresh(sids []uint16) bool      { return s.t.q.Fresh(sids) }
func (s reconfigSender) ResetStreams(sids []uint16)    { s.t.q.ResetStreams(sids) }
func (s reconfigSender) Arrivals() uint64              { return s.t.q.Arrivals() }
func (s reconfigSender) Pause(sid uint16, from uint64) { s.t.q.Pause(sid, from) }
func (s reconfigSender) PauseAll(from uint64)          { s.t.q.PauseAll(from) }
func (s reconfigSender) Resume(sid uint16)             { s.t.q.Resume(sid) }
func (s reconfigSender) ResumeAll()                    { s.t.q.ResumeAll() }
func (s reconfigSender) Reschedule()                   { s.t.q.Reschedule() }

// reconfigReceiver is the receiving side as RE-CONFIG sees it: see [reconfig.Receiver].
type reconfigReceiver struct{ a *Assoc }

// check aborts the association if what was taken in violates the protocol.
func (r reconfigReceiver) check(res reasm.Result) (ok bool) {
	if res.Violation() {
		r.a.violate(res.String())
	}
	return !res.Violation()
}

func (r reconfigReceiver) Streams() int { return r.a.rx.streams }

func (r reconfigReceiver) SetStreams(n int) {
	r.a.rx.streams = n
	r.a.rx.reasm.SetStreams(n)
}

func (r reconfigReceiver) CumTSN() seq.TSN  { return r.a.rx.tsns.CumTSN() }
func (r reconfigReceiver) Highest() seq.TSN { return r.a.rx.tsns.Highest() }
func (r reconfigReceiver) ForceSack()       { r.a.rx.sack.Force() }
func (r reconfigReceiver) Refuse()          { r.a.rx.sack.Refused() }
func (r reconfigReceiver) ResetStreams(sids []uint16) bool {
	return r.check(r.a.rx.reasm.ResetStreams(sids))
}

func (r reconfigReceiver) DeferReset(sids []uint16, last seq.TSN) {
	r.a.rx.reasm.DeferReset(sids, last)
}
func (r reconfigReceiver) DeferredUntil() seq.TSN { return r.a.rx.reasm.DeferredUntil() }
func (r reconfigReceiver) AdvanceDefer(to seq.TSN) bool {
	return r.check(r.a.rx.reasm.AdvanceDefer(to))
}
func (r reconfigReceiver) Unread(sids []uint16) bool {
	return r.a.cfg.Pieces && r.a.rx.reasm.Unread(sids)
}
func (r reconfigReceiver) Pressed() bool { return r.a.rx.reasm.Pressed() }

func (r reconfigReceiver) Undefer(keep bool, sids []uint16, last seq.TSN) bool {
	return r.check(r.a.rx.reasm.Undefer(keep, sids, last))
}

func (r reconfigReceiver) Restart(next seq.TSN) (jumped, ok bool) {
	rx := &r.a.rx
	if !r.check(rx.reasm.Restart(next)) {
		return false, false
	}
	switch d := next.Sub(rx.tsns.CumTSN()); {
	case d > seq.MaxWindow || d < -seq.MaxWindow:
		rx.tsns.Init(next)
		jumped = true
	case d > 1:
		rx.tsns.Forward(next - 1)
	}
	return jumped, true
}

// reconfigHost is the association as RE-CONFIG sees it: see [reconfig.Association].
type reconfigHost struct{ a *Assoc }

func (h reconfigHost) Sender() reconfig.Sender        { return reconfigSender{&h.a.tx} }
func (h reconfigHost) Receiver() reconfig.Receiver    { return reconfigReceiver(h) }
func (h reconfigHost) Closed() bool                   { return h.a.state == Closed }
func (h reconfigHost) CanSend() bool                  { return h.a.state.canSendData() }
func (h reconfigHost) DataPath() int                  { return h.a.dataPath() }
func (h reconfigHost) ReplyPath(from int) int         { return h.a.replyPath(from) }
func (h reconfigHost) Alive(path int)                 { h.a.pathAlive(path) }
func (h reconfigHost) Room(path int) int              { return h.a.paths[path].pmdcs() }
func (h reconfigHost) RTO(path int) clock.Time        { return h.a.paths[path].rto.Value() }
func (h reconfigHost) Jitter(d clock.Time) clock.Time { return h.a.rng.jitter(d) }
func (h reconfigHost) SetTimer(at clock.Time)         { h.a.timers.Start(timer.Reconfig, at) }

func (h reconfigHost) Respond(from int, params []byte) {
	h.a.ctl.reply(h.a.replyPath(from), wire.ChunkReConfig, 0, params)
}

func (h reconfigHost) Forward(c wire.Chunk) {
	if c.Type == wire.ChunkIForwardTSN {
		h.a.handleIForwardTSN(c)
	} else {
		h.a.handleForwardTSN(c)
	}
}

func (h reconfigHost) TSNsReset()                { h.a.ecn = ecnState{} }
func (h reconfigHost) Added()                    { h.a.events.push(Event{Kind: EventStreamsAdded}) }
func (h reconfigHost) Done(id uint32, err error) { h.a.requestDone(id, err) }

func (h reconfigHost) InReset(sids []uint16) {
	h.a.events.push(Event{Kind: EventStreamsReset, Streams: sids})
}

func (h reconfigHost) OutReset(sids []uint16, err error) {
	h.a.events.push(Event{Kind: EventOutStreamsReset, Streams: sids, Err: err})
}
