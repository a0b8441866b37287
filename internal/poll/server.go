package poll

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// longRead is from which duration on handling what was read makes it likely that more
	// is there: 10 µs, in which a peer on the same host sends several datagrams.
	longRead = int64(10 * time.Microsecond)
	// fullYieldEvery is after how many polls a server yields where each processor has a
	// goroutine that spins.
	fullYieldEvery = 8
)

// Server is the busy polling of goroutines that read the sources for others: after a batch
// they keep polling if the next one is expected sooner than a wake-up would take.
type Server struct {
	Yielder
	// Now reads the clock, in nanoseconds.
	Now func() int64

	choose atomic.Pointer[Chooser]
}

// SetLimit bounds how long they poll for the next batch; not at all if limit is not positive.
// It may be called at any time.
func (s *Server) SetLimit(limit time.Duration) {
	c := new(Chooser)
	c.Init(limit)
	s.choose.Store(c)
}

// Chooser returns what decides whether they poll.
func (s *Server) Chooser() *Chooser { return s.choose.Load() }

// PollForMore polls for more after the caller has handled a batch that came at the end of the
// wait gap; began is when it began to handle it. PollForMore calls look until nothing comes
// within the spin budget, or look reports over, and returns the wait for the next batch, which
// is the gap of the next call. The argument of look is true while the caller spins, and false
// if it looks just once more.
func (s *Server) PollForMore(gap Wait, began int64, look func(spins bool) (came, over bool)) Wait {
	choose := s.choose.Load()
	if choose.Max() <= 0 {
		return Wait{}
	}
	for {
		now := s.Now()
		gap.End(now)
		gap = choose.Begin(now)
		var came, over bool
		if gap.Budget == 0 || !Enter() {
			if now-began < longRead {
				return gap
			}
			began = now
			if came, over = look(false); over {
				return Wait{}
			} else if !came {
				return gap
			}
			continue
		}
		for i := 0; ; i++ {
			if i%fullYieldEvery == 0 && Full() {
				runtime.Gosched()
			} else {
				s.Yield(now)
			}
			if came, over = look(true); came || over {
				break
			}
			if i%ClockEvery == 0 {
				if now = s.Now(); gap.Over(now) {
					break
				}
			}
		}
		Leave()
		if over {
			return Wait{}
		}
		if !came {
			return gap
		}
	}
}
