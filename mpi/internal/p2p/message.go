package p2p

import (
	"sync"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/envelope"
)

// Message is an unexpected message: it arrived before a receive for it was posted. It is
// guarded by Engine.Mu, except buf while the parser fills it.
type Message struct {
	elems    [4]matchElem // under (src, tag), (any, tag), (src, any), (any, any)
	src, tag int32
	seq      uint32
	early    bool // a message sent before it has not arrived
	ctx      *Context
	peer     *Peer
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
	match    *Request // the receive it was given to
	next     *Message // list of matches
	small    [smallMessage]byte
}

// smallMessage is the length up to which a message is kept within its record.
const smallMessage = 128

var messagePool = sync.Pool{New: func() any {
	m := new(Message)
	for i := range m.elems {
		m.elems[i].msg = m
	}
	return m
}}

func newMessage() *Message { return messagePool.Get().(*Message) }

// recycle gives m and its memory back. m is in no queue.
func (m *Message) recycle() {
	if m.kind == envelope.RTS {
		m.peer.Ready.Add(-1)
	}
	m.release()
	m.ctx, m.peer, m.match, m.next = nil, nil, nil, nil
	m.early, m.whole, m.dropped, m.lost, m.probed = false, false, false, false, false
	m.id = 0
	messagePool.Put(m)
}

// reserve gives m memory for n bytes.
func (m *Message) reserve(n int) {
	if n <= len(m.small) {
		m.buf = m.small[:n]
		return
	}
	m.block = bufpool.Get(n)
	m.buf = m.block.Bytes(n)
}

func (m *Message) release() {
	m.block.Put()
	m.block = nil
	m.buf = nil
}
