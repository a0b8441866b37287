package tx

import "errors"

var (
	// ErrMessageOpen is returned for a message of a stream on which one that is
	// given in pieces has not ended.
	ErrMessageOpen = errors.New("core: a message of the stream has not ended")
	// ErrPolicy is returned for a piece under a partial reliability policy.
	ErrPolicy = errors.New("core: a message given in pieces is reliable")
)

// OpenMessage is a message that is given to the queue in pieces (RFC 6458,
// Section 8.1.26). The zero value is one that has not begun. Each piece is a
// queued message of its own, whose fragments go on where those of the piece
// before it have ended; so the size of all pieces together is not bounded.
//
// From its first piece to its last no other message of its stream is taken. Of
// an association that carries DATA chunks, nothing else is sent between the
// first and the last fragment, on whatever stream: their TSNs have to be
// consecutive (RFC 9260, Section 6.9).
type OpenMessage struct {
	mid, fsn uint32 // where the next piece goes on, if none is queued
	begun    bool   // a piece was taken
}

// Begun reports whether a piece of the message was queued.
func (o *OpenMessage) Begun() bool { return o.begun }

// checkPiece reports why m cannot be taken now, which is a piece or comes while
// there are messages open.
func (q *Queue) checkPiece(m *Message) error {
	var open *OpenMessage
	if int(m.SID) < len(q.streams) {
		open = q.streams[m.SID].open
	}
	switch {
	case m.Of == nil || !m.Of.begun:
		if open != nil {
			return ErrMessageOpen
		}
	case m.Of != open:
		return ErrRestart // of the queue that this one has replaced
	}
	if m.Of != nil && (m.Lifetime != 0 || m.LimitRtx || m.Droppable) {
		return ErrPolicy
	}
	return nil
}

// CanOpen reports why a message in pieces cannot be begun on a stream now, if so.
func (q *Queue) CanOpen(sid uint16) error {
	if int(sid) >= q.nstreams {
		return ErrStream
	}
	return q.checkPiece(&Message{SID: sid})
}

// starved reports whether a message that was begun waits for m, its next piece,
// and nothing of it is outstanding. Then m is taken even if the buffer is full:
// it may be full of messages that cannot be sent before the end of this one.
func (q *Queue) starved(m *Message) bool {
	if m.Of == nil || !m.Of.begun {
		return false
	}
	st := &q.streams[m.SID]
	return st.head == nil && st.inFlight == 0
}

// pushPiece makes o, which is about to be queued on st, a piece of m.Of.
func (q *Queue) pushPiece(st *outStream, o *outMsg, m *Message) {
	of := m.Of
	if of.begun {
		o.flags |= msgCont
		if st.head == nil { // it was waited for
			o.mid, o.fsn = of.mid, of.fsn
			q.waits--
			if q.stalled {
				q.stalled, q.cur = false, o
			}
		}
	}
	if !m.Last {
		o.flags |= msgOpen
	}
	if of.begun == m.Last { // else it is in the midst, or the whole message
		if st.open = of; m.Last {
			st.open = nil
			q.opened--
		} else {
			q.opened++
		}
	}
	of.begun = true
}

// goOn lets the piece that follows m, all of which is sent, go on where m ended;
// m is off its stream.
func (q *Queue) goOn(st *outStream, m *outMsg) {
	if next := st.head; next != nil {
		next.mid, next.fsn = m.mid, m.fsn
		if !q.interleave {
			q.cur = next
		}
		return
	}
	st.open.mid, st.open.fsn = m.mid, m.fsn
	q.waits++
	q.stalled = !q.interleave
}

// closeOpen forgets the open message of a stream: no piece of it was sent, or
// nothing will be sent any more.
func (q *Queue) closeOpen(st *outStream) {
	if st.open != nil {
		st.open = nil
		q.opened--
	}
}

// begun reports whether a part of the message was sent of which m is all or a
// piece. m is the first that waits on its stream.
func (m *outMsg) begun() bool { return m.sent > 0 || m.flags&msgCont != 0 }

// Unfinished reports whether a message was begun whose next piece has not been
// queued.
func (q *Queue) Unfinished() bool { return q.waits > 0 }
