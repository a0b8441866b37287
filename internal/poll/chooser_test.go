package poll

import (
	"math"
	"testing"
	"time"
)

// run makes n waits, which take spun if they spin and parked if not, and returns
// how many spin.
func run(c *Chooser, n int, spun, parked time.Duration) (spins int) {
	now := int64(0)
	for range n {
		w := c.Begin(now)
		took := parked
		if w.Budget > 0 {
			spins++
			took = spun
		}
		now += int64(took)
		w.End(now)
	}
	return spins
}

const us = time.Microsecond

// The shorter way is taken for most waits, also after a change, and the other is
// still tried unless it cannot be better.
func TestTheShorterWayIsTaken(t *testing.T) {
	var c Chooser
	c.Init(50 * us)
	const n = 5000
	for _, tt := range []struct {
		name         string
		spun, parked time.Duration
		spins, tries bool
	}{
		{"spinning is quicker than any wake-up", 6 * us, 30 * us, true, false},
		{"waits are quick either way", 20 * us, 20 * us, true, false},
		{"spinning is quicker", 30 * us, 40 * us, true, true},
		{"spinning loses the processor", 200 * us, 60 * us, false, true},
		{"nothing comes soon", time.Millisecond, time.Millisecond, false, true},
		{"spinning is quicker again", 30 * us, 40 * us, true, true},
	} {
		run(&c, n, tt.spun, tt.parked)
		got := run(&c, n, tt.spun, tt.parked)
		if (got > n*9/10) != tt.spins {
			t.Errorf("%s: %d of %d waits spin", tt.name, got, n)
		}
		if tried := got > 0 && got < n; tried != tt.tries && tt.name != "nothing comes soon" {
			t.Errorf("%s: %d of %d waits spin; want the other way tried: %v", tt.name, got, n, tt.tries)
		}
	}
}

func TestOneLongWaitChangesNothing(t *testing.T) {
	var c Chooser
	c.Init(50 * us)
	run(&c, 1000, 8*us, 30*us)
	w := c.Begin(0)
	w.End(int64(time.Second))
	if got := run(&c, 100, 8*us, 30*us); got < 95 {
		t.Errorf("%d of 100 waits spin after a long one", got)
	}
	if spin, park := c.Costs(); spin > 20*us || park < 25*us {
		t.Errorf("costs are %v and %v", spin, park)
	}
}

// Where waits are short for the limit a long one may spin for longer than that, up to
// maxExtendedBudget, but not the first one, nor one that tries.
func TestPatience(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct{ limit, patient time.Duration }{
		{us, 8 * us}, {50 * us, 400 * us}, {100 * us, 400 * us}, {400 * us, 400 * us}, {5 * ms, 5 * ms},
	} {
		var c Chooser
		c.InitExtending(tt.limit)
		if w := c.Begin(0); w.Budget != int64(tt.limit) {
			t.Errorf("limit %v: the first wait may spin for %d ns", tt.limit, w.Budget)
		}
		long := 4 * tt.patient
		run(&c, 100, tt.patient/10, long)
		if w := c.Begin(0); w.Budget != int64(tt.patient) {
			t.Errorf("limit %v: where waits are short they may spin for %d ns, want %v", tt.limit, w.Budget, tt.patient)
		}
		if tt.limit < 400*us {
			run(&c, 100, tt.patient/3, long)
			if w := c.Begin(0); w.Budget != int64(tt.limit) {
				t.Errorf("limit %v: where waits are longer they may spin for %d ns", tt.limit, w.Budget)
			}
		}
		run(&c, 10000, 10*long, long/8)
		for range 100 {
			if w := c.Begin(0); w.Budget > int64(min(tt.limit, ms)) {
				t.Fatalf("limit %v: a try may spin for %d ns", tt.limit, w.Budget)
			}
		}
	}
	var c Chooser
	c.Init(50 * us)
	run(&c, 100, 5*us, ms)
	if w := c.Begin(0); w.Budget != int64(50*us) {
		t.Errorf("without patience a wait may spin for %d ns", w.Budget)
	}
}

// A try that happens to be short does not make the next one come soon.
func TestALuckyTryChangesNothing(t *testing.T) {
	var c Chooser
	c.Init(50 * us)
	now, parks := int64(0), 0
	const n = 20 * maxExplorationInterval
	for range n {
		w := c.Begin(now)
		took := 30 * us
		if w.Budget == 0 {
			if parks++; parks%3 != 0 {
				took = 60 * us
			} else {
				took = 20 * us
			}
		}
		now += int64(took)
		w.End(now)
	}
	if parks < n/maxExplorationInterval || parks > 4*n/maxExplorationInterval {
		t.Errorf("%d of %d waits were tries, want about one in %d", parks, n, maxExplorationInterval)
	}
}

func TestSpinsAreBounded(t *testing.T) {
	var c Chooser
	c.Init(5 * time.Millisecond)
	w := c.Begin(0)
	if w.Over(int64(5*time.Millisecond)) || !w.Over(int64(5*time.Millisecond)+1) {
		t.Errorf("a spin may take %d ns, want 5 ms", w.Budget)
	}
	run(&c, 1000, 10*time.Millisecond, time.Millisecond)
	for range 100 {
		if w := c.Begin(0); w.Budget > explorationBudget {
			t.Fatalf("a try may spin for %d ns", w.Budget)
		}
	}
}

// While something comes, if not what is waited for, a spin goes on, unless it is one that
// tries whether to spin.
func TestSpinGoesOn(t *testing.T) {
	var c Chooser
	limit := int64(5 * time.Millisecond)
	c.Init(time.Duration(limit))
	w := c.Begin(7)
	for now := int64(7); now <= 7+maxRenewals*limit; now += limit {
		w.Renew(now)
		if last := now == 7+maxRenewals*limit; w.Over(now+limit) != last || !w.Over(now+limit+1) {
			t.Fatalf("when something came at %d: over %v, %v", now, w.Over(now+limit), w.Over(now+limit+1))
		}
	}
	run(&c, 1000, 10*time.Millisecond, time.Millisecond)
	for tries := 0; tries < 3; {
		if w := c.Begin(7); w.Budget > 0 {
			tries++
			if w.Renew(7 + explorationBudget); !w.Over(8 + explorationBudget) {
				t.Error("a try went on")
			}
		}
	}
}

// Where all waits spin, none is tried without, and a spin begins when it is asked
// for the first time whether it is over.
func TestAlways(t *testing.T) {
	var c Chooser
	if _, ok := c.Start(); ok {
		t.Error("started without being measured")
	}
	c.Always(5 * time.Millisecond)
	run(&c, 1000, 10*time.Millisecond, time.Millisecond)
	for range 2 * maxExplorationInterval {
		if w := c.Begin(7); w.Budget != int64(5*time.Millisecond) || w.Counts() {
			t.Fatalf("%+v", w)
		}
	}
	const now = int64(time.Hour)
	if w, ok := c.Start(); !ok || w.Counts() || w.Over(now) || w.Over(now+w.Budget) || !w.Over(now+w.Budget+1) {
		t.Errorf("started %v: %+v", ok, w)
	}
	if c.Init(0); c.Begin(1).Budget != 0 {
		t.Error("spins after Init(0)")
	}
}

// While waits spin and are quick one in measureEvery is measured; all are before, when
// they turn out longer, and while parking is better.
func TestShortWaitsAreSampled(t *testing.T) {
	var c Chooser
	c.InitExtending(50 * us)
	now := int64(0)
	wait := func(spun, parked time.Duration) (measured bool) {
		w, ok := c.Start()
		if !ok {
			w = c.Begin(now)
		} else if w.Over(now+7) || w.Counts() || w.Budget != int64(400*us) {
			t.Fatalf("a wait that is not measured: %+v", w)
		}
		took := spun
		if w.Budget == 0 {
			took = parked
		}
		now += int64(took)
		w.End(now)
		return !ok
	}
	count := func(n int, spun, parked time.Duration) (measured int) {
		for range n {
			if wait(spun, parked) {
				measured++
			}
		}
		return measured
	}
	const n = 1000
	count(n, 5*us, 40*us)
	if got := count(n, 5*us, 40*us); got < n/measureEvery || got > n/measureEvery+1 {
		t.Errorf("%d of %d quick waits were measured, want one in %d", got, n, measureEvery)
	}
	count(20*measureEvery, 30*us, 40*us)
	if got := count(n, 30*us, 40*us); got != n {
		t.Errorf("%d of %d longer waits were measured", got, n)
	}
	count(n, 200*us, 5*us)
	if got := count(n, 200*us, 5*us); got != n {
		t.Errorf("%d of %d waits were measured that had better park", got, n)
	}
}

// The longest limit there is does not overflow.
func TestLongest(t *testing.T) {
	var c Chooser
	c.Init(math.MaxInt64)
	w := c.Begin(1)
	if w.Renew(int64(time.Hour)); w.Over(int64(24 * time.Hour)) {
		t.Error("a spin of any length ends within a day")
	}
}

func TestOff(t *testing.T) {
	for _, limit := range []time.Duration{0, -1} {
		var c Chooser
		c.Init(limit)
		if w := c.Begin(1); w.Budget != 0 || w.Counts() {
			t.Errorf("limit %v: %+v", limit, w)
		}
	}
	Wait{}.End(1)
}
