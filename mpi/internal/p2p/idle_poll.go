package p2p

import "sync/atomic"

// idlePoll is the exponential back-off of polls by calls that do not block (Test, Iprobe), where a poll is a system
// call: a program that calls them in a loop pays for few polls that find nothing. It never delays a message for long
// that has come: the gap grows with the time that nothing came, and a program that calls rarely polls each
// time. A program that has stopped to call is no matter of it: the readers of the transport receive then.
type idlePoll struct {
	calls  atomic.Uint32 // of due
	polled atomic.Uint32 // calls at the last poll
	gap    atomic.Uint32 // calls until the next one
	at     atomic.Int64  // Clock at the last poll
}

const (
	// maxIdleGap is the most calls to one poll: about 3 µs of them, so a poll of half a microsecond adds a fifth.
	maxIdleGap = 64
	// idleClockEvery is how many calls in a gap there are to one that reads the clock, which costs as
	// much as the rest of such a call. The first does, so a program that calls rarely polls each time.
	idleClockEvery = 8
	// maxIdleTime ends a gap, 10 µs: calls that take longer are a program's that does something between them.
	maxIdleTime = 10_000
)

// due counts a call and reports whether it should poll.
func (i *idlePoll) due() bool {
	n := i.calls.Add(1)
	since, gap := n-i.polled.Load(), i.gap.Load()
	if since < gap {
		if since%idleClockEvery != 1 || Clock()-i.at.Load() < maxIdleTime {
			return false
		}
		gap = 0
	}
	i.polled.Store(n)
	i.gap.Store(min(2*gap+1, maxIdleGap))
	i.at.Store(Clock())
	return true
}

// found ends the back-off: there was something.
func (i *idlePoll) found() { i.gap.Store(0) }
