package core

import (
	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// lossUndo remembers the window of before a path reduced it for a loss. If the
// peer reports every chunk that was retransmitted since as a duplicate, nothing
// had been lost: it was late. (RFC 3708 does that for TCP; duplicate TSNs are the
// DSACK here.)
type lossUndo struct {
	active bool
	before cc.Window
	mark   seq.TSN // the next TSN at the time of the loss
	again  int     // retransmissions of chunks below mark
	dups   int     // duplicates reported of them
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
