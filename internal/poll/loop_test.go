package poll

import (
	"testing"
	"time"
)

// spinTest is a loop on a clock that moves by a microsecond with each pass.
type spinTest struct {
	Loop
	now    int64
	passes int
	clocks int
	offers int
	finds  func(pass int) bool
}

func newSpinTest(finds func(pass int) bool) *spinTest {
	s := &spinTest{finds: finds}
	s.Loop = Loop{
		Pass: func() bool {
			s.passes++
			s.now += int64(time.Microsecond)
			return finds(s.passes)
		},
		Now:        func() int64 { s.clocks++; return s.now },
		ClockEvery: ClockEvery, YieldEvery: 64, YieldFull: 8,
	}
	return s
}

func never(int) bool { return false }
func no() bool       { return false }

func (s *spinTest) wait(budget time.Duration) *Wait {
	var c Chooser
	c.Init(budget)
	w := c.Begin(s.now)
	return &w
}

func TestSpinEndsWhenDone(t *testing.T) {
	s := newSpinTest(never)
	if !s.Spin(s.wait(time.Second), func() bool { return s.passes == 10 }, nil) || s.passes != 10 || s.clocks != 10/ClockEvery {
		t.Errorf("%d passes, the clock read %d times", s.passes, s.clocks)
	}
}

func TestSpinEndsWithItsBudget(t *testing.T) {
	s := newSpinTest(never)
	if s.Spin(s.wait(100*time.Microsecond), no, nil) || s.passes < 100 || s.passes > 100+ClockEvery {
		t.Errorf("%d passes of a microsecond in 100 µs", s.passes)
	}
	// What comes, at pass 50 here, renews the budget.
	for _, prompt := range []bool{false, true} {
		s = newSpinTest(func(pass int) bool { return pass == 50 })
		s.Prompt = prompt
		if s.Spin(s.wait(100*time.Microsecond), no, nil) || s.passes < 150 || s.passes > 150+2*ClockEvery {
			t.Errorf("prompt %v: %d passes of a microsecond in 50 + 100 µs", prompt, s.passes)
		}
	}
}

func TestSpinEndsOnQuit(t *testing.T) {
	s := newSpinTest(never)
	if s.Spin(s.wait(time.Second), no, func() bool { return s.passes >= 10 }) || s.passes != 12 {
		t.Errorf("%d passes", s.passes)
	}
}

func TestSpinOffersTheProcessor(t *testing.T) {
	s := newSpinTest(func(pass int) bool { return pass%2 == 0 })
	s.Offer, s.OfferEvery = func() { s.offers++ }, 1
	s.Spin(s.wait(time.Second), func() bool { return s.passes == 100 }, nil)
	if s.offers != 50 {
		t.Errorf("%d offers after 50 passes that found nothing", s.offers)
	}
}

func TestSpinDoesNotAllocate(t *testing.T) {
	s := newSpinTest(never)
	w := s.wait(time.Microsecond)
	if n := testing.AllocsPerRun(100, func() {
		s.now = 0
		end := s.passes + 3
		s.Spin(w, func() bool { return s.passes == end }, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
