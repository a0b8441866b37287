package tx

// Borrowing reports whether the body of a message is borrowed, see [Message.Borrowed].
func (q *Queue) Borrowing() bool { return q.borrowed != nil }

// EndBorrow ends the borrowing of a body. What of it is in no packet yet is copied by
// duplicate, which returns the copy with its owner.
func (q *Queue) EndBorrow(duplicate func(body []byte) ([]byte, Owner)) {
	m := q.borrowed
	if m == nil {
		return
	}
	q.borrowed = nil
	if m.sent == m.length {
		m.body = nil
		return
	}
	m.gone = max(m.sent-int64(m.hdrLen), 0)
	m.body, m.owner = duplicate(m.body[m.gone:])
}
