package core

import "github.com/weftstack/weft/sctp/internal/slab"

const (
	// slabMin is the payload size from which on a fragment stays in the receive
	// buffer; a smaller one is copied, so that it does not pin 64 KiB.
	slabMin = 256
	// minPinned is how many receive buffers an association may always pin. With
	// a larger receive buffer it is pinFactor times that many bytes. Beyond it
	// payloads are copied, whatever their size: else a peer that sends one small
	// chunk per datagram would pin far more memory than its window.
	minPinned = 16
	pinFactor = 4
	// fragBatch is how many fragments are made at once, at most. The first are made
	// one by one: most associations never hold more.
	fragBatch = 64
	// Bounds of the free lists, in records.
	maxFreeFragments = 4096
	maxFreeRecords   = 4096
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
	pin        *pin        // what data aliases; nil if it was copied
	block      *slab.Block // what data was copied to; nil if to short, or to measure
	msg        uint64      // key of the message it belongs to
	slot       uint64      // with seq, its key in the table of loose fragments
	seq        uint32      // FSN of I-DATA, TSN of DATA
	tsn        TSN
	ppid       uint32
	charge     int // bytes it takes from the receive window
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
	frags     *frag
	nfrags    int
	made      int // fragments that were made, up to fragBatch
	pins      *pin
	last      *pin // the newest pin, if it is in use
	pinned    int
	maxPinned int
}

// limit sets the bound on pinned buffers for a receive buffer of n bytes.
func (p *fragPool) limit(n int) {
	p.maxPinned = max(minPinned, pinFactor*n/slab.Size)
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
	p.frags.fetch() // for the next packet
	if buf != nil && len(data) >= slabMin {
		if pn := p.pinFor(buf); pn != nil {
			pn.n++
			f.pin, f.data, f.charge = pn, data, len(data)+fragOverhead
			return f
		}
	}
	f.data = p.copy(f, data)
	f.charge = len(data) + fragOverhead
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

// pinFor returns a pin of buf, or nil when too many buffers are pinned.
func (p *fragPool) pinFor(buf *slab.Buf) *pin {
	if p.last != nil && p.last.buf == buf {
		return p.last
	}
	if p.pinned >= p.maxPinned {
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
	return pn
}

// copy returns a copy of data, in f if it is short, else in a block of f if that is
// large enough. More only comes when there is no receive buffer to alias.
func (p *fragPool) copy(f *frag, data []byte) []byte {
	if len(data) <= shortPayload {
		return f.short[:copy(f.short[:], data)]
	}
	if len(data) > slab.MaxBlock {
		return append(make([]byte, 0, len(data)), data...)
	}
	f.block = slab.GetBlock(len(data))
	return f.block.B[:copy(f.block.B, data)]
}

// put releases the payload of f and recycles f.
func (p *fragPool) put(f *frag) {
	if pn := f.pin; pn != nil {
		if pn.n--; pn.n == 0 {
			pn.buf.Release()
			pn.buf = nil
			if p.last == pn {
				p.last = nil
			}
			p.pinned--
			pn.next, p.pins = p.pins, pn // at most maxPinned of them exist
		}
	}
	if b := f.block; b != nil {
		b.Free()
	}
	f.fragState = fragState{}
	if p.nfrags < maxFreeFragments {
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
