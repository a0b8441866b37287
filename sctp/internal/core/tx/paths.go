package tx

import (
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
)

// SetPaths makes room for n paths, at most MaxPaths. The number never shrinks.
func (s *Scoreboard) SetPaths(n int) {
	for len(s.paths) < min(n, MaxPaths) {
		f := pathFlight{rttMark: s.next, rack: newRack(s.next)}
		if len(s.paths) == 0 {
			f.set = seq.SetIn(s.firstWords[2][:], len(s.recs))
		} else {
			f.set = seq.NewSet(len(s.recs))
		}
		s.paths = append(s.paths, f)
		s.res.Paths = append(s.res.Paths, PathAck{})
	}
}

// Paths returns for how many paths there is room.
func (s *Scoreboard) Paths() int { return len(s.paths) }

// ReusePath makes the place of a removed path ready for another one: chunks that
// were sent by the old one measure nothing.
func (s *Scoreboard) ReusePath(i int) {
	f := &s.paths[i]
	f.rttMark, f.restart, f.ecnActive, f.undo = s.next, false, false, lossUndo{}
}

// MovePath takes what is outstanding of a path that is gone, and not in flight
// there, for that of another one: if the peer reneges on it, it is in flight
// again.
func (s *Scoreboard) MovePath(i, to int) {
	for t := s.base; t != s.next; t++ {
		r := s.rec(t)
		if int(r.path) != i {
			continue
		}
		if r.state&recAcked != 0 {
			s.paths[i].rack.sacked--
			s.paths[to].rack.sacked++
		}
		r.path = uint8(to)
		r.state |= recMulti
	}
}

// SentOn returns the path that an outstanding TSN was sent on last.
func (s *Scoreboard) SentOn(t seq.TSN) (path int, ok bool) {
	if t.Less(s.base) || !t.Less(s.next) {
		return 0, false
	}
	return int(s.rec(t).path), true
}

// Blocker returns the path of the earliest outstanding chunk and when it was
// sent, if it is in flight for the first time.
func (s *Scoreboard) Blocker() (path int, sent clock.Time, ok bool) {
	if s.base == s.next {
		return 0, 0, false
	}
	r := s.rec(s.base)
	return int(r.path), r.sent, r.state&recOut == 0 && r.tx == 1
}

func (s *Scoreboard) MarkBlocker() { s.mark(s.base, s.rec(s.base)) }
