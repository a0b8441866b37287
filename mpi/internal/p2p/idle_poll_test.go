package p2p

import (
	"testing"
	"time"
)

// dues returns which of the next n calls of due poll, counted from 1.
func dues(i *idlePoll, n int) (polls []int) {
	for k := 1; k <= n; k++ {
		if i.due() {
			polls = append(polls, k)
		}
	}
	return polls
}

// Polls that find nothing come after 1, 3, 7, … calls, at most maxIdleGap; one that finds something ends that.
func TestIdlePollBacksOff(t *testing.T) {
	var i idlePoll
	begin := time.Now()
	polls := dues(&i, 10*maxIdleGap)
	if time.Since(begin) > maxIdleTime*time.Nanosecond {
		t.Skip("too slow here: some calls polled because of their time")
	}
	last := 0
	for k, n := range polls {
		if gap := n - last; gap > maxIdleGap || k > 0 && gap < min(1<<(k-1), maxIdleGap) {
			t.Errorf("poll %d came %d calls after the last one: %v", k, gap, polls)
		}
		last = n
	}
	if len(polls) > 17 {
		t.Errorf("%d polls in %d calls, want 17 at most", len(polls), 10*maxIdleGap)
	}
	i.found()
	if !i.due() {
		t.Error("no poll at the first call after one that found something")
	}
}

// A program that calls rarely polls within idleClockEvery calls, however long it has found nothing.
func TestIdlePollOfRareCalls(t *testing.T) {
	var i idlePoll
	dues(&i, 10*maxIdleGap)
	i.at.Store(Clock() - 2*maxIdleTime)
	if polls := dues(&i, idleClockEvery); len(polls) == 0 {
		t.Errorf("none of %d calls polled, %d ns after the last poll", idleClockEvery, 2*maxIdleTime)
	}
}

func TestIdlePollAllocatesNothing(t *testing.T) {
	var i idlePoll
	if n := testing.AllocsPerRun(100, func() { i.due() }); n != 0 {
		t.Errorf("%v allocations for a call", n)
	}
}
