package pmtu

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

const (
	ms  = clock.Time(time.Millisecond)
	sec = clock.Time(time.Second)
)

// discoveryTest drives a discovery on a path that takes packets of some size.
type discoveryTest struct {
	t     *testing.T
	d     Discovery
	now   clock.Time
	nonce uint64
	takes int   // the path takes packets of up to that size
	noPad bool  // the peer answers nothing in packets with a PAD chunk
	sizes []int // of the probes sent
}

func newDiscoveryTest(t *testing.T, size, limit, takes int) *discoveryTest {
	t.Helper()
	h := &discoveryTest{t: t, d: New(size, netip.MustParseAddrPort("10.0.0.1:9899")), now: sec, takes: takes}
	h.check()
	h.d.Start(h.now, limit)
	h.check()
	return h
}

func (h *discoveryTest) check() {
	h.t.Helper()
	if err := h.d.Verify(); err != nil {
		h.t.Fatalf("%v; probes of %v", err, h.sizes)
	}
}

// step sends the probe that is due, and has it answered after 10 ms if the path takes it; or it
// waits for the deadline. It reports whether there was anything to do.
func (h *discoveryTest) step() bool {
	h.t.Helper()
	switch {
	case h.d.Due():
		h.nonce++
		size, pad := h.d.Probe(h.now, 200*ms, h.nonce)
		h.sizes = append(h.sizes, size)
		if size <= h.takes && !(pad && h.noPad) {
			h.now += 10 * ms
			if !h.d.Acked(h.now, h.nonce) {
				h.t.Fatalf("the answer to a probe of %d bytes is not taken", size)
			}
		}
	case h.d.Deadline() != 0 && h.d.State() != SearchComplete && h.d.State() != Error:
		h.now = h.d.Deadline()
		h.d.Timeout(h.now, true, true)
	default:
		return false
	}
	h.check()
	return true
}

func (h *discoveryTest) run() {
	h.t.Helper()
	for range 1000 {
		if !h.step() {
			return
		}
	}
	h.t.Fatalf("the search has no end; probes of %v", h.sizes)
}

func (h *discoveryTest) want(s State, mtu int) {
	h.t.Helper()
	if h.d.State() != s || h.d.MTU() != mtu {
		h.t.Errorf("state %d, MTU %d, want %d and %d; probes of %v", h.d.State(), h.d.MTU(), s, mtu, h.sizes)
	}
}

// If the path takes what the interface does, one probe tells, and no timer runs on.
func TestLimitIsProbedFirst(t *testing.T) {
	h := newDiscoveryTest(t, 1200, 8972, 8972)
	h.run()
	h.want(SearchComplete, 8972)
	if len(h.sizes) != 1 || h.d.Deadline() != 0 {
		t.Errorf("probes of %v, deadline %d", h.sizes, h.d.Deadline())
	}
}

// RFC 8899, Section 5.3.2: the search ends within [MinGain] of what the path takes, and is
// raised after PMTU_RAISE_TIMER, when the path may take more.
func TestSearchFindsTheSize(t *testing.T) {
	for takes := 1200; takes < 9000; takes += 52 {
		h := newDiscoveryTest(t, 1200, 8972, takes)
		h.run()
		if got := h.d.MTU(); h.d.State() != SearchComplete || got > takes || got < takes-MinGain {
			t.Errorf("path of %d: state %d, MTU %d", takes, h.d.State(), got)
		}
		if n := len(h.sizes); n > 40 {
			t.Errorf("path of %d: %d probes", takes, n)
		}
		if d := h.d.Deadline() - h.now; takes < 8972 && (d < 590*sec || d > 600*sec) {
			t.Errorf("path of %d: the search is raised in %d", takes, d)
		}
		h.takes, h.now = 8972, h.d.Deadline()
		h.d.Timeout(h.now, true, true)
		h.run()
		if takes < 8972 {
			h.want(SearchComplete, 8972)
		}
	}
}

// A peer that answers nothing in packets with a PAD chunk is probed with long HEARTBEAT chunks.
func TestPeerWithoutPadChunks(t *testing.T) {
	h := newDiscoveryTest(t, 1200, 1452, 1452)
	h.noPad = true
	for h.d.State() != SearchComplete && h.step() {
		h.d.Resume() // something else comes from the path
	}
	h.want(SearchComplete, 1452)
}

// What is known of the peer outlasts what is known of the path: after a Packet Too Big message and
// after a black hole the first probe is one that the peer answers.
func TestPeerWithoutPadChunksIsRemembered(t *testing.T) {
	for name, lose := range map[string]func(h *discoveryTest){
		"Packet Too Big":                func(h *discoveryTest) { h.d.PacketTooBig(h.now, 10*ms, 1300) },
		"Packet Too Big below the base": func(h *discoveryTest) { h.d.PacketTooBig(h.now, 10*ms, 900) },
		"black hole":                    func(h *discoveryTest) { h.d.BlackHole(h.now, 10*ms) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newDiscoveryTest(t, 1200, 1452, 1452)
			h.noPad = true
			for h.d.State() != SearchComplete && h.step() {
				h.d.Resume()
			}
			h.want(SearchComplete, 1452)
			lose(h)
			h.check()
			for !h.d.Due() {
				h.now = h.d.Deadline()
				h.d.Timeout(h.now, true, true)
			}
			if size, pad := h.d.Probe(h.now, 200*ms, 1000); pad {
				t.Errorf("a probe of %d bytes has a PAD chunk", size)
			}
		})
	}
}

// A path that takes neither kind of probe says nothing about the peer: the search begins with PAD
// chunks again.
func TestPathWithoutProbesSaysNothingOfThePeer(t *testing.T) {
	h := newDiscoveryTest(t, 1200, 1452, 600)
	for h.d.State() != Error && h.step() {
		h.d.Resume()
	}
	h.want(Error, MinMTU)
	h.now = h.d.Deadline()
	h.d.Timeout(h.now, true, true)
	if size, pad := h.d.Probe(h.now, 200*ms, 1000); !pad {
		t.Errorf("a probe of %d bytes has no PAD chunk", size)
	}
}

// The Error phase: not even the base size arrives; it is tried again every five seconds.
func TestPathSmallerThanTheBase(t *testing.T) {
	h := newDiscoveryTest(t, 1200, 1452, 600)
	for h.d.State() != Error && h.step() {
		h.d.Resume()
	}
	h.want(Error, MinMTU)
	if h.d.Deadline() != h.now+5*sec {
		t.Errorf("deadline in %d", h.d.Deadline()-h.now)
	}
	h.takes, h.now = 1452, h.d.Deadline()
	h.d.Timeout(h.now, true, true)
	h.run()
	h.want(SearchComplete, 1452)
}

// While nothing at all comes by the path the size is not to blame, and nothing is given up.
func TestSilentPathIsNotTooSmall(t *testing.T) {
	h := newDiscoveryTest(t, 1200, 1452, 0)
	silent := 0
	for range 50 {
		for h.d.Due() {
			h.step()
		}
		h.now = h.d.Deadline()
		if h.d.Timeout(h.now, true, true) {
			silent++
		}
		h.check()
	}
	h.want(Search, 1200)
	if silent < 40 {
		t.Errorf("reported %d times", silent)
	}
}

// A search stops when its path becomes inactive, and goes on after a sign of life.
func TestSearchOfInactivePathStops(t *testing.T) {
	h := newDiscoveryTest(t, 1200, 1452, 0)
	h.step()
	h.d.Timeout(h.d.Deadline(), true, false)
	h.check()
	if h.d.Due() || h.d.Deadline() != 0 {
		t.Fatalf("due %v, deadline %d", h.d.Due(), h.d.Deadline())
	}
	h.takes = 1452
	h.d.Resume()
	h.run()
	h.want(SearchComplete, 1452)
}

// RFC 8899, Section 4.3: a black hole leads to the base size, from where the search begins
// anew, not sooner than a round trip after the last probe; without discovery it begins then.
func TestBlackHoleLeadsToBase(t *testing.T) {
	h := newDiscoveryTest(t, 1200, 8972, 8972)
	h.run()
	h.takes = 1500
	if !h.d.BlackHole(h.now, 50*ms) {
		t.Error("nothing was given up")
	}
	h.check()
	h.want(Base, BaseMTU)
	if d := h.d.Deadline() - h.now; h.d.Due() || d <= 0 || d > 50*ms {
		t.Errorf("probe due %v, deadline in %d", h.d.Due(), d)
	}
	h.run()
	if got := h.d.MTU(); got < 1500-MinGain || got > 1500 {
		t.Errorf("MTU %d on a path of 1500", got)
	}

	d := New(1452, netip.MustParseAddrPort("[fd00::1]:9899"))
	if !d.BlackHole(sec, 0) || d.State() != Base || d.MTU() != BaseMTU {
		t.Errorf("without discovery: state %d, MTU %d", d.State(), d.MTU())
	}
	d.Fix(1000)
	if d.On() || d.MTU() != 1000 || d.Wanted() != 1001 {
		t.Errorf("fixed: state %d, MTU %d, wanted %d", d.State(), d.MTU(), d.Wanted())
	}
}

// RFC 8899, Section 4.6.2: which sizes of a Packet Too Big message are believed.
func TestWhichPacketTooBigIsBelieved(t *testing.T) {
	for _, tc := range []struct {
		name          string
		size          int
		changed, hole bool
		state         State
		mtu           int
	}{
		{"below the least of IPv4", 400, false, false, SearchComplete, 1452},
		{"below the base", 900, true, true, Error, MinMTU},
		{"smaller", 1300, true, true, Base, BaseMTU},
		{"as large as packets are", 1452, false, false, SearchComplete, 1452},
		{"larger than any packet", 2000, false, false, SearchComplete, 1452},
	} {
		h := newDiscoveryTest(t, 1200, 1452, 1452)
		h.run()
		changed, hole := h.d.PacketTooBig(h.now, 10*ms, tc.size)
		if changed != tc.changed || hole != tc.hole {
			t.Errorf("%s: changed %v, hole %v", tc.name, changed, hole)
		}
		h.check()
		h.want(tc.state, tc.mtu)
	}
}

// What data proves needs no probe.
func TestDataProvesASize(t *testing.T) {
	h := newDiscoveryTest(t, 1452, 1452, 0)
	h.step()
	h.d.TakeResized()
	h.d.DataAcked(h.now, 10*ms, 1452)
	h.check()
	if !h.d.TakeResized() || h.d.Proven() != 1452 || h.d.Wanted() != 1453 {
		t.Errorf("%d bytes are proven, %d wanted", h.d.Proven(), h.d.Wanted())
	}
	h.run()
	h.want(SearchComplete, 1452)
}
