package poll

import (
	"testing"
	"time"
)

// occupy takes all processors, for as long as the result is not called.
func occupy() (free func()) {
	n := 0
	for Enter() {
		n++
	}
	return func() {
		for range n {
			Leave()
		}
	}
}

// A server polls for more while it comes soon, if that is allowed and there is a processor.
func TestPollForMore(t *testing.T) {
	const never = int64(1) << 62
	s := &Server{Now: func() int64 { return int64(time.Since(start)) }}
	looks := 0
	spun := false
	look := func(times int, over bool) func(bool) (bool, bool) {
		looks, spun = 0, false
		return func(spins bool) (bool, bool) {
			looks++
			spun = spun || spins
			time.Sleep(time.Duration(longRead))
			return looks <= times, over
		}
	}
	s.SetLimit(-1)
	if w := s.PollForMore(Wait{}, never, look(3, false)); w.Counts() || looks > 0 {
		t.Errorf("off: %d looks, %+v", looks, w)
	}
	s.SetLimit(time.Minute)
	if w := s.PollForMore(Wait{}, never, look(3, true)); w.Counts() || looks != 1 {
		t.Errorf("over: %d looks, %+v", looks, w)
	}
	s.SetLimit(20 * time.Millisecond)
	w := s.PollForMore(Wait{}, never, look(3, false))
	if !w.Counts() || w.Budget == 0 || looks < 3+ClockEvery {
		t.Errorf("%d looks, %+v", looks, w)
	}
	before, _ := s.Chooser().Costs()
	defer occupy()()
	if w := s.PollForMore(w, never, look(3, false)); !w.Counts() || looks > 0 {
		t.Errorf("without a processor: %d looks, %+v", looks, w)
	}
	if now, _ := s.Chooser().Costs(); now == before {
		t.Error("the wait that ended was not taken in")
	}
	// What took long to handle may not be all there is.
	s.PollForMore(w, 0, look(3, false))
	if looks != 4 || spun {
		t.Errorf("after a long read: %d looks, spins: %v", looks, spun)
	}
}

var start = time.Now()
