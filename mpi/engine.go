package mpi

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// engine is the message engine of a rank: it matches messages with receives and moves their bytes.
// It has no goroutines. The caller of an operation and the goroutine that received a packet do the
// work.
//
// Locks: peer.mu is taken first and held only while a message is queued in the link. engine.mu,
// ids.mu and a request's place are taken last: no link is called and no request completed under
// them.
type engine struct {
	rank            int
	job             uint64          // see procName
	peers           []*peer         // the ranks of the job
	remotes         remoteProcesses // processes of other jobs
	sources         atomic.Int32    // bound on the members of a communicator, hence on Header.Source
	eager           int             // eager limit: longer messages begin with an RTS
	window          int64           // bytes of unmatched eager messages that each peer may have here
	streams         uint32          // streams for envelopes and eager messages, and as many for bodies
	prog            progress
	ids             idTable
	waiters         waiterPool
	internalWaiters waiterPool // for waits of goroutines of the library, which never poll
	coalescer       sendCoalescer
	method          rendezvous // of communicators without the hint InfoRendezvous
	bulk            bulkMover  // nil: the transport has no RDMA

	peerError func(p *peer, err error) error // see engineConfig
	onDown    func(p *peer, err error)       // called on a goroutine of its own when a peer is gone

	mu       sync.Mutex               // guards what follows, and all contexts and messages
	contexts map[uint64]*matchContext // by id
	unknown  int                      // number of contexts whose communicator is not made yet
	freed    []uint64                 // ring buffer: the ids of the last maxFreed freed contexts
	nfreed   int                      // ids overwritten in freed
	dropped  map[uint64]bool          // ids in freed whose communicator was revoked
	err      error                    // set by closeAll: no operation can start any more

	ended atomic.Pointer[error] // why no operation can start any more: set before err
	over  chan struct{}         // closed when ended is set
}

const (
	// maxUnknown bounds the contexts made by messages for communicators that this rank has not made
	// yet.
	maxUnknown = 1 << 14
	// maxFreed is how many freed contexts are remembered, so that late messages for them are
	// dropped.
	maxFreed = 1 << 10
)

// engineConfig is what the engine of a rank is made from.
type engineConfig struct {
	rank, size int
	eager      int        // eager limit, in bytes
	unexpected int        // memory for eager messages that no receive has matched, in bytes
	streams    int        // streams for envelopes, and as many for bodies
	method     rendezvous // of communicators without a hint
	// peerError makes the error of operations with a peer that has failed because of err, which may
	// be nil.
	peerError func(p *peer, err error) error
	onDown    func(p *peer, err error) // called on a goroutine of its own when a peer is gone
}

func newEngine(c *engineConfig) *engine {
	rank, size := c.rank, c.size
	e := &engine{
		rank: rank, eager: c.eager, streams: uint32(c.streams), peerError: c.peerError, onDown: c.onDown,
		over: make(chan struct{}), contexts: make(map[uint64]*matchContext), method: c.method, dropped: make(map[uint64]bool),
	}
	e.coalescer.runs = e.coalescer.run
	if n := int64(c.unexpected) / int64(size); n > cost(0) {
		e.window = n
	}
	e.peers = make([]*peer, size)
	for r := range e.peers {
		e.peers[r] = e.newPeer(int32(r), procName{rank: uint32(r)}, e.window)
	}
	e.sources.Store(int32(size))
	return e
}

// usable returns why no operation can start, or nil.
func (e *engine) usable() error {
	if err := e.ended.Load(); err != nil {
		return *err
	}
	return nil
}

// end fails all operations in progress, and all that start later, with err. Only the first call
// counts.
func (e *engine) end(err error) {
	if e.ended.CompareAndSwap(nil, &err) {
		close(e.over)
		e.closeAll(err)
	}
}

func (e *engine) newPeer(handle int32, name procName, window int64) *peer {
	p := &peer{e: e, rank: int(name.rank), handle: handle, name: name, window: window, parsers: make([]messageParser, 1+2*e.streams)}
	for i := range p.parsers {
		p.parsers[i].p = p
	}
	return p
}

// streamOf returns the stream for messages of one context and tag. Stream 0 is for control
// messages, streams 1 to e.streams for envelopes and eager messages, and as many after those for
// the bodies of rendezvous messages.
func (h *hints) streamOf(x *matchContext, tag int32) uint16 {
	return uint16(1 + (x.offset+uint32(tag))%h.streams)
}

func (e *engine) bodyStream(s uint16) uint16 { return s + uint16(e.streams) }

// register enters the contexts of c. Messages may have made some of them before.
func (e *engine) register(c *comm) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range c.ctx {
		id := c.id | uint64(s)
		x := e.contexts[id]
		if x == nil {
			x = newContext(id)
			e.contexts[id] = x
		} else if x.comm == nil {
			e.unknown--
		}
		x.comm = c
		c.ctx[s] = x
	}
}

func newContext(id uint64) *matchContext {
	return &matchContext{id: id, offset: uint32((id * 0x9e3779b97f4a7c15) >> 33)}
}

// context returns the context of an arriving message, and makes it if the communicator is not known
// here yet. It returns nil for a freed one, and false if maxUnknown is reached. e.mu is held.
func (e *engine) context(id uint64) (*matchContext, bool) {
	if x := e.contexts[id]; x != nil {
		return x, true
	}
	if slices.Contains(e.freed, id) {
		return nil, true
	}
	if e.unknown == maxUnknown {
		return nil, false
	}
	x := newContext(id)
	e.contexts[id] = x
	e.unknown++
	return x, true
}

// begin acts on an envelope that arrived. body is the part of the body that came with it; begin
// returns how many bytes of it it has consumed.
func (e *engine) begin(f *messageParser, body []byte) (taken int, err error) {
	v, p := &f.env, f.p
	switch v.Kind {
	case envelope.Eager, envelope.Sync, envelope.RTS:
		return e.arrive(f, body)
	case envelope.Data:
		r := e.ids.remove(v.ID, p)
		if r == nil && v.Flags&envelope.FlagAgain != 0 {
			return 0, nil // the receive has ended meanwhile
		}
		if r == nil || r.ctx == nil || v.Length != uint64(r.status.Bytes) {
			return 0, fmt.Errorf("%w: body that nobody asked for", mpierr.ErrProtocol)
		}
		r.revokeKey()
		f.dest, f.r = destReceive, r
	case envelope.CTS, envelope.CTSKey:
		return 0, e.sendBody(p, v)
	case envelope.WriteFIN:
		if e.bulk != nil {
			e.bulk.HandleWriteFIN(p, v.ID)
		}
	case envelope.ReadFIN:
		return 0, e.onReadFIN(p, v.ID)
	case envelope.Doorbell:
		if l := p.shared.Load(); l != nil { // else connect is about to scan the ring buffers
			(*l).OnDoorbell()
		}
	case envelope.SyncAck:
		r := e.ids.remove(v.ID, p)
		if r != nil {
			r.eventAfterReads()
		}
	case envelope.SendFailed:
		e.revoked(p, v)
	case envelope.Cancel:
		e.withdraw(p, v.ID)
	case envelope.Canceled:
		return 0, e.withdrawn(p, v)
	case envelope.Credit:
		p.credit.Add(int64(min(v.Length, maxCredit)))
	case envelope.Disconnect:
		p.disconnected.Store(true)
		p.remote.markLeft()
	default:
		return 0, fmt.Errorf("%w: unexpected kind %d", mpierr.ErrProtocol, v.Kind)
	}
	return 0, nil
}

// maxCredit bounds one grant of credit, in bytes.
const maxCredit = 1 << 40

// arrive matches an arriving eager message or RTS with a posted receive, or queues it as
// unexpected.
func (e *engine) arrive(f *messageParser, body []byte) (taken int, err error) {
	v, p := &f.env, f.p
	if int64(v.Source) >= int64(e.sources.Load()) {
		return 0, fmt.Errorf("%w: source %d", mpierr.ErrProtocol, v.Source)
	}
	if v.Kind != envelope.RTS && !p.charge(v.Length) {
		return 0, fmt.Errorf("%w: more eager data than granted", mpierr.ErrProtocol)
	}
	if p.ready.Load() >= 2*maxAnnounced {
		return 0, fmt.Errorf("%w: too many announced messages", mpierr.ErrProtocol)
	}
	src := int32(v.Source)
	e.mu.Lock()
	x := f.last
	if x == nil || x.id != v.Context || x.dead != nil {
		var ok bool
		if x, ok = e.context(v.Context); !ok {
			e.mu.Unlock()
			return 0, fmt.Errorf("%w: too many unknown communicators", mpierr.ErrProtocol)
		}
		f.last = x
	}
	if x == nil || e.err != nil {
		revoked := e.dropped[v.Context]
		e.mu.Unlock()
		f.last = nil
		switch {
		case v.Kind != envelope.RTS:
			f.dest = destDrop
		case !revoked:
			p.dropped(v.Kind, v.Length, v.ID)
		}
		if revoked && v.Kind == envelope.Sync {
			v.Kind = envelope.Eager // no SyncAck: it is not matched, and its sender learns of the revocation
		}
		return 0, nil
	}
	if x.comm != nil && (int(src) >= len(x.comm.peers) || x.comm.peers[src] != p) {
		e.mu.Unlock()
		return 0, fmt.Errorf("%w: source %d is not rank %d", mpierr.ErrProtocol, src, p.rank)
	}
	early, inOrder := false, v.Flags&envelope.FlagSeq != 0
	if inOrder {
		var ok bool
		if early, ok = x.arrive(src, v.Seq); !ok {
			e.mu.Unlock()
			return 0, fmt.Errorf("%w: sequence number %d", mpierr.ErrProtocol, v.Seq)
		}
	}
	r := x.match(src, v.Tag, early)
	if r == nil {
		taken = e.keep(f, x, early, body)
	} else {
		r.setMatch(p, src, v.Tag, v.Length, v.Sig)
		if r.tag == anyTag {
			x.recheck()
		}
	}
	if inOrder && !early && x.sources[src].ahead > 0 {
		x.advance(src)
	}
	ms := x.taken()
	e.mu.Unlock()
	if r != nil {
		if v.Kind == envelope.RTS {
			e.sendCTS(r, p, v.ID, proposalOf(v))
		} else {
			f.dest, f.r = destReceive, r
		}
	}
	e.handAll(ms)
	return taken, nil
}

// handAll delivers the messages of a list made by take to their receives.
func (e *engine) handAll(ms *message) {
	for ms != nil {
		m := ms
		ms = m.next
		e.hand(m, m.match)
	}
}

// keep adds a message to the unexpected message queue. e.mu is held.
func (e *engine) keep(f *messageParser, x *matchContext, early bool, body []byte) (taken int) {
	v := &f.env
	m := newMessage()
	m.ctx, m.peer, m.src, m.tag, m.seq, m.early = x, f.p, int32(v.Source), v.Tag, v.Seq, early
	m.kind, m.length, m.id, m.sig = v.Kind, v.Length, v.ID, v.Sig
	if v.Kind == envelope.RTS {
		m.whole, m.proposal = true, proposalOf(v)
		f.p.ready.Add(1)
	} else {
		m.reserve(int(v.Length))
		if m.whole = len(body) >= len(m.buf); m.whole {
			taken = copy(m.buf, body)
		} else {
			f.dest, f.m = destMessage, m
		}
	}
	x.add(m)
	return taken
}

// setMatch records in r which message it has matched. A message with elements of another type is
// consumed like one that is too long for a buffer of length 0.
func (r *request) setMatch(p *peer, src, tag int32, length uint64, sig datatype.Sig) {
	r.peer = p
	r.length, r.got = length, sig
	room := uint64(len(r.buf))
	if r.wrong = length > 0 && !sig.Matches(r.sig); r.wrong {
		room = 0
	}
	r.status = status{Source: int(src), Tag: int(tag), Bytes: int(min(length, room))}
}

// received completes a receive after the last byte of its message. If fail has been called, the
// buffer may lack bytes, and the caller of fail completes the receive.
func (r *request) received() {
	if r.failed.Load() {
		return
	}
	var err error
	switch {
	case r.wrong:
		err = fmt.Errorf("%w: rank %d sent %v with tag %d, the receive is of %v",
			mpierr.ErrTypeMismatch, r.status.Source, r.got, r.status.Tag, r.sig)
	case r.length > uint64(r.status.Bytes):
		err = fmt.Errorf("%w: %d bytes for a buffer of %d", mpierr.ErrTruncate, r.length, r.status.Bytes)
	case r.ctx.exactLength.Load():
		r.place.Lock()
		n := len(r.buf)
		r.place.Unlock()
		if r.length < uint64(n) {
			err = fmt.Errorf("%w: %d bytes for a buffer of %d, in spite of mpi_assert_exact_length", mpierr.ErrCount, r.length, n)
		}
	}
	r.complete(err)
}

// hand delivers m, which is complete and in no queue, to r.
func (e *engine) hand(m *message, r *request) {
	p, k, length, id := m.peer, m.kind, m.length, m.id
	if k == envelope.RTS {
		how := m.proposal
		m.recycle()
		e.sendCTS(r, p, id, how)
		return
	}
	r.put(0, m.buf)
	m.recycle()
	p.consumed(k, length, id)
	r.received()
}

// consumed returns the credit of an eager message to its sender, and sends SyncAck for a
// synchronous one.
func (p *peer) consumed(k envelope.Kind, length, id uint64) {
	p.repay(length)
	if k == envelope.Sync {
		p.control(0, &envelope.Header{Kind: envelope.SyncAck, ID: id})
	}
}

// dropped reports to the sender of a message for a communicator that is freed here that its send
// has failed. A rank that has ended answers nothing: its end fails the send.
func (p *peer) dropped(k envelope.Kind, length, id uint64) {
	if k != envelope.RTS {
		p.repay(length)
	}
	p.e.mu.Lock()
	ended := p.e.err != nil
	p.e.mu.Unlock()
	if k != envelope.Eager && !ended {
		p.control(0, &envelope.Header{Kind: envelope.Canceled, Flags: envelope.FlagFreed, ID: id})
	}
}

// messageWhole is called after the last byte of m, an unexpected message.
func (e *engine) messageWhole(m *message) {
	e.mu.Lock()
	m.whole = true
	r, dropped := m.match, m.dropped
	e.mu.Unlock()
	switch {
	case r != nil:
		e.hand(m, r)
	case dropped:
		m.peer.dropped(m.kind, m.length, m.id)
		m.recycle()
	}
}

// messageLost is called when the rest of m will not come, because the link has ended.
func (e *engine) messageLost(m *message, err error) {
	e.mu.Lock()
	r := m.match
	if r == nil && m.probed {
		m.lost = true // Mrecv returns the error
		e.mu.Unlock()
		return
	}
	if r == nil && !m.dropped {
		m.ctx.removeMessage(m)
	}
	e.mu.Unlock()
	m.recycle()
	if r != nil {
		e.rematch(r, err)
	}
}

// sendCTS fetches the body of send id of p for r, if possible by the method that the RTS proposed:
// it asks p to send the body (CTS) or to write it (CTSKey), or reads it from the buffer of the
// sender.
func (e *engine) sendCTS(r *request, p *peer, id uint64, how proposal) {
	n := r.status.Bytes
	v := envelope.Header{Kind: envelope.CTS, ID: id, Length: uint64(n)}
	if n == 0 {
		p.control(0, &v)
		r.received()
		return
	}
	rdma := (how.write || how.offer) && e.bulk != nil && p.handle != int32(e.rank) && r.reduce.red == nil
	if rdma && !e.bulk.Ready(func() { e.sendCTS(r, p, id, how) }) {
		return // the device is being opened: a goroutine calls sendCTS again
	}
	if rdma && how.write {
		if g, ok := e.bulk.Expose(r); ok {
			v.Kind, v.Key = envelope.CTSKey, g
		}
	}
	f := fetch{r: r, epoch: r.epoch, p: p, send: id, n: n, from: how.key}
	v.PeerID = e.ids.add(r, p)
	f.id = v.PeerID
	if err := p.failure(); err != nil {
		// peerDown may have emptied ids before the add.
		if e.ids.remove(v.PeerID, p) != nil {
			e.rematch(r, err)
		}
		return
	}
	if rdma && how.offer {
		e.bulk.Read(f)
		return
	}
	if l := p.shared.Load(); l != nil && how.cma && r.reduce.red == nil {
		(*l).Fetch(f)
		return
	}
	p.control(0, &v)
}
