package core

// holeLosses is how many times in a row retransmissions in large packets must
// get lost, with nothing in large packets being acknowledged, for the path to
// count as a black hole for them.
const holeLosses = 2

// sizeWatch watches the fate of large packets on one path.
type sizeWatch struct {
	slack int  // how much longer than what is proven to work packets may be
	lost  int  // losses in a row
	since Time // of the last loss that was counted
}

// setSlack tells how much longer than what is proven to work packets on a path may
// be, not above 0 if they cannot.
func (s *Scoreboard) setSlack(path, n int) { s.paths[path].size = sizeWatch{slack: n} }

// noteSize remembers whether a chunk that was just sent is, wholly or in part,
// what makes its packet large; space is what the packet had left before it.
func (s *Scoreboard) noteSize(r *record, f *pathFlight, space int) {
	r.state &^= recBig
	if f.size.slack > 0 && space-s.chunkSize(r) < f.size.slack {
		r.state |= recBig
	}
}

// bigLost counts the loss of a retransmission in a large packet. Those sent
// before the last such loss was noticed do not count again: they may have been
// lost together with it.
func (w *sizeWatch) bigLost(now Time, r *record) {
	if r.tx > 1 && r.sent >= w.since {
		w.lost++
		w.since = now
	}
}

// blackHole reports, once, that a path loses large packets and nothing shows
// that it carries any (RFC 8899, Section 4.3).
func (s *Scoreboard) blackHole(path int) bool {
	w := &s.paths[path].size
	if w.lost < holeLosses {
		return false
	}
	w.lost = 0
	return w.slack > 0
}

// checkHoles lets go of path MTUs that do not work any more.
func (a *Assoc) checkHoles(now Time) {
	for i := range a.paths {
		if a.tx.sb.blackHole(i) {
			a.blackHole(now, i)
		}
	}
}
