package tx

import (
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/seq"
)

// RFC 9260, Section 7.2.4: "it SHOULD wait for two further miss indications (via
// subsequent SACK chunks for a total of three missing reports) on the same TSNs
// before taking action with regard to Fast Retransmit."
func TestFastRetransmitAfterThreeMissIndications(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(6)
	h.sack(99, 101, 101)
	h.sack(99, 101, 102)
	h.wantMarked()
	if h.sb.Permit() {
		t.Error("a packet may pass cwnd though nothing is lost")
	}
	res := h.sack(99, 101, 103)
	h.wantMarked(100)
	if !res.Paths[0].Loss || res.Paths[0].InRecovery {
		t.Errorf("third miss indication = %+v, want the reaction to loss", res.Paths[0])
	}
	// "the sender SHOULD ignore the value of cwnd and SHOULD NOT delay
	// retransmission for this single packet."
	if !h.sb.Permit() {
		t.Error("the first fast retransmission has to wait for cwnd")
	}
	h.wantRtx(0, 100)
	h.sb.UsePermit(0, false)
	if h.sb.Permit() {
		t.Error("the permit is for one packet")
	}
	// 4): "the endpoint is retransmitting the first outstanding DATA chunk sent
	// to that address" restarts T3.
	if !h.sb.TakeRestart(0) || h.sb.TakeRestart(0) {
		t.Error("T3 does not restart once")
	}
}

// "For each incoming SACK chunk, miss indications are incremented only for missing
// TSNs prior to the HTNA in the SACK chunk."
func TestMissIndicationsFollowHTNA(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(8)
	h.sack(99, 106, 106) // 100 .. 105 once
	h.sack(99, 102, 102, 106, 106)
	h.sack(99, 102, 103, 106, 106)
	// HTNA 102 and 103: 104 and 105 got no further indication.
	h.wantMarked(100, 101)
	if got := h.sb.rec(104).miss; got != 1 {
		t.Errorf("miss indications of TSN 104 = %d, want 1", got)
	}
	// A SACK that acknowledges nothing new gives none.
	h.sack(99, 102, 103, 106, 106)
	if got := h.sb.rec(104).miss; got != 1 {
		t.Errorf("miss indications of TSN 104 = %d after a SACK without news, want 1", got)
	}
}

// "If an endpoint is in Fast Recovery and a SACK chunks arrives that advances the
// Cumulative TSN Ack Point, the miss indications are incremented for all TSNs
// reported missing in the SACK chunk."
func TestMissIndicationsInRecovery(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(10)
	h.sack(99, 101, 101)
	h.sack(99, 101, 101, 108, 108) // 102 .. 107 once
	h.sack(99, 101, 101, 108, 109) // twice
	h.wantMarked(100)
	h.wantRtx(0, 100)
	res := h.sack(101, 108, 109)
	h.wantMarked(102, 103, 104, 105, 106, 107)
	if res.Paths[0].Loss {
		t.Error("6): the window was reduced again in the same fast recovery")
	}
}

// 5): "Mark the DATA chunk(s) as being fast retransmitted and thus ineligible for
// a subsequent Fast Retransmit."
func TestNoSecondFastRetransmit(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(4)
	for i := range seq.TSN(3) {
		h.sack(99, 101, 101+i)
	}
	h.wantRtx(0, 100)
	h.advance(ms)
	h.sendTSNs(6)
	for i := range seq.TSN(6) {
		h.sack(99, 101, 104+i)
	}
	h.wantMarked()
	h.sb.OnTimeout(h.now, 0)
	h.wantMarked(100)
}

// 6): "mark the highest outstanding TSN as the Fast Recovery exit point. When a
// SACK chunk acknowledges all TSNs up to and including this exit point, Fast
// Recovery is exited."
func TestFastRecoveryExit(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(5) // exit point 104
	for i := range seq.TSN(3) {
		h.sack(99, 101, 101+i)
	}
	h.wantRtx(0, 100)
	h.sendTSNs(3)
	if res := h.sack(103); !res.Paths[0].InRecovery || !h.sb.InRecovery(0) {
		t.Error("left fast recovery below the exit point")
	}
	if res := h.sack(104); res.Paths[0].InRecovery || h.sb.InRecovery(0) {
		t.Error("still in fast recovery at the exit point")
	}
	// A loss after that is a new one.
	h.sendTSNs(2)
	h.sack(104, 106, 106)
	h.sack(104, 106, 107)
	if res := h.sack(104, 106, 108); !res.Paths[0].Loss {
		t.Error("no reaction to a loss after fast recovery")
	}
}

// What was retransmitted is not missing only because older chunks arrive.
func TestRetransmissionIsGivenTime(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(6)
	h.advance(second)
	h.sb.mark(100, h.sb.rec(100))
	h.wantRtx(0, 100)
	for i := range seq.TSN(5) {
		h.sack(99, 101, 101+i)
	}
	h.wantMarked()
	h.advance(ms)
	h.sendTSNs(3)
	for i := range seq.TSN(3) {
		h.sack(99, 101, 106+i)
	}
	h.wantMarked(100)
}

// Section 6.3.3, E3: "Determine how many of the earliest (i.e., lowest TSN)
// outstanding DATA chunks for the address for which the T3-rtx has expired will
// fit into a single SCTP packet"; what does not fit "SHOULD be marked for
// retransmission and sent as soon as cwnd allows".
func TestTimeoutMarksThePath(t *testing.T) {
	h := newTxTest(t, withPaths(2))
	h.sendOn(0, 2) // 100, 101
	h.sendOn(1, 1) // 102
	h.sendOn(0, 2) // 103, 104
	h.sack(99, 103, 103)
	if n := h.sb.OnTimeout(h.now, 0); n != 3 {
		t.Errorf("%d chunks marked, want 3", n)
	}
	h.wantMarked(100, 101, 104)
	h.wantFlight(0, 0)
	h.wantFlight(1, tsnChunk)
	h.mtu = 2 * tsnChunk
	h.wantRtx(1, 100, 101) // another path takes it
	h.wantFlight(1, 3*tsnChunk)
	if e, _ := h.sb.Earliest(1); e != 100 {
		t.Errorf("earliest TSN of path 1 = %d, want 100", e)
	}
	h.wantRtx(0, 104)
	h.wantRtx(0)
}

// Section 6.3.2, R3: T3 restarts with "the earliest outstanding TSN for that
// address", not with others.
func TestEarliestAcked(t *testing.T) {
	h := newTxTest(t, withPaths(2))
	h.sendOn(1, 1) // 100
	h.sendOn(0, 3) // 101 .. 103
	res := h.sack(99, 102, 102)
	if res.Paths[0].RestartT3 || res.Paths[1].RestartT3 {
		t.Error("T3 restarts for a later TSN")
	}
	res = h.sack(99, 101, 102)
	if !res.Paths[0].RestartT3 || res.Paths[1].RestartT3 {
		t.Errorf("T3 restarts: path 0 %v, path 1 %v, want path 0", res.Paths[0].RestartT3, res.Paths[1].RestartT3)
	}
}

// T3 also restarts while all that is acknowledged left before the earliest TSN was
// retransmitted; not when something does that left after that.
func TestNewsOfBeforeTheRetransmissionRestartT3(t *testing.T) {
	for name, opts := range map[string][]txOption{"misses": nil, "RACK": {withRACK}} {
		t.Run(name, func(t *testing.T) {
			h := newTxTest(t, opts...)
			h.sendTSNs(6) // 100 .. 105
			h.advance(20 * ms)
			h.sack(99, 101, 101)
			h.sack(99, 101, 102)
			h.sack(99, 101, 103)
			h.wantMarked(100)
			h.advance(ms)
			h.mtu = tsnChunk
			h.wantRtx(0, 100)
			h.advance(ms)
			h.sendTSNs(2) // 106, 107
			if res := h.sack(99, 101, 104); !res.Paths[0].RestartT3 {
				t.Error("T3 goes on after a SACK for what left before the retransmission")
			}
			if res := h.sack(99, 101, 104); res.Paths[0].RestartT3 {
				t.Error("T3 restarts after a SACK without news")
			}
			if res := h.sack(99, 101, 106); res.Paths[0].RestartT3 {
				t.Error("T3 restarts after a SACK for what left after the retransmission")
			}
		})
	}
}

// Split fast retransmit: with CMT, what another path delivered is no evidence,
// and every path has a fast recovery of its own.
func TestSplitFastRetransmit(t *testing.T) {
	h := newTxTest(t, withPaths(2), withCMT)
	h.sendOn(0, 3) // 100 .. 102
	h.sendOn(1, 5) // 103 .. 107
	for i := range seq.TSN(5) {
		h.sack(99, 103, 103+i)
	}
	h.wantMarked()
	h.sendOn(0, 4) // 108 .. 111
	for i := range seq.TSN(3) {
		h.sack(99, 103, 108+i)
	}
	h.wantMarked(100, 101, 102)
	if !h.sb.InRecovery(0) || h.sb.InRecovery(1) {
		t.Errorf("in fast recovery: path 0 %v, path 1 %v, want path 0 only", h.sb.InRecovery(0), h.sb.InRecovery(1))
	}
}

// RFC 4960, Appendix A: one reaction per window of data.
func TestCongestionMarkOncePerWindow(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(5)
	if !h.sb.NewCongestionMark(0, 101) || h.sb.NewCongestionMark(0, 101) || h.sb.NewCongestionMark(0, 104) {
		t.Error("marks of one window do not count once")
	}
	if h.sb.NewCongestionMark(0, 105) {
		t.Error("a mark on a TSN that was not sent counts")
	}
	h.sendTSNs(1)
	if !h.sb.NewCongestionMark(0, 105) {
		t.Error("a mark of the next window does not count")
	}
}

func TestRtxThatDoesNotFitWaits(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(2)
	h.sb.OnTimeout(h.now, 0)
	if got := h.sb.RtxSize(); got != tsnChunk {
		t.Errorf("RtxSize = %d, want %d", got, tsnChunk)
	}
	h.mtu = tsnChunk - 4
	h.wantRtx(0)
	h.mtu = tsnChunk
	h.wantRtx(0, 100)
	h.sack(101)
	if h.sb.HasRtx() || h.sb.RtxSize() != 0 {
		t.Error("a chunk that was acknowledged is still marked")
	}
}

// A SACK that was delayed for two packets gives two miss indications, if all that
// it acknowledges of the path was sent later.
func TestDelayedSacksCountMore(t *testing.T) {
	h := newTxTest(t, withPaths(2), withCMT)
	h.sendOn(0, 5) // 100 to 104; 100 is lost
	h.sb.SetDelayedPackets(2)
	h.sack(99, 101, 102)
	h.wantMarked()
	h.sb.SetDelayedPackets(1)
	h.sack(99, 101, 103)
	h.wantMarked(100)
	// What another path delivers says nothing.
	h = newTxTest(t, withPaths(2), withCMT)
	h.sendOn(0, 1)
	h.sendOn(1, 6)
	h.sb.SetDelayedPackets(3)
	h.sack(99, 101, 103)
	h.sack(99, 101, 106)
	h.wantMarked()
}
