package core

// fills reports whether what waits to be sent leaves no room for another chunk in a packet
// that takes full bytes of them. The headers of chunks count, and as padding the most that
// it can be.
func (q *SendQueue) fills(full int) bool {
	least := q.headerLen() + 4 // of a chunk with a byte
	return q.unsent+int64(q.chunks)*int64(q.headerLen()+3) > int64(full-least)
}
