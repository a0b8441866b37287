package sctp

import (
	"github.com/weftstack/weft/sctp/internal/core"
)

// work tells what is left to do after an association was unlocked.
type work uint8

const (
	// workEvents: notifications, releases or announcements wait for settle.
	workEvents work = 1 << iota
	// workPieces: pieces wait for settle.
	workPieces
)

// maxNotes bounds the notifications that wait for OnNotify. Beyond it the
// oldest are lost, but never those that begin and end the association.
const maxNotes = 1024

// unlock takes in what the core has produced since the lock was taken, unlocks
// a.mu and wakes whoever waited for it. If the result is not 0 the caller calls
// settle or, if its own caller may hold locks, settleLater.
func (a *Association) unlock() (w work) {
	var k wakeList
	c := a.core
	for e, ok := c.PollEvent(); ok; e, ok = c.PollEvent() {
		a.event(&e, &k)
		w = workEvents
	}
	if c.HasReleases() {
		w |= a.takeReleases()
	}
	many := false
	if c.Readable() {
		switch {
		case a.closing || a.unwanted:
			a.discard()
		case a.ep.cfg.OnPiece != nil:
			w |= workPieces
		default:
			a.seq.Add(1)
			if a.readers.head != nil {
				a.readers.takeReadable(&k, true, c.ReadableStream)
			}
			many = a.ep.many.Load() && !a.unwanted
		}
	}
	a.mu.Unlock()
	if many {
		a.ep.enqueue(a)
	}
	k.wake()
	return w
}

// event takes in one event of the core. a.mu is held.
func (a *Association) event(e *core.Event, k *wakeList) {
	n := Notification{Addr: e.Addr, Stream: e.Stream, Cause: e.Cause}
	switch e.Kind {
	case core.EventUp:
		a.up = true
		a.active()
		if a.opened && a.core.NumPaths() > 1 {
			a.setPathMTUs(a.t.now()) // the INIT ACK has told the peer's addresses
		}
		if a.ep.cfg.OnAssociation == nil {
			a.known = true
			a.openers.takeAll(k)
		}
		a.t.demux.update(a, a.core.Tag(), a.peerKeys())
		n.Kind = NotifyUp
	case core.EventRestart:
		a.t.demux.update(a, a.core.Tag(), a.peerKeys())
		n.Kind = NotifyRestart
	case core.EventPeerShutdown:
		// Readers learn of it in settle, after the SHUTDOWN ACK has left: they may
		// be the last that kept the process alive.
		a.eof = true
		a.writers.takeAll(k)
		n.Kind = NotifyShutdown
	case core.EventDown:
		a.end(coreError(e.Err), k)
		n.Kind, n.Err = NotifyDown, a.err
	case core.EventPathUp:
		n.Kind = NotifyPathUp
	case core.EventPathDown:
		n.Kind = NotifyPathDown
	case core.EventPathFailed:
		n.Kind = NotifyPathFailed
	case core.EventPathMTU:
		n.Kind = NotifyPathMTU
	case core.EventPathConfirmed:
		n.Kind = NotifyPathConfirmed
	case core.EventPrimary:
		n.Kind = NotifyPrimary
	case core.EventPathMoved:
		a.t.demux.update(a, a.core.Tag(), a.peerKeys())
		return
	case core.EventPeerError:
		n.Kind = NotifyRemoteError
	case core.EventWritable:
		a.writers.takeAll(k)
		a.seq.Add(1)
		return
	case core.EventDry:
		n.Kind = NotifySenderDry
	case core.EventPartialAborted:
		n.Kind = NotifyAborted
	case core.EventSendFailed:
		n.Kind = NotifySendFailed
	case core.EventRequestDone:
		a.answer(e.Request, coreError(e.Err), k)
		return
	case core.EventStreamsReset:
		n.Kind, n.Streams = NotifyStreamsReset, e.Streams
	case core.EventOutStreamsReset:
		n.Kind, n.Streams, n.Err = NotifyOutStreamsReset, e.Streams, coreError(e.Err)
	case core.EventStreamsAdded:
		n.Kind = NotifyStreamsAdded
	case core.EventPathAdded:
		a.t.demux.update(a, a.core.Tag(), a.peerKeys())
		a.setPathMTU(a.t.now(), e.Addr)
		n.Kind = NotifyPathAdded
	case core.EventPathRemoved:
		a.t.demux.update(a, a.core.Tag(), a.peerKeys())
		n.Kind = NotifyPathRemoved
	default:
		return
	}
	a.seq.Add(1)
	if a.ep.cfg.OnNotify == nil {
		return
	}
	if len(a.notes) >= maxNotes && n.Kind != NotifyUp && n.Kind != NotifyDown && n.Kind != NotifyRestart {
		return
	}
	a.notes = append(a.notes, n)
}

// end notes that the association is over. a.mu is held.
func (a *Association) end(err error, k *wakeList) {
	if !a.up && a.opened {
		if ab, ok := err.(*AbortError); ok && ab.ByPeer {
			err = &refusedError{ab}
		}
	}
	a.dead, a.eof, a.err = true, true, err
	a.gone.Store(true)
	a.t.demux.remove(a)
	a.openers.takeAll(k)
	a.readers.takeAll(k)
	a.writers.takeAll(k)
	a.answerAll(err, k)
}

// discard drops what is readable. a.mu is held.
func (a *Association) discard() {
	if a.ep.cfg.OnPiece != nil {
		for p, ok := a.core.PopPiece(); ok; p, ok = a.core.PopPiece() {
			a.core.ReleasePiece(&p)
		}
		return
	}
	var sink [4096]byte
	for a.core.Readable() {
		a.core.Read(sink[:])
	}
}

// takeReleases recycles the copies of messages that were acknowledged, and
// keeps the callers' owners for settle. a.mu is held.
func (a *Association) takeReleases() (w work) {
	n := len(a.releases)
	all := a.core.TakeReleases(a.releases)
	kept := all[:n]
	for _, r := range all[n:] {
		if b, ok := r.Owner.(*block); ok {
			b.free()
		} else if r.Owner != nil {
			kept = append(kept, r)
			w = workEvents
		}
	}
	clear(all[len(kept):])
	a.releases = kept
	return w
}

// upcalls is the state of the goroutine that settles.
type upcalls struct {
	announced, ended bool
	down             Notification // kept until the last piece was delivered
	hasDown          bool
	notes            []Notification
	releases         []core.Release
	pieces           []core.Piece // of length maxPieces in upcall mode
	piece            Piece
}

// maxPieces is how many pieces are taken from the core under one lock.
const maxPieces = 64

// settle makes the upcalls that are due, on one goroutine at a time: if one is
// at it already it does the rest, too. No lock is held.
func (a *Association) settle(w work) {
	if w != 0 && a.settling.Add(1) == 1 {
		a.settleAll()
	}
}

// settleLater is settle for callers that may hold locks which upcalls want: the
// upcalls come on another goroutine. Pieces need no care: whoever made them
// readable settles.
func (a *Association) settleLater(w work) {
	if w&workEvents != 0 && a.settling.Add(1) == 1 {
		go a.settleAll()
	}
}

func (a *Association) settleAll() {
	for {
		n := a.settling.Load()
		a.runUpcalls()
		if a.settling.CompareAndSwap(n, 0) {
			return
		}
	}
}

func (a *Association) runUpcalls() {
	u := a.calls
	if u == nil {
		u = new(upcalls)
		if a.ep.cfg.OnPiece != nil {
			u.pieces = make([]core.Piece, maxPieces)
		}
		a.calls = u
	}
	cfg := &a.ep.cfg
	np := 0
	for {
		a.mu.Lock()
		for i := range u.pieces[:np] {
			a.core.ReleasePiece(&u.pieces[i])
			u.pieces[i] = core.Piece{}
		}
		freed := np > 0
		up, dead := a.up && !a.unwanted, a.dead
		var k wakeList
		if a.eof {
			a.readers.takeAll(&k)
		}
		u.notes, a.notes = a.notes, u.notes[:0]
		u.releases, a.releases = a.releases, u.releases[:0]
		np = 0
		if up && u.announced && !a.closing {
			for np < len(u.pieces) {
				p, ok := a.core.PopPiece()
				if !ok {
					break
				}
				u.pieces[np] = p
				np++
			}
		}
		flush := freed && a.core.WantTransmit()
		w := a.unlock()
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
			if n.Kind == NotifyDown {
				u.down, u.hasDown = n, true
			} else if up {
				cfg.OnNotify(a, n)
			}
		}
		for i := range u.pieces[:np] {
			u.set(&u.pieces[i])
			cfg.OnPiece(a, &u.piece)
		}
		if np > 0 {
			u.piece = Piece{}
		}
		for i, r := range u.releases {
			r.Owner.Released(coreError(r.Err))
			u.releases[i] = core.Release{}
		}
		if announce || np > 0 || len(u.notes) > 0 || len(u.releases) > 0 || w&workEvents != 0 {
			continue
		}
		if dead && !u.ended {
			u.ended = true
			if u.hasDown && up {
				cfg.OnNotify(a, u.down)
			}
			close(a.done)
			a.ep.checkIdle()
		}
		return
	}
}

// set describes a piece to the user.
func (u *upcalls) set(p *core.Piece) {
	u.piece = Piece{
		Stream: p.SID, SSN: uint16(p.SSN), MID: uint32(p.MID), PPID: p.PPID, TSN: uint32(p.TSN),
		Begin: p.Begin, End: p.End, Unordered: p.Unordered, Aborted: p.Aborted,
		Message: p.Message, Offset: p.Offset, Data: p.Data, buf: p.Buf,
	}
}

// announce hands a new association to whoever waits for one.
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
