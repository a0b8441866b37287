package tx

// Pause keeps new messages of a stream from being sent, as before it is reset
// (RFC 6525, Section 5.1.2); they still can be queued. Those before arrival number from
// are sent all the same, and a message that was begun goes on to its end, with the pieces
// that are yet to come. It does nothing if the stream is paused already.
func (q *Queue) Pause(sid uint16, from uint64) {
	if st := q.stream(sid); !st.paused {
		st.paused, st.fence = true, from
		q.reschedule(sid)
	}
}

// PauseAll is Pause for all streams together, whether or not they are paused themselves.
func (q *Queue) PauseAll(from uint64) {
	if !q.held {
		q.held, q.holdFence = true, from
		q.Reschedule()
	}
}

// Resume undoes Pause; the scheduler learns it from Reschedule.
func (q *Queue) Resume(sid uint16) { q.stream(sid).paused = false }

// ResumeAll undoes PauseAll; the scheduler learns it from Reschedule.
func (q *Queue) ResumeAll() { q.held = false }

// Reschedule tells the scheduler which streams may send now.
func (q *Queue) Reschedule() {
	for i := range q.streams {
		q.reschedule(uint16(i))
	}
}

// Arrivals returns the arrival number of the next message to be queued.
func (q *Queue) Arrivals() uint64 { return q.arrivals }

// mayBegin reports whether no pause keeps the next message of st, of which
// there is one, from being sent.
func (q *Queue) mayBegin(st *outStream) bool {
	m := st.head
	return m.begun() || (!st.paused || m.arrival < st.fence) && (!q.held || m.arrival < q.holdFence)
}

// Drained reports whether everything that a paused stream may send is
// acknowledged, so that it may be reset.
func (q *Queue) Drained(sid uint16) bool {
	if int(sid) >= len(q.streams) {
		return true
	}
	st := &q.streams[sid]
	if st.head == nil {
		return st.inFlight == 0 && st.open == nil
	}
	return st.inFlight == 0 && !q.mayBegin(st)
}

// Fresh reports whether the next message of each of the streams, all if sids is empty, has
// number 0 without a reset.
func (q *Queue) Fresh(sids []uint16) bool {
	fresh := func(st *outStream) bool {
		return st.mid == 0 && st.umid == 0 && st.inFlight == 0 &&
			(st.head == nil && st.open == nil || st.head != nil && !st.head.begun())
	}
	if len(sids) == 0 {
		for i := range q.streams {
			if !fresh(&q.streams[i]) {
				return false
			}
		}
	}
	for _, sid := range sids {
		if int(sid) < len(q.streams) && !fresh(&q.streams[sid]) {
			return false
		}
	}
	return true
}

// ResetStreams restarts the SSN and both MIDs of drained streams at 0, of all streams if
// sids is empty (RFC 6525, Section 5.2.2; RFC 8260, Section 2.3.2).
func (q *Queue) ResetStreams(sids []uint16) {
	if len(sids) == 0 {
		for i := range q.streams {
			q.streams[i].mid, q.streams[i].umid = 0, 0
		}
	}
	for _, sid := range sids {
		if int(sid) < len(q.streams) {
			q.streams[sid].mid, q.streams[sid].umid = 0, 0
		}
	}
}

// SetNext makes n the number of the next ordered message of a stream: for tests of associations
// in which numbers wrap.
func (q *Queue) SetNext(sid uint16, n uint32) { q.stream(sid).mid = n }

// SetStreamValue sets the priority (SchedPrio: 0 goes first) or weight (SchedWFQ:
// 0 counts as 1) of a stream; other schedulers ignore it (RFC 8260, Section
// 4.3.3). It returns ErrStream for a stream that does not exist.
func (q *Queue) SetStreamValue(sid, value uint16) error {
	if int(sid) >= q.nstreams {
		return ErrStream
	}
	q.sched.setValue(sid, value)
	return nil
}

// Scheduler returns the scheduler in use.
func (q *Queue) Scheduler() Scheduler { return q.kind }

// SetScheduler changes the scheduler. Priorities and weights start anew.
func (q *Queue) SetScheduler(kind Scheduler) {
	q.kind, q.sched, q.ready = kind, newScheduler(kind), 0
	for i := range q.streams {
		q.streams[i].queued = false
		q.reschedule(uint16(i))
	}
}

// Close releases every message with err: the association has ended. Nothing can
// be sent afterwards.
func (q *Queue) Close(err error) {
	if q.sb != nil {
		q.sb.drop(err)
	}
	for i := range q.streams {
		st := &q.streams[i]
		for m := st.head; m != nil; m = st.head {
			q.unlink(st, m)
			q.finish(m, err)
			q.recycle(m)
		}
		q.closeOpen(st)
		q.reschedule(uint16(i))
	}
	q.nstreams, q.waits, q.stalled = 0, 0, false
}
