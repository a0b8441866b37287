package core

import "github.com/weftstack/weft/sctp/internal/core/seq"

// Unordered messages of one fragment, which need nothing else to be delivered, wait
// for popPiece as the fragments that they are rather than as records of messages. They
// go before what is ready of their stream, which has come later.

// whole reports whether f, which begins a message of st that is not known, is all of
// it and may wait so.
func (r *reassembly) isUnfragmented(st *inStream, f *frag) bool {
	return f.unordered && f.begin && f.end && r.cfg.pieces && !st.paused && !st.queued
}

func (r *reassembly) pushUnfragmented(st *inStream, f *frag) {
	st.unfragmented++
	r.unfragmented.push(f)
}

func (r *reassembly) removeUnfragmented(f *frag) {
	r.streams[f.sid].unfragmented--
	r.unfragmented.remove(f)
}

// popUnfragmented is popPiece for the first of r.wholes.
func (r *reassembly) popUnfragmented(p *Piece) {
	f := r.unfragmented.head
	r.removeUnfragmented(f)
	r.unfragmented.head.prefetch()
	r.msgID++
	*p = Piece{}
	p.SID, p.PPID, p.Unordered, p.Begin, p.End = f.sid, f.ppid, true, true, true
	if r.cfg.interleaved {
		p.MID = seq.MID(f.msg)
	}
	p.Message, p.TSN, p.Data = r.msgID, f.tsn, f.data
	p.frag, p.from = f, r
	if f.pin != nil {
		p.Buf = f.pin.buf
	}
}

// convertUnfragmented makes messages of those of a stream, or of anyStream, that is paused or
// read otherwise than by popPiece.
func (r *reassembly) convertUnfragmented(sid int) {
	for f := r.unfragmented.head; f != nil; {
		next := f.next
		if sid == anyStream || sid == int(f.sid) {
			r.removeUnfragmented(f)
			m := r.newMessage(r.stream(f.sid), f.msg, true)
			r.append(m, f)
			r.deliver(m)
		}
		f = next
	}
}
