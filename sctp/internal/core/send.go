package core

import (
	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// openSender makes an empty send queue and scoreboard.
func (a *Assoc) openSender() {
	released := a.tx.released
	if a.tx.q != nil { // the peer restarted
		released = a.tx.q.TakeReleases(released)
	}
	restarted := a.tx.q != nil
	a.tx = sender{streams: int(a.cfg.OutStreams), bytes: a.tx.bytes, messages: a.tx.messages, released: released}
	a.tx.share(&a.cfg, &a.paths, &a.timers)
	if a.tx.q, a.tx.sb = &a.first.q, &a.first.sb; restarted {
		a.tx.q, a.tx.sb = new(tx.Queue), new(tx.Scoreboard)
	}
	a.tx.q.Init(a.cfg.SendBuffer, a.tx.streams, a.cfg.Scheduler)
	if restarted {
		a.tx.q.NoteKeysFreed()
	}
	a.sb = a.tx.sb
	a.sb.Init(a.tx.q, tx.ScoreboardConfig{TSN: a.tsn, Paths: len(a.paths), RACK: !a.cfg.NoRACK,
		CMT: a.cfg.Multipath, NoBulk: a.cfg.slowPath})
	for i := range a.paths {
		a.watchSizes(i)
	}
}

// openPeer tells the sender what the peer allows.
func (a *Assoc) openPeer(streams int, rwnd uint32) {
	t := &a.tx
	t.streams = streams
	t.q.SetStreams(streams)
	t.q.SetInterleaving(a.peer.features.Has(feature.IData))
	t.q.SetPartialReliability(a.peer.features.Has(feature.PartialReliability))
	t.sb.SetPaths(len(a.paths))
	t.sb.SetPeerWindow(int(rwnd))
}

// senderBegun reports whether any data was sent.
func (r *reachability) senderBegun() bool { return r.sb.NextTSN() != r.tsn }

// allSent reports whether nothing is outstanding and nothing may be sent.
func (t *sender) allSent() bool { return t.sb.Outstanding() == 0 && !t.q.Pending() }

// Send queues a message. It takes m.Body by reference: the bytes must not
// change until the owner is released (TakeReleases). It returns ErrWouldBlock
// when the send buffer is full, ErrShutdown or ErrClosed when it is too late,
// ErrStream, ErrNoUserData, ErrTooLong, ErrHeaderTooLong, ErrPath, ErrNoKey,
// ErrNotSupported, ErrPolicy or ErrSegmented for a message that cannot be sent,
// ErrMessageOpen for one that comes before the end of another, and ErrRestart for a
// piece of one that the peer's restart has cut off. It never blocks; PollTransmit is
// due afterwards. Now counts only for a message with a Lifetime.
func (a *Assoc) Send(now clock.Time, m *tx.Message) error {
	switch {
	case a.state == Closed:
		return ErrClosed
	case !a.state.canQueue() || a.shut.wanted:
		return ErrShutdown
	case a.cfg.NoFragmentation && (m.Largest() > a.MaxPayload() || m.Of != nil && (m.Of.Begun() || !m.Last)):
		// RFC 9260, Section 6.9: where fragmentation is disabled, "an error MUST be
		// returned to the upper layer".
		return tx.ErrTooLong
	}
	if m.ClearRoute(); m.Keyed || m.Remote.IsValid() {
		if err := a.setRoute(m); err != nil {
			return err
		}
	}
	n, count := m.Size()
	if a.tx.deferredSack.on && (n > tx.OnePacket || a.tx.q.Messages() > 1) {
		a.ProcessDeferredSack() // it may make room
		if a.state == Closed {
			return ErrClosed
		}
	}
	first, idle := m.Of == nil || !m.Of.Begun(), a.tx.q.Empty() || a.tx.deferredSack.on && a.tx.q.Messages() == 1
	if err := a.tx.q.Push(now, m); err != nil {
		return err
	}
	others := count
	if idle {
		a.tx.pipelined = 0
		others--
	}
	a.tx.pipelined = min(a.tx.pipelined+others, corkPipelined)
	a.tx.bytes += uint64(n)
	if first {
		a.tx.messages += uint64(count)
	}
	a.tx.busy = true
	return nil
}

// SendBuffer returns how many bytes the send buffer takes.
func (c *situation) SendBuffer() int { return c.cfg.SendBuffer }

// CanOpen reports why a message in pieces cannot be begun on a stream now, if so.
func (a *Assoc) CanOpen(sid uint16) error {
	q := a.tx.q
	switch {
	case a.state == Closed:
		return ErrClosed
	case !a.state.canQueue() || a.shut.wanted:
		return ErrShutdown
	case a.cfg.NoFragmentation:
		return tx.ErrTooLong
	}
	return q.CanOpen(sid)
}

// TakeReleases appends to dst the owners of messages that are done with. The
// caller calls Owner.Released for each, with no lock held.
func (a *Assoc) TakeReleases(dst []tx.Release) []tx.Release {
	dst = append(dst, a.tx.released...)
	a.tx.released = nil
	return a.tx.q.TakeReleases(dst)
}

// HasReleases reports whether TakeReleases would append something.
func (a *Assoc) HasReleases() bool { return len(a.tx.released) > 0 || a.tx.q.HasReleases() }

// SetStreamValue sets the priority or weight of an outgoing stream for the
// schedulers that know such a thing (RFC 8260, Section 4.3.3).
func (a *Assoc) SetStreamValue(sid, value uint16) error { return a.tx.q.SetStreamValue(sid, value) }

// MaxPayload returns the size of the largest message that goes as one chunk in
// one packet, on every path in use.
func (a *Assoc) MaxPayload() int {
	return (a.amdcs(a.dataPath()) - a.tx.q.HeaderLen()) &^ 3
}

// handleSack takes in a SACK chunk (RFC 9260, Section 6.2.1).
func (a *Assoc) handleSack(now clock.Time, c wire.Chunk) {
	if !a.state.canSendData() {
		return // Section 6
	}
	x, err := wire.ParseSack(c)
	if err != nil {
		return
	}
	a.tx.sb.SetDelayedPackets(sackPackets(c))
	a.takeSack(now, &x)
}

// takeSack takes in what a SACK chunk that came at now says.
func (a *Assoc) takeSack(now clock.Time, x *wire.Sack) {
	if a.rc.OtherSpace(seq.TSN(x.CumTSN).Sub(a.tx.sb.CumTSN())) {
		return
	}
	a.stats.SacksReceived++
	a.tx.sackAt = a.tx.dataPackets()
	res, err := a.tx.sb.HandleSack(now, x)
	a.takeAck(now, res, err)
	if a.state != Closed {
		a.progressShutdown(now)
	}
}

// takeAck gives the news of an acknowledgement from the scoreboard to the paths.
func (a *Assoc) takeAck(now clock.Time, res *tx.SackResult, err error) {
	sb := a.tx.sb
	if err != nil {
		a.violate("SACK for a TSN that was not sent")
		return
	}
	if res.Old {
		return
	}
	a.tx.heard = true
	if sb.Probing() {
		a.tx.windowGrew(now)
	}
	if a.tx.forwarding && res.CumAdvanced {
		// The peer has the FORWARD-TSN that timed out, so it is reachable (Section 8.1). Others
		// may follow, one for each gap, and none gives a measurement that would end the backoff:
		// with losses among them the association would become slow, and end as unreachable.
		a.tx.forwarding, a.errors = false, 0
		a.pathAlive(a.dataPath())
		a.paths[a.dataPath()].rto.EndBackoff()
	}
	for i := range a.paths {
		pa, p := &res.Paths[i], &a.paths[i]
		p.burstFrom = sb.Flight(i)
		if pa.RTT > 0 {
			p.rto.Sample(pa.RTT)
		}
		if pa.Acked > 0 {
			p.single = false
			p.cc.OnAck(cc.Ack{Now: now, Acked: pa.Acked, FlightBefore: pa.FlightBefore, Flight: sb.Flight(i),
				CumAdvanced: res.CumAdvanced, InRecovery: pa.InRecovery, RTT: pa.AckRTT, SRTT: p.rto.SRTT()})
			a.errors = 0 // Section 8.1
		}
		if pa.Alive {
			a.pathAlive(i) // Section 8.2
			p.aliveAt, p.suspect = now, false
		}
		if pa.Loss {
			a.tx.lossOn(i)
			p.cc.OnLoss(now)
			a.tx.rtxPath = i // Section 6.4: back to where it was sent first
		}
		if pa.Acked > 0 || pa.Loss {
			a.tx.updatePacer(now, i)
		}
		a.tx.undoLoss(now, i)
		switch {
		case sb.FlightChunks(i) == 0 && !sb.ForwardOutstanding():
			a.timers.StartPath(timer.T3, i, 0) // Section 6.3.2, R2
		case pa.RestartT3:
			a.timers.StartPath(timer.T3, i, now+p.rto.Value()) // R3
		case pa.Reneged && !a.timers.RunningPath(timer.T3, i):
			a.timers.StartPath(timer.T3, i, now+p.rto.Value()) // R4
		}
	}
	if !sb.ZeroWindow() {
		a.tx.mayProbe, a.tx.probes = false, 0
		a.timers.Start(timer.Probe, 0)
	}
	a.checkSizes(now)
	a.tx.retune(now, res, a.tx.slowest())
	a.tx.report(a)
}

// report turns what the send queue has to say into events.
func (t *sender) report(a *Assoc) {
	if t.q.KeysFreed() {
		a.tellFreeKeys()
	}
	if t.q.Unblocked() {
		a.events.push(Event{Kind: EventWritable})
	}
	if t.busy && a.tx.dry() {
		t.busy = false
		if a.cfg.TellDry {
			a.events.push(Event{Kind: EventDry})
		}
	}
}

// handleCumAck takes in the cumulative TSN ack of a SHUTDOWN chunk. It reports
// whether the association survived.
func (a *Assoc) handleCumAck(now clock.Time, cum seq.TSN) bool {
	if a.rc.OtherSpace(cum.Sub(a.tx.sb.CumTSN())) {
		return true
	}
	res, err := a.tx.sb.HandleCumAck(now, cum)
	a.takeAck(now, res, err)
	return a.state != Closed
}

// t3Timeout handles the expiry of T3-rtx of a path (RFC 9260, Section 6.3.3).
func (a *Assoc) t3Timeout(now clock.Time, i int) {
	t, p := &a.tx, &a.paths[i]
	if !a.state.canSendData() || t.sb.FlightChunks(i) == 0 && !t.sb.ForwardOutstanding() {
		return
	}
	a.stats.Timeouts++
	p.count.timeouts++
	refused := t.heard && t.sb.OnlyProbes(i)
	if !refused { // Section 6.1, A: "Zero window probing does not affect the calculation of cwnd."
		a.tx.lossOn(i)
		p.cc.OnTimeout(now) // E1
	}
	t.forwarding = t.sb.FlightChunks(i) == 0
	p.rto.Backoff() // E2
	// Section 6.1, A: while the peer answers, an unacknowledged window probe
	// "SHOULD NOT increment the error counter".
	probing := refused || t.heard && t.sb.ZeroWindow()
	p.single = !probing
	t.heard = false
	if !probing && !a.timedOut(i) {
		return
	}
	t.sb.OnTimeout(now, i)
	a.checkSizes(now)
	if t.sb.FlightChunks(i) > 0 { // RACK takes some for still on their way
		a.timers.StartPath(timer.T3, i, now+p.rto.Value())
	}
	a.tx.updatePacer(now, i)
	t.rtxPath = i
	if !probing {
		t.rtxPath = a.otherPath(i)
	}
}

// lossDeadline returns when lossTimeout is due, 0 for never.
func (a *Assoc) lossDeadline() (at clock.Time) {
	if a.cfg.NoRACK || !a.state.canSendData() {
		return 0
	}
	for i := range a.paths {
		at = timer.Earliest(at, a.tx.sb.LossDeadline(i))
	}
	return at
}

// lossTimeout looks again for losses and sends tail loss probes (RFC 8985).
func (a *Assoc) lossTimeout(now clock.Time) {
	if at := a.lossDeadline(); at == 0 || at > now {
		return
	}
	t := &a.tx
	for i := range a.paths {
		p := &a.paths[i]
		fresh := t.q.Pending() && a.tx.takesNew(now, i, a.dataPath()) && t.sb.PeerWindow() >= p.pmdcs()
		loss, probe := t.sb.OnLossTimer(now, i, fresh)
		if loss {
			a.tx.lossOn(i)
			p.cc.OnLoss(now)
			a.tx.updatePacer(now, i)
			t.rtxPath = i
		}
		if probe {
			t.rtxPath = i
			// RFC 8985, Section 7.3: the timer restarts with the probe; not with
			// those that follow unanswered, or a dead path would not be noticed.
			if t.sb.FirstProbe(i) {
				a.timers.StartPath(timer.T3, i, now+p.rto.Value())
			}
		}
	}
}
