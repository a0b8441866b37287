package p2p

// Key is what receives and messages are matched by within a context. In the key of a posted
// receive a field may be a wildcard, AnySource or AnyTag. Unexpected messages are queued under
// their own key and under the keys of all wildcard receives that match them.
type Key struct{ Src, Tag int32 }

// Elem links a receive or a message into a queue.
type Elem struct {
	Next, prev *Elem
	Queue      *Queue
	Request    *Request
	msg        *Message
}

// Queue holds the elements of one key, oldest first.
type Queue struct {
	Key        Key
	head, tail *Elem
	chain      *Queue // next queue in the same bucket, or free list
}

// MaxFreeQueues bounds the empty queues that a table keeps for reuse.
const MaxFreeQueues = 1024

// Table finds the queue of a key in constant time. It allocates only when it
// holds more keys than ever before. The zero table is empty.
type Table struct {
	buckets []*Queue
	Len     int // queues in buckets
	free    *Queue
	Free    int
}

// slot returns the bucket of k by multiplicative hashing.
func (t *Table) slot(k Key) uint64 {
	h := (uint64(uint32(k.Src))<<32 | uint64(uint32(k.Tag))) * 0x9e3779b97f4a7c15
	return (h >> 32) & uint64(len(t.buckets)-1)
}

// find returns the queue of k, which is not empty, or nil.
func (t *Table) find(k Key) *Queue {
	if t.Len == 0 {
		return nil
	}
	for q := t.buckets[t.slot(k)]; q != nil; q = q.chain {
		if q.Key == k {
			return q
		}
	}
	return nil
}

// Head returns the oldest element of key k, or nil.
func (t *Table) Head(k Key) *Elem {
	if q := t.find(k); q != nil {
		return q.head
	}
	return nil
}

// Push adds e, which is in no queue, as the youngest element of key k.
func (t *Table) Push(k Key, e *Elem) {
	q := t.find(k)
	if q == nil {
		q = t.insert(k)
	}
	e.Queue, e.prev, e.Next = q, q.tail, nil
	if q.tail == nil {
		q.head = e
	} else {
		q.tail.Next = e
	}
	q.tail = e
}

// InsertOrdered adds e, a receive in no queue, before all younger ones of key k.
func (t *Table) InsertOrdered(k Key, e *Elem) {
	t.Push(k, e)
	p := e.prev
	for p != nil && p.Request.Order > e.Request.Order {
		p = p.prev
	}
	if p == e.prev {
		return
	}
	q := e.Queue
	q.tail, e.prev.Next = e.prev, nil
	if e.prev = p; p == nil {
		e.Next, q.head = q.head, e
	} else {
		e.Next, p.Next = p.Next, e
	}
	e.Next.prev = e
}

// insert makes an empty queue for k, which has none.
func (t *Table) insert(k Key) *Queue {
	if t.Len >= len(t.buckets) {
		t.grow()
	}
	q := t.free
	if q == nil {
		q = new(Queue)
	} else {
		t.free = q.chain
		t.Free--
	}
	q.Key = k
	s := t.slot(k)
	q.chain = t.buckets[s]
	t.buckets[s] = q
	t.Len++
	return q
}

// grow doubles the buckets.
func (t *Table) grow() {
	old := t.buckets
	t.buckets = make([]*Queue, max(16, 2*len(old)))
	for _, q := range old {
		for q != nil {
			next := q.chain
			s := t.slot(q.Key)
			q.chain = t.buckets[s]
			t.buckets[s] = q
			q = next
		}
	}
}

// Remove takes e out of its queue; nothing happens if it is in none.
func (t *Table) Remove(e *Elem) {
	q := e.Queue
	if q == nil {
		return
	}
	if e.prev == nil {
		q.head = e.Next
	} else {
		e.prev.Next = e.Next
	}
	if e.Next == nil {
		q.tail = e.prev
	} else {
		e.Next.prev = e.prev
	}
	e.Queue, e.Next, e.prev = nil, nil, nil
	if q.head == nil {
		t.drop(q)
	}
}

// drop takes the empty queue q out of its bucket, for reuse.
func (t *Table) drop(q *Queue) {
	for p := &t.buckets[t.slot(q.Key)]; *p != nil; p = &(*p).chain {
		if *p == q {
			*p = q.chain
			break
		}
	}
	t.Len--
	q.chain = nil
	if t.Free < MaxFreeQueues {
		q.chain = t.free
		t.free = q
		t.Free++
	}
}

// Each calls f for every element. f may remove the element it is given.
func (t *Table) Each(f func(*Elem)) {
	for i := range t.buckets {
		for q := t.buckets[i]; q != nil; {
			nextq := q.chain // q may be dropped by the last removal
			for e := q.head; e != nil; {
				next := e.Next
				f(e)
				e = next
			}
			q = nextq
		}
	}
}
