package sctp

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/weftstack/weft/sctp/internal/prefetch"
	"github.com/weftstack/weft/sctp/wire"
)

// manyAssociations is the many-association threshold: from so many associations of a
// transport on, their state is prefetched. The state of fewer stays in the cache.
const manyAssociations = 16

// transportsWithMany counts the transports with so many associations. It is global because
// a Send that read its association to find the count would wait for that memory already.
var transportsWithMany atomic.Int32

// prefetch brings the state of the association into the processor's cache that a received
// packet needs, or a message to be sent. With thousands of associations it has left the cache
// since the last packet, and waiting for one line after another takes longer than all else.
// It reads nothing, so no lock is needed.
func (a *Association) prefetch(send bool) {
	p, n := unsafe.Pointer(a), unsafe.Offsetof(a.body)
	if send {
		n = unsafe.Offsetof(a.calls)
	}
	prefetch.Range(p, n)
	a.body.Prefetch(send)
}

// prefetchForSend is prefetch for a message to be sent, where there are many associations.
func (a *Association) prefetchForSend() {
	if transportsWithMany.Load() > 0 {
		a.prefetch(true)
	}
}

// prefetchBatch prefetches the associations that the n batches just read are for, except the
// one of the last packet. s.mu is locked.
func (s *socket) prefetchBatch(n int) {
	last := uint32(0)
	if a := s.last; a != nil {
		last = a.tag.Load()
	}
	var tags [batchAssocs]uint32
	found := tags[:0]
	for i := range n {
		b, size := s.bufs[i].B, s.metas[i].SegSize
		if size <= 0 {
			size = len(b)
		}
		for ; len(b) >= wire.HeaderLen && len(found) < len(tags); b = b[min(size, len(b)):] {
			if tag := binary.BigEndian.Uint32(b[4:]); tag != last {
				last = tag
				found = append(found, tag)
			}
		}
	}
	if len(found) > 0 {
		s.t.demux.prefetch(found)
	}
}

// putTag adds an association under a tag that none has. d.mu is locked.
func (d *demux) putTag(tag uint32, a *Association) {
	if d.tags.Put(tag, a); d.tags.Len() == manyAssociations {
		transportsWithMany.Add(1)
	}
}

// removeTag takes out the association with a tag, if there is one. d.mu is locked.
func (d *demux) removeTag(tag uint32) {
	if d.tags.Remove(tag) && d.tags.Len() == manyAssociations-1 {
		transportsWithMany.Add(-1)
	}
}

// prefetches reports whether there are enough associations to prefetch their state.
func (d *demux) prefetches() bool { return d.tags.Len() >= manyAssociations }

// prefetch prefetches the associations that have the tags: first all slots of the table, then
// the associations, so that their memory accesses overlap.
func (d *demux) prefetch(tags []uint32) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, tag := range tags {
		d.tags.Prefetch(tag)
	}
	for _, tag := range tags {
		if a := d.tags.Get(tag); a != nil {
			a.prefetch(false)
		}
	}
}
