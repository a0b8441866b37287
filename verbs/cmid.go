package verbs

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// ErrCMState is returned by a method of CMID that its state does not allow.
var ErrCMState = errors.New("verbs: connection identifier state does not allow this")

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
	tcp      net.Addr             // guarded by mu: of the peer instead, over TCP
	process  relay.Address        // guarded by mu: of the peer instead, through gateways
	assoc    *ddpsctp.Association // guarded by mu: from cmRoute on
	qp       *QP                  // guarded by mu
	request  *ConnRequest         // guarded by mu: of cmRequest
	listener io.Closer            // guarded by mu: of cmListen
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

// RemoteAddr returns the address of the peer's device, once it is known; over TCP
// see RemoteTCP.
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
		p := ConnParams{Timeout: timeout}
		ctx, cancel := p.limit(id.ctx, DefaultConnectTimeout)
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
// within a time, which is as ConnParams.Timeout. CMAddrResolved or CMAddrError
// follows.
func (id *CMID) ResolveAddr(addr string, timeout time.Duration) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if err := id.enter(cmBusy, cmIdle); err != nil {
		return err
	}
	id.run(timeout, func(ctx context.Context) (CMEvent, cmState) {
		t := attemptAt(addr)
		a, err := sctp.ResolveAddr(ctx, addr)
		if err != nil {
			return CMEvent{Type: CMAddrError, Err: t.failed("address", err)}, cmIdle
		}
		id.mu.Lock()
		id.addr = a
		id.mu.Unlock()
		return CMEvent{Type: CMAddrResolved}, cmAddr
	})
	return nil
}

// ResolveRoute finds, or opens, the association with the peer's device, within a
// time; over TCP there is nothing to be found. CMRouteResolved or CMRouteError
// follows.
func (id *CMID) ResolveRoute(timeout time.Duration) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	to := target{sctp: id.addr, process: id.process}
	if id.tcp == nil && !id.ch.dev.reaches(&to) {
		return ErrNoTransport
	}
	if err := id.enter(cmBusy, cmAddr); err != nil {
		return err
	}
	if id.tcp != nil {
		id.run(timeout, func(context.Context) (CMEvent, cmState) { return CMEvent{Type: CMRouteResolved}, cmRoute })
		return nil
	}
	id.run(timeout, func(ctx context.Context) (CMEvent, cmState) {
		t := attemptAt(to.String())
		a, err := id.ch.dev.dial(ctx, &to)
		if err != nil {
			return CMEvent{Type: CMRouteError, Err: t.failed("association", err)}, cmAddr
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
		return explain(ErrInvalid, "the protection domain is of another device")
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
// CMConnectError follows; over TCP the last one also if there is no listener. After the
// errors the queue pair is in StateError.
func (id *CMID) Connect(p ConnParams) error {
	if err := checkPrivate(p.PrivateData); err != nil {
		return err
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.qp == nil {
		return ErrCMState
	}
	if err := id.enter(cmBusy, cmRoute); err != nil {
		return err
	}
	p.PrivateData = slices.Clone(p.PrivateData)
	qp, a, to, tcp := id.qp, id.assoc, target{sctp: id.addr, process: id.process}, id.tcp
	id.run(p.Timeout, func(ctx context.Context) (CMEvent, cmState) {
		if qp.State() != StateIdle {
			return CMEvent{Type: CMConnectError, Err: qp.stateError()}, cmEnded
		}
		var info ConnInfo
		var err error
		if tcp != nil {
			info, err = id.ch.dev.ConnectTCP(ctx, tcp.String(), qp, p)
		} else {
			info, err = qp.initiate(ctx, to, a, p)
		}
		var rejected *RejectError
		switch {
		case err == nil:
			return CMEvent{Type: CMEstablished, PrivateData: info.PrivateData, PeerIRD: info.PeerIRD, PeerORD: info.PeerORD},
				cmConnected
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

// Disconnect ends the connection gracefully: CMDisconnected follows at both
// sides.
func (id *CMID) Disconnect() error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if err := id.enter(cmEnded, cmConnected); err != nil {
		return err
	}
	id.qp.stream().Close()
	return nil
}

// Close frees the identifier: what it waits for is given up, a request that was
// not answered is refused, and its events are dropped; one that listens stops,
// and refuses the requests whose events were not taken. It returns ErrBusy while its
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
		id.request.refuse()
	}
	for _, r := range id.ch.forget(id) {
		r.Close()
	}
	id.ch.refs.leave()
	return nil
}
