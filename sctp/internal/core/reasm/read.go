package reasm

import (
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/slab"
)

// AnyStream makes read take from whichever stream is next.
const AnyStream = -1

// RecvInfo describes what a read returned, or would return.
type RecvInfo struct {
	SID  uint16
	SSN  seq.SSN // of a DATA message
	MID  seq.MID // of an I-DATA message
	PPID uint32
	// TSN is that of the first fragment returned.
	TSN       seq.TSN
	Unordered bool
	// Message is unique to the message within its association, and Offset is
	// where in the message the bytes begin.
	Message uint64
	Offset  uint64
	// EOR tells that the end of the message was reached.
	EOR bool
	// Aborted tells that the rest of a message that was read in part will never
	// come (RFC 3758, Section 3.6). EOR is set, and there are no bytes.
	Aborted bool
}

// Piece is one fragment of a message, in delivery order of its stream. The
// receiver hands it back with release; until then Data is valid and read-only.
type Piece struct {
	Data []byte
	// Buf is the receive buffer Data aliases, or nil if it does not. Whoever
	// wants Data beyond release takes a reference of it first.
	Buf *slab.Buf
	// Message is unique to the message within its association: pieces of
	// several messages may interleave. Offset is where in the message Data
	// begins.
	Message uint64
	Offset  uint64
	PPID    uint32
	TSN     seq.TSN
	MID     seq.MID // of an I-DATA message
	SSN     seq.SSN // of a DATA message
	SID     uint16
	// Begin and End mark the first and the last piece of a message.
	Unordered, Begin, End bool
	// Aborted tells that the rest of a message that was begun will never come.
	// End is set, and there are no bytes.
	Aborted bool

	frag *frag
	from *Queue
}

// Readable returns a stream with something to read and true, or false. It is
// where read(AnyStream) would read from next.
func (r *Queue) Readable() (uint16, bool) {
	if f := r.unfragmented.head; f != nil {
		return f.sid, true
	}
	if m := r.pick(AnyStream); m != nil {
		return m.st.sid, true
	}
	return 0, false
}

// ReadableStream reports whether read(sid) would return something.
func (r *Queue) ReadableStream(sid uint16) bool {
	r.convertUnfragmented(int(sid))
	return r.pick(int(sid)) != nil
}

// AppendReadable appends the streams with something to read to dst, the next
// one first. Paused streams are not among them.
func (r *Queue) AppendReadable(dst []uint16) []uint16 {
	r.convertUnfragmented(AnyStream)
	for st := r.ready.head; st != nil; st = st.rnext {
		dst = append(dst, st.sid)
	}
	return dst
}

// pick returns the message the next read of sid, or of AnyStream, is from.
func (r *Queue) pick(sid int) *message {
	var st *inStream
	if sid == AnyStream {
		if m := r.current; m != nil && (m.linked || !r.cfg.Interleaved && !r.window.pressed()) {
			// In the middle of a message. DATA fragments have consecutive TSNs,
			// so the rest comes before long and is waited for, unless the buffer
			// is full of other messages; an I-DATA message may take turns with
			// others anyway (RFC 8260, Section 2.2.3).
			if !m.linked {
				return nil
			}
			return m
		}
		st = r.ready.head
	} else if sid < len(r.streams) {
		st = r.streams[sid]
	}
	if st == nil || !st.deliverable() {
		return nil
	}
	if st.current != nil {
		return st.current
	}
	return st.ready.head
}

// Peek describes the message the next read of sid, or of AnyStream, is from and
// tells how many of its bytes can be read now; ok is false if there is none.
func (r *Queue) Peek(sid int) (n int, info RecvInfo, ok bool) {
	r.convertUnfragmented(sid)
	m := r.pick(sid)
	if m == nil {
		return 0, RecvInfo{}, false
	}
	r.info(m, &info)
	info.EOR = m.complete || m.aborted
	return m.avail, info, true
}

// Read copies bytes of the next message of stream sid, or of AnyStream, to dst.
// It never goes beyond the end of a message, which info.EOR tells. A message
// that does not fit, or is delivered in part, is continued by the next read of
// its stream. ok is false if there is nothing to read; it never blocks.
// What it is from goes to info.
func (r *Queue) Read(sid int, dst []byte, info *RecvInfo) (n int, ok bool) {
	r.convertUnfragmented(sid)
	m := r.pick(sid)
	if m == nil {
		return 0, false
	}
	r.info(m, info)
	for f := m.head; f != nil && n < len(dst); f = m.head {
		f.next.prefetch()
		k := copy(dst[n:], f.data)
		n += k
		if k < len(f.data) {
			f.data = f.data[k:]
			break
		}
		r.unchain(m)
		r.freeFrag(f)
	}
	m.avail -= n
	m.offset += uint64(n)
	if n > 0 {
		m.started = true
	}
	if m.head != nil && n == 0 {
		return 0, true // no room in dst
	}
	info.EOR = m.head == nil && m.complete
	if !info.EOR {
		m.st.current = m
		if sid == AnyStream {
			r.current = m
		}
	}
	if m.head == nil {
		st := m.st
		r.drained(m)
		if next := st.ready.head; next != nil {
			next.head.prefetch()
		}
	}
	return n, true
}

// PopPiece takes the next fragment that is in order, of a stream that is not
// paused. Its bytes keep counting against the receive window until release.
func (r *Queue) PopPiece(p *Piece) bool {
	if r.unfragmented.head != nil && (r.turn || r.ready.head == nil || r.ready.head.unfragmented > 0) {
		r.turn = false
		r.popUnfragmented(p)
		return true
	}
	r.turn = true // whichever there are more of, neither waits for the other
	m := r.pick(AnyStream)
	if m == nil {
		return false
	}
	*p = Piece{}
	p.SID, p.PPID, p.Unordered = m.st.sid, m.ppid, m.unordered
	if r.cfg.Interleaved {
		p.MID = seq.MID(m.num)
	} else {
		p.SSN = seq.SSN(m.num)
	}
	p.Message, p.Offset = m.id, m.offset
	f := m.head
	if f == nil {
		p.Aborted, p.End = true, true
		r.drained(m)
		return true
	}
	p.Begin, p.TSN, p.Data = m.offset == 0, f.tsn, f.data
	p.frag, p.from = f, r
	if f.pin != nil {
		p.Buf = f.pin.buf
	}
	m.avail -= len(f.data)
	m.offset += uint64(len(f.data))
	m.started = true
	r.unchain(m)
	if m.head == nil {
		p.End = m.complete
		r.drained(m)
	}
	return true
}

// Release hands back the memory of a piece; p.Data must not be used any more.
// It may be called after the queue the piece came from was closed, and more than
// once.
func (p *Piece) Release() {
	if p.frag != nil {
		p.from.freeFrag(p.frag)
		p.frag, p.from = nil, nil
	}
	p.Data, p.Buf = nil, nil
}

// PausePieces holds back (on) or lets go of the pieces of one stream, while
// others go on. What piles up counts against the receive window. It also keeps
// the stream out of read(AnyStream), but not out of read(sid).
func (r *Queue) PausePieces(sid uint16, on bool) {
	if int(sid) < len(r.streams) {
		st := r.stream(sid)
		st.paused = on
		if on {
			r.convertUnfragmented(int(sid))
		}
		r.requeue(st)
	}
}

// info describes m to i.
func (r *Queue) info(m *message, i *RecvInfo) {
	*i = RecvInfo{}
	i.SID, i.PPID, i.Unordered = m.st.sid, m.ppid, m.unordered
	i.Message, i.Offset, i.EOR, i.Aborted = m.id, m.offset, m.aborted, m.aborted
	if r.cfg.Interleaved {
		i.MID = seq.MID(m.num)
	} else {
		i.SSN = seq.SSN(m.num)
	}
	if m.head != nil {
		i.TSN = m.head.tsn
	}
}

// unchain takes the first fragment off m.
func (r *Queue) unchain(m *message) {
	f := m.head
	m.head, f.next = f.next, nil
	if m.head == nil {
		m.tail = nil
	}
}

// drained takes m, whose last available fragment was consumed, off the ready
// list; a complete one is forgotten, and its stream goes to the end of the
// queue.
func (r *Queue) drained(m *message) {
	st := m.st
	r.unlink(m)
	if m.complete {
		if st.current == m {
			st.current = nil
		}
		if r.current == m {
			r.current = nil
		}
		r.freeMessage(m)
		if st.queued && r.ready.tail != st {
			r.ready.remove(st)
		}
	}
	r.requeue(st)
}
