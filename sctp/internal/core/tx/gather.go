package tx

import "github.com/weftstack/weft/sctp/internal/slab"

// gather says which parts of messages are not copied into packets at once.
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
	switch {
	case n == 0:
		return b
	case m.hasRuns():
		return m.appendRuns(b, off, n, g)
	}
	return g.appendPart(b, m.body[off-m.gone:][:n])
}

// appendPart appends a part of a message to b, or leaves it where it is.
func (g *gather) appendPart(b, part []byte) []byte {
	at, n := len(b), len(part)
	switch {
	case g.iovecs == nil && !g.deferCopy || cap(b)-at < n:
	case g.iovecs != nil && n >= g.least && len(*g.iovecs) < cap(*g.iovecs):
		*g.iovecs = append(*g.iovecs, slab.IOVec{At: at, B: part})
		return b[:at+n]
	case n >= minDeferCopy:
		g.copyDeferred(b)
		g.deferred = slab.IOVec{At: at, B: part}
		return b[:at+n]
	}
	return append(b, part...)
}

// Gather leaves parts of messages with least bytes or more where they are, as IOVecs that are
// appended to *vecs, up to their capacity, until EndGather is called.
func (s *Scoreboard) Gather(vecs *[]slab.IOVec, least int) {
	s.gather = gather{iovecs: vecs, least: least}
}

// EndGather ends what Gather began.
func (s *Scoreboard) EndGather() { s.gather = gather{} }

// DeferCopies has the part of a message that was appended last be copied with the checksum of
// its packet, if on, see TakeDeferred.
func (s *Scoreboard) DeferCopies(on bool) { s.gather.deferCopy = on }

// TakeDeferred returns the part of a message in the packet being built that is not copied yet,
// which the caller does. B is nil if there is none.
func (s *Scoreboard) TakeDeferred() slab.IOVec {
	d := s.gather.deferred
	s.gather.deferred = slab.IOVec{}
	return d
}

// CopyDeferred copies what TakeDeferred would return to its place in b.
func (s *Scoreboard) CopyDeferred(b []byte) { s.gather.copyDeferred(b) }

// IOVecs returns those of the packet that begins at offset at, the last one built.
func (s *Scoreboard) IOVecs(at int) []slab.IOVec {
	if s.gather.iovecs == nil {
		return nil
	}
	h := *s.gather.iovecs
	i := len(h)
	for i > 0 && h[i-1].At >= at {
		i--
	}
	return h[i:]
}

// FillIOVecs copies the parts that IOVecs names into the packet that begins at offset at.
func (s *Scoreboard) FillIOVecs(b []byte, at int) {
	if h := s.IOVecs(at); len(h) > 0 {
		slab.Fill(b, h)
		all := s.gather.iovecs
		*all = (*all)[:len(*all)-len(h)]
	}
}
