package mpi

import (
	"sync"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/envelope"
)

// message is an unexpected message: it arrived before a receive for it was posted. It is
// guarded by eng.mu, except buf while the parser fills it.
type message struct {
	elems    [4]elem // under (src, tag), (any, tag), (src, any), (any, any)
	src, tag int32
	seq      uint32
	early    bool // a message sent before it has not arrived
	ctx      *matchContext
	peer     *peer
	kind     envelope.Kind
	length   uint64
	sig      datatype.Sig    // of its elements
	id       uint64          // send request of the peer
	whole    bool            // buf is complete
	dropped  bool            // no receive will get it: its bytes are discarded
	lost     bool            // the rest will not come; held by a Message
	probed   bool            // held by a Message
	proposal proposal        // of one that is announced
	block    *bufpool.Buffer // pooled memory of buf; nil for short messages
	buf      []byte
	match    *request // the receive it was given to
	next     *message // list of matches
	small    [smallMessage]byte
}

// smallMessage is the length up to which a message is kept within its record.
const smallMessage = 128

var messagePool = sync.Pool{New: func() any {
	m := new(message)
	for i := range m.elems {
		m.elems[i].msg = m
	}
	return m
}}

func newMessage() *message { return messagePool.Get().(*message) }

// recycle gives m and its memory back. m is in no queue.
func (m *message) recycle() {
	if m.kind == envelope.RTS {
		m.peer.ready.Add(-1)
	}
	m.release()
	m.ctx, m.peer, m.match, m.next = nil, nil, nil, nil
	m.early, m.whole, m.dropped, m.lost, m.probed = false, false, false, false, false
	m.id = 0
	messagePool.Put(m)
}

// reserve gives m memory for n bytes.
func (m *message) reserve(n int) {
	if n <= len(m.small) {
		m.buf = m.small[:n]
		return
	}
	m.block = bufpool.Get(n)
	m.buf = m.block.Bytes(n)
}

func (m *message) release() {
	m.block.Put()
	m.block = nil
	m.buf = nil
}
