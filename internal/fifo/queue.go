package fifo

// keep is the longest ring, in elements, that an empty queue keeps: what a burst needed is
// given back.
const keep = 1024

// A Queue is a first-in, first-out queue. It grows as needed and allocates only then. The zero
// value is empty.
type Queue[T any] struct {
	ring []T // its length is a power of two, or 0
	head int
	n    int
}

// Len returns how many elements there are.
func (q *Queue[T]) Len() int { return q.n }

// At returns where the ith element is, counted from the oldest; it is there until the queue is
// changed. i must be less than Len.
func (q *Queue[T]) At(i int) *T { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

// Push adds v as the youngest element.
func (q *Queue[T]) Push(v T) {
	if q.n == len(q.ring) {
		ring := make([]T, max(4, 2*q.n))
		for i := range q.n {
			ring[i] = *q.At(i)
		}
		q.ring, q.head = ring, 0
	}
	q.n++
	*q.At(q.n - 1) = v
}

// Pop takes the oldest element away. There must be one.
func (q *Queue[T]) Pop() T {
	var zero T
	p := q.At(0)
	v := *p
	*p = zero // what it refers to is not kept
	q.head = (q.head + 1) & (len(q.ring) - 1)
	if q.n--; q.n == 0 && len(q.ring) > keep {
		q.ring, q.head = nil, 0
	}
	return v
}

// Filter takes the elements away for which keep reports false.
func (q *Queue[T]) Filter(keep func(*T) bool) {
	for range q.n {
		if v := q.Pop(); keep(&v) {
			q.Push(v)
		}
	}
}
