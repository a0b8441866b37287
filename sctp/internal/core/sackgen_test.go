package core

import (
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
)

const sackMS = clock.Time(time.Millisecond)

// sackTest drives a sackGen together with a tracker, one packet per step.
type sackTest struct {
	*testing.T
	s   sackGen
	m   *seq.Map
	now clock.Time
}

func newSackTest(t *testing.T, stride int) *sackTest {
	h := &sackTest{T: t, m: new(seq.Map), now: 1000 * sackMS}
	h.m.Init(1)
	h.s.init(0, stride)
	return h
}

func (h *sackTest) packet(tsns ...seq.TSN) *sackTest {
	h.Helper()
	for _, n := range tsns {
		h.s.data(h.m.Observe(n), false)
	}
	h.s.endPacket(h.now, 0, h.m.HasGaps())
	return h
}

func (h *sackTest) wantDue(want bool) *sackTest {
	h.Helper()
	if got := h.s.due(h.now); got != want {
		h.Fatalf("due = %v, want %v", got, want)
	}
	if want {
		h.s.sent()
		if h.s.due(h.now) || h.s.pending() || h.s.nextTimeout() != 0 {
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
	if got, want := h.s.nextTimeout(), h.now+200*sackMS; got != want {
		t.Errorf("delayed until %d, want %d", got, want)
	}
	if !h.s.pending() {
		t.Error("nothing to bundle while a SACK is delayed")
	}
	h.now += 200*sackMS - 1
	h.wantDue(false)
	h.now++
	h.wantDue(true)
}

func TestSackOncePerBatch(t *testing.T) {
	h := newSackTest(t, 2)
	for n := seq.TSN(1); n <= 44; n++ {
		h.packet(n)
	}
	if got := h.s.dataPackets(); got != 44 {
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
		{"I bit", func(h *sackTest) { h.s.data(h.m.Observe(3), true); h.s.endPacket(h.now, 0, false) }},
		{"out of window", func(h *sackTest) { h.packet(2 + seq.MaxWindow + 1) }},
		{"no room", func(h *sackTest) { h.s.refused(); h.s.endPacket(h.now, 0, false) }},
		{"old FORWARD-TSN", func(h *sackTest) { h.s.forwarded(false); h.s.endPacket(h.now, 0, false) }},
		{"window update", func(h *sackTest) { h.s.force() }},
		{"shutdown sent", func(h *sackTest) { h.s.setNoDelay(true); h.packet(3) }},
		{"pause", func(h *sackTest) { h.now += 201 * sackMS; h.packet(3) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newSackTest(t, 10)
			h.packet(1, 2).wantDue(true)
			tt.do(h)
			h.wantDue(true)
			// And back to normal.
			h.s.setNoDelay(false)
			for n := h.m.CumTSN() + 1; h.m.HasGaps(); n++ {
				h.m.Observe(n)
			}
			h.packet(h.m.CumTSN() + 1)
			h.s.sent()
			h.packet(h.m.CumTSN() + 1).wantDue(false)
		})
	}
}

func TestSackForwardCountsAsData(t *testing.T) {
	h := newSackTest(t, 2)
	h.packet(1).wantDue(true)
	h.m.Forward(2)
	h.s.forwarded(true)
	h.s.endPacket(h.now, 0, false)
	h.wantDue(false) // RFC 3758, Section 3.6: the delayed SACK rules
	h.packet(3).wantDue(true)
}

func TestSackBounds(t *testing.T) {
	var s sackGen
	s.init(10*maxSackDelay, 10*maxSackStride)
	if s.delay != maxSackDelay || s.stride != maxSackStride {
		t.Errorf("delay %d stride %d, want %d %d", s.delay, s.stride, maxSackDelay, maxSackStride)
	}
	s.endPacket(5, 3, true) // a packet without DATA
	if s.pending() || s.due(6) || s.began {
		t.Error("a packet without DATA is acknowledged")
	}
}

func TestSackGoesWhereDataCameFrom(t *testing.T) {
	h := newSackTest(t, 2)
	for _, p := range []int{0, 2, 1} { // RFC 9260, Section 6.4
		h.s.data(seq.New, false)
		h.s.endPacket(h.now, p, false)
		if got := h.s.path(); got != p {
			t.Errorf("path = %d, want %d", got, p)
		}
	}
	h.s.dropPath(0)
	if got := h.s.path(); got != 0 {
		t.Errorf("path after an earlier one was removed = %d, want 0", got)
	}
	h.s.dropPath(0)
	if got := h.s.path(); got != 0 {
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
			if h.packet(n); h.s.early(h.now) {
				early = append(early, n)
				h.s.sent()
			}
		}
		h.s.endBatch()
		h.s.sent()
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
	for i, change := range []func(s *sackGen){
		func(s *sackGen) {},
		func(s *sackGen) { s.began = false },
		func(s *sackGen) { s.hadGaps = true },
		func(s *sackGen) { s.noDelay = true },
		func(s *sackGen) { s.immediate = true },
		func(s *sackGen) { s.multipath = true },
		func(s *sackGen) { s.packets = s.stride - 1 },
		func(s *sackGen) { s.lastAt = 0 },
		func(s *sackGen) { s.lossy = 1 << 60 },
		func(s *sackGen) { s.deadline = 1 },
	} {
		h := newSackTest(t, 4)
		h.packet(1).wantDue(true)
		h.packet(2)
		change(&h.s)
		if got, want := h.s.noneDueAfterNext(h.now), i == 0; got != want {
			t.Errorf("change %d: none due %v, want %v", i, got, want)
		}
	}
}
