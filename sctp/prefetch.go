package sctp

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/weftstack/weft/sctp/internal/prefetch"
	"github.com/weftstack/weft/sctp/wire"
)

// manyAssociations is from how many associations of a transport on they are prefetched. So
// many are in the cache anyway.
const manyAssociations = 16

// transportsWithMany is how many transports have so many associations: a Send that had to look
// at its association for that would have waited for it already.
var transportsWithMany atomic.Int32

// fetch has the processor bring what a packet that is received, or a message to be
// sent, needs of the association into its cache. With thousands of associations
// that is not there any more since the last one, and to wait for a line each time
// that one is needed takes longer than all else. No lock is needed.
func (a *Association) prefetch(send bool) {
	p, n := unsafe.Pointer(a), unsafe.Offsetof(a.body)
	if send {
		n = unsafe.Offsetof(a.calls)
	}
	prefetch.Range(p, n)
	a.body.Prefetch(send)
}

// prefetchForSend is fetch for a message to be sent.
func (a *Association) prefetchForSend() {
	if transportsWithMany.Load() > 0 {
		a.prefetch(true)
	}
}

// ahead fetches the associations that the n trains just read are for, if they are
// for more than one. s.mu is locked.
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

// prefetches reports whether there are many associations.
func (d *demux) prefetches() bool { return d.tags.len() >= manyAssociations }

// fetch fetches the associations that have the tags.
func (d *demux) prefetch(tags []uint32) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, tag := range tags {
		d.tags.prefetch(tag)
	}
	for _, tag := range tags {
		if a := d.tags.get(tag); a != nil {
			a.prefetch(false)
		}
	}
}
