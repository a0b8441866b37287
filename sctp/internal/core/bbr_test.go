package core

import (
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// newBBRLink is a line of 200 Mb/s and 18 ms there and back, if not said otherwise, for a
// sender with BBR and buffers that do not limit it.
func newBBRLink(t *testing.T, queue clock.Time, loss float64) *txLink {
	return newTxLink(t, &Config{Congestion: cc.BBR, SendBuffer: 64 << 20, RecvBuffer: 64 << 20}, 200e6, 9*msec, queue, loss)
}

// BBR uses a line whatever its buffer is and though some packets are lost, drops few
// packets of its own, and does not fill the buffer.
func TestBBROverALine(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rate  int64
		delay clock.Time
		queue clock.Time
		loss  float64
		share float64    // of rate, at least
		drops float64    // share of packets, random losses included, at most
		rtt   clock.Time // smoothed, at most
	}{
		{"no loss", 200e6, 9 * msec, 18 * msec, 0, 0.9, 0.01, 24 * msec},
		{"1 % loss", 200e6, 9 * msec, 18 * msec, 0.01, 0.8, 0.02, 24 * msec},
		{"3 % loss", 200e6, 9 * msec, 18 * msec, 0.03, 0.8, 0.04, 24 * msec},
		{"deep buffer", 200e6, 9 * msec, 500 * msec, 0, 0.9, 0.001, 24 * msec},
		{"shallow buffer", 200e6, 9 * msec, 2 * msec, 0, 0.8, 0.02, 24 * msec},
		{"slow", 2e6, 20 * msec, 40 * msec, 0.01, 0.8, 0.06, 80 * msec},
		{"fast", 500e6, 25 * msec, 50 * msec, 0.01, 0.7, 0.03, 65 * msec},
		{"short", 1e9, 100_000, 2 * msec, 0.001, 0.8, 0.02, 2 * msec},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newBBRLink(t, tt.queue, tt.loss)
			l.rate, l.delay = tt.rate, tt.delay
			got, st := l.run(t, 4*sec), l.a.PathStats(0)
			drops := float64(l.drops) / float64(l.sent)
			t.Logf("goodput %.1f Mb/s, %.4f of %d packets lost, %d retransmitted, %+v", float64(got)/1e6, drops, l.sent, l.a.Stats().Retransmits, st)
			if float64(got) < tt.share*float64(tt.rate) {
				t.Errorf("goodput %.1f Mb/s, want %.0f %% of the line", float64(got)/1e6, tt.share*100)
			}
			if drops > tt.drops {
				t.Errorf("%.4f of the packets lost, want at most %.4f", drops, tt.drops)
			}
			if clock.Time(st.SRTT) > tt.rtt {
				t.Errorf("round-trip time %v, want at most %d ms", st.SRTT, tt.rtt/msec)
			}
		})
	}
}

// BBR follows a rate that falls and rises, with and without random losses.
func TestBBRFollowsTheRate(t *testing.T) {
	for _, loss := range []float64{0, 0.01} {
		l := newBBRLink(t, 40*msec, loss)
		l.run(t, 2*sec)
		for _, rate := range []int64{40e6, 200e6, 20e6, 200e6} {
			l.rate = rate
			l.run(t, 2*sec)
			l.sent, l.drops = 0, 0
			got := l.run(t, 2*sec)
			drops := float64(l.drops) / float64(l.sent)
			t.Logf("loss %v, %d Mb/s: %.1f Mb/s, %.4f lost, %v", loss, rate/1e6, float64(got)/1e6, drops, l.a.PathStats(0).SRTT)
			if float64(got) < 0.75*float64(rate) {
				t.Errorf("loss %v: %.1f Mb/s of %d", loss, float64(got)/1e6, rate/1e6)
			}
			if drops > loss+0.03 {
				t.Errorf("loss %v, %d Mb/s: %.4f of the packets lost", loss, rate/1e6, drops)
			}
		}
	}
}

// Messages with pauses between them, less than the line holds each, leave the model as it
// was: each goes in little more than the line needs, however many there were.
func TestBBRKeepsItsModelOverPauses(t *testing.T) {
	l := newBBRLink(t, 18*msec, 0)
	l.run(t, 2*sec)
	l.drainLink(t, sec)
	before := l.a.PathStats(0).CWND
	if before < 450_000 {
		t.Fatalf("cwnd is %d after a transfer", before)
	}
	var longest clock.Time
	for i := range 200 {
		for range 10 {
			if err := l.a.Send(l.now, &tx.Message{SID: 1, Body: make([]byte, 30_000)}); err != nil {
				t.Fatal(err)
			}
		}
		start := l.now
		l.drainLink(t, sec)
		longest = max(longest, l.lastDelivery-start)
		if i == 100 {
			l.now += 60 * sec // and a long one
			l.a.HandleTimeout(l.now)
			l.z.HandleTimeout(l.now)
		}
	}
	after := l.a.PathStats(0).CWND
	t.Logf("cwnd %d and %d after, the longest took %d µs", before, after, longest/1000)
	if after < before*3/4 {
		t.Errorf("cwnd is %d after messages with pauses, was %d", after, before)
	}
	if want := 9*msec + 12*msec*3/2; longest > want { // 300,000 bytes take 12 ms
		t.Errorf("a message took %d µs, want %d", longest/1000, want/1000)
	}
}

// drainLink has what was given to the sender delivered, and the rest of d pass.
func (l *txLink) drainLink(t *testing.T, d clock.Time) {
	t.Helper()
	l.quiet = true
	l.run(t, d)
	l.quiet = false
	if n := l.a.tx.sb.Outstanding(); n > 0 {
		t.Fatalf("%d bytes are outstanding after %d ms", n, d/msec)
	}
}

// A line that carries nothing for a time is used again after it.
func TestBBRSurvivesBlackouts(t *testing.T) {
	for _, dark := range []clock.Time{50 * msec, 500 * msec, 3 * sec} {
		l := newBBRLink(t, 18*msec, 0)
		l.run(t, 2*sec)
		l.loss = 1
		l.run(t, dark)
		if dark > sec {
			if w := l.a.PathStats(0).CWND; w > 2*1500 {
				t.Errorf("cwnd is %d after %d ms without an answer", w, dark/msec)
			}
		}
		l.loss = 0
		l.run(t, max(dark, 100*msec)) // the timer was doubled
		got := l.run(t, sec)
		t.Logf("%.1f Mb/s after %d ms, %d timeouts", float64(got)/1e6, dark/msec, l.a.Stats().Timeouts)
		if got < 150e6 {
			t.Errorf("%.1f Mb/s after %d ms without an answer", float64(got)/1e6, dark/msec)
		}
	}
}

// SetCongestion takes effect at once, on what is in flight, too.
func TestSetCongestion(t *testing.T) {
	l := newTxLink(t, &Config{SendBuffer: 64 << 20, RecvBuffer: 64 << 20}, 200e6, 9*msec, 18*msec, 0.01)
	cubic := l.run(t, 2*sec)
	l.a.SetCongestion(cc.BBR)
	bbr := l.run(t, 4*sec)
	l.a.SetCongestion(cc.NewReno)
	if name := l.a.paths[0].cc.Name(); name != "newreno" {
		t.Errorf("congestion control is %s, want newreno", name)
	}
	l.run(t, sec)
	l.drainLink(t, 5*sec)
	if cubic > 150e6 || bbr < 150e6 {
		t.Errorf("CUBIC has %.1f Mb/s, and BBR after it %.1f, of 200 with 1 %% loss", float64(cubic)/1e6, float64(bbr)/1e6)
	}
}
