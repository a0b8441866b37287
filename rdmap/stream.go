package rdmap

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/ddp"
)

// State is the state of a stream, with the names of the RDMA verbs
// specification.
type State uint32

// States.
const (
	// StateIdle: no channel yet, or its peer has not agreed yet.
	StateIdle State = iota
	// StateRTS: ready to send.
	StateRTS
	// StateClosing: either side closes gracefully.
	StateClosing
	// StateTerminate: a Terminate message was sent or received, or the stream
	// was aborted; the peer is being told.
	StateTerminate
	// StateError: at its end.
	StateError
	// StateSQD: ready to send, and paused. It is not a state of its own, so
	// Observer.Changed does not tell it: see Stream.Pause.
	StateSQD
)

var stateNames = [...]string{"IDLE", "RTS", "CLOSING", "TERMINATE", "ERROR", "SQD"}

// String returns the name.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown state"
}

// Errors of a stream.
var (
	// ErrState is returned for an operation the state does not allow.
	ErrState = errors.New("rdmap: stream state does not allow this")
	// ErrFull is returned by Reserve and ReserveRecv without enough room.
	ErrFull = errors.New("rdmap: queue is full")
	// ErrClosed is the end of a stream that was closed gracefully by either
	// side, or aborted by this one.
	ErrClosed = errors.New("rdmap: stream closed")
)

// Observer receives the completions and state changes of a stream. Its methods are called
// with the stream's locks held: they must not block and must not call the stream.
type Observer interface {
	// Sent reports a send operation that is done, in the order they were
	// posted: all that failed, and those with FlagSignaled.
	Sent(c Completion)
	// Received reports a receive that is done, in the order of messages.
	Received(c Completion)
	// Changed reports a new state. err is why the stream ends, from
	// StateClosing on.
	Changed(st State, err error)
	// Idle reports that a paused stream has completed what it had started:
	// see Pause.
	Idle()
	// Drained reports, once, that the stream is in StateError and nothing of
	// what was posted is left.
	Drained()
}

// Config holds the parameters of a Stream. All fields but Window are required.
type Config struct {
	// Table holds the registered memory, Domain is that of the stream.
	Table  *ddp.Table
	Domain *ddp.Domain
	// SendDepth and RecvDepth bound the queues, SendSGEs and RecvSGEs the
	// lists in them, MaxInline the inline data.
	SendDepth, RecvDepth int
	SendSGEs, RecvSGEs   int
	MaxInline            int
	// IRD bounds the incoming reads and atomics being served, ORD the
	// outgoing ones.
	IRD, ORD int
	// Shared, if not nil, is where receive buffers come from. RecvDepth and
	// RecvSGEs are not used then.
	Shared *ddp.Pool
	// Window bounds the segments sent and not acknowledged (default
	// ddp.DefaultWindow, at most ddp.MaxOutstanding).
	Window int
	// Observer is told what happens.
	Observer Observer
}

// batch is how many segments that are not of a ddp.Train are made under one lock, and then
// transmitted.
const batch = 16

// Stream is one end of an RDMAP stream: a send queue and a receive queue above
// a ddp.Channel, and the responder for the peer's reads and atomics, which
// runs entirely in the calls of the lower layer. It owns no goroutine and is
// safe for concurrent use.
//
// Two locks: rmu guards the receiving side, mu the sending side and the state.
// Where both are needed rmu is taken first. Neither is held while the channel
// is called, so the channel may call back.
type Stream struct {
	table *ddp.Table
	scope *ddp.Scope
	obs   Observer
	// sink is an STag that grants nothing. Read Requests name it as their
	// data sink; responses are placed by looking up the outstanding read, so
	// the peer can only ever write where a read of this side waits for data.
	sink *ddp.Region

	rmu       sync.Mutex
	rx        ddp.Receiver      // guarded by rmu
	hit       *Op               // guarded by rmu: the read whose response came last
	reposted  uint32            // guarded by rmu: read request buffers given back
	badRead   ReadRequestHeader // guarded by rmu: what Deliver objected to
	isBadRead bool              // guarded by rmu
	held      int               // guarded by rmu: what holder was told
	kick      bool              // guarded by rmu: transmit after unlocking
	check     bool              // guarded by rmu: advanceTeardown is due after unlocking

	mu      sync.Mutex
	state   State       // guarded by mu
	err     error       // guarded by mu: why the stream ends
	cut     error       // guarded by mu: why it did so before it was closed gracefully
	ch      ddp.Channel // guarded by mu; does not change once set
	ops     []Op        // guarded by mu: ring
	opTail  uint32      // guarded by mu: oldest not completed
	opNext  uint32      // guarded by mu: next to start
	opHead  uint32      // guarded by mu: end of the queue
	opLimit uint32      // most ops queued
	reads   []*Op       // guarded by mu: ring of ops waiting for a response
	rdTail  uint32      // guarded by mu
	rdHead  uint32      // guarded by mu
	ord     uint32      // guarded by mu
	maxORD  int         // Config.ORD
	rtr     *Op         // guarded by mu: the indication that is to be sent first, see Indicate
	resps   []response  // guarded by mu: ring of responses to send
	rsHead  uint32      // guarded by mu
	spent   *source     // guarded by mu: list of those to be freed
	msn     [ddp.Queues]uint32
	sinkPos uint64 // guarded by mu: end of the sink space handed out
	atomic  uint32 // guarded by mu: request identifier of the last atomic
	cur     current
	turn    bool // guarded by mu: a response goes first
	sending bool // guarded by mu: somebody is in transmit
	paused  bool // guarded by mu: no operation starts
	idle    bool // guarded by mu: Idle was called
	termDue bool // guarded by mu: term is to be sent
	term    TerminateHeader
	endSent bool // guarded by mu: the channel was told the end
	// unflushed is guarded by mu: the queues of a stream that ended are still
	// to be flushed.
	unflushed bool
	peerEnd   bool        // guarded by mu: the peer's end was received
	linger    *time.Timer // guarded by mu: not nil: calls giveUp
	freed     bool        // guarded by mu: the channel was released
	drained   bool        // guarded by mu: Drained was called
	ctl       [MaxTerminate]byte
	ctlMem    [1]ddp.Mem
	segs      [batch]ddp.Segment // owned by whoever set sending
	batched   ddp.Train          // likewise: without Body none
	batcher   ddp.TrainChannel   // guarded by mu: ch, if it takes them
	holder    ddp.Holder         // guarded by mu: ch, if it is one

	rsTail   atomic.Uint32 // responses sent, written under mu
	inflight atomic.Int32
	copies   ddp.Snapshots // of responses
	stalled  atomic.Bool   // inflight reached the window
	ending   atomic.Bool   // endSent: the last acknowledgement advances the teardown
	window   int32
	resume   int32 // inflight at which a stalled stream goes on
}

// NewStream makes a stream in [StateIdle].
func NewStream(cfg Config) (*Stream, error) {
	w := cfg.Window
	if w <= 0 {
		w = ddp.DefaultWindow
	}
	w = min(w, ddp.MaxOutstanding)
	s := &Stream{
		table: cfg.Table, scope: &ddp.Scope{Domain: cfg.Domain}, obs: cfg.Observer,
		ops: make([]Op, ringSize(cfg.SendDepth)), opLimit: uint32(cfg.SendDepth),
		reads: make([]*Op, ringSize(cfg.ORD)), ord: uint32(cfg.ORD), maxORD: cfg.ORD,
		resps:  make([]response, ringSize(cfg.IRD)),
		window: int32(w), resume: int32(w - w/4 - 1),
	}
	var err error
	if s.sink, err = s.table.Add(nil, 0, 0, cfg.Domain, s.scope); err != nil {
		return nil, err
	}
	sges := make([]ddp.Mem, len(s.ops)*cfg.SendSGEs)
	inline := make([]byte, len(s.ops)*cfg.MaxInline)
	for i := range s.ops {
		op := &s.ops[i]
		op.stream = s
		op.SGL = sges[i*cfg.SendSGEs : i*cfg.SendSGEs : (i+1)*cfg.SendSGEs]
		op.Inline = inline[i*cfg.MaxInline : i*cfg.MaxInline : (i+1)*cfg.MaxInline]
	}
	for i := range s.msn {
		s.msn[i] = 1 // RFC 5041, Section 4.3
	}
	s.rx.Init((*upper)(s))
	if cfg.Shared != nil {
		s.rx.Share(QueueSend, cfg.Shared, s.resumeRecv)
	} else {
		s.rx.Queue(QueueSend).Init(cfg.RecvDepth, cfg.RecvSGEs)
	}
	// RFC 5040, Section 5.2.2 and RFC 7306, Section 5.2.2: a buffer for every
	// request and every atomic response that was negotiated; Section 5.4: one
	// for a Terminate.
	fillQueue(s.rx.Queue(QueueReadRequest), cfg.IRD, AtomicRequestLen)
	fillQueue(s.rx.Queue(QueueAtomicResponse), cfg.ORD, AtomicResponseLen)
	fillQueue(s.rx.Queue(QueueTerminate), 1, MaxTerminate)
	return s, nil
}

func ringSize(n int) int {
	size := 1
	for size < n {
		size *= 2
	}
	return size
}

// fillQueue gives a queue depth buffers of its own, which stay with their
// slots when the queue drops them.
func fillQueue(q *ddp.Queue, depth, size int) {
	q.Init(depth, 1)
	slots := ringSize(depth)
	mem := make([]byte, slots*size)
	for i := range slots {
		b := q.Slot(i)
		b.SGL = append(b.SGL, ddp.Mem{B: mem[i*size : (i+1)*size]})
	}
	for q.Free() > 0 {
		q.Post()
	}
}

// Scope returns the identity of the stream in access checks.
func (s *Stream) Scope() *ddp.Scope { return s.scope }

// State returns the state and, from StateClosing on, why the stream ends.
func (s *Stream) State() (State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.err
}

// Paused reports whether the stream is paused, and whether Observer.Idle has been called
// since then.
func (s *Stream) Paused() (paused, idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused && s.state == StateRTS, s.idle
}

// Bind attaches the stream to its channel. It must be called before the methods of
// [ddp.Sink]. It returns [ErrState] if the stream is not idle or has a channel.
func (s *Stream) Bind(ch ddp.Channel) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != StateIdle || s.ch != nil {
		return ErrState
	}
	s.ch = ch
	s.batcher, _ = ch.(ddp.TrainChannel)
	s.holder, _ = ch.(ddp.Holder)
	return nil
}

// Unbind detaches the stream from a channel on which nothing was sent or received, so that
// Bind can attach another one. It returns [ErrState] if the stream is not idle.
func (s *Stream) Unbind() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != StateIdle {
		return ErrState
	}
	s.ch, s.batcher, s.holder = nil, nil, nil
	return nil
}

// Indicate makes a ready-to-receive indication (RFC 6581, Section 9.2), an OpSend or
// OpRead of no length, the first message of the stream. It is called before Start. The
// indication is not an operation of the consumer: it takes no place in the send queue,
// and never completes. An OpRead counts against ORD while it is not answered.
func (s *Stream) Indicate(kind OpKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rtr = &Op{Work: Work{Kind: kind}, stream: s}
}

// Start moves a bound stream to [StateRTS], after the peer has accepted. ord replaces
// Config.ORD if it is lower. It does not block.
func (s *Stream) Start(ord int) error {
	s.mu.Lock()
	if s.state != StateIdle || s.ch == nil {
		s.mu.Unlock()
		return ErrState
	}
	s.ord = min(s.ord, uint32(max(ord, 0)))
	s.change(StateRTS, nil)
	first := s.rtr != nil
	s.mu.Unlock()
	if first {
		s.transmit()
	}
	return nil
}

// ORD returns how many reads and atomics may be outstanding.
func (s *Stream) ORD() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.ord)
}

// SetORD changes how many reads and atomics may be outstanding, up to
// Config.ORD: more than the peer agreed to end the stream.
func (s *Stream) SetORD(n int) error {
	if n < 0 || n > s.maxORD {
		return ErrFull
	}
	s.mu.Lock()
	s.ord = uint32(n)
	s.mu.Unlock()
	s.transmit()
	return nil
}

// Pause stops the start of operations, as state SQD of a queue pair does; they may still be
// posted. Observer.Idle is called when all started ones have completed. It returns
// [ErrState] unless the stream is in [StateRTS]. It does not block.
func (s *Stream) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != StateRTS {
		return ErrState
	}
	if !s.paused {
		s.paused, s.idle = true, false
		s.reap()
	}
	return nil
}

// Resume starts operations again after Pause.
func (s *Stream) Resume() error {
	s.mu.Lock()
	if s.state != StateRTS {
		s.mu.Unlock()
		return ErrState
	}
	s.paused = false
	s.mu.Unlock()
	s.transmit()
	return nil
}

// Outstanding returns the number of segments that were sent and not acknowledged. It takes
// no lock.
func (s *Stream) Outstanding() int { return int(s.inflight.Load()) }

// Queued returns the number of operations that have not completed and of posted receive
// buffers. With Config.Shared, recvs is 1 while an incomplete message has a buffer.
func (s *Stream) Queued() (ops, recvs int) {
	s.rmu.Lock()
	defer s.rmu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.opHead - s.opTail), s.rx.Queue(QueueSend).Len()
}

// change moves to another state.
func (s *Stream) change(st State, err error) { // mu is held
	if s.err == nil {
		s.err = err
	}
	if s.state == StateClosing && st == StateTerminate && !errors.Is(err, ErrClosed) {
		s.cut = err
	}
	s.state = st
	s.obs.Changed(st, s.err)
}

// Reserve locks the send queue to post n operations: the caller then calls [Stream.NextOp]
// n times, fills in each operation, and calls [Stream.Commit]. After an error, [ErrState] or
// [ErrFull], nothing is locked.
func (s *Stream) Reserve(n int) error {
	s.mu.Lock()
	if s.state != StateRTS {
		s.mu.Unlock()
		return ErrState
	}
	if n < 0 || s.opHead-s.opTail+uint32(n) > s.opLimit {
		s.mu.Unlock()
		return ErrFull
	}
	return nil
}

// NextOp appends an operation to the send queue. See Reserve.
func (s *Stream) NextOp() *Op {
	op := &s.ops[s.opHead&uint32(len(s.ops)-1)]
	op.SGL, op.Inline = op.SGL[:0], op.Inline[:0]
	op.reset()
	s.opHead++
	return op
}

// reset makes an op one that has not begun.
func (o *Op) reset() {
	o.status, o.second, o.begun, o.placed, o.qn, o.msn = StatusSuccess, false, false, 0, 0, 0
	o.done.Store(false)
}

// Commit unlocks the send queue after Reserve and sends what the window allows. It does not
// block.
func (s *Stream) Commit() {
	s.mu.Unlock()
	s.transmit()
}

// ReserveRecv locks the receive queue, which must not be shared, to post n buffers: the
// caller then calls [Stream.NextRecv], fills in ID and SGL, and calls [Stream.PostRecv], n
// times, and [Stream.CommitRecv] at the end.
func (s *Stream) ReserveRecv(n int) error {
	s.rmu.Lock()
	s.mu.Lock()
	st := s.state
	s.mu.Unlock()
	if st >= StateTerminate || s.rx.Queue(QueueSend).Shared() {
		s.rmu.Unlock()
		return ErrState
	}
	if n > s.rx.Queue(QueueSend).Free() {
		s.rmu.Unlock()
		return ErrFull
	}
	return nil
}

// NextRecv returns the next buffer to fill in: its SGL is empty.
func (s *Stream) NextRecv() *ddp.Buffer {
	b := s.rx.Queue(QueueSend).Next()
	b.SGL = b.SGL[:0]
	return b
}

// PostRecv posts the buffer of NextRecv.
func (s *Stream) PostRecv() { s.rx.Queue(QueueSend).Post() }

// CommitRecv unlocks the receive queue after ReserveRecv.
func (s *Stream) CommitRecv() { s.rmu.Unlock() }
