package ddpsctp

import (
	"unsafe"

	"github.com/weftstack/weft/sctp"
)

// maxPartial bounds a fragmented message being put together. A peer only fragments
// when the path MTU falls below what it has queued, and no segment is longer (RFC
// 5041, Section 3). How many there are is bounded by the receive buffer of the
// association, which they count against: any number may lack a fragment that was
// lost.
const maxPartial = 1 << 16

// partialCost estimates the memory of a message under reassembly without its bytes: the
// record, and a place in the map.
const partialCost = int(unsafe.Sizeof(partial{})) + 64

// partial is a fragmented message being put together.
type partial struct {
	sid  uint16
	ppid uint32
	b    []byte
}

// fragment takes a piece of a message that did not come in one. The pieces of a
// message come in order; those of others may come in between.
func (a *Association) fragment(p *sctp.Piece) {
	m := a.parts[p.Message]
	switch {
	case p.Begin && m == nil:
		m = &partial{sid: p.Stream, ppid: p.PPID}
		if a.parts == nil {
			a.parts = make(map[uint64]*partial)
		}
		a.parts[p.Message] = m
		a.link.Hold(p.Stream, partialCost)
	case m == nil:
		return
	case p.Aborted:
		a.forget(p.Message, m)
		return
	}
	if len(m.b)+len(p.Data) > maxPartial {
		a.link.Abort("fragmented message too long")
		return
	}
	was := cap(m.b)
	m.b = append(m.b, p.Data...)
	a.link.Hold(m.sid, cap(m.b)-was)
	if p.End {
		a.forget(p.Message, m)
		a.receive(m.sid, m.ppid, m.b)
	}
}

// forget takes a message being put together out.
func (a *Association) forget(id uint64, m *partial) {
	delete(a.parts, id)
	a.link.Hold(m.sid, -partialCost-cap(m.b))
}
