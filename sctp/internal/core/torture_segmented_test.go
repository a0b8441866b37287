package core

import "github.com/weftstack/weft/sctp/internal/core/tx"

// tsegmented is the owner of the messages of a segmented send.
type tsegmented []*tmsg

func (s tsegmented) Released(err error) {
	for _, m := range s {
		m.Released(err)
	}
}

// sendSegmented sends a few messages by one segmented send, which are looked for as others are.
func (w *world) sendSegmented(e *tend, out, arg int) {
	count, size, k := 1+w.rng.IntN(8), 5+w.rng.IntN(1+arg*40), w.rng.IntN(5)
	m := &tx.Message{SID: uint16(w.rng.IntN(out)), PPID: uint32(arg), Unordered: true, Immediate: arg&1 != 0, SegmentSize: size - k}
	if arg&2 != 0 && e.assoc.auth.On && e.assoc.auth.Must.Has(e.assoc.tx.dataType()) {
		m.Keyed, m.Key = true, uint16(1+arg>>3&1)
	}
	if i := e.assoc.livePath(arg % e.assoc.NumPaths()); arg&4 != 0 {
		m.Remote = e.assoc.paths[i].Remote
	}
	var s tsegmented
	for i := range count {
		if i == count-1 {
			size -= w.rng.IntN(size - 4)
		}
		w.ids++
		x := &tmsg{id: w.ids, from: e, size: size, sid: m.SID, u: true, early: !e.assoc.state.connected(), reliable: true}
		b := w.body(x.id, size)
		m.Headers, m.Body = append(m.Headers, b[:k]...), append(m.Body, b[k:]...)
		s = append(s, x)
	}
	m.Owner = s
	switch err := e.assoc.Send(w.now, m); err {
	case nil:
		for _, x := range s {
			w.sent[x.id] = x
		}
	case tx.ErrWouldBlock, ErrShutdown:
	case tx.ErrMessageOpen:
		if e.open[m.SID] == nil {
			w.fail("%s: stream %d: %v", e.name, m.SID, err)
		}
	default:
		w.fail("%s: segmented Send: %v", e.name, err)
	}
}
