package sctp

import (
	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/reasm"
)

// deferred is a set of actions that are left for after an association was unlocked, because
// they call the user or wake goroutines.
type deferred uint8

const (
	// deferredEvents: notifications, releases or an announcement wait for runCallbacks.
	deferredEvents deferred = 1 << iota
	// deferredFragments: message fragments wait for runCallbacks.
	deferredFragments
)

// maxNotes bounds the notifications that wait for OnNotify. Beyond it they are
// lost, but never those of the beginning, the last restart and the end.
const maxNotes = 1024

// drainAndUnlock takes the events that the core has produced since a.mu was locked, unlocks
// a.mu and wakes the goroutines that wait for them. The caller passes the result to
// runCallbacks or, if its own caller may hold locks that upcalls take, to goCallbacks.
func (a *Association) drainAndUnlock() (w deferred) {
	var k wakeList
	c := a.core
	a.countMemory()
	for c.HasEvents() {
		e, _ := c.PollEvent()
		a.event(&e, &k)
		w = deferredEvents
	}
	if !a.kernelReads && c.HasReleases() {
		w |= a.takeReleases()
	}
	many := false
	if c.Readable() {
		switch {
		case a.closing || a.unwanted:
			a.discard()
		case a.onPiece != nil:
			w |= deferredFragments
		default:
			a.seq.Add(1)
			if a.readers.head != nil {
				a.readers.takeReadable(&k, true, c.ReadableStream)
			}
			many = a.ep.many.Load() && !a.unwanted
		}
	} else if a.readers.head != nil && !a.closing && !a.unwanted {
		// What is held back, or behind a message that was delivered in part, is for those
		// who ask for its stream.
		a.readers.takeReadable(&k, false, c.ReadableStream)
	}
	a.mu.Unlock()
	if many {
		a.ep.enqueue(a)
	}
	k.wake()
	return w
}

// event handles one event of the core: it updates the state of the driver, collects the
// goroutines to wake in k, and queues a notification. a.mu is held.
func (a *Association) event(e *core.Event, k *wakeList) {
	n := Notification{Addr: a.t.shown(e.Addr), Stream: e.Stream, Cause: e.Cause}
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
		a.setPathMTUs(a.t.now()) // the paths are new
		a.eof = false            // although the peer's earlier life may have shut down
		n.Kind = NotifyRestart
	case core.EventPeerShutdown:
		// runCallbacks tells readers, after the SHUTDOWN ACK has left: the program may
		// exit when they return.
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
		a.t.demux.update(a, a.core.Tag(), a.peerKeys())
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
		n.Kind, n.PPID, n.Err = NotifySendFailed, e.PPID, ErrExpired
	case core.EventRequestDone:
		a.answer(e.Request, coreError(e.Err), k)
		return
	case core.EventStreamsReset:
		n.Kind, n.Streams = NotifyStreamsReset, e.Streams
	case core.EventOutStreamsReset:
		n.Kind, n.Streams, n.Err = NotifyOutStreamsReset, e.Streams, coreError(e.Err)
	case core.EventAuthKey:
		n.Kind, n.Key = NotifyAuthKey, e.Key
	case core.EventAuthKeyFree:
		n.Kind, n.Key = NotifyAuthKeyFree, e.Key
	case core.EventStreamsAdded:
		n.Kind = NotifyStreamsAdded
	case core.EventPathAdded:
		a.t.demux.update(a, a.core.Tag(), a.peerKeys())
		a.setPathMTU(a.t.now(), e.Addr)
		n.Kind = NotifyPathAdded
	case core.EventPathRemoved:
		a.t.demux.update(a, a.core.Tag(), a.peerKeys())
		n.Kind = NotifyPathRemoved
	case core.EventState:
		if len(a.notes) < maxNotes {
			a.notes = append(a.notes, note{change: e.Change})
		}
		return
	default:
		return
	}
	a.seq.Add(1)
	if a.ep.cfg.OnNotify == nil && (a.t.cfg.Log == nil || !n.Kind.logged()) {
		return
	}
	if len(a.notes) >= maxNotes {
		switch n.Kind {
		case NotifyRestart:
			if a.notes[len(a.notes)-1].Kind == NotifyRestart {
				return // a peer can restart as often as it likes
			}
		case NotifyUp, NotifyDown:
		default:
			return
		}
	}
	a.notes = append(a.notes, note{Notification: n})
}

// end notes that the association is over. a.mu is held.
func (a *Association) end(err error, k *wakeList) {
	if ab, ok := err.(*AbortError); a.rare.cause != nil {
		if err = a.rare.cause; err == errComplete {
			err = nil
		}
	} else if ok && ab.ByPeer && !a.up && a.opened {
		err = &refusedError{ab}
	}
	a.dead, a.eof, a.err = true, true, err
	a.gone.Store(true)
	a.t.demux.remove(a)
	if a.admitBy != 0 {
		a.ep.unproven.remove(a)
	}
	a.leaveMemory()
	if a.deadline != nil {
		a.t.timers.Drop(a.deadline)
	}
	a.openers.takeAll(k)
	a.readers.takeAll(k)
	a.writers.takeAll(k)
	a.answerAll(err, k)
}

// discard drops what is readable. a.mu is held.
func (a *Association) discard() {
	if a.onPiece != nil {
		for p := (reasm.Piece{}); a.core.PopPiece(&p); {
			a.core.ReleasePiece(&p)
		}
		return
	}
	var sink [4096]byte
	var info reasm.RecvInfo
	for a.core.Readable() {
		a.core.Read(sink[:], &info)
	}
}

// takeReleases recycles the copies of messages that were acknowledged, and keeps the
// callers' owners for runCallbacks. a.mu is held.
func (a *Association) takeReleases() (w deferred) {
	n := len(a.releases)
	all := a.core.TakeReleases(a.releases)
	kept := all[:n]
	for _, r := range all[n:] {
		switch o := r.Owner.(type) {
		case nil:
		case *bufpool.Buffer:
			o.Put()
		case *batchBuf:
			batchBufs.Put(o)
		default:
			kept = append(kept, r)
			w = deferredEvents
		}
	}
	clear(all[len(kept):])
	a.releases = kept
	return w
}
