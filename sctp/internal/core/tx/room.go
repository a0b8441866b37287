package tx

// checkRoom notes when a queue that refused a message has room again: half of
// it, so that writers are not woken for every packet.
func (q *Queue) checkRoom() {
	if q.blocked && q.charge() <= q.limit/2 && (q.soft == 0 || q.softCharge() <= q.soft/2) &&
		(!q.lowRTT || !q.large || q.buffered <= tuneLowRTT/2) {
		q.blocked, q.unblocked = false, true
	}
}

// Unblocked reports, once, that a queue which refused a message has room again.
func (q *Queue) Unblocked() bool {
	u := q.unblocked
	q.unblocked = false
	return u
}

// HasUnblocked reports whether Unblocked would report true.
func (q *Queue) HasUnblocked() bool { return q.unblocked }

// Blocked reports whether the queue refused a message and has had no room since.
func (q *Queue) Blocked() bool { return q.blocked }

// TakeReleases appends the releases that are due to dst and forgets them. The
// caller calls the owners once it holds no lock.
func (q *Queue) TakeReleases(dst []Release) []Release {
	dst = append(dst, q.released...)
	clear(q.released)
	q.released = q.released[:0]
	return dst
}

// HasReleases reports whether releases are due.
func (q *Queue) HasReleases() bool { return len(q.released) > 0 }

// Buffered returns the bytes queued and not acknowledged, including those that
// Unsent returns.
func (q *Queue) Buffered() int64 { return q.buffered }

// Unsent returns the bytes that were not sent once.
func (q *Queue) Unsent() int64 { return q.unsent }

// Messages returns how many messages are not fully acknowledged.
func (q *Queue) Messages() int { return q.messages }

// Pending reports whether a stream has something to send now. It is false when
// all that waits is on paused streams, or behind an open message.
func (q *Queue) Pending() bool { return q.ready > 0 && !q.stalled }

// Empty reports whether nothing waits to be sent or acknowledged.
func (q *Queue) Empty() bool { return q.messages == 0 }

// AbandonedMessages returns how many messages were abandoned before and after a
// part of them was sent (RFC 7496, Section 4.3).
func (q *Queue) AbandonedMessages() (unsent, sent uint64) {
	return q.abandonedUnsent, q.abandonedSent
}

// Fills reports whether what waits to be sent leaves no room for another chunk in a packet
// that takes full bytes of them. The headers of chunks count, and as padding the most that
// it can be.
func (q *Queue) Fills(full int) bool {
	least := q.HeaderLen() + 4 // of a chunk with a byte
	return q.unsent+int64(q.chunks)*int64(q.HeaderLen()+3) > int64(full-least)
}

// HasFailed reports whether TakeFailed would return something.
func (q *Queue) HasFailed() bool { return len(q.failed) > 0 }

// Failed is a message that was abandoned.
type Failed struct {
	SID  uint16
	PPID uint32
}

// TakeFailed returns the messages that were abandoned since it was called last. They are valid
// until the next message is abandoned.
func (q *Queue) TakeFailed() []Failed {
	f := q.failed
	q.failed = f[:0]
	return f
}
