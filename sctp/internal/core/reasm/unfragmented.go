package reasm

import "github.com/weftstack/weft/sctp/internal/core/seq"

// Unordered messages of one fragment, which need nothing else to be delivered, wait
// for PopPiece as the fragments that they are rather than as records of messages. They
// go before what is ready of their stream, which has come later.

// isUnfragmented reports whether f, which begins a message of st that is not known, is all of
// it and may wait so.
func (r *Queue) isUnfragmented(st *inStream, f *frag) bool {
	return f.unordered && f.begin && f.end && r.cfg.Pieces && !st.paused && !st.queued
}

func (r *Queue) pushUnfragmented(st *inStream, f *frag) {
	st.unfragmented++
	r.unfragmented.push(f)
}

func (r *Queue) removeUnfragmented(f *frag) {
	r.streams[f.sid].unfragmented--
	r.unfragmented.remove(f)
}

// popUnfragmented is PopPiece for the first of r.unfragmented.
func (r *Queue) popUnfragmented(p *Piece) {
	f := r.unfragmented.head
	r.removeUnfragmented(f)
	r.unfragmented.head.prefetch()
	r.msgID++
	*p = Piece{}
	p.SID, p.PPID, p.Unordered, p.Begin, p.End = f.sid, f.ppid, true, true, true
	if r.cfg.Interleaved {
		p.MID = seq.MID(f.msg)
	}
	p.Message, p.TSN, p.Data = r.msgID, f.tsn, f.data
	p.frag, p.from = f, r
	if f.pin != nil {
		p.Buf = f.pin.buf
	}
}

// convertUnfragmented makes messages of those of a stream, or of AnyStream, that is paused or
// read otherwise than by PopPiece.
func (r *Queue) convertUnfragmented(sid int) {
	for f := r.unfragmented.head; f != nil; {
		next := f.next
		if sid == AnyStream || sid == int(f.sid) {
			r.removeUnfragmented(f)
			m := r.newMessage(r.stream(f.sid), f.msg, true)
			r.append(m, f)
			r.deliver(m)
		}
		f = next
	}
}
