package core

import "github.com/weftstack/weft/sctp/internal/core/clock"

// lossOn notes, before the congestion control of path i learns of it, that
// chunks were found lost. A loss in the same window as the one before belongs to
// it.
func (a *Assoc) lossOn(i int) {
	if p := &a.paths[i]; a.tx.sb.NoteLoss(i) {
		p.beforeLoss = p.cc.Window()
	}
}

// undoLoss takes back the reduction of the window of path i if the loss turned
// out to be none.
func (a *Assoc) undoLoss(now clock.Time, i int) {
	if !a.tx.sb.WasNoLoss(i) {
		return
	}
	p := &a.paths[i]
	p.cc.Undo(p.beforeLoss)
	p.count.undone++
	a.updatePacer(now, i)
}
