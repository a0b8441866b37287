package poll

import "runtime"

// ClockEvery is after how many polls of sockets a spin reads the clock, if nothing came: it
// bounds the part of a spin that reading the clock takes.
const ClockEvery = 4

// Loop is how the spins of a transport or a rank poll: what a pass over its sources costs
// determines how often to do the rest. All fields but Pass are constant once spins begin.
type Loop struct {
	// Pass makes one pass over what is polled and reports whether anything came. It does
	// not block.
	Pass func() (came bool)
	// Now reads the clock, in nanoseconds.
	Now func() int64
	// ClockEvery is after how many passes the clock is read.
	ClockEvery int
	// Prompt is true if the clock is read after each pass that found something, too.
	Prompt bool
	// YieldEvery is after how many passes the goroutine lets others run, and YieldFull
	// where each processor has a goroutine that spins. With a processor free, yielding is
	// no more than a precaution, and wakes a thread for nothing. YieldFull divides
	// YieldEvery.
	YieldEvery, YieldFull int
	// YieldIdle is true if it yields only after passes that found nothing.
	YieldIdle bool
	// OfferEvery is after how many passes that found nothing Offer is called, which lets
	// other processes have the processor; 0 is never.
	OfferEvery int
	Offer      func()
}

// Spin polls until done reports true, and then returns true; until the budget of w is used
// up; or until quit reports true, which is asked when the clock is read and may be nil. What
// comes meanwhile renews the budget. The caller is counted, see Enter, and w has a budget.
func (l *Loop) Spin(w *Wait, done, quit func() bool) bool {
	came := false
	for i := 1; ; i++ {
		found := l.Pass()
		came = came || found
		if done() {
			return true
		}
		if i%l.YieldFull == 0 && (i%l.YieldEvery == 0 || Full()) && !(found && l.YieldIdle) {
			runtime.Gosched()
		}
		if l.OfferEvery > 0 && i%l.OfferEvery == 0 && !found {
			l.Offer()
		}
		if i%l.ClockEvery != 0 && !(found && l.Prompt) {
			continue
		}
		now := l.Now()
		if came {
			w.Renew(now)
		}
		came = false
		if w.Over(now) || quit != nil && quit() {
			return false
		}
	}
}
