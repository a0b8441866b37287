package poll

// ClockEvery is after how many polls of sockets a spin reads the clock, if nothing came: it
// bounds the part of a spin that reading the clock takes.
const ClockEvery = 4

// Loop is how the spins of a transport or a rank poll: what a pass over its sources costs
// determines how often to do the rest. The intervals are powers of two: a pass over shared
// memory takes some nanoseconds, in which a division would show. All fields are constant once
// spins begin.
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
	// no more than a precaution, and wakes a thread for nothing. YieldFull is at most
	// YieldEvery.
	YieldEvery, YieldFull int
	// YieldIdle is true if it yields only after passes that found nothing.
	YieldIdle bool
	// Offer lets other processes have the processor; it may be nil. It is called after each
	// OfferEvery passes, if the last one found nothing.
	Offer      func()
	OfferEvery int
}

// Spin polls until done reports true, and then returns true; until the budget of w is used
// up; or until quit, which is asked when the clock is read and may be nil, reports true. What
// comes meanwhile renews the budget. The caller has called Enter, and w.Budget is not 0.
func (l *Loop) Spin(w *Wait, done, quit func() bool) bool {
	pass, least := l.Pass, min(l.ClockEvery, l.YieldFull)
	if l.Offer != nil {
		least = min(least, l.OfferEvery)
	}
	came := false
	for i := 1; ; i++ {
		found := pass()
		if done() {
			return true
		}
		if !found && !every(i, least) {
			continue
		}
		came = came || found
		if every(i, l.YieldFull) && (every(i, l.YieldEvery) || Full()) && !(found && l.YieldIdle) {
			yield()
		}
		if l.Offer != nil && every(i, l.OfferEvery) && !found {
			l.Offer()
		}
		if !every(i, l.ClockEvery) && !(found && l.Prompt) {
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

// every reports whether i is a multiple of n, a power of two.
func every(i, n int) bool { return i&(n-1) == 0 }
