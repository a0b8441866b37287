package ddp

import (
	"slices"
	"sync"
)

// Pool is a queue of untagged buffers that any number of Queues take theirs
// from: a shared receive queue. It is safe for concurrent use.
//
// A message takes a buffer when all those before it on its stream have been
// delivered, so which stream gets which buffer depends on the network.
type Pool struct {
	sges int

	mu      sync.Mutex
	ring    []Buffer    // guarded by mu
	head, n int         // guarded by mu: the oldest buffer, and how many
	depth   int         // guarded by mu: most buffers at once
	limit   int         // guarded by mu: below this many buffers, notify once
	dry     []*Receiver // guarded by mu: found no buffer, each once
	notify  func()
}

// NewPool makes a pool of at most depth buffers of up to sges elements each.
// notify is called, with locks of a stream and of the pool held, when the number
// of buffers falls below what SetLimit said.
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

// Reserve locks the pool for n buffers: the caller then calls Next and fills in
// ID and SGL, then Post, n times, and Commit. Without room it locks nothing and
// reports false.
func (p *Pool) Reserve(n int) bool {
	p.mu.Lock()
	if n > p.depth-p.n {
		p.mu.Unlock()
		return false
	}
	return true
}

// Next returns the next buffer to fill in: its SGL is empty.
func (p *Pool) Next() *Buffer {
	b := p.at(p.n)
	b.SGL = b.SGL[:0]
	return b
}

// Post adds the buffer of Next.
func (p *Pool) Post() { p.n++ }

// Commit ends what Reserve began, and tells the streams that found no buffer. It must
// not be called with a lock of a stream held.
func (p *Pool) Commit() {
	for k := len(p.dry); k > 0 && len(p.dry) > 0 && p.n > 0; k-- {
		r := p.dry[0]
		p.dry = slices.Delete(p.dry, 0, 1)
		p.mu.Unlock()
		r.resume() // takes what it needs
		p.mu.Lock()
	}
	p.mu.Unlock()
}

// forget takes out a receiver that waits for a buffer.
func (p *Pool) forget(r *Receiver) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dry = slices.DeleteFunc(p.dry, func(o *Receiver) bool { return o == r })
}

func (p *Pool) at(i int) *Buffer { // mu is held
	if i += p.head; i >= len(p.ring) {
		i -= len(p.ring)
	}
	return &p.ring[i]
}

// take moves the oldest buffer to dst. If there is none it reports false, and has r
// resume when there is.
func (p *Pool) take(dst *Buffer, r *Receiver) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n == 0 {
		if !r.dry {
			p.dry = append(p.dry, r)
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

// Len returns how many buffers there are, and Limit what SetLimit said, 0 once
// it was reached.
func (p *Pool) Len() (n, depth, limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n, p.depth, p.limit
}

// SetLimit asks for one notification when there are fewer than n buffers; if
// that is so already, at the next message. 0 asks for none.
func (p *Pool) SetLimit(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = n
}

// Resize changes how many buffers there may be. It reports false, and changes
// nothing, if there are more.
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

// Close takes all buffers out, unpins their regions, and leaves room for none.
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
