package p2p

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Parser is the incoming-message parser and receive state of one stream from one
// peer. Its input may be cut anywhere. The envelope of a message, which comes first,
// decides where the body goes: into the buffer of the matching receive, or into pooled
// memory if no receive matches yet. A parser belongs to the goroutine that receives:
// calls of parse and abort never overlap.
type Parser struct {
	Peer         *Peer
	Envelope     envelope.Header
	hdr          [envelope.MaxLen]byte
	nhdr         int      // bytes of hdr that are there
	Busy         bool     // the envelope is complete, the body is not
	dest         bodyDest // where the body goes
	receive      *Request // being filled, if dest is destReceive
	m            *Message // being filled, if dest is destMessage
	taken        uint64   // body bytes taken
	size         uint64   // body bytes in all
	last         *Context
	bufferLocked bool // r.place is locked, because more of the body follows at once
}

// Dest says where the body of a message goes.
type bodyDest uint8

const (
	destNone    bodyDest = iota // nowhere: there is none, or begin has taken it
	destReceive                 // into the buffer of a receive
	destMessage                 // into pooled memory
	destDrop                    // dropped: its communicator is freed
)

// Parse takes bytes up to the end of the current message. It returns how many it took,
// and an error that wraps ErrProtocol if the message is malformed.
func (f *Parser) Parse(data []byte) (n int, err error) { return f.ParseMore(data, false) }

// ParseMore is parse with a hint: more says that further bytes follow at once. Then the
// buffer of the receive may stay locked until the next call or UnlockBuffer, because an
// unlock after each fragment would make the processor wait for its copy to be written.
func (f *Parser) ParseMore(data []byte, more bool) (n int, err error) {
	if !f.Busy {
		if n, err = f.header(data); err != nil || !f.Busy {
			return n, err
		}
	}
	b := data[n:]
	if uint64(len(b)) > f.size-f.taken {
		b = b[:f.size-f.taken]
	}
	switch f.dest {
	case destReceive:
		if !f.bufferLocked {
			f.bufferLocked = true
			f.receive.Place.Lock()
		}
		f.receive.putLocked(f.taken, b)
		if !more || f.taken+uint64(len(b)) == f.size {
			f.UnlockBuffer()
		}
	case destMessage:
		copy(f.m.buf[f.taken:], b)
	}
	f.taken += uint64(len(b))
	if f.taken == f.size {
		f.end()
	}
	return n + len(b), nil
}

// UnlockBuffer unlocks the buffer of the receive, if it is locked.
func (f *Parser) UnlockBuffer() {
	if f.bufferLocked {
		f.bufferLocked = false
		f.receive.Place.Unlock()
	}
}

// InMessage reports whether a message has begun and not ended.
func (f *Parser) InMessage() bool { return f.Busy || f.nhdr > 0 }

// header collects the envelope and acts on it. f is busy when it is complete.
func (f *Parser) header(data []byte) (n int, err error) {
	src := data
	need := envelope.MinLen
	if f.nhdr > 0 {
		need = envelope.Kind(f.hdr[0]).HeaderLen()
	} else if len(data) > 0 {
		need = envelope.Kind(data[0]).HeaderLen()
	}
	if f.nhdr > 0 || len(data) < need {
		n = copy(f.hdr[f.nhdr:need], data)
		f.nhdr += n
		if f.nhdr < need {
			return n, nil
		}
		src = f.hdr[:need]
		f.nhdr = 0
	} else {
		n = need
	}
	if !f.Envelope.Decode(src) {
		return n, fmt.Errorf("%w: malformed envelope", mpierr.ErrProtocol)
	}
	f.Busy = true
	f.dest, f.taken, f.size = destNone, 0, 0
	if f.Envelope.Kind.HasBody() {
		f.size = f.Envelope.Length
	}
	taken, err := f.Peer.Engine.begin(f, data[n:])
	f.taken = uint64(taken)
	return n + taken, err
}

// Put copies b, the bytes of a message from off on, into the buffer of r as
// far as it reaches, or combines them with what is there.
func (r *Request) Put(off uint64, b []byte) {
	r.Place.Lock()
	r.putLocked(off, b)
	r.Place.Unlock()
}

// putLocked is put with r.place locked.
func (r *Request) putLocked(off uint64, b []byte) {
	switch {
	case r.wrong, off >= uint64(r.Room()):
	case r.Gaps.Type != nil:
		r.Gaps.Unpack(b, int(off))
	case r.Reduce.Reducer != nil:
		r.Reduce.take(r.Buf, int(off), b)
	default:
		copy(r.Buf[off:], b)
	}
}

// end acts on the end of a message.
func (f *Parser) end() {
	e, v, r, m := f.Peer.Engine, &f.Envelope, f.receive, f.m
	f.Busy, f.receive, f.m = false, nil, nil
	switch f.dest {
	case destReceive:
		if v.Kind != envelope.Data {
			f.Peer.consumed(v.Kind, v.Length, v.ID)
		}
		r.received()
	case destMessage:
		e.messageWhole(m)
	case destDrop:
		f.Peer.dropped(v.Kind, v.Length, v.ID)
	}
}

// Abort ends the message in progress, if any, because the peer is gone.
func (f *Parser) Abort(err error) {
	f.UnlockBuffer()
	r, m := f.receive, f.m
	f.Busy, f.nhdr, f.receive, f.m = false, 0, nil, nil
	if r != nil {
		f.Peer.Engine.rematch(r, err)
	}
	if m != nil {
		f.Peer.Engine.messageLost(m, err)
	}
}

// DirectRoom returns how many bytes of the body in progress can be placed without a copy.
func (f *Parser) DirectRoom() int {
	if !f.Busy || f.dest != destReceive {
		return 0
	}
	r := f.receive
	r.Place.Lock()
	defer r.Place.Unlock()
	if r.Reduce.Reducer != nil {
		return 0
	}
	return int(min(f.size, uint64(len(r.Buf)))) - int(f.taken)
}

// PlaceWith has read place bytes of the body in progress directly.
func (f *Parser) PlaceWith(read func([]byte) (int, error)) (n int, err error) {
	r := f.receive
	r.Place.Lock()
	if end := min(f.size, uint64(len(r.Buf))); f.taken < end {
		n, err = read(r.Buf[f.taken:end])
	}
	r.Place.Unlock()
	if n > 0 {
		f.taken += uint64(n)
		if f.taken == f.size {
			f.end()
		}
	}
	return n, err
}
