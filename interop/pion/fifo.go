package sctp

// fifo is a queue in a ring that grows.
type fifo[T any] struct {
	ring []T // its length is a power of 2
	head int
	n    int
}

func (q *fifo[T]) push(v T) {
	if q.n == len(q.ring) {
		ring := make([]T, max(2*len(q.ring), 4))
		for i := range q.n {
			ring[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
		}
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = v
	q.n++
}

// front returns the first value, of which there must be one.
func (q *fifo[T]) front() *T { return &q.ring[q.head] }

// pop removes the first value, of which there must be one.
func (q *fifo[T]) pop() (v T) {
	v, q.ring[q.head] = q.ring[q.head], v
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	if q.n == 0 && len(q.ring) > maxIdleRing {
		*q = fifo[T]{} // a queue that was long for once does not keep the memory
	}
	return v
}

// maxIdleRing is how many places an empty queue keeps.
const maxIdleRing = 256
