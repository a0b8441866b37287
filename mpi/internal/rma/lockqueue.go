package rma

import "sync"

// lockQueue is the lock of one rank's part of a window. Requests are granted first come, first
// served; shared ones that follow one another are granted together. Each origin has at most one
// request, waiting or granted.
type lockQueue struct {
	mu      sync.Mutex // guards what follows
	mode    LockMode   // of the holders; 0: the lock is free
	holders int
	held    []bool // by origin
	queue   []lockRequest
}

// lockRequest is the request of an origin.
type lockRequest struct {
	origin int
	mode   LockMode
	num    uint32 // number of the request, for the answer
}

func (l *lockQueue) init(ranks int) { l.held = make([]bool, ranks) }

// acquire queues a request and returns the requests that are granted now. It reports false if the
// origin already holds or waits for the lock.
func (l *lockQueue) acquire(origin int, mode LockMode, num uint32) ([]lockRequest, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[origin] {
		return nil, false
	}
	for _, q := range l.queue {
		if q.origin == origin {
			return nil, false
		}
	}
	l.queue = append(l.queue, lockRequest{origin, mode, num})
	return l.next(), true
}

// release releases the lock of an origin, or withdraws its request, and returns the requests that
// are granted now.
func (l *lockQueue) release(origin int) []lockRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[origin] {
		l.held[origin] = false
		if l.holders--; l.holders == 0 {
			l.mode = 0
		}
		return l.next()
	}
	for i, q := range l.queue {
		if q.origin == origin {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
			return l.next()
		}
	}
	return nil
}

// next grants requests at the head of the queue as far as possible. l.mu is held.
func (l *lockQueue) next() []lockRequest {
	n := 0
	for _, q := range l.queue {
		if l.mode != 0 && (l.mode == LockExclusive || q.mode == LockExclusive) {
			break
		}
		l.mode = q.mode
		l.holders++
		l.held[q.origin] = true
		n++
	}
	granted := append([]lockRequest(nil), l.queue[:n]...)
	l.queue = append(l.queue[:0], l.queue[n:]...)
	return granted
}
