package core

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// spike delays everything that is under way by d.
func (p *pair) spike(d time.Duration) {
	for i := range p.wire {
		p.wire[i].at += clock.Time(d)
	}
}

// A timeout that nothing but a delay caused is taken back: the peer reports what
// was sent again as duplicate (RFC 9438, Section 4.9; RFC 3708 for TCP).
func TestSpuriousTimeoutIsUndone(t *testing.T) {
	for _, alg := range []cc.Algorithm{cc.Cubic, cc.NewReno} {
		p := newPair(t, 760, &Config{RTOInitial: 200 * time.Millisecond, RTOMin: 100 * time.Millisecond, Congestion: alg, NoRACK: true})
		p.connect()
		p.a.send(0, 1_000_000)
		p.advance(60 * time.Millisecond)
		p.spike(300 * time.Millisecond)
		p.net.delay += 300 * time.Millisecond
		p.driveUntil(time.Second, func() bool { return p.a.assoc.PathStats(0).Timeouts > 0 })
		p.net.delay -= 300 * time.Millisecond
		before := p.a.assoc.paths[0].beforeLoss.Cwnd
		if got := p.a.assoc.paths[0].cc.Cwnd(); got >= before/4 {
			t.Fatalf("cwnd %d after the timeout, was %d", got, before)
		}
		if !p.driveUntil(2*time.Second, func() bool { return p.a.assoc.PathStats(0).SpuriousLosses > 0 }) {
			t.Fatalf("not undone: %+v", p.a.assoc.PathStats(0))
		}
		if got := p.a.assoc.paths[0].cc.Cwnd(); got < before {
			t.Errorf("cwnd %d after the undo, want at least the %d of before", got, before)
		}
		p.drive()
		p.wantDelivered()
	}
}

// A real loss is not: some chunk that was sent again is no duplicate.
func TestRealLossIsNotUndone(t *testing.T) {
	for _, noRACK := range []bool{false, true} {
		for seed := range 10 {
			p := newPair(t, uint64(seed), &Config{RTOInitial: 200 * time.Millisecond, RTOMin: 100 * time.Millisecond, NoRACK: noRACK,
				SackDelay: 10 * time.Millisecond})
			p.t = quiet{t}
			p.connect()
			p.a.send(0, 500_000)
			p.advance(40 * time.Millisecond)
			n := len(p.wire)
			p.wire = p.wire[:n/2] // the others are lost
			p.drive()
			p.wantDelivered()
			if st := p.a.assoc.PathStats(0); st.SpuriousLosses > 0 {
				t.Errorf("seed %d: %d of %d packets lost, and undone: %+v", seed, n-n/2, n, st)
			}
		}
	}
}
