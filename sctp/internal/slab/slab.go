// Package slab holds reference-counted receive buffers.
//
// A socket read fills one Buf; every fragment of user data that aliases it
// takes a reference, and the last Release returns the memory to its Pool.
package slab

import (
	"sync"
	"sync/atomic"
)

// Size is the capacity of a Buf: the largest datagram or GRO super-packet a
// socket can return in one read.
const Size = 64 << 10

// Buf is one receive buffer. B may be resliced by the reader that fills it;
// everyone else treats it as read-only. A Buf is safe for concurrent Retain and
// Release.
type Buf struct {
	B    []byte
	mem  [Size]byte
	refs atomic.Int32
	pool *Pool
}

// Retain adds a reference. The caller must already hold one.
func (b *Buf) Retain() { b.refs.Add(1) }

// Release drops one reference; the last one returns the buffer to its pool,
// after which no slice of B may be used.
func (b *Buf) Release() {
	switch n := b.refs.Add(-1); {
	case n == 0:
		if b.pool != nil {
			b.pool.free.Put(b)
			b.pool.live.Add(-1)
		}
	case n < 0:
		panic("slab: Release of a free buffer")
	}
}

// Shared reports whether anybody besides the caller holds a reference.
func (b *Buf) Shared() bool { return b.refs.Load() > 1 }

// Pool hands out buffers. The zero Pool is ready for use and safe for
// concurrent use.
type Pool struct {
	free sync.Pool
	live atomic.Int64
}

// Get returns a buffer of full capacity with one reference.
func (p *Pool) Get() *Buf {
	b, _ := p.free.Get().(*Buf)
	if b == nil {
		b = &Buf{pool: p}
	}
	b.B = b.mem[:]
	b.refs.Store(1)
	p.live.Add(1)
	return b
}

// Live returns how many buffers are out of the pool.
func (p *Pool) Live() int64 { return p.live.Load() }
