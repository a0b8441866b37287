package mpi

import "fmt"

// inflow takes in the messages of one stream from one peer, in pieces of any
// size. The first piece of a message carries the envelope, which decides where
// the rest goes: straight into the buffer of the receive that matches, or into
// pooled memory if there is none yet. An inflow belongs to the goroutine that
// receives; calls to feed and cut never overlap.
type inflow struct {
	p    *peer
	env  envelope
	hdr  [envelopeMaxLen]byte
	nhdr int      // bytes of hdr that are there
	busy bool     // within a message, after its envelope
	dest dest     // where the body goes
	r    *Request // being filled, if dest is toReceive
	m    *message // being filled, if dest is toMessage
	off  uint64   // body bytes taken
	size uint64   // body bytes in all
	last *matchContext
	held bool // r.place is locked, as more of the body follows at once
}

// dest tells where the body of a message goes.
type dest uint8

const (
	toNobody  dest = iota // nowhere: there is none, or it has been taken
	toReceive             // into the buffer of a receive
	toMessage             // into pooled memory
	toDrop                // away: its communicator is freed
)

// feed takes bytes up to the end of the present message. It returns how many
// it took, and an error that wraps ErrProtocol if they make no sense.
func (f *inflow) feed(data []byte) (n int, err error) { return f.feedMore(data, false) }

// feedMore is feed; with more set it may leave the buffer of the receive locked, until
// feedMore is called again, at once, or letGo: to unlock it after each piece would
// have the processor wait until it has written that.
func (f *inflow) feedMore(data []byte, more bool) (n int, err error) {
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
	case toReceive:
		if !f.held {
			f.held = true
			f.r.place.Lock()
		}
		f.r.putLocked(f.off, b)
		if !more || f.off+uint64(len(b)) == f.size {
			f.letGo()
		}
	case toMessage:
		copy(f.m.buf[f.off:], b)
	}
	f.off += uint64(len(b))
	if f.off == f.size {
		f.end()
	}
	return n + len(b), nil
}

// letGo unlocks the buffer of the receive, if it is locked.
func (f *inflow) letGo() {
	if f.held {
		f.held = false
		f.r.place.Unlock()
	}
}

// between reports whether no message is in progress.
func (f *inflow) between() bool { return !f.busy && f.nhdr == 0 }

// header collects the envelope and acts on it. f is busy when it is complete.
func (f *inflow) header(data []byte) (n int, err error) {
	src := data
	need := envelopeLen
	if f.nhdr > 0 {
		need = kind(f.hdr[0]).headerLen()
	} else if len(data) > 0 {
		need = kind(data[0]).headerLen()
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
	if !f.env.get(src) {
		return n, fmt.Errorf("%w: malformed envelope", ErrProtocol)
	}
	f.busy = true
	f.dest, f.off, f.size = toNobody, 0, 0
	if f.env.kind.hasBody() {
		f.size = f.env.length
	}
	taken, err := f.p.e.begin(f, data[n:])
	f.off = uint64(taken)
	return n + taken, err
}

// put copies b, the bytes of a message from off on, into the buffer of r as
// far as it reaches, or combines them with what is there.
func (r *Request) put(off uint64, b []byte) {
	r.place.Lock()
	r.putLocked(off, b)
	r.place.Unlock()
}

// putLocked is put with r.place locked.
func (r *Request) putLocked(off uint64, b []byte) {
	switch {
	case r.wrong, off >= uint64(len(r.buf)):
	case r.merge.red != nil:
		r.merge.take(r.buf, int(off), b)
	default:
		copy(r.buf[off:], b)
	}
}

// end acts on the end of a message.
func (f *inflow) end() {
	e, v, r, m := f.p.e, &f.env, f.r, f.m
	f.busy, f.r, f.m = false, nil, nil
	switch f.dest {
	case toReceive:
		if v.kind != kindBody {
			f.p.consumed(v.kind, v.length, v.id)
		}
		r.received()
	case toMessage:
		e.messageWhole(m)
	case toDrop:
		f.p.dropped(v.kind, v.length, v.id)
	}
}

// cut ends the message in progress, if any: the peer is gone.
func (f *inflow) cut(err error) {
	f.letGo()
	r, m := f.r, f.m
	f.busy, f.nhdr, f.r, f.m = false, 0, nil, nil
	if r != nil {
		f.p.e.rematch(r, err)
	}
	if m != nil {
		f.p.e.messageLost(m, err)
	}
}
