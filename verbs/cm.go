package verbs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddprelay"
	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/rdmap"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// ConnParams are the parameters of one side of a connection (rdma_conn_param), in addition
// to the read depths of its queue pair.
type ConnParams struct {
	// PrivateData is handed to the other side's consumer; at most
	// MaxPrivateData bytes.
	PrivateData []byte
	// Timeout bounds how long connecting takes in all, until the peer's consumer has
	// answered (context.DeadlineExceeded), whatever it waits for, over SCTP and over TCP;
	// the context of the call may end it earlier. 0 is DefaultConnectTimeout, or the
	// deadline of the context if that has one. If it is negative connecting takes as
	// long as the context allows and the peer is there. Accept does not use it.
	Timeout time.Duration
}

// ConnInfo is what the active side learns about an accepted connection.
type ConnInfo struct {
	// PrivateData is what the other side gave to Accept.
	PrivateData []byte
	// PeerIRD and PeerORD are the read depths the peer stated, -1 if it
	// stated none.
	PeerIRD, PeerORD int
}

// maxRepeats bounds how often a request is repeated because the association ended
// before the peer had it.
const maxRepeats = 3

// initiate connects a queue pair to the device at to, over a, or over the association
// that there is or can be opened if a is nil. An association may be left of a peer that
// has restarted since, which shows when something is sent: the request is then repeated
// on another one. The peer's consumer cannot have seen it.
func (qp *QP) initiate(ctx context.Context, to target, a *ddpsctp.Association, p ConnParams) (ConnInfo, error) {
	l, t := qp.now.Load(), attemptAt(to.String())
	ctx, cancel := p.limit(ctx, DefaultConnectTimeout)
	defer cancel()
	defer l.cancelWith(cancel)()
	for repeats := 0; ; repeats++ {
		if a == nil {
			var err error
			if a, err = qp.pd.dev.dial(ctx, &to); err != nil {
				err = qp.failed(l, t, "association", err)
				l.stream.Abort(err)
				return ConnInfo{}, err
			}
		}
		r := qp.request(ctx, l, a, &p, t, repeats < maxRepeats)
		switch {
		case r.err == nil:
			return r.info, nil
		case !r.again:
			return r.info, qp.failed(l, t, "", r.err)
		case !errors.Is(r.err, ddpsctp.ErrRestart): // else it is one with the new peer
			a.Discard()
		}
		a = nil
	}
}

// request asks the peer for a session, and waits for the answer. With repeat the stream
// survives the end of an association whose peer has not got the request.
func (qp *QP) request(
	ctx context.Context, l *life, a *ddpsctp.Association, p *ConnParams, t attempt, repeat bool,
) result {
	c := &connector{Stream: l.stream, qp: qp, repeat: repeat, result: make(chan result, 1)}
	// RFC 6581, Section 9.1.
	e := &ddpsctp.Enhanced{IRD: qp.cfg.IRD, ORD: qp.cfg.ORD}
	bind := func(s *ddpsctp.Session) error {
		c.session = s
		err := l.stream.Bind(s)
		if err == nil {
			l.assoc.Store(a)
		}
		return err
	}
	if _, err := a.Initiate(c, bind, e, p.PrivateData); err != nil {
		if errors.Is(err, rdmap.ErrState) {
			return result{err: qp.stateError()}
		}
		c.lost(err, !errors.Is(err, ddpsctp.ErrNoStream))
	}
	select {
	case r := <-c.result:
		if r.err != nil && !r.again {
			<-l.done // follows at once
		}
		return r
	case <-l.done:
	case <-ctx.Done(): // perhaps because of l.done
	}
	select {
	case r := <-c.result:
		return r
	default:
	}
	if l.ended() { // by its owner meanwhile
		return result{err: t.failed("", qp.Err())}
	}
	err := t.failed("answer to the connection request", ctx.Err())
	l.stream.Abort(err)
	return result{err: err}
}

// connector is the active side's end of a session that is being opened.
type connector struct {
	*rdmap.Stream
	qp      *QP
	session *ddpsctp.Session // set before anything comes
	repeat  bool             // the request may be repeated
	unbound atomic.Bool      // it is: the stream is not of this session any more
	result  chan result      // capacity 1
}

type result struct {
	info  ConnInfo
	err   error
	again bool // the peer has not got the request: it may be repeated
}

// Answered implements ddpsctp.Initiator.
func (c *connector) Answered(ans ddpsctp.Answer) {
	r := result{info: ConnInfo{PrivateData: ans.Private, PeerIRD: -1, PeerORD: -1}}
	switch ans.Result {
	case ddpsctp.Rejected:
		r.err = &RejectError{PrivateData: ans.Private}
	case ddpsctp.Refused:
		r.err = ErrRefused
	default:
		ord := c.qp.cfg.ORD
		if ans.IsEnhanced {
			var ok bool
			if ord, ok = c.qp.granted(&r.info, ans.Enhanced); !ok {
				c.report(result{err: ErrReadDepth})
				c.Fail(rdmap.FaultInsufficientIRD)
				return
			}
		}
		if err := c.Start(ord); err != nil {
			r.err = ErrQPState
		}
	}
	c.report(r)
	if r.err != nil {
		c.Stream.Lost(r.err)
	}
}

// granted takes the read depths of an answer. It reports false if the peer's ORD
// is more than the queue pair can serve: RFC 6581, Section 9.1: "it MUST send a
// TERM message to the responder indicating insufficient resources".
func (qp *QP) granted(info *ConnInfo, e ddp.Enhanced) (ord int, ok bool) {
	info.PeerIRD, info.PeerORD = e.IRD, e.ORD
	ord = qp.cfg.ORD
	if e.IRD != ddp.ULPDepth {
		ord = min(ord, e.IRD)
	}
	return ord, e.ORD == ddp.ULPDepth || e.ORD <= qp.cfg.IRD
}

// Lost implements ddp.Sink.
func (c *connector) Lost(err error) {
	c.lost(err, c.session.Association().Err() != nil || errors.Is(err, ddpsctp.ErrRestart))
}

// lost ends the session. With gone that is because the association has ended.
func (c *connector) lost(err error, gone bool) {
	if c.unbound.Load() {
		return
	}
	if c.repeat && gone && !c.session.Acknowledged() && c.unbound.CompareAndSwap(false, true) {
		if c.Unbind() == nil {
			c.report(result{err: err, again: true})
			return
		}
		c.unbound.Store(false) // its owner has ended it
	}
	c.report(result{err: err})
	c.Stream.Lost(err)
}

// report tells initiate, before the stream ends: that wakes it, too.
func (c *connector) report(r result) {
	select {
	case c.result <- r:
	default: // reported before
	}
}

// Listener takes connection requests to a device.
type Listener struct {
	dev  *Device
	wake doorbell
	done chan struct{}
	take func(*ddpsctp.Request) bool // not nil: gets the requests instead of Accept

	mu      sync.Mutex
	waiting []*ddpsctp.Request // guarded by mu
	closed  bool               // guarded by mu
}

// Listen accepts connection requests from now on (rdma_listen). A device has at most one
// listener at a time: a second Listen returns [ErrBusy]. It does not block.
func (d *Device) Listen() (*Listener, error) { return d.listen(nil) }

func (d *Device) listen(take func(*ddpsctp.Request) bool) (*Listener, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	if d.listener != nil {
		return nil, explain(ErrBusy, "device %s has a listener", d.where())
	}
	d.listener = &Listener{dev: d, wake: newDoorbell(), done: make(chan struct{}), take: take}
	return d.listener, nil
}

// onRequest takes a request: upcall.
func (d *Device) onRequest(r *ddpsctp.Request) {
	d.mu.Lock()
	l := d.listener
	d.mu.Unlock()
	if l == nil || !l.add(r) {
		r.Refuse()
	}
}

func (l *Listener) add(r *ddpsctp.Request) bool {
	if l.take != nil {
		return l.take(r)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	// The endpoint bounds the requests that are pending, so those that the
	// peer took back must not pile up here.
	l.waiting = slices.DeleteFunc(l.waiting, func(r *ddpsctp.Request) bool { return !r.Pending() })
	l.waiting = append(l.waiting, r)
	l.wake.signal()
	return true
}

// Accept returns the next connection request. It blocks until there is one,
// ctx is done, or the listener is closed (ErrClosed).
func (l *Listener) Accept(ctx context.Context) (*ConnRequest, error) {
	for {
		l.mu.Lock()
		if len(l.waiting) > 0 {
			r := l.waiting[0]
			l.waiting = slices.Delete(l.waiting, 0, 1) // forgets it, too
			if len(l.waiting) > 0 {
				l.wake.signal()
			}
			l.mu.Unlock()
			return newConnRequest(r), nil
		}
		l.mu.Unlock()
		select {
		case <-l.wake:
		case <-l.done:
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, noRequest(l.dev.where(), ctx.Err())
		}
	}
}

// noRequest makes the error of an Accept whose context is done.
func noRequest(at string, err error) error {
	return fmt.Errorf("verbs: accept at %s: no connection request: %w", at, err)
}

// Close refuses the requests that wait and those that come later; Accept returns
// [ErrClosed]. Established connections continue.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closed = true
	waiting := l.waiting
	l.waiting = nil
	close(l.done)
	l.mu.Unlock()
	l.dev.mu.Lock()
	if l.dev.listener == l {
		l.dev.listener = nil
	}
	l.dev.mu.Unlock()
	for _, r := range waiting {
		r.Refuse()
	}
	return nil
}

// ConnRequest is a connection request. It counts against Config.Backlog until
// it is answered with Accept or Reject.
type ConnRequest struct {
	// PrivateData is what the other side gave to Connect.
	PrivateData []byte
	// PeerIRD and PeerORD are the read depths the peer stated, -1 if it
	// stated none.
	PeerIRD, PeerORD int
	// Remote is the peer's device. RemoteTCP is its end of the TCP connection
	// instead, if the request came to a TCPListener, and RemoteProcess its process, if it came through gateways.
	Remote        sctp.Addr
	RemoteTCP     net.Addr
	RemoteProcess relay.Address

	r   *ddpsctp.Request
	tcp *tcpRequest
}

func newConnRequest(r *ddpsctp.Request) *ConnRequest {
	c := &ConnRequest{PrivateData: r.Private, PeerIRD: -1, PeerORD: -1, Remote: r.Association().RemoteAddr(), r: r}
	c.RemoteProcess = ddprelay.Peer(r.Association())
	if r.IsEnhanced {
		c.PeerIRD, c.PeerORD = r.Enhanced.IRD, r.Enhanced.ORD
	}
	return c
}

// Accept connects the request to qp (rdma_accept), which must be in StateIdle; it is in
// StateRTS when Accept returns. It does not block. After an error the request cannot be
// answered again: it was refused, or its association is gone.
func (c *ConnRequest) Accept(qp *QP, p ConnParams) error {
	if err := checkPrivate(p.PrivateData); err != nil {
		return err
	}
	e, ord := c.depths(qp)
	if c.tcp != nil {
		return c.tcp.accept(qp, e, ord, p.PrivateData)
	}
	l := qp.now.Load()
	stream := l.stream
	bind := func(s *ddpsctp.Session) error {
		if err := stream.Bind(s); err != nil {
			return qp.stateError()
		}
		l.assoc.Store(s.Association())
		return stream.Start(ord)
	}
	err := c.r.Accept(stream, bind, e, p.PrivateData)
	if errors.Is(err, ddpsctp.ErrAnswered) {
		return ErrDisconnected
	}
	if err != nil && !errors.Is(err, ErrQPState) {
		stream.Lost(err)
	}
	return err
}

// depths returns the enhanced data of the answer, and the ORD of qp.
func (c *ConnRequest) depths(qp *QP) (e ddp.Enhanced, ord int) {
	// RFC 6581, Section 9.1: the responder "MUST set its ORD at most to the
	// initiator IRD", and answers 0x3FFF with 0x3FFF.
	e, ord = ddp.Enhanced{IRD: qp.cfg.IRD, ORD: qp.cfg.ORD}, qp.cfg.ORD
	if c.PeerIRD == ddp.ULPDepth {
		e.ORD = ddp.ULPDepth
	} else if c.PeerIRD >= 0 {
		ord = min(ord, c.PeerIRD)
		e.ORD = ord
	}
	if c.PeerORD == ddp.ULPDepth {
		e.IRD = ddp.ULPDepth
	}
	return e, ord
}

// Reject refuses the request (rdma_reject) and sends up to MaxPrivateData bytes of
// privateData with the refusal. It does not block.
func (c *ConnRequest) Reject(privateData []byte) error {
	if err := checkPrivate(privateData); err != nil {
		return err
	}
	if c.tcp != nil {
		return c.tcp.reject(privateData)
	}
	return c.r.Reject(privateData)
}

// refuse answers a request that no listener takes.
func (c *ConnRequest) refuse() {
	if c.tcp != nil {
		c.tcp.close()
		return
	}
	c.r.Refuse()
}
