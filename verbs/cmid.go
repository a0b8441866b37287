package verbs

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/sctp"
)

// DefaultConnectTimeout is how long CMID.Connect waits for an answer unless
// ConnParams.Timeout says otherwise.
const DefaultConnectTimeout = 30 * time.Second

// ErrCMState is returned by a method of CMID that its state does not allow.
var ErrCMState = errors.New("verbs: connection identifier state does not allow this")

// CMEventType is the kind of an event of the connection manager.
type CMEventType uint8

// Events of the connection manager, named after those of rdma_cm.
const (
	// CMAddrResolved, CMAddrError: the end of ResolveAddr.
	CMAddrResolved CMEventType = iota + 1
	CMAddrError
	// CMRouteResolved, CMRouteError: the end of ResolveRoute.
	CMRouteResolved
	CMRouteError
	// CMConnectRequest: a peer wants to connect to a listening identifier. ID is
	// a new one, to be answered with Accept or Reject, and then to be closed.
	CMConnectRequest
	// CMEstablished: connected, on either side.
	CMEstablished
	// CMRejected: the peer's consumer rejected (Err is a *RejectError), or its
	// device refused (ErrRefused).
	CMRejected
	// CMUnreachable: the peer did not answer in time.
	CMUnreachable
	// CMConnectError: connecting failed for another reason.
	CMConnectError
	// CMDisconnected: either side disconnected, or the connection was lost; Err
	// is QP.Err.
	CMDisconnected
)

var cmEventNames = [...]string{"no event", "address resolved", "address error", "route resolved", "route error",
	"connect request", "established", "rejected", "unreachable", "connect error", "disconnected"}

// String returns a short lower-case name.
func (t CMEventType) String() string {
	if int(t) < len(cmEventNames) {
		return cmEventNames[t]
	}
	return "unknown event"
}

// CMEvent is an event of the connection manager.
type CMEvent struct {
	Type CMEventType
	// ID is what it is about. Of a CMConnectRequest Listen is the identifier
	// that listens.
	ID, Listen *CMID
	// PrivateData is that of the peer, of CMConnectRequest, CMRejected and, at
	// the active side, CMEstablished. PeerIRD and PeerORD are the read depths it
	// stated then, -1 if none.
	PrivateData      []byte
	PeerIRD, PeerORD int
	// Err tells why, of events that are errors.
	Err error
}

// CMChannel is an event channel: the connection manager in the manner of
// rdma_cm, where nothing blocks and one goroutine can serve any number of
// connections over SCTP. Device.Connect and Device.Listen are the same in
// blocking form.
type CMChannel struct {
	dev  *Device
	refs refs          // identifiers
	wake chan struct{} // one token while there may be events

	mu    sync.Mutex
	queue []CMEvent // guarded by mu; an identifier has few at a time
}

// NewCMChannel makes an event channel.
func (d *Device) NewCMChannel() (*CMChannel, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	return &CMChannel{dev: d, wake: make(chan struct{}, 1)}, nil
}

// push queues an event. It may be called with locks held.
func (c *CMChannel) push(e CMEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, e)
	c.signal()
}

func (c *CMChannel) signal() { // mu is held
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// GetEvent returns the oldest event. It blocks until there is one or ctx is
// done.
func (c *CMChannel) GetEvent(ctx context.Context) (CMEvent, error) {
	for {
		c.mu.Lock()
		if len(c.queue) > 0 {
			e := c.queue[0]
			c.queue = slices.Delete(c.queue, 0, 1)
			if len(c.queue) > 0 {
				c.signal()
			}
			c.mu.Unlock()
			return e, nil
		}
		c.mu.Unlock()
		select {
		case <-c.wake:
		case <-ctx.Done():
			return CMEvent{}, ctx.Err()
		}
	}
}

// Close frees the channel. It returns ErrBusy while it has identifiers.
func (c *CMChannel) Close() error {
	if err := c.refs.close(); err != nil {
		return err
	}
	c.dev.unuse()
	return nil
}

// forget drops the events of an identifier. It returns those requests to a
// listening one that nobody has seen.
func (c *CMChannel) forget(id *CMID) (requests []*CMID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = slices.DeleteFunc(c.queue, func(e CMEvent) bool {
		if e.Listen == id {
			requests = append(requests, e.ID)
		}
		return e.ID == id || e.Listen == id
	})
	return requests
}

// dropStale drops requests to a listening identifier that the peer took back
// before anybody has seen them: they must not pile up.
func (c *CMChannel) dropStale(id *CMID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = slices.DeleteFunc(c.queue, func(e CMEvent) bool {
		if e.Listen != id || e.ID.request.r.Pending() {
			return false
		}
		e.ID.cancel()
		c.refs.leave()
		return true
	})
}

// cmState is where an identifier is on its way.
type cmState uint8

const (
	cmIdle cmState = iota
	cmBusy         // resolving or connecting
	cmAddr
	cmRoute
	cmListen
	cmRequest // made for a CMConnectRequest
	cmConnected
	cmEnded
)

// CMID is a connection identifier, the rdma_cm_id: one connection, or one
// listener. Its methods do not block; those that take time report by an event.
// It is safe for concurrent use.
type CMID struct {
	ch      *CMChannel
	context any
	ctx     context.Context
	cancel  context.CancelFunc

	mu       sync.Mutex
	closed   bool                 // guarded by mu
	state    cmState              // guarded by mu
	addr     sctp.Addr            // guarded by mu: of the peer
	assoc    *ddpsctp.Association // guarded by mu: from cmRoute on
	qp       *QP                  // guarded by mu
	request  *ConnRequest         // guarded by mu: of cmRequest
	listener *Listener            // guarded by mu: of cmListen
	backlog  int                  // guarded by mu: of cmListen
	pending  []*ConnRequest       // guarded by mu: of cmListen
}

// NewID makes an identifier. context is a value of the caller's.
func (c *CMChannel) NewID(context any) (*CMID, error) {
	if err := c.refs.enter(); err != nil {
		return nil, err
	}
	return c.newID(context), nil
}

func (c *CMChannel) newID(value any) *CMID {
	id := &CMID{ch: c, context: value}
	id.ctx, id.cancel = context.WithCancel(context.Background())
	return id
}

// Context returns what was given to NewID; that of a request's identifier is
// that of the listening one.
func (id *CMID) Context() any { return id.context }

// QP returns the queue pair, once there is one.
func (id *CMID) QP() *QP {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.qp
}

// RemoteAddr returns the address of the peer's device, once it is known.
func (id *CMID) RemoteAddr() sctp.Addr {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.addr
}

// enter moves to another state from one of some.
func (id *CMID) enter(to cmState, from ...cmState) error { // mu is held
	switch {
	case id.closed:
		return ErrClosed
	case !slices.Contains(from, id.state):
		return ErrCMState
	}
	id.state = to
	return nil
}

// run does what takes time. f returns the event, and the state that follows.
func (id *CMID) run(timeout time.Duration, f func(context.Context) (CMEvent, cmState)) {
	go func() {
		ctx, cancel := context.WithTimeout(id.ctx, timeout)
		defer cancel()
		e, st := f(ctx)
		e.ID = id
		id.mu.Lock()
		defer id.mu.Unlock()
		if id.closed {
			return
		}
		id.state = st
		id.ch.push(e)
		if st == cmConnected {
			id.watch()
		}
	}()
}

// watch sees to the CMDisconnected.
func (id *CMID) watch() { // mu is held
	qp := id.qp
	f := func() {
		// The queue pair's mu is not held, the stream's locks are.
		id.ch.push(CMEvent{Type: CMDisconnected, ID: id, Err: qp.Err(), PeerIRD: -1, PeerORD: -1})
	}
	qp.mu.Lock()
	over := qp.state != StateRTS
	if !over {
		qp.watch = f
	}
	qp.mu.Unlock()
	if over {
		f()
	}
}

// ResolveAddr resolves the address of a device, as sctp.ResolveAddr reads it,
// within a time. CMAddrResolved or CMAddrError follows.
func (id *CMID) ResolveAddr(addr string, timeout time.Duration) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if err := id.enter(cmBusy, cmIdle); err != nil {
		return err
	}
	id.run(timeout, func(ctx context.Context) (CMEvent, cmState) {
		a, err := sctp.ResolveAddr(ctx, addr)
		if err != nil {
			return CMEvent{Type: CMAddrError, Err: err}, cmIdle
		}
		id.mu.Lock()
		id.addr = a
		id.mu.Unlock()
		return CMEvent{Type: CMAddrResolved}, cmAddr
	})
	return nil
}

// ResolveRoute finds, or opens, the association with the peer's device, within a
// time. CMRouteResolved or CMRouteError follows.
func (id *CMID) ResolveRoute(timeout time.Duration) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.ch.dev.ep == nil {
		return ErrNoTransport
	}
	if err := id.enter(cmBusy, cmAddr); err != nil {
		return err
	}
	addr := id.addr
	id.run(timeout, func(ctx context.Context) (CMEvent, cmState) {
		a, err := id.ch.dev.ep.Dial(ctx, addr)
		if err != nil {
			return CMEvent{Type: CMRouteError, Err: err}, cmAddr
		}
		id.mu.Lock()
		id.assoc = a
		id.mu.Unlock()
		return CMEvent{Type: CMRouteResolved}, cmRoute
	})
	return nil
}

// CreateQP makes the queue pair of the connection. It stays the caller's to
// close.
func (id *CMID) CreateQP(pd *PD, cfg QPConfig) error {
	if pd.dev != id.ch.dev {
		return ErrInvalid
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.closed {
		return ErrClosed
	}
	if id.qp != nil {
		return ErrCMState
	}
	qp, err := pd.NewQP(cfg)
	if err == nil {
		id.qp = qp
	}
	return err
}

// Connect connects the queue pair. CMEstablished, CMRejected, CMUnreachable or
// CMConnectError follows. After the errors the queue pair is of no more use.
func (id *CMID) Connect(p ConnParams) error {
	if len(p.PrivateData) > MaxPrivateData {
		return ErrPrivateData
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.qp == nil {
		return ErrCMState
	}
	if err := id.enter(cmBusy, cmRoute); err != nil {
		return err
	}
	timeout := p.Timeout
	if timeout <= 0 {
		timeout = DefaultConnectTimeout
	}
	p.PrivateData = slices.Clone(p.PrivateData)
	qp, a := id.qp, id.assoc
	id.run(timeout, func(ctx context.Context) (CMEvent, cmState) {
		if qp.State() != StateIdle {
			return CMEvent{Type: CMConnectError, Err: ErrQPState}, cmEnded
		}
		info, err := qp.initiate(ctx, a, p)
		var rejected *RejectError
		switch {
		case err == nil:
			return CMEvent{Type: CMEstablished, PrivateData: info.PrivateData, PeerIRD: info.PeerIRD, PeerORD: info.PeerORD}, cmConnected
		case errors.As(err, &rejected):
			return CMEvent{Type: CMRejected, PrivateData: rejected.PrivateData, Err: err}, cmEnded
		case errors.Is(err, ErrRefused):
			return CMEvent{Type: CMRejected, Err: err}, cmEnded
		case errors.Is(err, context.DeadlineExceeded):
			return CMEvent{Type: CMUnreachable, Err: err}, cmEnded
		}
		return CMEvent{Type: CMConnectError, Err: err}, cmEnded
	})
	return nil
}

// Listen starts to take connection requests, each of which raises a
// CMConnectRequest. While backlog of them (0: Config.Backlog) are not answered
// further peers are refused. A device has one listener at a time, else ErrBusy.
func (id *CMID) Listen(backlog int) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if backlog < 0 {
		return ErrLimit
	}
	if err := id.enter(cmListen, cmIdle); err != nil {
		return err
	}
	id.backlog = min(backlog, id.ch.dev.backlog())
	if id.backlog == 0 {
		id.backlog = id.ch.dev.backlog()
	}
	l, err := id.ch.dev.listen(id.requested)
	if err != nil {
		id.state = cmIdle
		return err
	}
	id.listener = l
	return nil
}

// requested takes a request to a listening identifier: upcall.
func (id *CMID) requested(r *ddpsctp.Request) bool {
	id.ch.dropStale(id)
	id.mu.Lock()
	defer id.mu.Unlock()
	id.pending = slices.DeleteFunc(id.pending, func(c *ConnRequest) bool { return !c.r.Pending() })
	if id.closed || len(id.pending) >= id.backlog || id.ch.refs.enter() != nil {
		return false
	}
	c := newConnRequest(r)
	id.pending = append(id.pending, c)
	fresh := id.ch.newID(id.context)
	fresh.state, fresh.request, fresh.addr = cmRequest, c, c.Remote
	id.ch.push(CMEvent{Type: CMConnectRequest, ID: fresh, Listen: id,
		PrivateData: c.PrivateData, PeerIRD: c.PeerIRD, PeerORD: c.PeerORD})
	return true
}

// Accept accepts the request that the identifier was made for, with its queue
// pair; see ConnRequest.Accept. CMEstablished follows.
func (id *CMID) Accept(p ConnParams) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.qp == nil {
		return ErrCMState
	}
	if err := id.enter(cmConnected, cmRequest); err != nil {
		return err
	}
	if err := id.request.Accept(id.qp, p); err != nil {
		if errors.Is(err, ErrPrivateData) {
			id.state = cmRequest
		} else {
			id.state = cmEnded
		}
		return err
	}
	id.ch.push(CMEvent{Type: CMEstablished, ID: id, PeerIRD: id.request.PeerIRD, PeerORD: id.request.PeerORD})
	id.watch()
	return nil
}

// Reject rejects the request that the identifier was made for.
func (id *CMID) Reject(privateData []byte) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if len(privateData) > MaxPrivateData {
		return ErrPrivateData
	}
	if err := id.enter(cmEnded, cmRequest); err != nil {
		return err
	}
	return id.request.Reject(privateData)
}

// Disconnect ends the connection gracefully: CMDisconnected follows at both
// sides.
func (id *CMID) Disconnect() error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if err := id.enter(cmEnded, cmConnected); err != nil {
		return err
	}
	id.qp.stream.Close()
	return nil
}

// Close frees the identifier: what it waits for is given up, a request that was
// not answered is refused, and its events are dropped; one that listens stops,
// and refuses the requests that nobody has seen. It returns ErrBusy while its
// queue pair is not closed.
func (id *CMID) Close() error {
	id.mu.Lock()
	if id.closed {
		id.mu.Unlock()
		return ErrClosed
	}
	if id.qp != nil {
		id.qp.mu.Lock()
		open := !id.qp.closed
		if !open {
			id.qp.watch = nil
		}
		id.qp.mu.Unlock()
		if open {
			id.mu.Unlock()
			return ErrBusy
		}
	}
	id.closed = true
	l, waiting := id.listener, id.state == cmRequest
	id.mu.Unlock()
	id.cancel()
	if l != nil {
		l.Close()
	}
	if waiting {
		id.request.r.Refuse()
	}
	for _, r := range id.ch.forget(id) {
		r.Close()
	}
	id.ch.refs.leave()
	return nil
}
