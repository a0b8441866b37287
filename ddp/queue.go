package ddp

// Buffer is an untagged buffer: one entry of a Queue.
type Buffer struct {
	// SGL is its memory. The slice belongs to the queue; Queue.Next hands it
	// out empty with the capacity asked for.
	SGL []Mem
	// ID is the ULP's.
	ID uint64
	// Inline is the memory of messages that the ULP admits with AdmitInline.
	Inline [InlineLen]byte

	size uint32 // bytes in SGL
	got  uint32 // bytes placed
	end  uint32 // highest offset placed
	ctrl uint8  // Ctrl of the first segment placed
	seen bool   // whether there was one
}

// InlineLen is the size of Buffer.Inline.
const InlineLen = 8

// Size returns the number of bytes in SGL.
func (b *Buffer) Size() uint32 { return b.size }

// Queue is a queue of untagged buffers (RFC 5041, Section 5.1.2): a ring buffer indexed by
// MSN.
type Queue struct {
	ring  []Buffer
	first uint32 // MSN of the oldest buffer
	n     uint32 // posted buffers; with a pool 1 while the oldest message has a buffer
	depth uint32 // most buffers posted at once
	pool  *Pool  // shared receive queue that buffers come from, or nil
}

// Init makes the queue one of depth buffers of up to sges elements each.
func (q *Queue) Init(depth, sges int) {
	size := 1
	for size < depth {
		size *= 2
	}
	q.ring = make([]Buffer, size)
	mem := make([]Mem, size*sges)
	for i := range q.ring {
		q.ring[i].SGL = mem[i*sges : i*sges : (i+1)*sges]
	}
	q.first, q.n, q.depth = 1, 0, uint32(depth) // RFC 5041, Section 4.3: the first MSN is 1
}

// share makes the queue take its buffers from pool: see [Receiver.Share].
func (q *Queue) share(pool *Pool) {
	q.Init(1, pool.sges)
	q.pool = pool
}

// Shared reports whether the queue takes its buffers from a shared receive queue.
func (q *Queue) Shared() bool { return q.pool != nil }

// Free returns how many buffers can be posted.
func (q *Queue) Free() int {
	if q.pool != nil {
		return 0
	}
	return int(q.depth - q.n)
}

// Len returns how many buffers are posted.
func (q *Queue) Len() int { return int(q.n) }

// Next returns the buffer that Post will post, to be filled in. There must be
// a free one.
func (q *Queue) Next() *Buffer { return q.at(q.first + q.n) }

// Post posts the buffer returned by Next.
func (q *Queue) Post() {
	q.Next().ready()
	q.n++
}

// ready makes a buffer wait for its message.
func (b *Buffer) ready() {
	b.size = uint32(min(SGLen(b.SGL), 1<<32-1))
	b.got, b.end, b.seen = 0, 0, false
}

// First returns the oldest posted buffer.
func (q *Queue) First() *Buffer { return q.at(q.first) }

// Drop takes the oldest buffer out of the queue. Its memory is as the ULP
// leaves it.
func (q *Queue) Drop() {
	q.first++
	q.n--
}

// Empty takes all buffers out of the queue, in order, and hands each to f
// before that.
func (q *Queue) Empty(f func(*Buffer)) {
	for q.n > 0 {
		f(q.First())
		q.Drop()
	}
}

func (q *Queue) at(msn uint32) *Buffer { return &q.ring[msn&uint32(len(q.ring)-1)] }

// find returns the posted buffer of a message (RFC 5041, Section 7.1, untagged
// checks 2 and 5). An MSN just past the posted buffers lacks a buffer; one
// that no posting to a full queue could reach is out of range, as is one
// delivered already.
func (q *Queue) find(msn uint32) (*Buffer, Fault) {
	d := msn - q.first
	switch {
	case d < q.n:
		return q.at(msn), 0
	case d < q.depth || d == q.n:
		return nil, FaultNoBuffer
	}
	return nil, FaultMSN
}

// place copies p to offset mo of the buffer (checks 3 and 4).
func (b *Buffer) place(mo uint32, p []byte, inline bool) Fault {
	size := b.size
	if inline {
		size = InlineLen
	}
	end := uint64(mo) + uint64(len(p))
	if len(p) > 0 {
		if mo > size {
			return FaultMO
		}
		if end > uint64(size) {
			return FaultTooLong
		}
		if inline {
			copy(b.Inline[mo:], p)
		} else {
			Scatter(b.SGL, uint64(mo), p)
		}
	}
	b.got += uint32(len(p))
	b.end = max(b.end, uint32(min(end, 1<<32-1)))
	return 0
}

// Slot returns a place of the ring, of which there are as many as the depth
// rounded up to a power of two, to give it memory that stays with it.
func (q *Queue) Slot(i int) *Buffer { return &q.ring[i] }
