package core

import "github.com/weftstack/weft/sctp/internal/slab"

// gather says which parts of messages PollTransmit does not copy into packets.
type gather struct {
	iovecs    *[]slab.IOVec // nil: nothing
	least     int           // the least part of a message, in bytes
	deferCopy bool          // deferred is used although there are no iovecs
	// deferred is the part of a message that was appended last to the packet being built.
	// It is copied when the packet is complete, together with its checksum.
	deferred slab.IOVec
}

// minDeferCopy is the least part of a message that is copied late: it takes as much as
// that to make up for a checksum in three steps.
const minDeferCopy = 512

// copyDeferred copies the part that was left for the checksum.
func (g *gather) copyDeferred(b []byte) {
	if g.deferred.B != nil {
		copy(b[g.deferred.At:], g.deferred.B)
		g.deferred = slab.IOVec{}
	}
}

// copyTo appends n bytes of the message from offset off to b, what g tells to leave
// where it is excepted.
func (m *outMsg) copyTo(b []byte, off int64, n int, g *gather) []byte {
	if h := int64(m.hdrLen); off < h {
		k := min(n, int(h-off))
		b = append(b, m.hdr[off:int(off)+k]...)
		off, n = off+int64(k), n-k
	}
	return m.appendBody(b, off-int64(m.hdrLen), n, g)
}

// appendBody is copyTo for n bytes of the body from offset off.
func (m *outMsg) appendBody(b []byte, off int64, n int, g *gather) []byte {
	if n == 0 {
		return b
	}
	body, at := m.body[off-m.gone:][:n], len(b)
	switch {
	case g.iovecs == nil && !g.deferCopy || cap(b)-at < n:
	case g.iovecs != nil && n >= g.least && len(*g.iovecs) < cap(*g.iovecs):
		*g.iovecs = append(*g.iovecs, slab.IOVec{At: at, B: body})
		return b[:at+n]
	case n >= minDeferCopy:
		g.copyDeferred(b)
		g.deferred = slab.IOVec{At: at, B: body}
		return b[:at+n]
	}
	return append(b, body...)
}
