package p2p

// Key is what receives and messages are matched by within a context. In the key of a posted
// receive a field may be a wildcard, AnySource or AnyTag. Unexpected messages are queued under
// their own key and under the keys of all wildcard receives that match them.
type matchKey struct{ src, tag int32 }

// matchElem links a receive or a message into a queue.
type matchElem struct {
	next, prev *matchElem
	queue      *matchQueue
	request    *Request
	msg        *Message
}

// Queue holds the elements of one key, oldest first.
type matchQueue struct {
	key        matchKey
	head, tail *matchElem
	chain      *matchQueue // next queue in the same bucket, or free list
}

// maxFreeQueues bounds the empty queues that a table keeps for reuse.
const maxFreeQueues = 1024

// Table finds the queue of a key in constant time. It allocates only when it
// holds more keys than ever before. The zero table is empty.
type matchTable struct {
	buckets []*matchQueue
	size    int // queues in buckets
	free    *matchQueue
	nfree   int
}

// slot returns the bucket of k by multiplicative hashing.
func (t *matchTable) slot(k matchKey) uint64 {
	h := (uint64(uint32(k.src))<<32 | uint64(uint32(k.tag))) * 0x9e3779b97f4a7c15
	return (h >> 32) & uint64(len(t.buckets)-1)
}

// find returns the queue of k, which is not empty, or nil.
func (t *matchTable) find(k matchKey) *matchQueue {
	if t.size == 0 {
		return nil
	}
	for q := t.buckets[t.slot(k)]; q != nil; q = q.chain {
		if q.key == k {
			return q
		}
	}
	return nil
}

// Head returns the oldest element of key k, or nil.
func (t *matchTable) head(k matchKey) *matchElem {
	if q := t.find(k); q != nil {
		return q.head
	}
	return nil
}

// Push adds e, which is in no queue, as the youngest element of key k.
func (t *matchTable) push(k matchKey, e *matchElem) {
	q := t.find(k)
	if q == nil {
		q = t.insert(k)
	}
	e.queue, e.prev, e.next = q, q.tail, nil
	if q.tail == nil {
		q.head = e
	} else {
		q.tail.next = e
	}
	q.tail = e
}

// insertOrdered adds e, a receive in no queue, before all younger ones of key k.
func (t *matchTable) insertOrdered(k matchKey, e *matchElem) {
	t.push(k, e)
	p := e.prev
	for p != nil && p.request.order > e.request.order {
		p = p.prev
	}
	if p == e.prev {
		return
	}
	q := e.queue
	q.tail, e.prev.next = e.prev, nil
	if e.prev = p; p == nil {
		e.next, q.head = q.head, e
	} else {
		e.next, p.next = p.next, e
	}
	e.next.prev = e
}

// insert makes an empty queue for k, which has none.
func (t *matchTable) insert(k matchKey) *matchQueue {
	if t.size >= len(t.buckets) {
		t.grow()
	}
	q := t.free
	if q == nil {
		q = new(matchQueue)
	} else {
		t.free = q.chain
		t.nfree--
	}
	q.key = k
	s := t.slot(k)
	q.chain = t.buckets[s]
	t.buckets[s] = q
	t.size++
	return q
}

// grow doubles the buckets.
func (t *matchTable) grow() {
	old := t.buckets
	t.buckets = make([]*matchQueue, max(16, 2*len(old)))
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

// Remove takes e out of its queue; nothing happens if it is in none.
func (t *matchTable) remove(e *matchElem) {
	q := e.queue
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
	e.queue, e.next, e.prev = nil, nil, nil
	if q.head == nil {
		t.drop(q)
	}
}

// drop takes the empty queue q out of its bucket, for reuse.
func (t *matchTable) drop(q *matchQueue) {
	for p := &t.buckets[t.slot(q.key)]; *p != nil; p = &(*p).chain {
		if *p == q {
			*p = q.chain
			break
		}
	}
	t.size--
	q.chain = nil
	if t.nfree < maxFreeQueues {
		q.chain = t.free
		t.free = q
		t.nfree++
	}
}

// Each calls f for every element. f may remove the element it is given.
func (t *matchTable) each(f func(*matchElem)) {
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
