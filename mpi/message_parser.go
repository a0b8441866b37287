package mpi

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// messageParser is the incoming-message parser and receive state of one stream from one
// peer. Its input may be cut anywhere. The envelope of a message, which comes first,
// decides where the body goes: into the buffer of the matching receive, or into pooled
// memory if no receive matches yet. A parser belongs to the goroutine that receives:
// calls of parse and abort never overlap.
type messageParser struct {
	p            *peer
	env          envelope.Header
	hdr          [envelope.MaxLen]byte
	nhdr         int      // bytes of hdr that are there
	busy         bool     // the envelope is complete, the body is not
	dest         dest     // where the body goes
	r            *request // being filled, if dest is destReceive
	m            *message // being filled, if dest is destMessage
	off          uint64   // body bytes taken
	size         uint64   // body bytes in all
	last         *matchContext
	bufferLocked bool // r.place is locked, because more of the body follows at once
}

// dest says where the body of a message goes.
type dest uint8

const (
	destNone    dest = iota // nowhere: there is none, or begin has taken it
	destReceive             // into the buffer of a receive
	destMessage             // into pooled memory
	destDrop                // dropped: its communicator is freed
)

// parse takes bytes up to the end of the current message. It returns how many it took,
// and an error that wraps ErrProtocol if the message is malformed.
func (f *messageParser) parse(data []byte) (n int, err error) { return f.parseMore(data, false) }

// parseMore is parse with a hint: more says that further bytes follow at once. Then the
// buffer of the receive may stay locked until the next call or unlockBuffer, because an
// unlock after each fragment would make the processor wait for its copy to be written.
func (f *messageParser) parseMore(data []byte, more bool) (n int, err error) {
	if !f.busy {
		if n, err = f.header(data); err != nil || !f.busy {
			return n, err
		}
	}
	b := data[n:]
	if uint64(len(b)) > f.size-f.off {
		b = b[:f.size-f.off]
	}
	switch f.dest {
	case destReceive:
		if !f.bufferLocked {
			f.bufferLocked = true
			f.r.place.Lock()
		}
		f.r.putLocked(f.off, b)
		if !more || f.off+uint64(len(b)) == f.size {
			f.unlockBuffer()
		}
	case destMessage:
		copy(f.m.buf[f.off:], b)
	}
	f.off += uint64(len(b))
	if f.off == f.size {
		f.end()
	}
	return n + len(b), nil
}

// unlockBuffer unlocks the buffer of the receive, if it is locked.
func (f *messageParser) unlockBuffer() {
	if f.bufferLocked {
		f.bufferLocked = false
		f.r.place.Unlock()
	}
}

// inMessage reports whether a message has begun and not ended.
func (f *messageParser) inMessage() bool { return f.busy || f.nhdr > 0 }

// header collects the envelope and acts on it. f is busy when it is complete.
func (f *messageParser) header(data []byte) (n int, err error) {
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
	if !f.env.Decode(src) {
		return n, fmt.Errorf("%w: malformed envelope", mpierr.ErrProtocol)
	}
	f.busy = true
	f.dest, f.off, f.size = destNone, 0, 0
	if f.env.Kind.HasBody() {
		f.size = f.env.Length
	}
	taken, err := f.p.e.begin(f, data[n:])
	f.off = uint64(taken)
	return n + taken, err
}

// put copies b, the bytes of a message from off on, into the buffer of r as
// far as it reaches, or combines them with what is there.
func (r *request) put(off uint64, b []byte) {
	r.place.Lock()
	r.putLocked(off, b)
	r.place.Unlock()
}

// putLocked is put with r.place locked.
func (r *request) putLocked(off uint64, b []byte) {
	switch {
	case r.wrong, off >= uint64(len(r.buf)):
	case r.reduce.red != nil:
		r.reduce.take(r.buf, int(off), b)
	default:
		copy(r.buf[off:], b)
	}
}

// end acts on the end of a message.
func (f *messageParser) end() {
	e, v, r, m := f.p.e, &f.env, f.r, f.m
	f.busy, f.r, f.m = false, nil, nil
	switch f.dest {
	case destReceive:
		if v.Kind != envelope.Data {
			f.p.consumed(v.Kind, v.Length, v.ID)
		}
		r.received()
	case destMessage:
		e.messageWhole(m)
	case destDrop:
		f.p.dropped(v.Kind, v.Length, v.ID)
	}
}

// abort ends the message in progress, if any, because the peer is gone.
func (f *messageParser) abort(err error) {
	f.unlockBuffer()
	r, m := f.r, f.m
	f.busy, f.nhdr, f.r, f.m = false, 0, nil, nil
	if r != nil {
		f.p.e.rematch(r, err)
	}
	if m != nil {
		f.p.e.messageLost(m, err)
	}
}

// directRoom returns how many bytes of the body in progress can be placed without a copy.
func (f *messageParser) directRoom() int {
	if !f.busy || f.dest != destReceive {
		return 0
	}
	r := f.r
	r.place.Lock()
	defer r.place.Unlock()
	if r.reduce.red != nil {
		return 0
	}
	return int(min(f.size, uint64(len(r.buf)))) - int(f.off)
}

// placeWith has read place bytes of the body in progress directly.
func (f *messageParser) placeWith(read func([]byte) (int, error)) (n int, err error) {
	r := f.r
	r.place.Lock()
	if end := min(f.size, uint64(len(r.buf))); f.off < end {
		n, err = read(r.buf[f.off:end])
	}
	r.place.Unlock()
	if n > 0 {
		f.off += uint64(n)
		if f.off == f.size {
			f.end()
		}
	}
	return n, err
}
