package reasm

import (
	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/slab"
)

const (
	// slabMin is the payload size from which on a fragment stays in the receive
	// buffer; a smaller one is copied, so that it does not pin 64 KiB.
	slabMin = 256
	// fragBatch is how many fragments are made at once, at most. The first are made
	// one by one: most associations never hold more.
	fragBatch = 64
	// maxFreeFragments bounds each of the free lists, in records; freeShare does so
	// as the part of the receive buffer that their memory may be.
	maxFreeFragments = 4096
	freeShare        = 8
	// blockRecord is what a block takes besides its memory.
	blockRecord = 48
	// maxPooledCopy is the largest payload that is copied to memory from the buffer pool,
	// 4 KiB.
	maxPooledCopy = 4096
	// shortPayload is the largest payload that is copied to the fragment itself.
	shortPayload = 64
)

// frag is one fragment of a user message.
type frag struct {
	fragState
	short [shortPayload]byte
}

// fragState is what is cleared when a fragment is reused.
type fragState struct {
	next, prev *frag // in a message, or in a list of loose fragments
	hnext      *frag // in a fragTable
	data       []byte
	pin        *pin            // what data aliases; nil if it was copied
	block      *bufpool.Buffer // what data was copied to; nil if to short, or to measure
	msg        uint64          // key of the message it belongs to
	slot       uint64          // with seq, its key in the table of loose fragments
	seq        uint32          // FSN of I-DATA, TSN of DATA
	tsn        seq.TSN
	ppid       uint32
	size       uint32 // of the payload when it came
	charge     int    // bytes it takes from the receive window
	sid        uint16
	begin, end bool
	unordered  bool
}

// pin is one reference of a receive buffer, shared by the fragments of an
// association that alias it.
type pin struct {
	next *pin
	buf  *slab.Buf
	n    int
}

// fragPool makes and recycles fragments and what carries their payload.
type fragPool struct {
	frags   *frag
	nfrags  int
	made    int // fragments that were made, up to fragBatch
	maxFree int // records in a free list
	pins    *pin
	last    *pin // the newest pin, if it is in use
	pinned  int
	window  *window
}

// limit sets the bounds of the free lists for a receive buffer of n bytes.
func (p *fragPool) limit(n int) {
	p.maxFree = min(max(n/freeShare/fragCharge, fragBatch), maxFreeFragments)
}

// get returns a fragment with data and charge set and all else zero.
func (p *fragPool) get(data []byte, buf *slab.Buf) *frag {
	if p.frags == nil {
		p.makeFrags()
	}
	f := p.frags
	p.frags = f.next
	p.nfrags--
	f.next = nil
	p.frags.prefetch() // for the next packet
	f.size = uint32(len(data))
	if buf != nil && len(data) >= slabMin {
		if pn := p.pinFor(buf); pn != nil {
			pn.n++
			p.window.idle -= len(data)
			f.pin, f.data, f.charge = pn, data, len(data)+fragCharge
			return f
		}
	}
	f.data = p.copy(f, data)
	return f
}

// makeFrags fills the free list: with as many as there were made before.
func (p *fragPool) makeFrags() {
	batch := make([]frag, max(p.made, 1))
	p.made = min(p.made+len(batch), fragBatch)
	for i := range batch {
		batch[i].next, p.frags = p.frags, &batch[i]
	}
	p.nfrags = len(batch)
}

// pinFor returns a pin of buf, or nil if what is pinned without need would be more
// than window.idleShare: payloads are copied then, whatever their size. Else a peer
// that sends one small chunk per buffer would pin far more memory than its window.
func (p *fragPool) pinFor(buf *slab.Buf) *pin {
	if p.last != nil && p.last.buf == buf {
		return p.last
	}
	if p.window.idle+slab.Size > p.window.idleShare() {
		return nil
	}
	pn := p.pins
	if pn != nil {
		p.pins = pn.next
		pn.next = nil
	} else {
		pn = new(pin)
	}
	buf.Retain()
	pn.buf = buf
	p.last = pn
	p.pinned++
	p.window.idle += slab.Size
	return pn
}

// copy returns a copy of data, in f if it is short, else in a block of f if that is
// large enough. More only comes when there is no receive buffer to alias. It sets the
// charge of f.
func (p *fragPool) copy(f *frag, data []byte) []byte {
	f.charge = fragCharge
	if len(data) <= shortPayload {
		return f.short[:copy(f.short[:], data)]
	}
	if len(data) > maxPooledCopy {
		f.charge += len(data) + len(data)/8 // the allocator rounds up
		return append(make([]byte, 0, len(data)), data...)
	}
	f.block = bufpool.Get(len(data))
	f.charge += f.block.Size() + blockRecord
	own := f.block.Bytes(len(data))
	copy(own, data)
	return own
}

// put releases the payload of f and recycles f.
func (p *fragPool) put(f *frag) {
	if pn := f.pin; pn != nil {
		p.window.idle += int(f.size)
		if pn.n--; pn.n == 0 {
			p.window.idle -= slab.Size
			pn.buf.Release()
			pn.buf = nil
			if p.last == pn {
				p.last = nil
			}
			p.pinned--
			pn.next, p.pins = p.pins, pn // as few as were pinned at once
		}
	}
	if b := f.block; b != nil {
		b.Put()
	}
	f.fragState = fragState{}
	if p.nfrags < p.maxFree {
		f.next, p.frags = p.frags, f
		p.nfrags++
	}
}

// fragList is a doubly linked list of loose fragments.
type fragList struct {
	head, tail *frag
}

func (l *fragList) push(f *frag) {
	f.prev, f.next = l.tail, nil
	if l.tail != nil {
		l.tail.next = f
	} else {
		l.head = f
	}
	l.tail = f
}

func (l *fragList) remove(f *frag) {
	if f.prev != nil {
		f.prev.next = f.next
	} else {
		l.head = f.next
	}
	if f.next != nil {
		f.next.prev = f.prev
	} else {
		l.tail = f.prev
	}
	f.next, f.prev = nil, nil
}
