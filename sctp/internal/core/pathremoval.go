package core

import (
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core/timer"
)

// removePath forgets an address of the peer's. Its place stays empty until
// another path needs one, because the scoreboard knows paths by their place.
func (a *Assoc) removePath(i int) {
	p := &a.paths[i]
	was := p.Remote
	a.tx.sb.MarkPath(i)
	a.tx.sb.ForwardAgain() // its T3 ran here
	a.tx.q.ForgetPath(i)
	for k := range timer.NumPathKinds {
		a.timers.StartPath(k, i, 0)
	}
	p.plpmtu.Fix(p.mtu)
	*p = path{gone: true, errors: goneErrors, par: p.par, mtu: p.mtu, plpmtu: p.plpmtu, rto: p.rto, cc: p.cc}
	if c := &a.tx.carry; c.full && c.path == i {
		c.full = false // what was in it is marked
	}
	if a.preferred == was.Addr() {
		a.preferred = netip.Addr{}
	}
	if a.primary == i { // F12
		for k := range a.paths {
			if a.paths[k].fitter(&a.paths[a.primary]) {
				a.primary = k
			}
		}
		a.events.push(Event{Kind: EventPrimary, Addr: a.paths[a.primary].Remote})
	}
	for _, at := range []*int{&a.hs.ackPath, &a.shut.path, &a.tx.rtxPath, &a.in.path, &a.failed} {
		if *at == i {
			*at = a.primary
		}
	}
	a.rc.MovePath(i, a.primary)
	a.asc.MovePath(i, a.primary)
	a.tx.sb.MovePath(i, a.primary)
	a.ctl.move(i, a.primary)
	a.probeNow()
	a.events.push(Event{Kind: EventPathRemoved, Addr: was})
}

// goneErrors is the error counter of a removed path, which makes it the last
// choice.
const goneErrors = 1 << 30

// move gives the replies for path i to another one.
func (q *controlQueue) move(i, to int) {
	for k := range q.n {
		if q.list[k].path == i {
			q.list[k].path = to
		}
	}
}
