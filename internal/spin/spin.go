// Package spin decides, from how long waits took, whether goroutines that wait
// poll before they park.
//
// An answer that comes within the polling costs no wake-up. On a machine with
// other work to do polling loses: the scheduler favours who sleeps. So both ways
// are tried, and the one whose waits turn out shorter is taken for most of them.
package spin

import (
	"math"
	"sync/atomic"
	"time"
)

// Chooser chooses between the two ways of waiting. Its methods may be called by
// several goroutines at a time; all times are nanoseconds of one clock.
type Chooser struct {
	max      int64 // length of a spin; 0: never spin
	patient  int64 // length of one while waits are short
	waits    atomic.Uint32
	quick    atomic.Uint32 // waits that Start was asked for while they were
	explore  atomic.Uint32 // which wait tries the other way
	gap      atomic.Uint32 // waits between those that do
	spinCost atomic.Int64  // how long waits take that begin with a spin
	parkCost atomic.Int64  // how long those take that do not
	parked   atomic.Bool   // parkCost was measured
	always   bool          // all waits spin
}

const (
	// exploreSpin bounds the spins that try whether spinning pays: where it does not,
	// they take the processor from others.
	exploreSpin = int64(time.Millisecond)
	// minExplore is how many waits there are to one that tries the other way. While
	// most spin, the number doubles up to maxExplore with each after which parking still
	// costs more: a single one may be short by chance. While most park, spinRun in a row
	// try after twice as many, because they are short only if the other side spins
	// meanwhile, too.
	minExplore = 16
	maxExplore = 4096
	spinRun    = 3
	// quickWait is below what waits that spin are quick: it is not tried whether parking is
	// better. A wake-up is hardly faster, and costs both sides more than its time: who has
	// slept wakes up on the processor of who wakes it, or on one that slept, too.
	quickWait = int64(25 * time.Microsecond)
	// Where waits that spin take less than a quarter of it, one may spin for patience times
	// max, up to patientWait: a long one is the exception there, because the other side was
	// interrupted, and goes on soon.
	patience    = 8
	patientWait = int64(400 * time.Microsecond)
	// measureEvery is how many waits there are to one that is measured while they spin
	// and are that quick: to look at the clock twice takes a twentieth of such a wait. It
	// is odd so that programs with two, four or eight waits in a step do not have the
	// same one measured each time.
	measureEvery = 7
	// firstPark is what parking is taken to cost before it was tried.
	firstPark = int64(50 * time.Microsecond)
	// steadyWait bounds what one wait adds to a cost: twice the cost and this count
	// most, so that the way of waiting does not change with a single long wait.
	steadyWait = int64(20 * time.Microsecond)
	// goesOn bounds a spin that goes on because something comes, in multiples of its
	// length: who spins looks at nothing else.
	goesOn = 16
	// spinGain is the least part of its length by which a wait must be shorter for
	// spinning to be worth the processor.
	spinGain = 16
	// costShare is the share of the latest wait in spinCost and parkCost.
	costShare = 8
	// longWait, in multiples of the longest spin, is what longer waits count
	// as: they tell nothing.
	longWait = 4
)

// Init sets how long a wait may spin, not at all if limit is 0 or less. No wait is
// going on.
func (c *Chooser) Init(limit time.Duration) {
	c.max = min(max(int64(limit), 0), math.MaxInt64/goesOn) // which no sum exceeds
	c.patient = c.max
	c.parkCost.Store(min(c.max, firstPark))
	c.explore.Store(minExplore)
	c.gap.Store(minExplore)
	c.always = false
}

// Patiently is Init for waits that somebody makes who has nothing else to do: where they
// are short a long one may spin for longer than limit, see patience.
func (c *Chooser) Patiently(limit time.Duration) {
	c.Init(limit)
	c.patient = max(c.max, min(patience*c.max, patientWait))
}

// Always is Init for where a poll costs next to nothing: all waits spin, for up to
// limit, and none is measured.
func (c *Chooser) Always(limit time.Duration) {
	c.Init(limit)
	c.always = true
}

// Max returns how long a wait may spin.
func (c *Chooser) Max() time.Duration { return time.Duration(c.max) }

// Costs returns how long waits take that spin, and that do not.
func (c *Chooser) Costs() (spin, park time.Duration) {
	return time.Duration(c.spinCost.Load()), time.Duration(c.parkCost.Load())
}

// Wait is a wait that has begun. The zero Wait is one that may not spin and does
// not count.
type Wait struct {
	at    int64
	since int64    // of the spin: when something came last; 0: nothing did
	Limit int64    // how long it may spin; 0: not at all
	of    *Chooser // that it tells how long it took; nil: none
	other bool     // it is not the way that most waits take
	late  bool     // at is not set yet
}

// Counts reports whether End takes in how long the wait took.
func (w Wait) Counts() bool { return w.of != nil }

// Start returns a wait that is not measured, if all are so, or most because they are
// quick: it begins when Over is called first, so that a short one need not look at a
// clock. As Over keeps that in the Wait, it is to be called on the same one throughout.
func (c *Chooser) Start() (w Wait, ok bool) {
	if !c.always {
		cost := c.spinCost.Load()
		if cost == 0 || cost >= quickWait || c.quick.Add(1)%measureEvery == 0 {
			return w, false
		}
		c.waits.Add(1)
	}
	return Wait{Limit: c.length(), late: true}, true
}

// Begin notes the begin of a wait and chooses whether to spin.
func (c *Chooser) Begin(now int64) (w Wait) {
	if c.max == 0 {
		return w
	}
	if c.always {
		return Wait{at: now, Limit: c.max}
	}
	cost := c.spinCost.Load()
	spin := cost < quickWait || cost+cost/spinGain < c.parkCost.Load()
	if n := c.waits.Add(1); int32(n-c.explore.Load()) >= 0 {
		if spin || int32(n-c.explore.Load()) >= spinRun-1 {
			c.explore.Store(n + c.gap.Load())
		}
		if !spin || cost >= quickWait {
			spin, w.other = !spin, true
		}
	}
	w.at, w.of = now, c
	switch {
	case spin && w.other:
		w.Limit = min(c.max, exploreSpin)
	case spin:
		w.Limit = c.length()
	}
	return w
}

// length returns how long a wait may spin that does not try.
func (c *Chooser) length() int64 {
	if cost := c.spinCost.Load(); 0 < cost && cost < c.patient/4 {
		return c.patient
	}
	return c.max
}

// Over reports whether the time for the spin of w is up.
func (w *Wait) Over(now int64) bool {
	if w.late {
		w.at, w.late = now, false
	}
	return now-max(w.at, w.since) > w.Limit || now-w.at > goesOn*w.Limit
}

// Came notes that the spin of w found something, if not what is waited for: as much time as
// it may take is left from now on, up to goesOn times that in all. One that tries whether
// spinning pays gets no more.
func (w *Wait) Came(now int64) {
	if !w.other {
		w.since = now
	}
}

// End notes that what was waited for is there. It does nothing if w does not count.
func (w Wait) End(now int64) {
	c := w.of
	if c == nil {
		return
	}
	cost, rival := &c.parkCost, &c.spinCost
	if w.Limit > 0 {
		cost, rival = rival, cost
	}
	// Waits at the same time may overwrite each other's share: no matter.
	old, took := cost.Load(), min(now-w.at, longWait*c.max)
	if w.Limit == 0 && !c.parked.Load() {
		c.parked.Store(true)
		old = took
	}
	cost.Store(old + (min(took, 2*old+steadyWait)-old)/costShare)
	if w.other {
		gap := uint32(minExplore)
		switch {
		case w.Limit > 0:
			gap = 2 * minExplore
		case cost.Load() > rival.Load():
			gap = min(2*c.gap.Load(), maxExplore)
			c.explore.Store(c.waits.Load() + gap)
		}
		c.gap.Store(gap)
	}
}
