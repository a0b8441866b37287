package ddp

import (
	"slices"
	"sync"
)

// Pool is a shared receive queue: a FIFO of untagged buffers from which the [Queue]s of
// any number of streams take their buffers. It is safe for concurrent use.
//
// A message takes a buffer when all messages before it on its stream have been
// delivered, so which stream gets which buffer depends on the network.
type Pool struct {
	sges int

	mu      sync.Mutex
	ring    []Buffer    // guarded by mu
	head, n int         // guarded by mu: index of the oldest buffer, and number of buffers
	depth   int         // guarded by mu: capacity
	limit   int         // guarded by mu: notify once when n falls below it
	starved []*Receiver // guarded by mu: found no buffer, each once
	notify  func()
}

// NewPool makes a shared receive queue for up to depth buffers of up to sges elements
// each. notify is the limit event: it is called, with locks of a stream and of the queue
// held, when the number of buffers falls below the limit of [Pool.SetLimit]. It must not
// block or call the queue.
func NewPool(depth, sges int, notify func()) *Pool {
	return &Pool{sges: sges, ring: pooled(depth, sges), depth: depth, notify: notify}
}

func pooled(depth, sges int) []Buffer {
	ring := make([]Buffer, depth)
	mem := make([]Mem, depth*sges)
	for i := range ring {
		ring[i].SGL = mem[i*sges : i*sges : (i+1)*sges]
	}
	return ring
}

// Reserve locks the queue to post n buffers: the caller then calls [Pool.Next], fills in
// ID and SGL, and calls [Pool.Post], n times, and [Pool.Commit] at the end. If there is no
// room for n, Reserve reports false and locks nothing.
func (p *Pool) Reserve(n int) bool {
	p.mu.Lock()
	if n > p.depth-p.n {
		p.mu.Unlock()
		return false
	}
	return true
}

// Next returns the buffer to fill in next, with an empty SGL. Call it between Reserve and
// Commit only.
func (p *Pool) Next() *Buffer {
	b := p.at(p.n)
	b.SGL = b.SGL[:0]
	return b
}

// Post adds the buffer that Next returned.
func (p *Pool) Post() { p.n++ }

// Commit unlocks the queue after Reserve and resumes the streams that found no buffer. It
// must not be called with a lock of a stream held.
func (p *Pool) Commit() {
	for k := len(p.starved); k > 0 && len(p.starved) > 0 && p.n > 0; k-- {
		r := p.starved[0]
		p.starved = slices.Delete(p.starved, 0, 1)
		resume := r.resume
		p.mu.Unlock()
		resume() // takes what it needs
		p.mu.Lock()
	}
	p.mu.Unlock()
}

// forget removes a receiver that waits for a buffer.
func (p *Pool) forget(r *Receiver) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starved = slices.DeleteFunc(p.starved, func(o *Receiver) bool { return o == r })
}

func (p *Pool) at(i int) *Buffer { // mu is held
	if i += p.head; i >= len(p.ring) {
		i -= len(p.ring)
	}
	return &p.ring[i]
}

// take moves the oldest buffer to dst. If there is none it reports false, and Commit
// resumes r when buffers have been posted.
func (p *Pool) take(dst *Buffer, r *Receiver) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n == 0 {
		if !r.starved {
			p.starved = append(p.starved, r)
		}
		return false
	}
	src := p.at(0)
	dst.ID, dst.SGL = src.ID, append(dst.SGL[:0], src.SGL...)
	dst.ready()
	clear(src.SGL)
	src.SGL = src.SGL[:0]
	if p.head++; p.head == len(p.ring) {
		p.head = 0
	}
	p.n--
	if p.n < p.limit {
		p.limit = 0
		p.notify()
	}
	return true
}

// Len returns the number of posted buffers, the capacity, and the limit of
// [Pool.SetLimit], which is 0 after the limit event.
func (p *Pool) Len() (n, depth, limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n, p.depth, p.limit
}

// SetLimit arms one limit event for when fewer than n buffers are posted; if that is so
// already, it fires with the next message that takes a buffer. 0 disarms it.
func (p *Pool) SetLimit(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = n
}

// Resize changes the capacity. It reports false and changes nothing if more than depth
// buffers are posted.
func (p *Pool) Resize(depth int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if depth < p.n {
		return false
	}
	ring := pooled(depth, p.sges)
	for i := range p.n {
		src := p.at(i)
		ring[i].ID, ring[i].SGL = src.ID, append(ring[i].SGL, src.SGL...)
	}
	p.ring, p.head, p.depth = ring, 0, depth
	return true
}

// Close removes all buffers, unpins their regions, and sets the capacity to 0.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.depth, p.limit = 0, 0
	for ; p.n > 0; p.n-- {
		b := p.at(p.n - 1)
		Unpin(b.SGL)
		b.SGL = b.SGL[:0]
	}
}
