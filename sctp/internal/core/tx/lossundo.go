package tx

import (
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// lossUndo remembers the window of before a path reduced it for a loss. If the
// peer reports every chunk that was retransmitted since as a duplicate, nothing
// had been lost: it was late. (RFC 3708 does that for TCP; duplicate TSNs are the
// DSACK here.)
type lossUndo struct {
	active bool
	mark   seq.TSN // the next TSN at the time of the loss
	again  int     // retransmissions of chunks below mark
	dups   int     // duplicates reported of them
}

// NoteLoss notes that chunks of a path were found lost. It reports false if they
// belong to the loss before it, in the same window.
func (s *Scoreboard) NoteLoss(path int) bool {
	u := &s.paths[path].undo
	if u.active && s.CumTSN().Less(u.mark-1) {
		return false
	}
	*u = lossUndo{active: true, mark: s.next}
	return true
}

// WasNoLoss reports, once, that the last loss on a path turned out to be none.
func (s *Scoreboard) WasNoLoss(path int) bool {
	u := &s.paths[path].undo
	if !u.active || u.again == 0 || u.dups < u.again {
		return false
	}
	u.active = false
	return true
}

// noteAgain notes that a chunk is retransmitted, which was sent on path f last.
func (f *pathFlight) noteAgain(t seq.TSN) {
	if f.undo.active && t.Less(f.undo.mark) {
		f.undo.again++
	}
}

// noteDups takes in the duplicates of a SACK. They do not tell by which path
// they came twice: they count for the first that awaits some.
func (s *Scoreboard) noteDups(sk *wire.Sack) {
	for k := range sk.Dups.Len() {
		t := seq.TSN(sk.Dups.At(k))
		for i := range s.paths {
			if u := &s.paths[i].undo; u.active && u.dups < u.again && t.Less(u.mark) {
				u.dups++
				break
			}
		}
	}
}
