package core

// Pause keeps new messages of a stream from being sent, as before it is reset
// (RFC 6525, Section 5.1.2); they still can be queued. A message that was begun
// goes on to its end, with the pieces that are yet to come.
func (q *SendQueue) Pause(sid uint16) {
	if int(sid) < q.nstreams {
		q.fence(sid, 0)
	}
}

// fence pauses a stream for the messages that are queued from arrival number at
// on; those before it are still sent.
func (q *SendQueue) fence(sid uint16, at uint64) {
	st := q.stream(sid)
	st.paused, st.fence = true, at
	q.reschedule(sid)
}

// hold is fence for all streams.
func (q *SendQueue) hold(at uint64) {
	q.held, q.holdFence = true, at
	q.rescheduleAll()
}

func (q *SendQueue) rescheduleAll() {
	for i := range q.streams {
		q.reschedule(uint16(i))
	}
}

// mayBegin reports whether no pause keeps the next message of st, of which
// there is one, from being sent.
func (q *SendQueue) mayBegin(st *outStream) bool {
	m := st.head
	return m.begun() || (!st.paused || m.arrival < st.fence) && (!q.held || m.arrival < q.holdFence)
}

// Resume undoes Pause.
func (q *SendQueue) Resume(sid uint16) {
	if int(sid) < len(q.streams) {
		q.streams[sid].paused = false
		q.reschedule(sid)
	}
}

// Drained reports whether everything that a paused stream may send is
// acknowledged, so that it may be reset.
func (q *SendQueue) Drained(sid uint16) bool {
	if int(sid) >= len(q.streams) {
		return true
	}
	st := &q.streams[sid]
	if st.head == nil {
		return st.inFlight == 0 && st.open == nil
	}
	return st.inFlight == 0 && !q.mayBegin(st)
}

// ResetStream restarts the SSN and both MIDs of a drained stream at 0 (RFC 6525,
// Section 5.2.2; RFC 8260, Section 2.3.2).
func (q *SendQueue) ResetStream(sid uint16) {
	if int(sid) < len(q.streams) {
		q.streams[sid].mid, q.streams[sid].umid = 0, 0
	}
}

// ResetAllStreams is ResetStream for every stream.
func (q *SendQueue) ResetAllStreams() {
	for i := range q.streams {
		q.ResetStream(uint16(i))
	}
}

// SetStreamValue sets the priority (SchedPrio: 0 goes first) or weight (SchedWFQ:
// 0 counts as 1) of a stream; other schedulers ignore it (RFC 8260, Section
// 4.3.3). It returns ErrStream for a stream that does not exist.
func (q *SendQueue) SetStreamValue(sid, value uint16) error {
	if int(sid) >= q.nstreams {
		return ErrStream
	}
	q.sched.setValue(sid, value)
	return nil
}

// Scheduler returns the scheduler in use.
func (q *SendQueue) Scheduler() Scheduler { return q.kind }

// SetScheduler changes the scheduler. Priorities and weights start anew.
func (q *SendQueue) SetScheduler(kind Scheduler) {
	q.kind, q.sched, q.ready = kind, newScheduler(kind), 0
	for i := range q.streams {
		q.streams[i].queued = false
		q.reschedule(uint16(i))
	}
}

// Close releases every message with err: the association has ended. Nothing can
// be sent afterwards.
func (q *SendQueue) Close(err error) {
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
