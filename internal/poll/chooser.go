package poll

import (
	"math"
	"sync/atomic"
	"time"
)

// Chooser decides for each wait whether the goroutine spins before it parks. It measures how
// long waits of either kind take, takes the shorter kind for most of them and explores the
// other one now and then. Its methods may be called by several goroutines at a time; all times
// are nanoseconds of one clock.
type Chooser struct {
	max                 int64 // the spin budget; 0: never spin
	extended            int64 // the budget while waits are short
	waits               atomic.Uint32
	unmeasured          atomic.Uint32 // waits that began by Start
	nextExploration     atomic.Uint32 // the number of the wait that explores the other kind
	explorationInterval atomic.Uint32 // waits from one that explores to the next
	spinCost            atomic.Int64  // a moving average of how long waits take that spin
	parkCost            atomic.Int64  // the same of waits that park at once
	parked              atomic.Bool   // parkCost was measured
	always              bool          // all waits spin, and none is measured
}

const (
	// explorationBudget bounds a spin that explores, 1 ms: where spinning does not pay it takes
	// the processor from other goroutines.
	explorationBudget = int64(time.Millisecond)
	// One wait in minExplorationInterval explores. While most waits spin, the interval doubles,
	// up to maxExplorationInterval, each time that parking still costs more; it does not jump,
	// because a single wait may be short by chance. While most waits park, explorationRun
	// consecutive waits explore, at twice the interval: spinning shortens waits only if the
	// other side spins at the same time.
	minExplorationInterval = 16
	maxExplorationInterval = 4096
	explorationRun         = 3
	// fastWait is 25 µs: parking is not explored while waits that spin are shorter. A wake-up
	// is hardly faster, and costs both sides more than its time, because the goroutine wakes up
	// on the processor of the one that wakes it, or on one that slept, too.
	fastWait = int64(25 * time.Microsecond)
	// The extended budget is extensionFactor times the budget, up to maxExtendedBudget. It
	// holds while waits that spin take less than a quarter of it: a long wait is an exception
	// there, in which the other side was interrupted and goes on soon.
	extensionFactor   = 8
	maxExtendedBudget = int64(400 * time.Microsecond)
	// measureEvery is how many waits there are to one that is measured, while they spin and
	// are shorter than fastWait: reading the clock twice takes a twentieth of such a wait.
	// It is odd, so that in a program with two, four or eight waits in a step the measured
	// one changes.
	measureEvery = 7
	// initialParkCost is what parking is assumed to cost before it was measured, 50 µs.
	initialParkCost = int64(50 * time.Microsecond)
	// maxCostStep bounds the effect of one wait: it counts as at most twice the average plus
	// 20 µs, so that a single long wait does not change the kind.
	maxCostStep = int64(20 * time.Microsecond)
	// maxRenewals bounds a spin whose budget is renewed because something comes, in multiples
	// of the budget: the goroutine does nothing else meanwhile.
	maxRenewals = 16
	// A wait that spins has to be shorter by one part in spinGain to be worth the processor.
	spinGain = 16
	// The latest wait is one part in costShare of the moving averages.
	costShare = 8
	// A wait of more than maxCostFactor times the budget counts as that: its length says
	// nothing about spinning.
	maxCostFactor = 4
)

// Init sets the spin budget of a wait; waits do not spin if limit is 0 or less. It is called
// while no wait is going on.
func (c *Chooser) Init(limit time.Duration) {
	c.max = min(max(int64(limit), 0), math.MaxInt64/maxRenewals) // which no sum exceeds
	c.extended = c.max
	c.parkCost.Store(min(c.max, initialParkCost))
	c.nextExploration.Store(minExplorationInterval)
	c.explorationInterval.Store(minExplorationInterval)
	c.always = false
}

// InitExtending is Init with an extended budget while waits are short, for goroutines that
// have nothing else to do.
func (c *Chooser) InitExtending(limit time.Duration) {
	c.Init(limit)
	c.extended = max(c.max, min(extensionFactor*c.max, maxExtendedBudget))
}

// Always is Init for sources that cost next to nothing to poll: all waits spin, for up to
// limit, and none is measured.
func (c *Chooser) Always(limit time.Duration) {
	c.Init(limit)
	c.always = true
}

// Max returns the spin budget, without an extension.
func (c *Chooser) Max() time.Duration { return time.Duration(c.max) }

// Costs returns the averages of how long waits take that spin and that park at once.
func (c *Chooser) Costs() (spin, park time.Duration) {
	return time.Duration(c.spinCost.Load()), time.Duration(c.parkCost.Load())
}

// Wait is a wait that has begun. The zero Wait does not spin and is not measured.
type Wait struct {
	at        int64
	since     int64    // when the budget was renewed last; 0: it was not
	Budget    int64    // how long it may spin; 0: not at all
	of        *Chooser // takes the duration into its averages; nil: it is not measured
	exploring bool     // it spins although most waits park, or parks although most spin
	unstarted bool     // at is not set yet
}

// Counts reports whether the wait is measured, that is, whether End does anything.
func (w Wait) Counts() bool { return w.of != nil }

// Start begins a wait that spins and is not measured, which saves reading the clock, and
// reports true. It reports false if this wait has to begin by Begin: unless Always was called
// that is one in measureEvery while waits are shorter than fastWait, and every one otherwise.
// The time of the wait runs from the first call of Over, which notes it in the Wait: use a
// pointer to the same Wait throughout.
func (c *Chooser) Start() (w Wait, ok bool) {
	if !c.always {
		cost := c.spinCost.Load()
		if cost == 0 || cost >= fastWait || c.unmeasured.Add(1)%measureEvery == 0 {
			return w, false
		}
		c.waits.Add(1)
	}
	return Wait{Budget: c.budget(), unstarted: true}, true
}

// Begin begins a wait and decides whether it spins: its Budget is 0 if not.
func (c *Chooser) Begin(now int64) (w Wait) {
	if c.max == 0 {
		return w
	}
	if c.always {
		return Wait{at: now, Budget: c.max}
	}
	cost := c.spinCost.Load()
	spin := cost < fastWait || cost+cost/spinGain < c.parkCost.Load()
	if n := c.waits.Add(1); int32(n-c.nextExploration.Load()) >= 0 {
		if spin || int32(n-c.nextExploration.Load()) >= explorationRun-1 {
			c.nextExploration.Store(n + c.explorationInterval.Load())
		}
		if !spin || cost >= fastWait {
			spin, w.exploring = !spin, true
		}
	}
	w.at, w.of = now, c
	switch {
	case spin && w.exploring:
		w.Budget = min(c.max, explorationBudget)
	case spin:
		w.Budget = c.budget()
	}
	return w
}

// budget returns the budget of a wait that does not explore.
func (c *Chooser) budget() int64 {
	if cost := c.spinCost.Load(); 0 < cost && cost < c.extended/4 {
		return c.extended
	}
	return c.max
}

// Over reports whether the budget of w is used up.
func (w *Wait) Over(now int64) bool {
	if w.unstarted {
		w.at, w.unstarted = now, false
	}
	return now-max(w.at, w.since) > w.Budget || now-w.at > maxRenewals*w.Budget
}

// Renew notes that the spin found something, though not what is waited for: w has its whole
// budget again from now on, up to maxRenewals times the budget in all. A wait that explores
// is not renewed.
func (w *Wait) Renew(now int64) {
	if !w.exploring {
		w.since = now
	}
}

// End notes that what was waited for has come, and takes the wait into the averages. It does
// nothing if w is not measured.
func (w Wait) End(now int64) {
	c := w.of
	if c == nil {
		return
	}
	cost, rival := &c.parkCost, &c.spinCost
	if w.Budget > 0 {
		cost, rival = rival, cost
	}
	// Concurrent waits may overwrite each other's share, which does no harm.
	old, took := cost.Load(), min(now-w.at, maxCostFactor*c.max)
	if w.Budget == 0 && !c.parked.Load() {
		c.parked.Store(true)
		old = took
	}
	cost.Store(old + (min(took, 2*old+maxCostStep)-old)/costShare)
	if w.exploring {
		gap := uint32(minExplorationInterval)
		switch {
		case w.Budget > 0:
			gap = 2 * minExplorationInterval
		case cost.Load() > rival.Load():
			gap = min(2*c.explorationInterval.Load(), maxExplorationInterval)
			c.nextExploration.Store(c.waits.Load() + gap)
		}
		c.explorationInterval.Store(gap)
	}
}
