package core

import "github.com/weftstack/weft/sctp/internal/core/clock"

// lossOn notes, before the congestion control of path i learns of it, that
// chunks were found lost. A loss in the same window as the one before belongs to
// it.
func (t *sender) lossOn(i int) {
	if p := t.path(i); t.sb.NoteLoss(i) {
		p.beforeLoss = p.cc.Window()
	}
}

// undoLoss takes back the reduction of the window of path i if the loss turned
// out to be none.
func (t *sender) undoLoss(now clock.Time, i int) {
	if !t.sb.WasNoLoss(i) {
		return
	}
	p := t.path(i)
	p.cc.Undo(p.beforeLoss)
	p.count.undone++
	t.updatePacer(now, i)
}
