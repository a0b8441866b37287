package tx

import (
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"pgregory.net/rapid"
)

// RFC 8985, Section 6.2, step 5: a chunk is lost "if another segment that was
// sent later has been delivered and the reordering window has passed".
func TestRACKMarksWhatWasSentEarlier(t *testing.T) {
	h := newTxTest(t, withRACK)
	h.sendTSNs(1)
	h.advance(20 * ms)
	h.sack(100) // min_RTT is 20 ms, so the reordering window 5 ms
	h.sendTSNs(2)
	h.advance(ms)
	h.sendTSNs(2)
	h.advance(20 * ms)
	res := h.sack(100, 103, 103)
	h.wantMarked() // 1 ms after 101 and 102; the window is 5 ms
	if res.Paths[0].Loss {
		t.Error("loss before the reordering window has passed")
	}
	// RACK.xmit_ts + RACK.rtt + RACK.reo_wnd
	want := h.now + 5*ms
	if got := h.sb.LossDeadline(0); got != want {
		t.Fatalf("reordering timer at %v, want %v", got, want)
	}
	if loss, probe := h.sb.OnLossTimer(h.now+4*ms, 0, false); loss || probe {
		t.Error("an early call did something")
	}
	h.advance(5 * ms)
	loss, probe := h.sb.OnLossTimer(h.now, 0, false)
	if !loss || probe {
		t.Errorf("timer: loss %v, probe %v, want loss", loss, probe)
	}
	h.wantMarked(101, 102)
	if !h.sb.InRecovery(0) || !h.sb.Permit() {
		t.Error("not in fast recovery")
	}
	h.mtu = 2 * tsnChunk
	h.wantRtx(0, 101, 102)
}

// Step 4: without reordering, three chunks acknowledged by gap blocks make the
// window 0, as DupThresh does.
func TestRACKDupThresh(t *testing.T) {
	h := newTxTest(t, withRACK)
	h.sendTSNs(5)
	h.advance(20 * ms)
	h.sack(99, 101, 102)
	h.wantMarked()
	if res := h.sack(99, 101, 103); !res.Paths[0].Loss {
		t.Error("three later chunks were delivered, but no loss is seen")
	}
	h.wantMarked(100)
}

// Section 3.3.2: the window is 0 in recovery if no reordering was seen, otherwise a
// fraction of the round-trip time, which never exceeds the smoothed one.
func TestRACKWindowIsBounded(t *testing.T) {
	k := newRack(100)
	if w := k.window(false); w != 0 {
		t.Errorf("window without a round-trip time is %v", w)
	}
	k.sampleRTT(second, 20*ms)
	for _, tt := range []struct {
		reordering, recovery, timeout bool
		mult                          int
		want                          clock.Time
	}{
		{false, false, false, 1, 5 * ms},
		{false, true, false, 1, 0},
		{false, false, true, 1, 0},
		{true, true, false, 1, 5 * ms},
		{true, false, true, 1, 5 * ms},
		{true, false, false, 3, 15 * ms},
		{true, false, false, 4, 20 * ms},
		{true, false, false, 1000, 20 * ms},
	} {
		k.reordering, k.recovering, k.mult = tt.reordering, tt.timeout, tt.mult
		if got := k.window(tt.recovery); got != tt.want {
			t.Errorf("%+v: window is %v", tt, got)
		}
	}
}

// Section 6.2, step 1: the minimum of the round-trip times is one of those lately
// measured, so that it follows a move to a longer path.
func TestRACKMinimumIsWindowed(t *testing.T) {
	k := newRack(100)
	now := second
	k.sampleRTT(now, 10*ms)
	for end := now + 2*minRTTWindow; now <= end; now += 100 * ms {
		k.sampleRTT(now, 80*ms)
		if now < second+minRTTWindow && k.minimum() != 10*ms {
			t.Fatalf("minimum is %v after %v", k.minimum(), now-second)
		}
	}
	if k.minimum() != 80*ms {
		t.Errorf("minimum is %v, two windows after the path has changed", k.minimum())
	}
	k.sampleRTT(now, 30*ms)
	if k.minimum() != 30*ms {
		t.Errorf("minimum is %v after 30 ms", k.minimum())
	}
}

// Section 9.1, "Lost retransmission": R1 is lost again, but R2, sent after it, is
// delivered.
func TestRACKFindsLostRetransmission(t *testing.T) {
	h := newTxTest(t, withRACK)
	h.sendTSNs(6)
	h.advance(20 * ms)
	h.sack(99, 102, 105)
	h.wantMarked(100, 101)
	h.mtu = tsnChunk
	h.wantRtx(0, 100)
	h.advance(ms)
	h.wantRtx(0, 101)
	h.advance(20 * ms)
	h.sack(99, 101, 105)
	h.wantMarked(100)
	h.wantRtx(0, 100)
}

// Section 9.3: "when RACK-TLP detects a lost retransmission, the congestion
// control MUST trigger an additional congestion response", once for those that
// were sent before that.
func TestRACKLostRetransmissionShrinksTheWindow(t *testing.T) {
	h := newTxTest(t, withRACK)
	h.sendTSNs(8)
	h.advance(20 * ms)
	if res := h.sack(99, 104, 107); !res.Paths[0].Loss {
		t.Fatal("no reaction to the loss")
	}
	h.mtu = tsnChunk
	for i := range seq.TSN(4) {
		h.wantRtx(0, 100+i)
		h.advance(ms)
	}
	h.advance(20 * ms)
	res := h.sack(99, 101, 101, 104, 107) // 100 is lost again
	h.wantMarked(100)
	if !res.Paths[0].Loss || !h.sb.InRecovery(0) {
		t.Errorf("a lost retransmission: reaction %v, recovery %v", res.Paths[0].Loss, h.sb.InRecovery(0))
	}
	h.advance(ms)
	res = h.sack(99, 101, 101, 103, 107) // so is 102, which was sent before that reaction
	h.wantMarked(100, 102)
	if res.Paths[0].Loss {
		t.Error("two reactions within a round trip")
	}
	h.wantRtx(0, 100)
	h.advance(ms)
	h.wantRtx(0, 102)
	h.advance(20 * ms)
	res = h.sack(99, 101, 107) // 100 for the third time
	h.wantMarked(100)
	if !res.Paths[0].Loss {
		t.Error("no reaction to the second loss of a retransmission")
	}
	// What is lost for the first time in recovery changes nothing.
	h.sendTSNs(6)
	h.advance(ms)
	h.wantRtx(0, 100)
	h.advance(20 * ms)
	res = h.sack(99, 101, 107, 111, 113)
	h.wantMarked(108, 109, 110)
	if res.Paths[0].Loss {
		t.Error("a second reaction in fast recovery")
	}
}

// Step 2: an acknowledgement that comes less than min_RTT after the
// retransmission is of an earlier transmission and tells nothing about time.
func TestRACKIgnoresAmbiguousRetransmission(t *testing.T) {
	h := newTxTest(t, withRACK)
	h.sendTSNs(5)
	h.advance(20 * ms)
	h.sack(99, 101, 103)
	h.wantRtx(0, 100)
	h.advance(ms)
	h.sack(103)
	k := &h.sb.paths[0].rack
	if k.rtt < 20*ms {
		t.Errorf("RACK.rtt = %v, taken from a spurious retransmission", k.rtt)
	}
	if k.end == 100 {
		t.Error("RACK.end_seq is that of a spurious retransmission")
	}
}

// Step 3 and 4: after reordering was seen, duplicates do not mark at once, and
// duplicate TSN reports widen the window.
func TestRACKAdaptsToReordering(t *testing.T) {
	h := newTxTest(t, withRACK)
	h.sendTSNs(4)
	h.advance(20 * ms)
	h.sack(99, 102, 102)
	h.sack(102) // 100 and 101 were late
	k := &h.sb.paths[0].rack
	if !k.reordering {
		t.Fatal("reordering was not seen")
	}
	h.sack(103)
	h.sendTSNs(6) // 104 ..
	h.advance(20 * ms)
	h.sack(103, 105, 109)
	h.wantMarked()
	if got, want := h.sb.LossDeadline(0), h.now+5*ms; got != want {
		t.Errorf("reordering timer at %v, want %v", got, want)
	}
	h.sackDup(109, []uint32{104})
	if k.mult != 2 || k.window(false) != 10*ms {
		t.Errorf("window after a duplicate = %v, want 2 * min_RTT / 4", k.window(false))
	}
	h.sackDup(109, []uint32{104})
	if k.mult != 3 {
		// SND.UNA reached dsack_round, so that is another round trip.
		t.Errorf("reo_wnd_mult = %d, want 3", k.mult)
	}
	h.sendTSNs(1)
	h.sackDup(109, []uint32{105})
	h.sackDup(109, []uint32{105})
	if k.mult != 4 {
		t.Errorf("reo_wnd_mult = %d, want one more per round trip", k.mult)
	}
	for range rackPersist {
		k.onRecovered()
	}
	if k.mult != 1 {
		t.Errorf("reo_wnd_mult = %d after 16 recoveries, want 1", k.mult)
	}
}

// Section 7.2: the probe timeout is two smoothed round-trip times, and longer for
// a single packet, of which the SACK may be delayed.
func TestProbeTimeout(t *testing.T) {
	h := newTxTest(t, withRACK)
	if h.sb.LossDeadline(0) != 0 {
		t.Error("timer with nothing in flight")
	}
	h.sendTSNs(1)
	if got, want := h.sb.LossDeadline(0), h.now+probeNoRTT+probeSlack; got != want {
		t.Errorf("probe without an RTT at %v, want %v", got, want)
	}
	h.advance(20 * ms)
	h.sack(100)
	h.sendTSNs(1)
	if got, want := h.sb.LossDeadline(0), h.now+40*ms+probeAckDelay+probeSlack; got != want {
		t.Errorf("probe for one packet at %v, want %v", got, want)
	}
	h.sendTSNs(2)
	if got, want := h.sb.LossDeadline(0), h.now+40*ms+probeSlack; got != want {
		t.Errorf("probe at %v, want %v", got, want)
	}
}

// Deviation (Section 7.2): how long the peer delays SACKs is measured.
func TestProbeTimeoutLearnsTheDelay(t *testing.T) {
	h := newTxTest(t, withRACK)
	for i := range minDelays {
		h.sendTSNs(1)
		h.advance(20*ms + clock.Time(i%2)*ms)
		h.sack(100 + seq.TSN(i))
	}
	h.sendTSNs(1)
	k := &h.sb.paths[0].rack
	if got, want := h.sb.LossDeadline(0), h.now+2*k.srtt+ms+probeSlack; got != want {
		t.Errorf("probe at %v, want %v: SACKs come up to 1 ms late", got, want)
	}
}

// Deviation (Section 7.2): probes are sent in recovery too, of the earliest chunk
// in flight, each after twice the time of the one before.
func TestProbesInRecovery(t *testing.T) {
	h := newTxTest(t, withRACK)
	h.sendTSNs(1)
	h.advance(20 * ms)
	h.sack(100)
	h.sendTSNs(4) // 101 is lost, and so is its retransmission
	h.advance(20 * ms)
	h.sack(100, 102, 104)
	h.wantMarked(101)
	h.wantRtx(0, 101)
	for i := range maxProbes {
		want := h.sb.paths[0].rack.probeBase + (40*ms+probeSlack)<<i
		if got := h.sb.LossDeadline(0); got != want {
			t.Fatalf("probe %d at %v, want %v", i, got, want)
		}
		h.advance(want - h.now)
		loss, probe := h.sb.OnLossTimer(h.now, 0, true)
		if loss || !probe || !h.sb.Permit() {
			t.Fatalf("probe %d: loss %v, probe %v, permit %v", i, loss, probe, h.sb.Permit())
		}
		h.wantRtx(0, 101)
		h.sb.UsePermit(0, false)
	}
	if h.sb.LossDeadline(0) != 0 {
		t.Errorf("more than %d probes", maxProbes)
	}
	h.advance(20 * ms)
	if res := h.sack(104); res.Paths[0].Loss {
		t.Error("a second reaction to the loss")
	}
	h.sendTSNs(2)
	if h.sb.LossDeadline(0) == 0 {
		t.Error("no probes after an acknowledgement")
	}
}

// They are sent, too, where the window is full of retransmissions that were lost, and
// more wait: these go first, and what is acknowledged of them shows the loss of those.
func TestProbesBehindLostRetransmissions(t *testing.T) {
	h := newTxTest(t, withRACK)
	h.mtu = tsnChunk
	h.sendTSNs(1)
	h.advance(20 * ms)
	h.sack(100)
	h.sendTSNs(7)
	h.advance(20 * ms)
	h.sack(100, 105, 107)
	h.wantMarked(101, 102, 103, 104)
	h.advance(ms)
	h.wantRtx(0, 101)
	h.wantRtx(0, 102) // the window takes no more, and both are lost
	want := h.sb.paths[0].rack.probeBase + 40*ms + probeSlack
	if got := h.sb.LossDeadline(0); got != want {
		t.Fatalf("probe at %v, want %v", got, want)
	}
	h.advance(want - h.now)
	if loss, probe := h.sb.OnLossTimer(h.now, 0, true); loss || !probe || !h.sb.Permit() {
		t.Fatalf("loss %v, probe %v, permit %v", loss, probe, h.sb.Permit())
	}
	h.wantMarked(103, 104)
	h.wantRtx(0, 103)
	h.sb.UsePermit(0, false)
	h.advance(20 * ms)
	h.sack(100, 103, 103, 105, 107)
	h.wantMarked(101, 102, 104)
}

// The first retransmission, if it went over the window, came to the queue that what was
// lost came to: its loss is no second sign of congestion, and that of the next one is.
func TestRACKFirstRetransmissionSharesTheFate(t *testing.T) {
	for _, over := range []bool{false, true} {
		h := newTxTest(t, withRACK)
		h.mtu = tsnChunk
		h.sendTSNs(8)
		h.advance(20 * ms)
		h.sack(99, 104, 107)
		h.wantRtx(0, 100)
		h.sb.UsePermit(0, over)
		h.wantRtx(0, 101) // in the same moment, within the window
		h.advance(ms)
		h.wantRtx(0, 102)
		h.advance(20 * ms)
		res := h.sack(99, 101, 101, 104, 107)
		h.wantMarked(100, 103)
		if res.Paths[0].Loss == over {
			t.Errorf("over the window %v: reaction %v", over, res.Paths[0].Loss)
		}
		if !over {
			continue
		}
		h.wantRtx(0, 100)
		h.wantRtx(0, 103)
		h.advance(20 * ms)
		res = h.sack(99, 101, 101, 103, 107) // 102, too, and 100 again
		h.wantMarked(100, 102)
		if !res.Paths[0].Loss {
			t.Error("no reaction to the loss of those within the window")
		}
	}
}

// What is sent again in one moment with new chunks, whose TSNs are higher, is not lost
// because those were delivered before it.
func TestRACKOrderWithinAMoment(t *testing.T) {
	h := newTxTest(t, withRACK)
	h.sendTSNs(4)
	h.advance(20 * ms)
	h.sendTSNs(1) // 104, in the moment in which 100 is found lost
	h.sack(99, 101, 103)
	h.wantRtx(0, 100)
	h.advance(20 * ms)
	if res := h.sack(99, 101, 104); res.Paths[0].Loss {
		t.Error("a reaction")
	}
	h.wantMarked()
	h.sack(104)
}

// Section 7.3: without new data the last chunk goes again; its SACK shows what
// was lost before it (Section 7.4.1).
func TestTailLossProbe(t *testing.T) {
	h := newTxTest(t, withRACK)
	h.sendTSNs(1)
	h.advance(20 * ms)
	h.sack(100)
	h.sendTSNs(4) // 101 .. 104, all lost
	h.advance(40*ms + probeSlack)
	loss, probe := h.sb.OnLossTimer(h.now, 0, false)
	if loss || !probe || !h.sb.Permit() {
		t.Fatalf("loss %v, probe %v, permit %v; want a probe", loss, probe, h.sb.Permit())
	}
	h.wantRtx(0, 104)
	h.sb.UsePermit(0, false)
	if got, want := h.sb.LossDeadline(0), h.now+2*(40*ms+probeSlack); got != want {
		t.Errorf("second probe at %v, want %v", got, want)
	}
	h.advance(20 * ms)
	res := h.sack(100, 104, 104)
	h.wantMarked(101, 102, 103)
	if !res.Paths[0].Loss {
		t.Error("no reaction to the loss that the probe showed")
	}
}

func TestProbeWithNewDataMarksNothing(t *testing.T) {
	h := newTxTest(t, withRACK)
	h.sendTSNs(3)
	h.advance(second + probeSlack)
	if _, probe := h.sb.OnLossTimer(h.now, 0, true); !probe || !h.sb.Permit() {
		t.Fatal("no probe")
	}
	h.wantMarked()
	h.sendTSNs(1)
	if res := h.sack(103); res.Paths[0].Loss {
		t.Error("new data as a probe was taken for a repair")
	}
	h.sendTSNs(1)
	if h.sb.LossDeadline(0) == 0 {
		t.Error("no probe timer after the probe was answered")
	}
}

// Section 7.4.2: a probe that repaired the only loss asks for the reaction to it;
// one that was not needed, shown by a duplicate report, does not.
func TestProbeThatRepairedTheLoss(t *testing.T) {
	for _, tt := range []struct {
		name string
		dups []uint32
		want bool
	}{{"repaired", nil, true}, {"spurious", []uint32{102}, false}} {
		t.Run(tt.name, func(t *testing.T) {
			h := newTxTest(t, withRACK)
			h.sendTSNs(3)
			h.advance(second + probeSlack)
			h.sb.OnLossTimer(h.now, 0, false)
			h.wantRtx(0, 102)
			h.sendTSNs(1)
			h.advance(20 * ms)
			if res := h.sackDup(102, tt.dups); res.Paths[0].Loss {
				t.Error("reaction before it is clear that the probe was needed")
			}
			if res := h.sack(103); res.Paths[0].Loss != tt.want {
				t.Errorf("reaction to loss = %v, want %v", res.Paths[0].Loss, tt.want)
			}
		})
	}
}

// Section 6.3: after a timeout, only what is old enough is marked, apart from the
// first.
func TestRACKTimeoutSparesRecentChunks(t *testing.T) {
	h := newTxTest(t, withRACK)
	h.sendTSNs(1)
	h.advance(20 * ms)
	h.sack(100)
	h.sendTSNs(2) // 101, 102
	h.advance(second)
	h.sendTSNs(1) // 103
	h.advance(ms)
	if n := h.sb.OnTimeout(h.now, 0); n != 2 {
		t.Errorf("%d chunks marked, want 2", n)
	}
	h.wantMarked(101, 102)
	h.wantFlight(0, tsnChunk)
}

// RFC 6582, Section 3.2, step 4: a timeout is the reaction to whatever was lost of what had
// been sent by then. A retransmission that is lost is another loss.
func TestRACKTimeoutIsForAllThatWasSent(t *testing.T) {
	h := newTxTest(t, withRACK)
	h.sendTSNs(1)
	h.advance(20 * ms)
	h.sack(100)
	h.sendTSNs(1) // 101
	h.advance(second)
	h.sendTSNs(2)      // 102, 103
	h.advance(10 * ms) // longer than the reordering window
	if n := h.sb.OnTimeout(h.now, 0); n != 1 {
		t.Fatalf("%d chunks marked, want the first", n)
	}
	h.mtu = tsnChunk
	h.wantRtx(0, 101)
	h.advance(20 * ms)
	if res := h.sack(101); res.Paths[0].Loss || h.sb.InRecovery(0) {
		t.Error("what was sent before the timeout is a loss after it")
	}
	h.wantMarked(102, 103)
	h.wantRtx(0, 102)
	h.advance(10 * ms)
	h.wantRtx(0, 103)
	h.advance(20 * ms)
	if res := h.sack(101, 103, 103); !res.Paths[0].Loss {
		t.Error("a retransmission was lost after the timeout, but no loss is seen")
	}
	h.wantMarked(102)
}

// Reneging puts a chunk back; it is lost again by the usual rules.
func TestRACKReneging(t *testing.T) {
	h := newTxTest(t, withRACK)
	h.sendTSNs(3)
	h.advance(20 * ms)
	h.sack(99, 101, 101)
	h.sack(99)
	h.wantFlight(0, 3*tsnChunk)
	h.advance(20 * ms)
	h.sack(99, 102, 102)
	h.advance(5 * ms) // the reordering window
	h.sb.OnLossTimer(h.now, 0, false)
	h.wantMarked(100, 101)
}

// The list of chunks in flight is that of the set, in the order of sending,
// whatever happens.
func TestRACKListAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := NewQueue(1<<30, 4, SchedRR)
		sb := NewScoreboard(q, ScoreboardConfig{TSN: seq.TSN(rapid.Uint32().Draw(t, "tsn")), RWND: 1 << 30, Paths: 2, RACK: true})
		now := second
		reneged := false
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += clock.Time(rapid.IntRange(0, 40).Draw(t, "dt")) * ms
			switch rapid.SampledFrom([]string{"send", "send", "sack", "sack", "rtx", "t3", "loss", "loss"}).Draw(t, "op") {
			case "send":
				path := rapid.IntRange(0, 1).Draw(t, "path")
				for range rapid.IntRange(1, 40).Draw(t, "n") {
					q.Push(now, &Message{Body: make([]byte, 10)})
					sb.AppendNew(nil, now, path, Room{400, 400})
				}
			case "sack":
				cum := sb.CumTSN() + seq.TSN(rapid.IntRange(0, sb.Outstanding()).Draw(t, "cum"))
				var gaps []seq.TSN
				for x := cum + 2; x.Less(sb.NextTSN()); x++ {
					if rapid.IntRange(0, 2).Draw(t, "gap") == 0 {
						gaps = append(gaps, x, x)
					}
				}
				before := sb.Stats().Reneged
				if _, err := sb.HandleSack(now, sackOf(cum, 1<<20, gaps, nil)); err != nil {
					t.Fatal(err)
				}
				reneged = reneged || sb.Stats().Reneged != before
			case "rtx":
				for ok := true; ok; {
					_, ok = sb.AppendRtx(nil, now, rapid.IntRange(0, 1).Draw(t, "path"), 100)
				}
			case "t3":
				sb.OnTimeout(now, rapid.IntRange(0, 1).Draw(t, "path"))
			case "loss":
				sb.OnLossTimer(now, rapid.IntRange(0, 1).Draw(t, "path"), rapid.Bool().Draw(t, "new"))
			}
			for i := range sb.paths {
				f := &sb.paths[i]
				if f.rack.n != f.count || f.set.Len() != f.count {
					t.Fatalf("path %d: %d chunks in the list, %d in the set, %d counted", i, f.rack.n, f.set.Len(), f.count)
				}
				n, sacked := 0, 0
				for x, last := f.rack.head, clock.Time(0); n < f.rack.n; n++ {
					r := sb.rec(x)
					if r.state&recOut != 0 || int(r.path) != i {
						t.Fatalf("path %d: TSN %d in the list, state %d path %d", i, x, r.state, r.path)
					}
					if r.sent < last && !reneged {
						t.Fatalf("path %d: the list is not in the order of sending", i)
					}
					if n == f.rack.n-1 && x != f.rack.tail {
						t.Fatalf("path %d: the list ends in %d, tail is %d", i, x, f.rack.tail)
					}
					x, last = r.next, r.sent
				}
				for x := sb.base; x != sb.next; x++ {
					if r := sb.rec(x); r.state&recAcked != 0 && int(r.path) == i {
						sacked++
					}
				}
				if sacked != f.rack.sacked {
					t.Fatalf("path %d: %d chunks acknowledged by gap blocks, counted %d", i, sacked, f.rack.sacked)
				}
			}
		}
	})
}
