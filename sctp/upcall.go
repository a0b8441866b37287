package sctp

import (
	"log/slog"
	"sync"

	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// upcalls is the state of the goroutine that runs the callbacks of an association.
type upcalls struct {
	announced, ended bool
	shutdown         bool         // NotifyShutdown waits for the message fragments before it
	down             Notification // kept until the last message fragment was delivered
	hasDown          bool
	notes            []note
	releases         []tx.Release
	piece            Piece
	later            func() // runAllCallbacks, for goCallbacks; made once
}

// piecePool has arrays for the message fragments that are on their way to the user.
var piecePool = sync.Pool{New: func() any { return new([maxPieces]reasm.Piece) }}

// maxPieces is how many message fragments are taken from the core under one lock.
const maxPieces = 64

// runCallbacks makes the upcalls that are due. One goroutine at a time does so for an
// association: if another one is running them it runs these, too. No lock is held.
func (a *Association) runCallbacks(w deferred) {
	if w != 0 && a.callbacks.Add(1) == 1 {
		a.runAllCallbacks()
	}
}

// goCallbacks is runCallbacks on another goroutine, for callers that may hold locks which
// upcalls take. It ignores message fragments: the goroutine that made them readable runs
// their callbacks.
func (a *Association) goCallbacks(w deferred) {
	if w&deferredEvents != 0 && a.callbacks.Add(1) == 1 {
		if a.calls.later == nil {
			a.calls.later = a.runAllCallbacks
		}
		go a.calls.later()
	}
}

func (a *Association) runAllCallbacks() {
	for {
		n := a.callbacks.Load()
		a.runCallbacksOnce()
		if a.callbacks.CompareAndSwap(n, 0) {
			return
		}
	}
}

func (a *Association) runCallbacksOnce() {
	u := &a.calls
	var pieces []reasm.Piece
	if a.onPiece != nil {
		p := piecePool.Get().(*[maxPieces]reasm.Piece)
		defer piecePool.Put(p) // all released by then
		pieces = p[:]
	}
	np := 0
	for {
		a.mu.Lock()
		for i := range pieces[:np] {
			a.core.ReleasePiece(&pieces[i])
		}
		freed, performed := np > 0, false
		up, dead := a.up && !a.unwanted, a.dead && !a.kernelReads
		var k wakeList
		if a.eof {
			a.readers.takeAll(&k)
		}
		if u.notes = u.notes[:0]; len(a.notes) > 0 {
			u.notes, a.notes = a.notes, u.notes
		}
		if u.releases = u.releases[:0]; len(a.releases) > 0 {
			u.releases, a.releases = a.releases, u.releases
		}
		np = 0
		if up && u.announced && !a.closing {
			for np < len(pieces) && a.core.PopPiece(&pieces[np]) {
				np++
			}
			if np < len(pieces) && a.core.ResetWaits() {
				a.core.PerformReset(a.t.now())
				performed = !a.core.ResetWaits()
			}
		}
		flush := freed && a.core.WantTransmit() || performed // a window that has grown, the answer to the reset
		w := a.drainAndUnlock()
		behind := np > 0 || w&deferredFragments != 0
		k.wake()
		if flush {
			w |= a.flush()
		}
		announce := up && !u.announced
		if announce {
			u.announced = true
			a.announce()
		}
		for _, n := range u.notes {
			switch {
			case n.change != nil:
				a.logState(n.change)
			case n.Kind == NotifyDown:
				u.down, u.hasDown = n.Notification, true
			case up && behind && n.Kind == NotifyShutdown:
				u.shutdown = true
			case up:
				if n.Kind == NotifyRestart { // the message fragments are of after it
					u.tellShutdown(a)
				}
				a.tell(n.Notification)
			}
		}
		for i := range pieces[:np] {
			u.set(&pieces[i])
			u.piece.More = i < np-1
			a.onPiece(a, &u.piece)
		}
		if np > 0 {
			u.piece = Piece{}
		}
		for i, r := range u.releases {
			r.Owner.Released(coreError(r.Err))
			u.releases[i] = tx.Release{}
		}
		if announce || np > 0 || len(u.notes) > 0 || len(u.releases) > 0 || w&deferredEvents != 0 {
			continue
		}
		u.tellShutdown(a)
		if dead && !u.ended {
			u.ended = true
			switch {
			case u.hasDown && up:
				a.tell(u.down)
			case u.hasDown && a.opened:
				a.log(slog.LevelInfo, "association not established", &u.down)
			}
			close(a.done)
			a.ep.checkIdle()
		}
		return
	}
}

// tellShutdown tells of the peer's shutdown if that has waited.
func (u *upcalls) tellShutdown(a *Association) {
	if u.shutdown {
		u.shutdown = false
		a.tell(Notification{Kind: NotifyShutdown})
	}
}

// set describes a message fragment to the user. It sets field by field: the compiler would
// build a literal on the stack and copy it, and the copy would wait for the stores.
func (u *upcalls) set(p *reasm.Piece) {
	d := &u.piece
	d.Stream, d.SSN, d.MID, d.PPID, d.TSN = p.SID, uint16(p.SSN), uint32(p.MID), p.PPID, uint32(p.TSN)
	d.Begin, d.End, d.Unordered, d.Aborted = p.Begin, p.End, p.Unordered, p.Aborted
	d.Message, d.Offset, d.Data, d.buf = p.Message, p.Offset, p.Data, p.Buf
}

// announce hands a new association to OnAssociation or Accept.
func (a *Association) announce() {
	e := a.ep
	if e.cfg.OnAssociation != nil {
		e.cfg.OnAssociation(a)
		var k wakeList
		a.mu.Lock()
		a.known = true
		a.openers.takeAll(&k)
		a.mu.Unlock()
		k.wake()
	}
	if a.opened || e.many.Load() {
		return
	}
	select {
	case e.backlog <- a:
	default:
		a.Abort("backlog full")
	}
	if e.deaf.Load() {
		select {
		case a := <-e.backlog: // the endpoint was closed meanwhile
			a.Abort("listener closed")
		default:
		}
	}
}
