package gateway

// fifo is a queue in a ring that grows as needed, and never allocates otherwise.
type fifo[T any] struct {
	ring []T // its length is a power of two, or 0
	head int
	n    int
}

func (q *fifo[T]) at(i int) *T { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

func (q *fifo[T]) push(v T) {
	if q.n == len(q.ring) {
		ring := make([]T, max(4, 2*q.n))
		for i := range q.n {
			ring[i] = *q.at(i)
		}
		q.ring, q.head = ring, 0
	}
	q.n++
	*q.at(q.n - 1) = v
}

func (q *fifo[T]) pop() T {
	var zero T
	p := q.at(0)
	v := *p
	*p = zero
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return v
}

// filter keeps the elements for which keep reports true.
func (q *fifo[T]) filter(keep func(*T) bool) {
	for range q.n {
		if v := q.pop(); keep(&v) {
			q.push(v)
		}
	}
}
