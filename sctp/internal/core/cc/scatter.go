package cc

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/pace"
)

const (
	// scatterTimes is how many round-trip times are kept; each is the middle one of
	// three, so that a single late wake-up is nothing. From scatterFew on losses are
	// placed among them.
	scatterTimes = 32
	scatterFew   = 8
	// scatterBytes is after how many acknowledged bytes one is kept, on average, since
	// losses fall on bytes, too: of times kept by the clock many would be of the first
	// packets of messages, which find the queue empty. It varies by half of it either
	// way, in steps of scatterStep (of the golden ratio, modulo scatterBytes), lest
	// they be of one place in messages of just that length.
	scatterBytes = 64 << 10
	scatterStep  = 40503
	// scatterEven is below which mean place losses count as evenly scattered: a
	// half is the mean of random ones.
	scatterEven = 0.58
	// scatterFirst is the mean place before the first loss, which weighs as much as
	// scatterWeight of them; scatterMemory is over how many losses it is taken.
	scatterFirst  = 0.75
	scatterWeight = 3
	scatterMemory = 32
	// scatterPath is the round-trip time of a path above which late wake-ups do not
	// matter, and the times kept tell little: its queue fills and drains too slowly.
	scatterPath = pace.MinRTT
	// Where no time of scatterSpan is shorter than scatterQueue times that of the path
	// with an empty queue, the queue is always long, and losses are its own wherever
	// they fall.
	scatterSpan  = clock.Time(40_000_000)
	scatterQueue = 3
)

// scatter tells whether the losses of a short path are random where its round-trip
// times do not tell how long the queue is: processes that wake up late add more to
// them than the queue does. But random losses fall on short and long times alike,
// while a queue that drops packets is as long as it gets. The place of a loss is the
// share of the round-trip times before it that were shorter.
type scatter struct {
	times  [scatterTimes]uint32 // microseconds
	n      int                  // how many were kept; the next is n % scatterTimes
	last   [3]clock.Time        // round-trip times
	due    int                  // bytes to acknowledge until the next is kept
	vary   int                  // what they are more than half of scatterBytes
	place  float64              // mean of losses
	losses int                  // that it is of, up to scatterMemory
	span   [2]clock.Time        // least of this half of scatterSpan and the one before; 0: none
	since  clock.Time           // when this half began
}

// onAck takes in a round-trip time, and how many bytes were acknowledged with it.
func (s *scatter) onAck(now, rtt clock.Time, acked int) {
	if age := now - s.since; age >= scatterSpan/2 {
		s.span = [2]clock.Time{0, s.span[0]}
		if age >= scatterSpan {
			s.span[1] = 0
		}
		s.since = now
	}
	if s.span[0] == 0 || rtt < s.span[0] {
		s.span[0] = rtt
	}
	s.last[2], s.last[1], s.last[0] = s.last[1], s.last[0], rtt
	if s.due -= acked; s.due <= 0 && s.last[2] != 0 {
		s.times[s.n%scatterTimes] = s.now()
		if s.n++; s.n == 2*scatterTimes {
			s.n = scatterTimes // so that it cannot overflow
		}
		s.vary = (s.vary + scatterStep) % scatterBytes
		s.due = scatterBytes/2 + s.vary
	}
}

// now returns the round-trip time of this moment, in microseconds.
func (s *scatter) now() uint32 {
	a, b, c := s.last[0], s.last[1], s.last[2]
	return uint32(min(max(min(a, b), min(max(a, b), c))/1000, 1<<32-1))
}

// onLoss places a loss that was just found: the last round-trip times are those of
// packets that left right after what was lost.
func (s *scatter) onLoss() {
	n := min(s.n, scatterTimes)
	if n < scatterFew {
		return
	}
	if s.losses == 0 {
		s.place, s.losses = scatterFirst, scatterWeight
	}
	twice, here := 0, s.now()
	for _, t := range s.times[:n] {
		if t < here {
			twice += 2
		} else if t == here {
			twice++
		}
	}
	s.losses = min(s.losses+1, scatterMemory)
	s.place += (float64(twice)/float64(2*n) - s.place) / float64(s.losses)
}

// even reports whether losses are random, on a path whose round-trip time with an
// empty queue is base. It is false where nothing is known.
func (s *scatter) even(base clock.Time) bool {
	if s.losses == 0 || base > scatterPath {
		return false
	}
	now := s.span[0]
	if o := s.span[1]; o != 0 && o < now {
		now = o
	}
	return s.place < scatterEven && now < scatterQueue*base
}
