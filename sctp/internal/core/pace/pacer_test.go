package pace

import (
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

const (
	second clock.Time = 1_000_000_000
	rtt               = second / 10
)

func TestMaxBurstFormula(t *testing.T) {
	// RFC 9260, Section 6.1, D.
	if got := MaxBurst(100_000, 10_000, 1000, 4); got != 14_000 {
		t.Errorf("window = %d, want flightsize + 4 packets", got)
	}
	if got := MaxBurst(12_000, 10_000, 1000, 4); got != 12_000 {
		t.Errorf("window = %d, want cwnd", got)
	}
	if got := MaxBurst(12_000, 0, 1000, 0); got != 12_000 {
		t.Errorf("window = %d without Max.Burst, want cwnd", got)
	}
}

func TestPacerKeepsRate(t *testing.T) {
	var p Pacer
	now := second
	const cwnd = 1_000_000
	p.Update(now, cwnd, rtt, false)
	if got := p.Rate(); got != 12_500_000 {
		t.Fatalf("rate = %d, want 1.25 windows per round trip", got)
	}
	sent := 0
	for now < 2*second {
		if n := p.Budget(now); n > 0 {
			n = min(n, 10_000)
			p.OnSent(now, n)
			sent += n
			continue
		}
		next := p.NextTime(now, 10_000)
		if next <= now {
			t.Fatalf("no budget at %v, and it does not say when there is", now)
		}
		now = next
	}
	if want := 12_500_000 + MinBurst; sent < want*95/100 || sent > want*105/100 {
		t.Errorf("sent %d in a second, want about %d", sent, want)
	}
	p.Update(now, cwnd, rtt, true)
	if got := p.Rate(); got != 20_000_000 {
		t.Errorf("rate in slow start = %d, want 2 windows per round trip", got)
	}
}

func TestPacerAllowsGSOBurst(t *testing.T) {
	var p Pacer
	p.Update(second, 4404, rtt, false)
	if got := p.Budget(second); got < 64<<10 {
		t.Errorf("first burst = %d, want at least a GSO batch", got)
	}
}

func TestPacerLeavesShortPathsAlone(t *testing.T) {
	var p Pacer
	p.Update(second, 100_000, 50_000, false)
	p.OnSent(second, 1<<30)
	if p.NextTime(second, 1<<20) != 0 || p.Budget(second) < 1<<30 {
		t.Error("a path of 50 µs is paced")
	}
}
