package rdmap

import (
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/ddp"
)

// response is the answer to a read or atomic of the peer, waiting for its turn
// to be sent. It references the region; what is sent of it at a time is
// bounded by the window.
type response struct {
	atomic   bool
	id       uint32 // of an atomic
	original uint64
	read     ReadRequestHeader
	src      *source // nil for a read of no length
	mem      [1]ddp.Mem
	ddp      ddp.Header // of the request, for a Terminate
	ddpLen   int
}

// source is the memory of a Read Response: the Owner of the segments that
// reference it.
type source struct {
	ddp.Source
	stream *Stream
	refs   atomic.Int32 // such segments, and one until the last is cut
	next   *source      // in Stream.spent
}

var sources = sync.Pool{New: func() any { return new(source) }}

// Released implements ddp.Owner.
func (o *source) Released(err error) { o.ReleasedN(1, err) }

// ReleasedN implements ddp.BatchOwner.
func (o *source) ReleasedN(n int, _ error) {
	s := o.stream
	if o.refs.Add(int32(-n)) == 0 {
		o.free()
	}
	s.credit(n)
}

// free ends the use of the memory. No lock is held.
func (o *source) free() {
	src := o.Source
	o.Source, o.stream, o.next = ddp.Source{}, nil, nil
	sources.Put(o)
	src.Done()
}

// cutOff notes that no segment of the response is to come. What becomes free is
// freed when the lock is not held.
func (s *Stream) cutOff(r *response) { // mu is held
	if o := r.src; o != nil && o.refs.Add(-1) == 0 {
		o.next, s.spent = s.spent, o
	}
	*r = response{}
}

// freeAll frees a list of sources.
func freeAll(spent *source) {
	for o := spent; o != nil; {
		next := o.next
		o.free()
		o = next
	}
}

// pushResponse queues a response. There is room: the request took one of IRD
// buffers, which is given back when its response is sent.
func (s *Stream) pushResponse(r *response) { // rmu is held
	s.mu.Lock()
	s.resps[s.rsHead&uint32(len(s.resps)-1)] = *r
	s.rsHead++
	s.mu.Unlock()
	s.kick = true
}

// repost gives back the buffers of the read requests that were answered, and
// those of atomic responses that were delivered.
func (s *Stream) repost(q *ddp.Queue, qn int) { // rmu is held
	switch qn {
	case QueueReadRequest:
		for sent := s.rsTail.Load(); s.reposted != sent; s.reposted++ {
			q.Post()
		}
	case QueueAtomicResponse:
		for q.Free() > 0 {
			q.Post()
		}
	}
}

// startResponse begins the message of the oldest response.
func (s *Stream) startResponse() { // mu is held
	r := &s.resps[s.rsTail.Load()&uint32(len(s.resps)-1)]
	if r.atomic {
		b := AppendAtomicResponse(s.ctl[:0], r.id, r.original)
		s.begin(ddp.Header{Ctrl: Control(AtomicResponse), QN: QueueAtomicResponse}, s.control(b), uint32(len(b)))
	} else {
		// RFC 5040, Section 4.4: sink STag and TO are "copied, without
		// interpretation".
		h := ddp.Header{Tagged: true, Ctrl: Control(ReadResponse), STag: r.read.SinkSTag, TO: r.read.SinkTO}
		s.begin(h, r.mem[:], r.read.Size)
		if s.cur.msg.Owner = s.cur.msg.Credit; r.src != nil {
			s.cur.msg.Owner = r.src
			if r.src.Snapshot {
				s.cur.msg.Snapshots = &s.copies
			}
		}
	}
	s.cur.resp = r
}

// revokedResponse ends the stream because the region of a response was revoked
// in the midst of it.
func (s *Stream) revokedResponse(r *response) { // mu is held
	t := TerminateHeader{Fault: FaultSTag, HasLength: true, SegmentLength: uint16(min(r.ddpLen, 1<<16-1)),
		HasDDP: true, DDP: r.ddp, HasRead: true, Read: r.read}
	// RFC 5040, Section 4.8: the header is "updated to reflect the current
	// location of the RDMA Read operation".
	sent := s.cur.msg.Sent()
	t.Read.SinkTO += uint64(sent)
	t.Read.SrcTO += uint64(sent)
	t.Read.Size -= sent
	s.term, s.termDue = t, true
	s.cur = current{}
	s.unflushed = true // rmu is not held: advanceTeardown flushes
	s.change(StateTerminate, &TerminateError{Header: t})
}

// deliverReadRequest answers a Read Request: it is called when all messages
// before it have been delivered (RFC 5040, Section 5.5, rules 12 and 17).
func (s *Stream) deliverReadRequest(h *ddp.Header, n uint32, b []byte) ddp.Fault { // rmu is held
	req, ok := ParseReadRequest(b)
	if !ok {
		return FaultUnspecified
	}
	r := response{read: req, ddp: *h, ddpLen: h.Len() + int(n)}
	if req.Size > 0 { // Section 5.2.1: otherwise "MUST NOT validate"
		src, d := s.table.Source(s.scope, req.SrcSTag, req.SrcTO, req.Size)
		if d != ddp.Granted {
			s.badRead, s.isBadRead = req, true
			return protection(d)
		}
		r.src, r.mem[0].B = sources.Get().(*source), src.Mem
		r.src.Source, r.src.stream = src, s
		r.src.refs.Store(1)
	}
	s.pushResponse(&r)
	return 0
}

// deliverAtomicRequest performs an atomic operation and queues its response.
func (s *Stream) deliverAtomicRequest(b []byte) ddp.Fault { // rmu is held
	req, ok := ParseAtomicRequest(b)
	if !ok {
		return FaultUnspecified
	}
	if req.Op != AtomicFetchAdd && req.Op != AtomicCmpSwap {
		return FaultOpcode // RFC 7306, Section 5.2.1, rule 4
	}
	old, d := s.table.Atomic(s.scope, req.STag, req.TO, req.Apply)
	if d != ddp.Granted {
		return protection(d)
	}
	s.pushResponse(&response{atomic: true, id: req.ID, original: old})
	return 0
}
