package core

import (
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// topen is a message that an end gives in pieces.
type topen struct {
	of   tx.OpenMessage
	x    *tmsg
	sid  uint16
	ppid uint32
}

// tpiece owns a piece of a message.
type tpiece struct{ x *tmsg }

// Released implements Owner: a message is released with its last piece.
func (p *tpiece) Released(err error) {
	x := p.x
	if x.err == nil {
		x.err = err
	}
	if x.pieces--; x.pieces < 0 {
		x.from.w.fail("message %d: a piece was released twice", x.id)
	}
	if !x.open && x.pieces == 0 {
		x.released++
	}
}

// sendPieces begins messages that are given in pieces, or goes on with those of the
// streams that it comes upon.
func (w *world) sendPieces(e *tend, out, arg int) {
	for range 1 + arg&3 {
		sid := uint16(w.rng.IntN(out))
		o, last := e.open[sid], w.rng.IntN(4) == 0
		if o == nil {
			w.ids++
			x := &tmsg{id: w.ids, from: e, sid: sid, u: arg&4 != 0, early: !e.assoc.state.connected(), reliable: true, open: true}
			o = &topen{x: x, sid: sid, ppid: uint32(arg)}
		} else if w.rng.IntN(4) == 0 {
			w.trespass(e, o)
		}
		o.send(1+w.rng.IntN(1<<w.rng.IntN(12)), last)
	}
}

// trespass tries to send what is not to be sent while o is open.
func (w *world) trespass(e *tend, o *topen) {
	if o.x.void {
		return // the peer has restarted, so that the stream may be free again
	}
	for _, m := range []*tx.Message{{SID: o.sid, Body: []byte("no"), Force: true},
		{SID: o.sid, Body: []byte("no"), Of: new(tx.OpenMessage), Last: o.ppid&1 == 0}} {
		switch err := e.assoc.Send(w.now, m); err {
		case nil:
			w.fail("%s: stream %d took a message before the end of message %d", e.name, o.sid, o.x.id)
		case tx.ErrMessageOpen, ErrShutdown, ErrClosed, tx.ErrStream:
		case tx.ErrRestart:
			w.fail("%s: stream %d: %v", e.name, o.sid, err)
		}
	}
}

// send sends a piece of n bytes and remembers it. It reports whether there may be
// another one, or this one again.
func (o *topen) send(n int, last bool) bool {
	x := o.x
	e, w := x.from, x.from.w
	first := !o.of.Begun()
	if first {
		n += 4
	}
	body := w.body(x.id, x.size+n)[x.size:]
	m := &tx.Message{SID: o.sid, PPID: o.ppid, Unordered: x.u, Of: &o.of, Last: last, Owner: &tpiece{x}, Force: w.ending}
	k := 0
	if n < 2 || w.rng.IntN(3) == 0 {
		k = min(w.rng.IntN(tx.MaxHeader+1), n)
	}
	m.Header, m.Body = body[:k], body[k:]
	switch err := e.assoc.Send(w.now, m); err {
	case nil:
	case tx.ErrWouldBlock:
		if w.ending {
			w.fail("%s: a piece that was forced: %v", e.name, err)
		}
		return true
	case tx.ErrMessageOpen:
		w.fail("%s: message %d of stream %d: %v", e.name, x.id, o.sid, err)
	case tx.ErrRestart:
		if !x.void {
			w.fail("%s: message %d of stream %d: %v", e.name, x.id, o.sid, err)
		}
		fallthrough
	default: // it never will be ended
		if delete(e.open, o.sid); !first {
			e.cutOff++
		}
		return false
	}
	x.size += n
	x.pieces++
	x.open = !last
	if first {
		w.sent[x.id] = x
		e.open[o.sid] = o
		if !x.u {
			x.seq = e.next[o.sid]
			e.next[o.sid]++
			e.ordered[o.sid] = append(e.ordered[o.sid], x)
		}
	}
	if last {
		delete(e.open, o.sid)
	}
	w.logf("%s: message %d, stream %d: piece of %d bytes, last %v", e.name, x.id, o.sid, n, last)
	return !last
}

// endOpen ends all messages that are open.
func (e *tend) endOpen() {
	for sid := range uint16(64) { // in order, for the sake of the seed
		if o := e.open[sid]; o != nil && e.assoc != nil {
			o.send(1, true)
		}
	}
}

// checkUnfinished notes that e, which is down, or its peer has aborted because a
// message was not ended: so there has to be one.
func (w *world) checkUnfinished(e *tend) {
	for _, x := range w.end {
		if x.assoc == nil {
			continue
		}
		if ab, ok := x.assoc.Err().(*AbortError); ok && ab.Reason == "a message was not ended" {
			if len(e.open)+len(e.peer().open)+e.cutOff+e.peer().cutOff == 0 {
				w.fail("%s: %v, but all are", e.name, ab)
			}
			w.mayFail = true
		}
	}
}

// checkKey checks that a chunk goes in a packet authenticated with the key that its
// message names, -1 for none.
func (e *tend) checkKey(a *Assoc, t seq.TSN, key int) {
	id, named, ok := a.tx.sb.KeyOf(t)
	if !ok {
		return
	}
	if named && int(id) != key {
		e.w.fail("%s: TSN %d, which is to go with key %d, goes with %d", e.name, t, id, key)
	} else if !named && a.auth.On && a.auth.Must.Has(a.tx.dataType()) && key != int(a.auth.ActiveKey()) {
		e.w.fail("%s: TSN %d goes with key %d", e.name, t, key)
	}
}
