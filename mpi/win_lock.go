package mpi

import "sync"

// winLocks is the lock of one rank's part of a window. Requests wait in the
// order they come; shared ones that follow one another are granted together.
// Every origin has at most one request, waiting or granted.
type winLocks struct {
	mu      sync.Mutex // guards what follows
	mode    LockMode   // of the holders; 0: nobody holds the lock
	holders int
	held    []bool // by origin
	queue   []lockRequest
}

type lockRequest struct {
	origin int
	mode   LockMode
	num    uint32 // of the answer
}

func (l *winLocks) init(ranks int) { l.held = make([]bool, ranks) }

// acquire takes a request and returns what is granted now. It reports false if
// the origin holds, or waits for, the lock already.
func (l *winLocks) acquire(origin int, mode LockMode, num uint32) ([]lockRequest, bool) {
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

// release gives back the lock of an origin, or withdraws its request, and
// returns what is granted now.
func (l *winLocks) release(origin int) []lockRequest {
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

// next grants the requests at the head of the queue that can be. l.mu is held.
func (l *winLocks) next() []lockRequest {
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
