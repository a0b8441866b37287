package sackgen

import (
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
)

const ms = clock.Time(time.Millisecond)

// sackTest drives a Generator together with a tracker, one packet per step.
type sackTest struct {
	*testing.T
	s   Generator
	m   *seq.Map
	now clock.Time
}

func newSackTest(t *testing.T, stride int) *sackTest {
	h := &sackTest{T: t, m: new(seq.Map), now: 1000 * ms}
	h.m.Init(1)
	h.s.Init(0, stride)
	return h
}

func (h *sackTest) packet(tsns ...seq.TSN) *sackTest {
	h.Helper()
	for _, n := range tsns {
		h.s.Data(h.m.Observe(n), false)
	}
	h.s.EndPacket(h.now, 0, h.m.HasGaps())
	return h
}

func (h *sackTest) wantDue(want bool) *sackTest {
	h.Helper()
	if got := h.s.Due(h.now); got != want {
		h.Fatalf("due = %v, want %v", got, want)
	}
	if want {
		h.s.Sent()
		if h.s.Due(h.now) || h.s.Pending() || h.s.NextTimeout() != 0 {
			h.Fatal("something is left to acknowledge after sent")
		}
	}
	return h
}

func TestSackFirstDataAtOnceThenEverySecondPacket(t *testing.T) {
	h := newSackTest(t, 0)
	h.packet(1).wantDue(true) // RFC 9260, Section 5.1
	h.packet(2).wantDue(false)
	h.packet(3, 4).wantDue(true) // Section 6.2: every second packet
	h.packet(5, 6, 7).wantDue(false)
	if got, want := h.s.NextTimeout(), h.now+200*ms; got != want {
		t.Errorf("delayed until %d, want %d", got, want)
	}
	if !h.s.Pending() {
		t.Error("nothing to bundle while a SACK is delayed")
	}
	h.now += 200*ms - 1
	h.wantDue(false)
	h.now++
	h.wantDue(true)
}

func TestSackOncePerBatch(t *testing.T) {
	h := newSackTest(t, 2)
	for n := seq.TSN(1); n <= 44; n++ {
		h.packet(n)
	}
	if got := h.s.DataPackets(); got != 44 {
		t.Errorf("dataPackets = %d, want 44", got)
	}
	h.wantDue(true).wantDue(false)
}

func TestSackAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(h *sackTest)
	}{
		{"gap appears", func(h *sackTest) { h.packet(4) }},
		{"gap stays", func(h *sackTest) { h.packet(4).wantDue(true); h.packet(5) }},
		{"gap closes", func(h *sackTest) { h.packet(4).wantDue(true); h.packet(3) }},
		{"duplicate", func(h *sackTest) { h.packet(2) }},
		{"duplicate and new", func(h *sackTest) { h.packet(2, 3) }},
		{"I bit", func(h *sackTest) { h.s.Data(h.m.Observe(3), true); h.s.EndPacket(h.now, 0, false) }},
		{"out of window", func(h *sackTest) { h.packet(2 + seq.MaxWindow + 1) }},
		{"no room", func(h *sackTest) { h.s.Refused(); h.s.EndPacket(h.now, 0, false) }},
		{"old FORWARD-TSN", func(h *sackTest) { h.s.Forwarded(false); h.s.EndPacket(h.now, 0, false) }},
		{"window update", func(h *sackTest) { h.s.Force() }},
		{"shutdown sent", func(h *sackTest) { h.s.SetNoDelay(true); h.packet(3) }},
		{"pause", func(h *sackTest) { h.now += 201 * ms; h.packet(3) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newSackTest(t, 10)
			h.packet(1, 2).wantDue(true)
			tt.do(h)
			h.wantDue(true)
			// And back to normal.
			h.s.SetNoDelay(false)
			for n := h.m.CumTSN() + 1; h.m.HasGaps(); n++ {
				h.m.Observe(n)
			}
			h.packet(h.m.CumTSN() + 1)
			h.s.Sent()
			h.packet(h.m.CumTSN() + 1).wantDue(false)
		})
	}
}

func TestSackForwardCountsAsData(t *testing.T) {
	h := newSackTest(t, 2)
	h.packet(1).wantDue(true)
	h.m.Forward(2)
	h.s.Forwarded(true)
	h.s.EndPacket(h.now, 0, false)
	h.wantDue(false) // RFC 3758, Section 3.6: the delayed SACK rules
	h.packet(3).wantDue(true)
}

func TestSackBounds(t *testing.T) {
	var s Generator
	s.Init(10*maxDelay, 10*maxStride)
	if s.delay != maxDelay || s.stride != maxStride {
		t.Errorf("delay %d stride %d, want %d %d", s.delay, s.stride, maxDelay, maxStride)
	}
	s.EndPacket(5, 3, true) // a packet without DATA
	if s.Pending() || s.Due(6) || s.began {
		t.Error("a packet without DATA is acknowledged")
	}
}

func TestSackLeavesWhereDataCameFrom(t *testing.T) {
	h := newSackTest(t, 2)
	for _, p := range []int{0, 2, 1} { // RFC 9260, Section 6.4
		h.s.Data(seq.New, false)
		h.s.EndPacket(h.now, p, false)
		if got := h.s.Path(); got != p {
			t.Errorf("path = %d, want %d", got, p)
		}
	}
	h.s.dropPath(0)
	if got := h.s.Path(); got != 0 {
		t.Errorf("path after an earlier one was removed = %d, want 0", got)
	}
	h.s.dropPath(0)
	if got := h.s.Path(); got != 0 {
		t.Errorf("path after it was removed = %d, want 0", got)
	}
}

// A batch on a path that loses packets is acknowledged in between, for a sender
// that counts SACKs; on any other path it is not.
func TestSackEarlyOnALossyPath(t *testing.T) {
	h := newSackTest(t, 0)
	batch := func(tsns ...seq.TSN) (early []seq.TSN) {
		t.Helper()
		for _, n := range tsns {
			if h.packet(n); h.s.Early(h.now) {
				early = append(early, n)
				h.s.Sent()
			}
		}
		h.s.EndBatch()
		h.s.Sent()
		return early
	}
	want := func(got []seq.TSN, want ...seq.TSN) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("acknowledged early after %v, want %v", got, want)
		}
	}
	want(batch(1, 2, 3, 4, 5, 6, 7, 8))
	// 9 is missing: after the fourth and eighth packet.
	want(batch(10, 11, 12, 13, 14, 15, 16, 17, 18), 13, 17)
	want(batch(9))
	// No gap is left: as long as packets may be lost.
	want(batch(19, 20, 21, 22, 23), 22)
	h.now += lossMemory
	want(batch(24, 25, 26, 27))
}

// The SACK for a packet in order may wait unless one of these is so.
func TestNoneDueAfterNext(t *testing.T) {
	for i, change := range []func(s *Generator){
		func(s *Generator) {},
		func(s *Generator) { s.began = false },
		func(s *Generator) { s.hadGaps = true },
		func(s *Generator) { s.noDelay = true },
		func(s *Generator) { s.immediate = true },
		func(s *Generator) { s.multipath = true },
		func(s *Generator) { s.packets = s.stride - 1 },
		func(s *Generator) { s.lastAt = 0 },
		func(s *Generator) { s.lossy = 1 << 60 },
		func(s *Generator) { s.deadline = 1 },
	} {
		h := newSackTest(t, 4)
		h.packet(1).wantDue(true)
		h.packet(2)
		change(&h.s)
		if got, want := h.s.NoneDueAfterNext(h.now), i == 0; got != want {
			t.Errorf("change %d: none due %v, want %v", i, got, want)
		}
	}
}
