package p2p

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Engine is the message engine of a rank: it matches messages with receives and moves their bytes.
// It has no goroutines. The caller of an operation and the goroutine that received a packet do the
// work.
//
// Locks: Peer.mu is taken first and held only while a message is queued in the link. Engine.Mu,
// idTable.mu and Request.Place are taken last: no link is called and no request completed under
// them.
type Engine struct {
	Rank            int
	Job             uint64          // see ProcName
	Peers           []*Peer         // the ranks of the job
	Remotes         RemoteProcesses // processes of other jobs
	sources         atomic.Int32    // bound on the members of a communicator, hence on Header.Source
	eager           int             // eager limit: longer messages begin with an RTS
	Window          int64           // bytes of unmatched eager messages that each peer may have here
	Streams         uint32          // streams for envelopes and eager messages, and as many for bodies
	Progress        Progress
	IDs             idTable
	Waiters         WaiterPool
	internalWaiters WaiterPool // for waits of goroutines of the library, which never poll
	Coalescer       SendCoalescer
	method          Rendezvous // of communicators without the hint InfoRendezvous
	Bulk            BulkMover  // nil: the transport has no RDMA

	peerError func(p *Peer, err error) error // see Config
	onDown    func(p *Peer, reason error)    // see Config

	Mu       sync.Mutex          // guards what follows, and all contexts and messages
	Contexts map[uint64]*Context // by id
	unknown  int                 // number of contexts without a communicator yet
	Freed    []uint64            // ring buffer: the ids of the last maxFreed freed contexts
	nfreed   int                 // ids overwritten in freed
	dropped  map[uint64]bool     // ids in freed of revoked communicators
	err      error               // set by closeAll: no operation can start any more

	ended atomic.Pointer[error] // why no operation can start any more: set before err
	Over  chan struct{}         // closed when ended is set
}

const (
	// maxUnknown bounds the contexts made by messages for communicators that this rank has not made
	// yet.
	maxUnknown = 1 << 14
	// maxFreed is how many freed contexts are remembered, so that late messages for them are
	// dropped.
	maxFreed = 1 << 10
)

// Config is what the engine of a rank is made from.
type Config struct {
	Rank, Size int
	Eager      int        // eager limit, in bytes
	Unexpected int        // memory for eager messages that no receive has matched, in bytes
	Streams    int        // streams for envelopes, and as many for bodies
	Method     Rendezvous // of communicators without a hint
	// PeerError makes the error of operations with a peer that has failed because of err, which may
	// be nil.
	PeerError func(p *Peer, err error) error
	// OnDown is called on a goroutine of its own when a peer is gone because of reason, which may be nil.
	OnDown func(p *Peer, reason error)
}

// New returns the engine of a rank, with a peer for each rank of the job and no links yet.
func New(c *Config) *Engine {
	rank, size := c.Rank, c.Size
	e := &Engine{
		Rank: rank, eager: c.Eager, Streams: uint32(c.Streams), peerError: c.PeerError, onDown: c.OnDown,
		Over: make(chan struct{}), Contexts: make(map[uint64]*Context), method: c.Method, dropped: make(map[uint64]bool),
	}
	e.Coalescer.runs = e.Coalescer.run
	if n := int64(c.Unexpected) / int64(size); n > cost(0) {
		e.Window = n
	}
	e.Peers = make([]*Peer, size)
	for r := range e.Peers {
		e.Peers[r] = e.newPeer(int32(r), ProcName{Rank: uint32(r)}, e.Window)
	}
	e.sources.Store(int32(size))
	return e
}

// Usable returns why no operation can start, or nil.
func (e *Engine) Usable() error {
	if err := e.ended.Load(); err != nil {
		return *err
	}
	return nil
}

// End fails all operations in progress, and all that start later, with err. Only the first call
// counts.
func (e *Engine) End(err error) {
	if e.ended.CompareAndSwap(nil, &err) {
		close(e.Over)
		e.closeAll(err)
	}
}

func (e *Engine) newPeer(handle int32, name ProcName, window int64) *Peer {
	p := &Peer{Engine: e, Rank: int(name.Rank), ProcHandle: handle, name: name, window: window,
		Parsers: make([]Parser, 1+2*e.Streams)}
	for i := range p.Parsers {
		p.Parsers[i].Peer = p
	}
	return p
}

// StreamOf returns the stream for messages of one context and tag. Stream 0 is for control
// messages, streams 1 to e.streams for envelopes and eager messages, and as many after those for
// the bodies of rendezvous messages.
func (h *Hints) StreamOf(x *Context, tag int32) uint16 {
	return uint16(1 + (x.offset+uint32(tag))%h.Streams)
}

func (e *Engine) bodyStream(s uint16) uint16 { return s + uint16(e.Streams) }

// register enters the contexts of c. Messages may have made some of them before.
func (e *Engine) register(c *Comm) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	for s := range c.Contexts {
		id := c.ID | uint64(s)
		x := e.Contexts[id]
		if x == nil {
			x = NewContext(id)
			e.Contexts[id] = x
		} else if x.comm == nil {
			e.unknown--
		}
		x.comm = c
		c.Contexts[s] = x
	}
}

// NewContext returns the context with an id, which belongs to no communicator yet. The offset spreads
// contexts over the streams.
func NewContext(id uint64) *Context {
	return &Context{id: id, offset: uint32((id * 0x9e3779b97f4a7c15) >> 33)}
}

// context returns the context of an arriving message, and makes it if the communicator is not known
// here yet. It returns nil for a freed one, and false if maxUnknown is reached. e.mu is held.
func (e *Engine) context(id uint64) (*Context, bool) {
	if x := e.Contexts[id]; x != nil {
		return x, true
	}
	if slices.Contains(e.Freed, id) {
		return nil, true
	}
	if e.unknown == maxUnknown {
		return nil, false
	}
	x := NewContext(id)
	e.Contexts[id] = x
	e.unknown++
	return x, true
}

// begin acts on an envelope that arrived. body is the part of the body that came with it; begin
// returns how many bytes of it it has consumed.
func (e *Engine) begin(f *Parser, body []byte) (taken int, err error) {
	v, p := &f.Envelope, f.Peer
	switch v.Kind {
	case envelope.Eager, envelope.Sync, envelope.RTS:
		return e.arrive(f, body)
	case envelope.Data:
		r := e.IDs.remove(v.ID, p)
		if r == nil && v.Flags&envelope.FlagAgain != 0 {
			return 0, nil // the receive has ended meanwhile
		}
		if r == nil || r.Context == nil || v.Length != uint64(r.Status.Bytes) {
			return 0, fmt.Errorf("%w: body that nobody asked for", mpierr.ErrProtocol)
		}
		r.RevokeKey()
		f.dest, f.receive = destReceive, r
	case envelope.CTS, envelope.CTSKey:
		return 0, e.sendBody(p, v)
	case envelope.WriteFIN:
		if e.Bulk != nil {
			e.Bulk.HandleWriteFIN(p, v.ID)
		}
	case envelope.ReadFIN:
		return 0, e.onReadFIN(p, v.ID)
	case envelope.Doorbell:
		if l := p.Shared.Load(); l != nil { // else connect is about to scan the ring buffers
			(*l).OnDoorbell()
		}
	case envelope.SyncAck:
		return 0, e.onSyncAck(p, v.ID)
	case envelope.SendFailed:
		e.revoked(p, v)
	case envelope.Cancel:
		e.withdraw(p, v.ID)
	case envelope.Canceled:
		return 0, e.withdrawn(p, v)
	case envelope.Credit:
		p.Credit.Add(int64(min(v.Length, MaxCredit)))
	case envelope.Disconnect:
		p.Disconnected.Store(true)
		p.Remote.markLeft()
	default:
		return 0, fmt.Errorf("%w: unexpected kind %d", mpierr.ErrProtocol, v.Kind)
	}
	return 0, nil
}

// MaxCredit bounds one grant of credit, in bytes.
const MaxCredit = 1 << 40

// arrive matches an arriving eager message or RTS with a posted receive, or queues it as
// unexpected.
func (e *Engine) arrive(f *Parser, body []byte) (taken int, err error) {
	v, p := &f.Envelope, f.Peer
	if int64(v.Source) >= int64(e.sources.Load()) {
		return 0, fmt.Errorf("%w: source %d", mpierr.ErrProtocol, v.Source)
	}
	if v.Kind != envelope.RTS && !p.charge(v.Length) {
		return 0, fmt.Errorf("%w: more eager data than granted", mpierr.ErrProtocol)
	}
	if p.Ready.Load() >= 2*MaxAnnounced {
		return 0, fmt.Errorf("%w: too many announced messages", mpierr.ErrProtocol)
	}
	src := int32(v.Source)
	e.Mu.Lock()
	x := f.last
	if x == nil || x.id != v.Context || x.dead != nil {
		var ok bool
		if x, ok = e.context(v.Context); !ok {
			e.Mu.Unlock()
			return 0, fmt.Errorf("%w: too many unknown communicators", mpierr.ErrProtocol)
		}
		f.last = x
	}
	if x == nil || e.err != nil {
		revoked := e.dropped[v.Context]
		e.Mu.Unlock()
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
	if x.comm != nil && (int(src) >= len(x.comm.Peers) || x.comm.Peers[src] != p) {
		e.Mu.Unlock()
		return 0, fmt.Errorf("%w: source %d is not rank %d", mpierr.ErrProtocol, src, p.Rank)
	}
	early, inOrder := false, v.Flags&envelope.FlagSeq != 0
	if inOrder {
		var ok bool
		if early, ok = x.arrive(src, v.Seq); !ok {
			e.Mu.Unlock()
			return 0, fmt.Errorf("%w: sequence number %d", mpierr.ErrProtocol, v.Seq)
		}
	}
	r := x.match(src, v.Tag, early)
	if r == nil {
		taken = e.keep(f, x, early, body)
	} else {
		r.setMatch(p, src, v.Tag, v.Length, v.Sig)
		if r.tag == AnyTag {
			x.recheck()
		}
	}
	if inOrder && !early && x.sources[src].ahead > 0 {
		x.advance(src)
	}
	ms := x.taken()
	e.Mu.Unlock()
	if r != nil {
		if v.Kind == envelope.RTS {
			e.sendCTS(r, p, v.ID, proposalOf(v))
		} else {
			f.dest, f.receive = destReceive, r
		}
	}
	e.handAll(ms)
	return taken, nil
}

// handAll delivers the messages of a list made by take to their receives.
func (e *Engine) handAll(ms *Message) {
	for ms != nil {
		m := ms
		ms = m.next
		e.hand(m, m.match)
	}
}

// keep adds a message to the unexpected message queue. e.mu is held.
func (e *Engine) keep(f *Parser, x *Context, early bool, body []byte) (taken int) {
	v := &f.Envelope
	m := newMessage()
	m.ctx, m.peer, m.src, m.tag, m.seq, m.early = x, f.Peer, int32(v.Source), v.Tag, v.Seq, early
	m.kind, m.length, m.id, m.sig = v.Kind, v.Length, v.ID, v.Sig
	if v.Kind == envelope.RTS {
		m.whole, m.proposal = true, proposalOf(v)
		f.Peer.Ready.Add(1)
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
func (r *Request) setMatch(p *Peer, src, tag int32, length uint64, sig datatype.Sig) {
	r.Peer = p
	r.Length, r.got = length, sig
	room := uint64(r.Room())
	if r.wrong = length > 0 && !sig.Matches(r.sig); r.wrong {
		room = 0
	}
	r.Status = Status{Source: int(src), Tag: int(tag), Bytes: int(min(length, room))}
}

// Received completes a receive after the last byte of its message. If fail has been called, the
// buffer may lack bytes, and the caller of fail completes the receive.
func (r *Request) received() {
	if r.failed.Load() {
		return
	}
	var err error
	switch {
	case r.wrong:
		err = fmt.Errorf("%w: rank %d sent %v with tag %d, the receive is of %v",
			mpierr.ErrTypeMismatch, r.Status.Source, r.got, r.Status.Tag, r.sig)
	case r.Length > uint64(r.Status.Bytes):
		err = fmt.Errorf("%w: %d bytes for a buffer of %d", mpierr.ErrTruncate, r.Length, r.Status.Bytes)
	case r.Context.exactLength.Load():
		r.Place.Lock()
		n := r.Room()
		r.Place.Unlock()
		if r.Length < uint64(n) {
			err = fmt.Errorf("%w: %d bytes for a buffer of %d, in spite of mpi_assert_exact_length", mpierr.ErrCount, r.Length, n)
		}
	}
	r.Complete(err)
}

// hand delivers m, which is complete and in no queue, to r.
func (e *Engine) hand(m *Message, r *Request) {
	p, k, length, id := m.peer, m.kind, m.length, m.id
	if k == envelope.RTS {
		how := m.proposal
		m.recycle()
		e.sendCTS(r, p, id, how)
		return
	}
	r.Put(0, m.buf)
	m.recycle()
	p.consumed(k, length, id)
	r.received()
}

// consumed returns the credit of an eager message to its sender, and sends SyncAck for a
// synchronous one.
func (p *Peer) consumed(k envelope.Kind, length, id uint64) {
	p.repay(length)
	if k == envelope.Sync {
		p.control(0, &envelope.Header{Kind: envelope.SyncAck, ID: id})
	}
}

// dropped reports to the sender of a message for a communicator that is freed here that its send
// has failed. A rank that has ended answers nothing: its end fails the send.
func (p *Peer) dropped(k envelope.Kind, length, id uint64) {
	if k != envelope.RTS {
		p.repay(length)
	}
	p.Engine.Mu.Lock()
	ended := p.Engine.err != nil
	p.Engine.Mu.Unlock()
	if k != envelope.Eager && !ended {
		p.control(0, &envelope.Header{Kind: envelope.Canceled, Flags: envelope.FlagFreed, ID: id})
	}
}

// messageWhole is called after the last byte of m, an unexpected message.
func (e *Engine) messageWhole(m *Message) {
	e.Mu.Lock()
	m.whole = true
	r, dropped := m.match, m.dropped
	e.Mu.Unlock()
	switch {
	case r != nil:
		e.hand(m, r)
	case dropped:
		m.peer.dropped(m.kind, m.length, m.id)
		m.recycle()
	}
}

// messageLost is called when the rest of m will not come, because the link has ended.
func (e *Engine) messageLost(m *Message, err error) {
	e.Mu.Lock()
	r := m.match
	if r == nil && m.probed {
		m.lost = true // Mrecv returns the error
		e.Mu.Unlock()
		return
	}
	if r == nil && !m.dropped {
		m.ctx.removeMessage(m)
	}
	e.Mu.Unlock()
	m.recycle()
	if r != nil {
		e.rematch(r, err)
	}
}

// sendCTS fetches the body of send id of p for r, if possible by the method that the RTS proposed:
// it asks p to send the body (CTS) or to write it (CTSKey), or reads it from the buffer of the
// sender.
func (e *Engine) sendCTS(r *Request, p *Peer, id uint64, how proposal) {
	n := r.Status.Bytes
	v := envelope.Header{Kind: envelope.CTS, ID: id, Length: uint64(n)}
	if n == 0 {
		p.control(0, &v)
		r.received()
		return
	}
	rdma := (how.write || how.offer) && e.Bulk != nil && p.ProcHandle != int32(e.Rank) && !p.Distant &&
		r.Reduce.Reducer == nil
	if rdma && !e.Bulk.Ready(func() { e.sendCTS(r, p, id, how) }) {
		return // the device is being opened: a goroutine calls sendCTS again
	}
	if rdma && r.Gaps.Type != nil {
		r.gather()
	}
	if rdma && how.write {
		if g, ok := e.Bulk.Expose(r); ok {
			v.Kind, v.Key = envelope.CTSKey, g
		}
	}
	f := Fetch{Receive: r, Epoch: r.Epoch, Peer: p, Send: id, Len: n, From: how.key}
	v.PeerID = e.IDs.Add(r, p)
	f.ID = v.PeerID
	if err := p.Failure(); err != nil {
		// peerDown may have emptied ids before the add.
		if e.IDs.remove(v.PeerID, p) != nil {
			e.rematch(r, err)
		}
		return
	}
	if rdma && how.offer {
		e.Bulk.Read(f)
		return
	}
	if l := p.Shared.Load(); l != nil && how.cma && r.Reduce.Reducer == nil {
		(*l).Fetch(f)
		return
	}
	p.control(0, &v)
}
