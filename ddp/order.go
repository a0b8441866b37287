package ddp

import "unsafe"

// minRecords is how many places the reordering window of a stream keeps for later
// when it is empty.
const minRecords = 64

// kind tells what took a place in the sequence of a stream.
type kind uint8

const (
	kindNone    kind = iota
	kindSkip         // a message of the lower layer itself
	kindSegment      // a segment that ends no message
	kindLast         // the last segment of a message
	kindEnd          // the peer's end
)

// arrival is something that came: enough to deliver it when its turn comes. Its
// payload has been placed already, or is held (see Receiver).
type arrival struct {
	kind kind
	hdr  Header
	n    uint32 // bytes of payload
}

// record is an arrival that came early, in the least space.
type record struct {
	pos  uint64 // TO, or MO and Word
	id   uint32 // STag, or MSN
	n    uint32
	seq  uint32 // low half of the sequence number
	ctrl uint8
	qn   uint8
	// kind is kindNone in an empty place.
	kind   kind
	tagged bool
}

// order is the reordering window of a stream: it turns placement in any order
// into delivery in the order of sequence numbers. Early arrivals are in a hash table
// by sequence number with linear probing. It is at most half full and at least a
// quarter, so that its memory is proportional to the number of arrivals, whatever
// their numbers are.
type order struct {
	next  uint64 // first sequence number not delivered
	early int    // records in the table
	table []record
}

// memory is the bytes that the window takes because of early arrivals.
func (o *order) memory() int {
	return max(len(o.table)-minRecords, 0) * int(unsafe.Sizeof(record{}))
}

// seen reports whether seq has arrived before, and whether it is within the
// window.
func (o *order) seen(seq uint64) (dup, ok bool) {
	if seq < o.next {
		return true, true
	}
	if seq-o.next >= MaxOutstanding {
		return false, false
	}
	return o.find(seq) >= 0, true
}

// find returns the place of seq, -1 if it has not come.
func (o *order) find(seq uint64) int {
	if o.early == 0 {
		return -1
	}
	mask := uint32(len(o.table) - 1)
	for i := uint32(seq) & mask; o.table[i].kind != kindNone; i = (i + 1) & mask {
		if o.table[i].seq == uint32(seq) {
			return int(i)
		}
	}
	return -1
}

// put remembers an arrival. seen(seq) must be false, true.
func (o *order) put(seq uint64, a *arrival) {
	if 2*(o.early+1) > len(o.table) {
		was := o.table
		o.table = make([]record, max(2*len(was), minRecords))
		for i := range was {
			if was[i].kind != kindNone {
				o.insert(was[i])
			}
		}
	}
	h := &a.hdr
	r := record{seq: uint32(seq), n: a.n, ctrl: h.Ctrl, kind: a.kind, tagged: h.Tagged}
	if h.Tagged {
		r.id, r.pos = h.STag, h.TO
	} else {
		// A segment of a queue that there is not ends the stream before its header
		// could matter.
		r.id, r.qn, r.pos = h.MSN, uint8(h.QN), uint64(h.MO)<<32|uint64(h.Word)
	}
	o.insert(r)
	o.early++
}

func (o *order) insert(r record) {
	mask := uint32(len(o.table) - 1)
	i := r.seq & mask
	for o.table[i].kind != kindNone {
		i = (i + 1) & mask
	}
	o.table[i] = r
}

// peek copies the arrival whose turn it is to a, if it has come.
func (o *order) peek(a *arrival) bool {
	i := o.find(o.next)
	if i < 0 {
		return false
	}
	r := &o.table[i]
	*a = arrival{kind: r.kind, n: r.n, hdr: Header{Tagged: r.tagged, Last: r.kind == kindLast, Ctrl: r.ctrl}}
	if h := &a.hdr; r.tagged {
		h.STag, h.TO = r.id, r.pos
	} else {
		h.MSN, h.QN, h.MO, h.Word = r.id, uint32(r.qn), uint32(r.pos>>32), uint32(r.pos)
	}
	return true
}

// drop forgets the arrival that peek returned and goes on to the next one.
func (o *order) drop() {
	mask := len(o.table) - 1
	i := o.find(o.next)
	o.next++
	if o.early--; o.early == 0 && len(o.table) > minRecords {
		o.table = nil
		return
	}
	for j := (i + 1) & mask; o.table[j].kind != kindNone; j = (j + 1) & mask {
		// Whatever probing would not find any more moves to the hole.
		if home := int(o.table[j].seq) & mask; (j-home)&mask >= (j-i)&mask {
			o.table[i] = o.table[j]
			i = j
		}
	}
	o.table[i] = record{}
}
