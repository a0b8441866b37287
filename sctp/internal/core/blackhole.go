package core

import "github.com/weftstack/weft/sctp/internal/core/clock"

// checkSizes acts upon what became of large packets: it lets go of path MTUs that do not
// work any more, and takes note of sizes that do.
func (a *Assoc) checkSizes(now clock.Time) {
	for i := range a.paths {
		if a.paths[i].gone {
			continue
		}
		if n := a.tx.sb.TakeProvenSize(i); n > 0 {
			a.sizeProven(now, i, n)
		}
		if a.tx.sb.BlackHole(i) {
			a.suspectHole(now, i)
		}
	}
}

// suspectHole is called when path i lost large packets several times in a row. If nothing
// has come back by it meanwhile, the path may be at fault rather than the size: a
// heartbeat, which is short, is to tell.
func (a *Assoc) suspectHole(now clock.Time, i int) {
	p := &a.paths[i]
	if p.aliveAt > a.tx.sb.BigLossesBegan(i) {
		a.blackHole(now, i)
	} else if p.mtu > p.unquestioned() && !p.suspect {
		p.suspect, p.hb.pending = true, true
		a.slow |= slowHeartbeat
	}
}
