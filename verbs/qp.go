package verbs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/rdmap"
)

// QPConfig holds the parameters of a queue pair.
type QPConfig struct {
	// SendCQ and RecvCQ get the completions. They may be the same. Required.
	SendCQ, RecvCQ *CQ
	// SRQ, if not nil, is where receives come from; it is of the same domain.
	// RecvDepth and MaxRecvSGE are not used then.
	SRQ *SRQ
	// SendDepth and RecvDepth are the sizes of the work queues (default
	// DefaultDepth).
	SendDepth, RecvDepth int
	// MaxSendSGE and MaxRecvSGE bound scatter/gather lists (default
	// DefaultSGE).
	MaxSendSGE, MaxRecvSGE int
	// MaxInline bounds SendWR.Inline (default DefaultInline).
	MaxInline int
	// SignalAll makes every send work request signaled.
	SignalAll bool
	// IRD and ORD bound the incoming and outgoing reads and atomics in
	// flight (default DefaultReadDepth each, negative: 0). Connecting may
	// lower ORD to what the peer grants.
	IRD, ORD int
	// Context is a value of the caller's, see QP.Context.
	Context any
}

// State is the state of a queue pair, with the names of the RDMA verbs
// specification (the InfiniBand names that ibv_query_qp shows for an iWARP
// device are INIT, RTS, SQD, SQE and ERR).
type State = rdmap.State

// States.
const (
	// StateIdle: not connected; receives may be posted.
	StateIdle = rdmap.StateIdle
	// StateRTS: connected.
	StateRTS = rdmap.StateRTS
	// StateClosing: either side disconnected gracefully; what was posted to
	// the send queue before is still sent.
	StateClosing = rdmap.StateClosing
	// StateTerminate: ended by an error or at once; the peer is being told.
	StateTerminate = rdmap.StateTerminate
	// StateError: at its end. Work requests are refused. Reset leads back to
	// StateIdle.
	StateError = rdmap.StateError
	// StateSQD: connected, but no send work request is started: see Modify.
	StateSQD = rdmap.StateSQD
)

// QP is a queue pair (ibv_create_qp): one end of an RDMAP stream (RFC 5040, Section 5). It
// is connected once, or again after [QP.Reset]. It is safe for concurrent use.
type QP struct {
	pd  *PD
	num uint32
	cfg QPConfig
	now atomic.Pointer[life]

	mu      sync.Mutex
	state   State  // guarded by mu
	err     error  // guarded by mu
	drained bool   // guarded by mu
	closed  bool   // guarded by mu
	watch   func() // guarded by mu: called when the connection ends, see CMID

	// lost tells, for SendCQ and for RecvCQ if that is another one, that the queue
	// had no room for a completion. None follows: those of the other queue pairs of
	// the queue need the room.
	lost [2]atomic.Bool
}

// life is what a queue pair has from StateIdle to StateError.
type life struct {
	stream *rdmap.Stream
	done   chan struct{}
	assoc  atomic.Pointer[ddpsctp.Association] // what it is connected over; nil over TCP
}

func (qp *QP) stream() *rdmap.Stream { return qp.now.Load().stream }

// setDefaults fills in defaults and checks limits.
func (c *QPConfig) setDefaults() error {
	if c.SendDepth < 0 {
		return checkLimit("SendDepth", c.SendDepth, 1, MaxDepth)
	}
	if c.SendCQ == nil || c.RecvCQ == nil {
		return explain(ErrLimit, "QPConfig without SendCQ or RecvCQ")
	}
	for _, f := range []struct {
		name     string
		v        *int
		def, max int
	}{
		{"SendDepth", &c.SendDepth, DefaultDepth, MaxDepth}, {"RecvDepth", &c.RecvDepth, DefaultDepth, MaxDepth},
		{"MaxSendSGE", &c.MaxSendSGE, DefaultSGE, MaxSGE}, {"MaxRecvSGE", &c.MaxRecvSGE, DefaultSGE, MaxSGE},
		{"MaxInline", &c.MaxInline, DefaultInline, MaxInline},
		{"IRD", &c.IRD, DefaultReadDepth, MaxReadDepth}, {"ORD", &c.ORD, DefaultReadDepth, MaxReadDepth},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
		*f.v = max(*f.v, 0)
		if err := checkLimit(f.name, *f.v, 0, f.max); err != nil {
			return err
		}
	}
	return nil
}

// NewQP makes a queue pair in StateIdle.
func (pd *PD) NewQP(cfg QPConfig) (*QP, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	if cfg.SendCQ.dev != pd.dev || cfg.RecvCQ.dev != pd.dev || cfg.SRQ != nil && cfg.SRQ.pd != pd {
		return nil, explain(ErrInvalid, "QPConfig: completion queues are of another device, or the shared receive queue of another protection domain")
	}
	qp := &QP{pd: pd, cfg: cfg}
	if err := qp.take(); err != nil {
		return nil, err
	}
	if err := qp.begin(); err != nil {
		qp.release()
		return nil, err
	}
	qp.num = pd.dev.qpNum.Add(1)
	return qp, nil
}

// begin gives the queue pair a stream that is not connected.
func (qp *QP) begin() error {
	pd, cfg := qp.pd, &qp.cfg
	var shared *ddp.Pool
	if cfg.SRQ != nil {
		shared = cfg.SRQ.pool
	}
	s, err := rdmap.NewStream(rdmap.Config{Table: pd.dev.table, Domain: &pd.domain, Shared: shared,
		SendDepth: cfg.SendDepth, RecvDepth: cfg.RecvDepth, SendSGEs: cfg.MaxSendSGE, RecvSGEs: cfg.MaxRecvSGE,
		MaxInline: cfg.MaxInline, IRD: cfg.IRD, ORD: cfg.ORD, Window: pd.dev.cfg.Window, Observer: (*observer)(qp)})
	if err != nil {
		return tableError(err)
	}
	qp.now.Store(&life{stream: s, done: make(chan struct{})})
	return nil
}

// Reset aborts the connection, if there is one, blocks until all work requests have
// completed or ctx is done, and returns the queue pair to StateIdle, from which it can be
// connected again. Number, queues and depths stay, and so do completions that were not
// polled; changes by Modify are undone. Regions of PD.RegisterFor and memory windows of the
// old connection grant nothing to the next peer. It returns [ErrClosed] for a closed queue
// pair, and [ErrLimit] if the device has too many STags.
func (qp *QP) Reset(ctx context.Context) error {
	l := qp.now.Load()
	l.stream.Abort(rdmap.ErrClosed)
	select {
	case <-l.done:
		return qp.reset(l)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reset begins anew after a life that is over.
func (qp *QP) reset(l *life) error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.closed {
		return ErrClosed
	}
	if qp.now.Load() != l {
		return nil // somebody else did
	}
	if err := qp.begin(); err != nil {
		return err
	}
	qp.state, qp.err, qp.drained, qp.watch = StateIdle, nil, false, nil
	for i := range qp.lost {
		qp.lost[i].Store(false)
	}
	return nil
}

// take counts the queue pair with what it uses.
func (qp *QP) take() error {
	users := []*refs{&qp.cfg.SendCQ.refs, &qp.cfg.RecvCQ.refs}
	if qp.cfg.SRQ != nil {
		users = append(users, &qp.cfg.SRQ.refs)
	}
	err := qp.pd.refs.enter()
	if err != nil {
		return err
	}
	for i, r := range users {
		if err = r.enter(); err != nil {
			for _, r := range users[:i] {
				r.leave()
			}
			qp.pd.refs.leave()
			return err
		}
	}
	return nil
}

// release gives up what the queue pair uses.
func (qp *QP) release() { // mu is held
	qp.pd.dev.events.forget(qp, nil, nil)
	qp.cfg.SendCQ.refs.leave()
	qp.cfg.RecvCQ.refs.leave()
	if qp.cfg.SRQ != nil {
		qp.cfg.SRQ.refs.leave()
	}
	qp.pd.refs.leave()
}

// observer is a queue pair as its stream's rdmap.Observer.
type observer QP

// Sent implements rdmap.Observer.
func (o *observer) Sent(c rdmap.Completion) {
	o.push(o.cfg.SendCQ, &o.lost[0], WC{ID: c.ID, QP: (*QP)(o), Op: c.Kind, Status: c.Status, Len: c.Len})
}

// Received implements rdmap.Observer.
func (o *observer) Received(c rdmap.Completion) {
	lost := &o.lost[1]
	if o.cfg.RecvCQ == o.cfg.SendCQ {
		lost = &o.lost[0]
	}
	o.push(o.cfg.RecvCQ, lost, WC{ID: c.ID, QP: (*QP)(o), Recv: true, Status: c.Status, Flags: c.Flags, Len: c.Len,
		Imm: c.Imm, Invalidated: c.Invalidated})
}

// push queues a completion. When that fails the queue pair, and only it, is at
// its end (RFC 5040, Section 8.1.1, item 10).
func (o *observer) push(cq *CQ, lost *atomic.Bool, wc WC) {
	if lost.Load() || cq.push(wc) {
		return
	}
	lost.Store(true)
	go (*QP)(o).stream().Abort(overflowError(cq.Depth())) // the caller holds the stream's locks
}

// Changed implements rdmap.Observer.
func (o *observer) Changed(st State, err error) {
	if errors.Is(err, rdmap.ErrClosed) {
		err = ErrDisconnected
	}
	o.mu.Lock()
	was := o.state
	o.state, o.err = st, err
	watch := o.watch
	if st != StateRTS {
		o.watch = nil
	}
	o.mu.Unlock()
	if st == StateTerminate {
		(*QP)(o).linger(o.now.Load())
	}
	if st == StateTerminate && was != StateIdle && !errors.Is(err, ErrDisconnected) {
		(*QP)(o).ended(err)
	}
	if watch != nil && st != StateRTS {
		watch()
	}
}

// Idle implements rdmap.Observer.
func (o *observer) Idle() { o.pd.dev.events.push(Event{Type: EventSQDrained, QP: (*QP)(o)}) }

// Drained implements rdmap.Observer.
func (o *observer) Drained() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drained = true
	if o.cfg.SRQ != nil {
		o.pd.dev.events.push(Event{Type: EventLastWQE, QP: (*QP)(o), SRQ: o.cfg.SRQ})
	}
	if o.closed {
		(*QP)(o).release()
	}
	close(o.now.Load().done) // who waits for it may free what the queue pair used
}

// Disconnect ends the connection gracefully (rdma_disconnect): it sends what was posted and
// the end of this direction, and blocks until the peer has ended its direction and all work
// requests have completed. When ctx is done before, it aborts the connection, as [QP.Close]
// does, and flushes the remaining work requests. Without a deadline it can take minutes on
// a dead network, until SCTP gives up. An error, that of ctx or the reason for which the
// connection ended, means that the peer may not have received everything.
func (qp *QP) Disconnect(ctx context.Context) error {
	l := qp.now.Load()
	l.stream.Close()
	select {
	case <-l.done:
		if err := l.stream.Cut(); err != nil {
			return fmt.Errorf("verbs: disconnecting QP %d: %w", qp.num, err)
		}
		return nil
	case <-ctx.Done():
		l.stream.Abort(ctx.Err())
		return ctx.Err()
	}
}

// State returns the state.
func (qp *QP) State() State {
	if paused, _ := qp.stream().Paused(); paused {
		return StateSQD
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.state
}

// Done returns a channel that is closed when the queue pair reached
// StateError and all work requests have completed. After Reset there is another
// one.
func (qp *QP) Done() <-chan struct{} { return qp.now.Load().done }

// Err returns why the queue pair left StateRTS: ErrDisconnected, a
// *TerminateError, or why the association ended; nil before.
func (qp *QP) Err() error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.err
}

// Num returns the number of the queue pair, which no other one of the device has
// or had.
func (qp *QP) Num() uint32 { return qp.num }

// ORD returns how many outgoing reads and atomics may be in flight.
func (qp *QP) ORD() int { return qp.stream().ORD() }

// Context returns QPConfig.Context.
func (qp *QP) Context() any { return qp.cfg.Context }

// PD returns the protection domain.
func (qp *QP) PD() *PD { return qp.pd }

// Close aborts the connection, if there is one, and frees the queue pair (ibv_destroy_qp).
// Work requests are flushed. After Close has returned, the memory of receives and reads is
// not written any more.
//
// The memory of sends and writes may still be read until the peer has acknowledged it;
// until then these requests keep regions and completion queues busy. On a dead network that
// takes up to Config.CloseTimeout, and longer if other queue pairs use the association; to
// end all of them, abort it: see [Device.Associations].
func (qp *QP) Close() error {
	qp.mu.Lock()
	if qp.closed {
		qp.mu.Unlock()
		qp.stream().Abort(rdmap.ErrClosed) // the first one may not have got there
		return ErrClosed
	}
	qp.closed = true
	if qp.drained {
		qp.release()
		qp.mu.Unlock()
		return nil
	}
	qp.mu.Unlock()
	qp.stream().Abort(rdmap.ErrClosed)
	return nil
}
