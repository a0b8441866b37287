package reasm

import (
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/slab"
)

// The fast paths of a receiver compare packets with what is expected next, and add
// them here without a look-up.

// RoomForFragment reports whether another fragment may be taken without a further look.
func (r *Queue) RoomForFragment() bool {
	return r.frags < maxHeldFragments && r.msgs < maxHeldMessages && r.window.used()+r.window.keeps() < r.window.size()
}

// Accepted notes that n bytes of payload were accepted.
func (r *Queue) Accepted(n int) { r.window.take(n) }

// Interleaved reports whether I-DATA was negotiated (RFC 8260).
func (r *Queue) Interleaved() bool { return r.cfg.Interleaved }

// Unfinished returns the message that the last fragment belongs to, if others are
// missing and nothing else waits for them.
func (r *Queue) Unfinished() (*message, bool) {
	m := r.last
	if m == nil || m.dead || !m.begun || m.ended || m.complete ||
		m.loose.head != nil || r.loose.n > 0 || m.st.deferred {
		return nil, false
	}
	return m, true
}

// Stream returns the stream of m and whether m is unordered.
func (m *message) Stream() (sid uint16, unordered bool) { return m.st.sid, m.unordered }

// Number returns the SSN or MID of m.
func (m *message) Number() uint32 { return m.num }

// NextFragment returns the TSN, or with I-DATA the FSN, of the next fragment of m.
func (m *message) NextFragment() uint32 { return m.next }

// AppendFragment appends the next fragment, not the last, to the unfinished message m. Its
// ppid is 0 with I-DATA, where only the first fragment has one.
// Call appended behind the last of a batch.
func (r *Queue) AppendFragment(m *message, tsn seq.TSN, ppid uint32, data []byte, buf *slab.Buf) {
	f := r.inOrder(m.st.sid, tsn, data, buf)
	f.msg, f.seq, f.unordered, f.ppid = m.key, m.next, m.unordered, ppid
	r.append(m, f)
}

// Appended delivers what was appended to m.
func (r *Queue) Appended(m *message) {
	r.deliver(m)
}

// inOrder makes the record of a fragment.
func (r *Queue) inOrder(sid uint16, tsn seq.TSN, data []byte, buf *slab.Buf) *frag {
	f := r.mem.get(data, buf)
	f.tsn, f.sid = tsn, sid
	r.hold(f)
	return f
}

// ExpectsUnfragmented returns stream sid if the user takes pieces of it and nothing that
// is held comes before an unordered message of one fragment.
func (r *Queue) ExpectsUnfragmented(sid uint16) (*inStream, bool) {
	if !r.cfg.Pieces || int(sid) >= len(r.streams) || r.streams[sid] == nil {
		return nil, false
	}
	st := r.streams[sid]
	if st.paused || st.queued || st.deferred || st.uSkipped ||
		r.numbered.n > 0 || r.open.n > 0 || r.loose.n > 0 || r.last != nil {
		return nil, false
	}
	return st, true
}

// PushNext adds an unordered message of one fragment on st. mid counts with I-DATA alone.
func (r *Queue) PushNext(st *inStream, tsn seq.TSN, mid, ppid uint32, data []byte, buf *slab.Buf) {
	f := r.inOrder(st.sid, tsn, data, buf)
	f.begin, f.end, f.unordered, f.ppid = true, true, true, ppid
	if r.cfg.Interleaved {
		f.msg, f.seq = messageKey(st.sid, true, mid), 0
	} else {
		f.msg, f.seq = messageKey(st.sid, true, 0), uint32(tsn)
	}
	r.pushUnfragmented(st, f)
}

// IdleStream returns stream sid if a reader that waits may get its next message directly:
// nothing of it is held nor of any other, and its messages go to readers. Otherwise nil.
func (r *Queue) IdleStream(sid uint16) *inStream {
	w := &r.window
	if r.cfg.Pieces || r.frags > 0 || r.msgs > 0 || r.last != nil || r.current != nil ||
		r.deferAll || w.told < w.limit/2 || int(sid) >= len(r.streams) {
		return nil
	}
	st := r.streams[sid]
	if st == nil || st.paused || st.queued || st.deferred || st.held.head != nil || st.current != nil {
		return nil
	}
	return st
}

// NextNumber returns the SSN or MID of the next ordered message of st.
func (st *inStream) NextNumber() uint32 { return st.next }

// DeliverDirect counts the next message of st, an idle stream, which goes to a reader past
// the queue, and describes it in i. tsn is that of its only fragment, and cumulative.
func (r *Queue) DeliverDirect(st *inStream, tsn seq.TSN, ppid uint32, i *RecvInfo) {
	r.msgID++
	i.SID, i.PPID, i.TSN = st.sid, ppid, tsn
	i.SSN, i.MID, i.Unordered = 0, 0, false
	i.Message, i.Offset, i.EOR, i.Aborted = r.msgID, 0, true, false
	if st.next++; r.cfg.Interleaved {
		i.MID = seq.MID(st.next - 1)
	} else {
		i.SSN = seq.SSN(st.next - 1)
		st.next = uint32(uint16(st.next))
		r.checkedTo = tsn
	}
}
