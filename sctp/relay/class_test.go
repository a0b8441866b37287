package relay_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
)

const otherJob = 8

// classRates has jobs 7 and 8 send as much as they can on flows of their own for some seconds, and returns what arrived of
// each, in bytes a second, with the gateway's counters.
func classRates(t *testing.T, flows [2]int, set func(*relay.GatewayConfig)) (rate [2]float64, s relay.GatewayStats) {
	const warm, measured = 1500 * time.Millisecond, 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, func(c *relay.GatewayConfig) {
			c.Jobs[otherJob] = jobKey
			set(c)
		})
		defer w.Close()
		w.connected()
		slow := wan
		slow.Rate = 100e6
		w.SetWAN(slow)
		ctx, cancel := context.WithCancel(t.Context())
		var got [2]atomic.Int64
		var wg sync.WaitGroup
		for i, job := range []uint32{testJob, otherJob} {
			p := uint16(i + 1)
			a := w.Node(1, p, func(c *relay.NodeConfig) { c.Job = job })
			b := w.Node(2, p, func(c *relay.NodeConfig) {
				c.Job = job
				c.OnFragment = func(_ *relay.Receiver, f *relay.Fragment) { got[i].Add(int64(len(f.Data))) }
			})
			defer a.Close()
			defer b.Close()
			for stream := range uint16(flows[i]) {
				wg.Go(func() {
					s, err := a.Sender(address(2, p), stream)
					wantNil(t, err)
					for msg := make([]byte, 10_000); s.Send(ctx, msg, relay.SendOptions{}) == nil; {
					}
				})
			}
		}
		time.Sleep(warm)
		var before [2]int64
		for i := range got {
			before[i] = got[i].Load()
		}
		time.Sleep(measured)
		for i := range got {
			rate[i] = float64(got[i].Load()-before[i]) / measured.Seconds()
		}
		s = w.Up[[2]uint16{1, 1}].Stats()
		cancel()
		wg.Wait()
	})
	t.Logf("%.2f and %.2f MB/s, %+v", rate[0]/1e6, rate[1]/1e6, s.Classes)
	return rate, s
}

func wantRate(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got/want-1) > tolerance {
		t.Errorf("%s = %.3g, want %.3g within %.0f %%", what, got, want, 100*tolerance)
	}
}

// Classes share a leg by weight, however many flows each has; without classes flows share it.
func TestWeights(t *testing.T) {
	if raceEnabled {
		t.Skip("takes a minute")
	}
	gold := []relay.Class{{Name: "gold", Jobs: []relay.JobRange{{First: 1, Last: testJob}}, Weight: 3}}
	for _, tt := range []struct {
		name    string
		flows   [2]int
		classes []relay.Class
		want    float64 // rate of job 7 by that of job 8
	}{
		{"none", [2]int{2, 6}, nil, 1. / 3},
		{"equal", [2]int{1, 9}, []relay.Class{{Name: "gold", Jobs: []relay.JobRange{{First: 7, Last: 7}}}}, 1},
		{"heavy with one flow", [2]int{1, 9}, gold, 3},
		{"heavy with many flows", [2]int{9, 1}, gold, 3},
		{"default is heavy", [2]int{4, 4}, append([]relay.Class{{Name: relay.DefaultClass, Weight: 15}}, gold...), 1. / 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rate, _ := classRates(t, tt.flows, func(c *relay.GatewayConfig) { c.Classes = tt.classes })
			wantRate(t, "ratio of the jobs", rate[0]/rate[1], tt.want, 0.07)
			if sum := rate[0] + rate[1]; sum < 0.9*100e6/8 {
				t.Errorf("%.3g bytes a second in all, want 0.9 of the link", sum)
			}
		})
	}
}

// A class keeps to its rate, and the others have the rest; the rate of a peer is that of all its classes.
func TestRates(t *testing.T) {
	if raceEnabled {
		t.Skip("takes a minute")
	}
	t.Run("class", func(t *testing.T) {
		rate, s := classRates(t, [2]int{3, 3}, func(c *relay.GatewayConfig) {
			c.Classes = []relay.Class{{Name: "slow", Jobs: []relay.JobRange{{First: 7, Last: 7}}, Rate: 2e6}}
		})
		wantRate(t, "rate of the class", rate[0]*1.022, 2e6, 0.03) // frames have headers
		if rate[1] < 0.9*100e6/8-rate[0] {
			t.Errorf("the other class has %.3g bytes a second, want the rest of the link", rate[1])
		}
		if c := s.Classes[1]; c.Name != "slow" || c.Rate != 2e6 || c.Bytes < 7e6 || c.Frames == 0 {
			t.Errorf("counters %+v", c)
		}
	})
	t.Run("peer", func(t *testing.T) {
		rate, s := classRates(t, [2]int{3, 3}, func(c *relay.GatewayConfig) {
			c.Classes = []relay.Class{{Name: "gold", Jobs: []relay.JobRange{{First: 7, Last: 7}}, Weight: 4}}
			c.Peers[0].Rate = 5e6
		})
		wantRate(t, "rate of the peer", (rate[0]+rate[1])*1.022, 5e6, 0.03)
		wantRate(t, "ratio of the jobs", rate[0]/rate[1], 4, 0.05)
		if s.Classes[0].Waits == 0 || s.Classes[1].Waits == 0 {
			t.Errorf("no waits counted: %+v", s.Classes)
		}
	})
	t.Run("only", func(t *testing.T) { // the leg sleeps, and wakes up
		rate, _ := classRates(t, [2]int{1, 0}, func(c *relay.GatewayConfig) { c.Peers[0].Rate = 20_000 })
		wantRate(t, "rate of the peer", rate[0]*1.022, 20_000, 0.1)
	})
}

func TestClassConfigs(t *testing.T) {
	w := newWorld(t, 1, 1, 1, false, nil)
	defer w.Close()
	g := w.Up[[2]uint16{1, 1}]
	if err := g.AddJob(9, jobKey, relay.JobOptions{Class: "none"}); !errors.Is(err, relay.ErrConfig) || !strings.Contains(err.Error(), `no class "none"`) {
		t.Errorf("AddJob with an unknown class: %v", err)
	}
	many := make([]relay.Class, relay.MaxClasses+1)
	job := func(first, last uint32) []relay.JobRange { return []relay.JobRange{{First: first, Last: last}} }
	for want, classes := range map[string][]relay.Class{
		"65 classes, want at most 64":  many,
		"class without a name":         {{}},
		"weight 1001, want 1 to 1000":  {{Name: "a", Weight: 1001}},
		"weight -1, want":              {{Name: "a", Weight: -1}},
		"rate of 9999 bytes a second":  {{Name: "a", Rate: 9999}},
		"listed twice":                 {{Name: "a"}, {Name: "a"}},
		"has the jobs that no class":   {{Name: relay.DefaultClass, Jobs: job(1, 2)}},
		"jobs 0 to 2, want":            {{Name: "a", Jobs: job(0, 2)}},
		"jobs 3 to 2, want":            {{Name: "a", Jobs: job(3, 2)}},
		"overlap with 1 to 5 of class": {{Name: "a", Jobs: job(1, 5)}, {Name: "b", Jobs: job(5, 6)}},
	} {
		_, err := relay.NewGateway(relay.GatewayConfig{Site: 1, Number: 2, LAN: g.LAN, Classes: classes})
		if !errors.Is(err, relay.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("NewGateway: %v, want %q", err, want)
		}
	}
}
