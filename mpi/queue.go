package mpi

// key is what receives and messages are matched by within a context. In the key of a posted
// receive a field may be a wildcard, AnySource or AnyTag. Unexpected messages are queued under
// their own key and under the keys of all wildcard receives that match them.
type key struct{ src, tag int32 }

// elem links a receive or a message into a queue.
type elem struct {
	next, prev *elem
	q          *queue
	req        *request
	msg        *message
}

// queue holds the elements of one key, oldest first.
type queue struct {
	key        key
	head, tail *elem
	chain      *queue // next queue in the same bucket, or free list
}

// maxFreeQueues bounds the empty queues that a table keeps for reuse.
const maxFreeQueues = 1024

// table finds the queue of a key in constant time. It allocates only when it
// holds more keys than ever before. The zero table is empty.
type table struct {
	buckets []*queue
	n       int // queues in buckets
	free    *queue
	nfree   int
}

// slot returns the bucket of k by multiplicative hashing.
func (t *table) slot(k key) uint64 {
	h := (uint64(uint32(k.src))<<32 | uint64(uint32(k.tag))) * 0x9e3779b97f4a7c15
	return (h >> 32) & uint64(len(t.buckets)-1)
}

// find returns the queue of k, which is not empty, or nil.
func (t *table) find(k key) *queue {
	if t.n == 0 {
		return nil
	}
	for q := t.buckets[t.slot(k)]; q != nil; q = q.chain {
		if q.key == k {
			return q
		}
	}
	return nil
}

// head returns the oldest element of key k, or nil.
func (t *table) head(k key) *elem {
	if q := t.find(k); q != nil {
		return q.head
	}
	return nil
}

// push adds e, which is in no queue, as the youngest element of key k.
func (t *table) push(k key, e *elem) {
	q := t.find(k)
	if q == nil {
		q = t.insert(k)
	}
	e.q, e.prev, e.next = q, q.tail, nil
	if q.tail == nil {
		q.head = e
	} else {
		q.tail.next = e
	}
	q.tail = e
}

// insertOrdered adds e, a receive in no queue, before all younger ones of key k.
func (t *table) insertOrdered(k key, e *elem) {
	t.push(k, e)
	p := e.prev
	for p != nil && p.req.order > e.req.order {
		p = p.prev
	}
	if p == e.prev {
		return
	}
	q := e.q
	q.tail, e.prev.next = e.prev, nil
	if e.prev = p; p == nil {
		e.next, q.head = q.head, e
	} else {
		e.next, p.next = p.next, e
	}
	e.next.prev = e
}

// insert makes an empty queue for k, which has none.
func (t *table) insert(k key) *queue {
	if t.n >= len(t.buckets) {
		t.grow()
	}
	q := t.free
	if q == nil {
		q = new(queue)
	} else {
		t.free = q.chain
		t.nfree--
	}
	q.key = k
	s := t.slot(k)
	q.chain = t.buckets[s]
	t.buckets[s] = q
	t.n++
	return q
}

// grow doubles the buckets.
func (t *table) grow() {
	old := t.buckets
	t.buckets = make([]*queue, max(16, 2*len(old)))
	for _, q := range old {
		for q != nil {
			next := q.chain
			s := t.slot(q.key)
			q.chain = t.buckets[s]
			t.buckets[s] = q
			q = next
		}
	}
}

// remove takes e out of its queue; nothing happens if it is in none.
func (t *table) remove(e *elem) {
	q := e.q
	if q == nil {
		return
	}
	if e.prev == nil {
		q.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		q.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.q, e.next, e.prev = nil, nil, nil
	if q.head == nil {
		t.drop(q)
	}
}

// drop takes the empty queue q out of its bucket, for reuse.
func (t *table) drop(q *queue) {
	for p := &t.buckets[t.slot(q.key)]; *p != nil; p = &(*p).chain {
		if *p == q {
			*p = q.chain
			break
		}
	}
	t.n--
	q.chain = nil
	if t.nfree < maxFreeQueues {
		q.chain = t.free
		t.free = q
		t.nfree++
	}
}

// each calls f for every element. f may remove the element it is given.
func (t *table) each(f func(*elem)) {
	for i := range t.buckets {
		for q := t.buckets[i]; q != nil; {
			nextq := q.chain // q may be dropped by the last removal
			for e := q.head; e != nil; {
				next := e.next
				f(e)
				e = next
			}
			q = nextq
		}
	}
}
