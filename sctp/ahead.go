package sctp

import (
	"encoding/binary"
	"unsafe"

	"github.com/weftstack/weft/sctp/internal/prefetch"
	"github.com/weftstack/weft/sctp/wire"
)

// prefetch brings what a packet or a message needs of the association into the
// cache. With thousands of associations that is not there any more since the last
// one, and to wait for a line each time that one is needed takes longer than all
// else. No lock is needed.
func (a *Association) prefetch() {
	if a.t.demux.crowded() {
		a.fetch()
	}
}

func (a *Association) fetch() {
	prefetch.Range(unsafe.Pointer(a), unsafe.Offsetof(a.writers))
}

// crowd is from how many associations on they are prefetched. So many are in the
// cache anyway.
const crowd = 16

// crowded reports whether there are many associations.
func (d *demux) crowded() bool { return d.tags.len() >= crowd }

// ahead prefetches the associations that the n trains just read are for, if they
// are for more than one. s.mu is locked.
func (s *socket) ahead(n int) {
	last := uint32(0)
	if a := s.last; a != nil {
		last = a.tag.Load()
	}
	found := 0
	for i := range n {
		b, size := s.bufs[i].B, s.metas[i].SegSize
		if size <= 0 {
			size = len(b)
		}
		for ; len(b) >= wire.HeaderLen; b = b[min(size, len(b)):] {
			tag := binary.BigEndian.Uint32(b[4:])
			if tag == last {
				continue
			}
			last = tag
			a := s.t.demux.byTag(tag)
			if a == nil {
				continue
			}
			a.fetch()
			if found++; found == batchAssocs {
				return
			}
		}
	}
}
