package core

import "github.com/weftstack/weft/sctp/internal/core/clock"

// lossOn notes, before the congestion control of path i learns of it, that
// chunks were found lost. A loss in the same window as the one before belongs to
// it.
func (a *Assoc) lossOn(i int) {
	p := &a.paths[i]
	u := &a.tx.sb.paths[i].undo
	if u.active && a.tx.sb.CumTSN().Less(u.mark-1) {
		return
	}
	*u = lossUndo{active: true, before: p.cc.Window(), mark: a.tx.sb.NextTSN()}
}

// undoLoss takes back the reduction of the window of path i if the loss turned
// out to be none.
func (a *Assoc) undoLoss(now clock.Time, i int) {
	u := &a.tx.sb.paths[i].undo
	if !u.active || u.again == 0 || u.dups < u.again {
		return
	}
	u.active = false
	p := &a.paths[i]
	p.cc.Undo(u.before)
	p.count.undone++
	a.updatePacer(now, i)
}
