package core

import (
	"github.com/weftstack/weft/sctp/wire"

	"github.com/weftstack/weft/sctp/internal/core/address"
)

// controlQueue holds control chunks that answer something and wait for the next
// packet to their path. A peer that sends more chunks that want answers than
// fit gets none for the rest: all of them are of the kind that is sent again.
type controlQueue struct {
	list *[maxControlReplies]controlReply // nil until there is one
	n    int
	// room is what the packet in hand may still be answered with, replied that
	// it has been answered.
	room    int
	replied bool
}

type controlReply struct {
	path  int
	chunk []byte
}

// begin begins the replies to another packet, which take up to room bytes. RFC
// 5062, Section 10.3: "an SCTP endpoint should not send multiple packets in
// response to a single packet. The chunks not fitting in this packet should be
// dropped." A single reply may be larger.
func (q *controlQueue) begin(room int) { q.room, q.replied = room, false }

// reply queues a chunk for path i. It copies value.
func (q *controlQueue) reply(i int, t wire.ChunkType, flags uint8, value []byte) {
	size := wire.Padded(wire.ChunkHeaderLen + len(value))
	if q.n == maxControlReplies || len(value) > maxControlReplyBytes || q.replied && size > q.room {
		return
	}
	q.room -= size
	q.replied = true
	if q.list == nil {
		q.list = new([maxControlReplies]controlReply)
	}
	r := &q.list[q.n]
	q.n++
	r.path = i
	r.chunk = wire.AppendChunk(r.chunk[:0], t, flags, value)
}

// path returns the path of the oldest reply; ok is false if there is none.
func (q *controlQueue) path() (int, bool) {
	if q.n == 0 {
		return 0, false
	}
	return q.list[0].path, true
}

// appendTo appends the replies for path i that fit into room bytes to b, oldest
// first, and removes them. A reply that would not even fit a packet of its own, which has
// room for full bytes, is dropped: it would be due for ever. And to an address that is not
// confirmed only answers to heartbeats and ASCONF chunks go.
func (q *controlQueue) appendTo(b []byte, i, room, full int, confirmed bool) []byte {
	kept := 0
	for k := range q.n {
		r := &q.list[k]
		t := wire.ChunkType(r.chunk[0])
		switch {
		case r.path == i && !confirmed && t != wire.ChunkHeartbeatAck && t != wire.ChunkAsconfAck:
			continue
		case r.path == i && len(r.chunk) <= room:
			b = append(b, r.chunk...)
			room -= len(r.chunk)
			continue
		case r.path == i && len(r.chunk) > full:
			continue
		}
		q.list[kept], q.list[k] = q.list[k], q.list[kept]
		kept++
	}
	q.n = kept
	return b
}

// drop removes the replies of type t.
func (q *controlQueue) drop(t wire.ChunkType) {
	kept := 0
	for k := range q.n {
		if wire.ChunkType(q.list[k].chunk[0]) != t {
			q.list[kept], q.list[k] = q.list[k], q.list[kept]
			kept++
		}
	}
	q.n = kept
}

func (q *controlQueue) clear() { q.n = 0 }

// maxReplyPackets bounds the packets of packetQueue.
const maxReplyPackets = 4

// packetQueue holds whole packets that stand alone: those with another
// verification tag than the association's and those that end it.
type packetQueue struct {
	list    *[maxReplyPackets]replyPacket // nil until there is one
	head, n int
}

type replyPacket struct {
	Tuple
	data []byte
}

// slot returns the empty buffer of a new packet at the end of the queue, for the
// caller to fill; the oldest packet makes room if need be.
func (q *packetQueue) slot(t Tuple) *replyPacket {
	if q.list == nil {
		q.list = new([maxReplyPackets]replyPacket)
	}
	if q.n == len(q.list) {
		// The newest matters most: it may be the one that ends the association.
		q.head = (q.head + 1) % len(q.list)
		q.n--
	}
	r := &q.list[(q.head+q.n)%len(q.list)]
	q.n++
	r.Tuple, r.data = t, r.data[:0]
	return r
}

// push queues a copy of data.
func (q *packetQueue) push(t Tuple, data []byte) {
	r := q.slot(t)
	r.data = append(r.data, data...)
}

// pop removes the oldest packet. It is valid until the next push.
func (q *packetQueue) pop() (*replyPacket, bool) {
	if q.n == 0 {
		return nil, false
	}
	r := &q.list[q.head]
	q.head = (q.head + 1) % len(q.list)
	q.n--
	return r, true
}

// back returns the addresses of a reply to p.
func back(p *Packet) Tuple { return Tuple{Local: p.Local, Remote: address.Unmap(p.Remote)} }
