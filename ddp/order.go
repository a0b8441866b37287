package ddp

// pageLen is how many records a page of the reordering window holds.
const pageLen = 64

// maxSparePages bounds the empty pages a window keeps for later.
const maxSparePages = 4

// kind tells what took a place in the sequence of a stream.
type kind uint8

const (
	kindNone    kind = iota
	kindSkip         // a message of the lower layer itself
	kindSegment      // a segment that ends no message
	kindLast         // the last segment of a message
	kindEnd          // the peer's end
)

// arrival is what is remembered of something that came early: enough to
// deliver it when its turn comes. Its payload has been placed already.
type arrival struct {
	kind kind
	hdr  Header
	n    uint32 // bytes of payload
}

type page struct {
	rec  [pageLen]arrival
	used int
}

// order is the reordering window of a stream: it turns placement in any order
// into delivery in the order of sequence numbers. Memory is taken a page at a
// time as records come, so a far-off number costs one page.
type order struct {
	next  uint64 // first sequence number not delivered
	early int    // records in pages
	pages [(MaxOutstanding + 1) / pageLen]*page
	spare []*page
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
	p := o.pages[seq/pageLen%uint64(len(o.pages))]
	return p != nil && p.rec[seq%pageLen].kind != kindNone, true
}

// put remembers an arrival that is not next. seen(seq) must be false, true.
func (o *order) put(seq uint64, a *arrival) {
	i := seq / pageLen % uint64(len(o.pages))
	p := o.pages[i]
	if p == nil {
		if n := len(o.spare); n > 0 {
			p, o.spare = o.spare[n-1], o.spare[:n-1]
		} else {
			p = new(page)
		}
		o.pages[i] = p
	}
	p.rec[seq%pageLen] = *a
	p.used++
	o.early++
}

// take moves the arrival whose turn it is to a, if it has come.
func (o *order) take(a *arrival) bool {
	if o.early == 0 {
		return false
	}
	i := o.next / pageLen % uint64(len(o.pages))
	p := o.pages[i]
	if p == nil || p.rec[o.next%pageLen].kind == kindNone {
		return false
	}
	*a = p.rec[o.next%pageLen]
	p.rec[o.next%pageLen] = arrival{}
	o.early--
	if p.used--; p.used == 0 {
		o.pages[i] = nil
		if len(o.spare) < maxSparePages {
			o.spare = append(o.spare, p)
		}
	}
	o.next++
	return true
}
