package ddp

import "sync"

// copyMax is the largest payload that is copied into a buffer of this package
// rather than referenced.
const copyMax = 2048

// MaxCopied is the largest message that Message.Copy applies to.
const MaxCopied = copyMax

// Message is a DDP message being cut into segments (RFC 5041, Section 5.2).
// Fill in the exported fields, then call Next until it reports the last
// segment.
type Message struct {
	// Header is the header of the next segment. Next fills in Last, and adds to MO
	// or TO what it cut off.
	Header Header
	// SGL is the payload.
	SGL []Mem
	// Len is its length: that of SGL, at most 2^32-1.
	Len uint32
	// Copy makes segments hold copies of the payload, so that the caller may change the
	// memory after Next has returned.
	Copy bool
	// Snapshots, if not nil, makes segments hold copies of any size, which it counts; a
	// Train has a single copy. The payload is read once, in the order of its addresses.
	// Next and NextTrain may be called only while Snapshots has Room.
	Snapshots *Snapshots
	// Owner is called for segments that reference SGL, Credit for segments that hold
	// copies.
	Owner, Credit Owner

	done uint32 // bytes cut off already
	idx  int    // current element of SGL
	off  int    // bytes of it cut off already
}

// Reset clears the message, including its references to memory.
func (m *Message) Reset() { *m = Message{} }

// Sent returns the number of payload bytes that are in segments.
func (m *Message) Sent() uint32 { return m.done }

// Next makes the next segment, no larger than mulpdu octets, in increasing
// order of MO or TO (RFC 5041, Section 5.3). It reports whether it was the
// last one; a message of no length has exactly one. A segment whose payload is
// not contiguous in SGL is copied.
func (m *Message) Next(mulpdu int, seg *Segment) (last bool) {
	h := &m.Header
	hl := h.Len()
	n := max(mulpdu-hl, 1)
	if left := m.Len - m.done; uint64(n) >= uint64(left) {
		n, last = int(left), true
	}
	inFrame := n <= frameRoom(hl)
	var whole []byte // the payload, if it is contiguous
	if !inFrame {
		if b := m.rest(); len(b) >= n && !m.Copy {
			whole = b[:n]
		} else if n > copyMax {
			n, last = copyMax, false
		}
	}
	h.Last = last
	frame := AppendHeader(seg.frame[:Headroom], h)
	h.advance(n)
	seg.Urgent, seg.Body, seg.Owner = false, nil, m.Credit
	switch {
	case inFrame:
		frame = frame[:len(frame)+n]
		m.gather(frame[len(frame)-n:])
	case whole != nil && m.Snapshots != nil:
		c := m.Snapshots.take(whole, 1, m.Credit)
		seg.Body, seg.Owner = c.b[:n], c
		m.off += n
	case whole != nil:
		seg.Body, seg.Owner = whole, m.Owner
		m.off += n
	default:
		c := copies.Get().(*copied)
		c.owner = m.Credit
		m.gather(c.b[:n])
		seg.Body, seg.Owner = c.b[:n], c
	}
	seg.n = len(frame)
	m.done += uint32(n)
	return last
}

// frameRoom returns how many bytes of payload a frame has room for behind a header of hl.
func frameRoom(hl int) int { return maxFrame - Headroom - hl }

// rest returns what is left of the element of SGL that the next byte is in.
func (m *Message) rest() []byte {
	for m.idx < len(m.SGL) && m.off == len(m.SGL[m.idx].B) {
		m.idx, m.off = m.idx+1, 0
	}
	return m.SGL[m.idx].B[m.off:]
}

// gather copies the next len(p) bytes of SGL to p.
func (m *Message) gather(p []byte) {
	for len(p) > 0 {
		b := m.SGL[m.idx].B[m.off:]
		c := min(len(p), len(b))
		if m.Snapshots != nil {
			copyInOrder(p, b[:c])
		} else {
			copy(p, b)
		}
		p = p[c:]
		if m.off += c; m.off == len(m.SGL[m.idx].B) {
			m.idx, m.off = m.idx+1, 0
		}
	}
}

// copied is a copy of a payload: the Body and Owner of a segment.
type copied struct {
	b     [copyMax]byte
	owner Owner
}

var copies = sync.Pool{New: func() any { return new(copied) }}

// Released implements Owner.
func (c *copied) Released(err error) {
	o := c.owner
	c.owner = nil
	copies.Put(c)
	o.Released(err)
}
