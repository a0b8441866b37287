package sockets

import (
	"sync"

	"github.com/weftstack/weft/internal/bufpool"
)

// item is what waits in the receive queue of a socket: a message, a part of one that is
// delivered in part, or a notification.
type item struct {
	from   *association // nil for notifications of an attempt that failed
	info   SndRcvInfo   // PPID in host order
	buf    *bufpool.Buffer
	data   []byte // what was not read yet
	flags  int    // MSG_EOR, MSG_NOTIFICATION
	charge int    // bytes that count against the receive buffer of the association
	note   int    // bytes that count against the noteBudget of the socket
}

var itemPool = sync.Pool{New: func() any { return new(item) }}

func newItem() *item { return itemPool.Get().(*item) }

// free recycles an item that was taken from its queue, and gives back what it was charged.
// No lock is held.
func (it *item) free() {
	if it.charge > 0 {
		it.from.a.KeepReceived(-it.charge)
	}
	it.buf.Put()
	*it = item{}
	itemPool.Put(it)
}

// queue is a first-in first-out queue of items.
type queue struct {
	items []*item
	head  int
}

func (q *queue) push(it *item) { q.items = append(q.items, it) }

func (q *queue) front() *item {
	if q.head == len(q.items) {
		return nil
	}
	return q.items[q.head]
}

func (q *queue) pop() {
	q.items[q.head] = nil
	q.head++
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head >= 64 && q.head >= len(q.items)/2:
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
}

// take removes the items of one association, or all if from is nil.
func (q *queue) take(from *association) (taken []*item) {
	kept := q.items[:0]
	for _, it := range q.items[q.head:] {
		if from == nil || it.from == from {
			taken = append(taken, it)
		} else {
			kept = append(kept, it)
		}
	}
	clear(q.items[len(kept):])
	q.items, q.head = kept, 0
	return taken
}

// assembly is a message whose fragments are being received.
type assembly struct {
	info   SndRcvInfo
	buf    *bufpool.Buffer
	n      int  // bytes in buf
	charge int  // as of item
	part   bool // delivered in part: there is no buf
}

// add appends a fragment.
func (m *assembly) add(data []byte) {
	if m.buf == nil || m.buf.Size() < m.n+len(data) {
		bigger := bufpool.Get(max(m.n+len(data), 2*m.n))
		if m.buf != nil {
			copy(bigger.Bytes(m.n), m.buf.Bytes(m.n))
			m.buf.Put()
		}
		m.buf = bigger
	}
	copy(m.buf.Bytes(m.n + len(data))[m.n:], data)
	m.n += len(data)
	m.charge += len(data)
}
