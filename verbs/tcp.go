package verbs

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpmpa"
	"github.com/weftstack/weft/internal/accept"
	"github.com/weftstack/weft/rdmap"
)

// tcpSide is what a device has over TCP.
type tcpSide struct {
	listeners map[*TCPListener]struct{}
	channels  map[*ddpmpa.Channel]struct{}
}

// ConnectTCP connects qp like [Device.Connect], but over a TCP connection of its own with
// MPA (RFC 5044, RFC 6581). addr is "host:port". It returns the errors of Connect,
// net.Dialer and ddpmpa.Initiate. It blocks for at most ConnParams.Timeout and until ctx is
// done; if neither sets a limit, for at most Config.TCP.Timeout, if that is not 0.
func (d *Device) ConnectTCP(ctx context.Context, addr string, qp *QP, p ConnParams) (ConnInfo, error) {
	if err := d.checkConnect(qp, &p); err != nil {
		return ConnInfo{}, err
	}
	def := d.cfg.TCP.Timeout
	if def <= 0 {
		def = DefaultConnectTimeout
	}
	l, t := qp.now.Load(), attemptAt(addr)
	ctx, cancel := p.limit(ctx, def)
	defer cancel()
	defer l.cancelWith(cancel)()
	info, err := d.connectTCP(ctx, addr, qp, l.stream, p, d.cfg.TCPRevision1)
	if d.cfg.TCPFallback && !d.cfg.TCPRevision1 && errors.Is(err, ddpmpa.ErrNoReply) {
		info, err = d.connectTCP(ctx, addr, qp, l.stream, p, true)
	}
	if err == nil {
		return info, nil
	}
	err = qp.failed(l, t, "answer", err)
	if !errors.Is(err, ErrQPState) {
		l.stream.Abort(err)
		<-l.done // nothing but receives was posted
	}
	return info, err
}

func (d *Device) connectTCP(
	ctx context.Context, addr string, qp *QP, s *rdmap.Stream, p ConnParams, revision1 bool,
) (ConnInfo, error) {
	info := ConnInfo{PeerIRD: -1, PeerORD: -1}
	var dialer net.Dialer
	if ip := d.cfg.TCPSource; ip.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, 0))
	}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return info, err
	}
	params := d.cfg.TCP
	params.Private, params.Enhanced, params.Timeout = p.PrivateData, nil, -1 // ctx has the limit
	var asked ddp.Enhanced
	if !revision1 {
		asked = ddp.Enhanced{PeerToPeer: true, RTRRead: qp.cfg.ORD > 0, RTRSend: true, IRD: qp.cfg.IRD, ORD: qp.cfg.ORD}
		params.Enhanced = &asked
	}
	ch, reply, err := ddpmpa.Initiate(ctx, conn.(*net.TCPConn), params)
	if err != nil {
		return info, err
	}
	info.PrivateData = reply.Private
	ord, enough := qp.cfg.ORD, true
	if reply.IsEnhanced {
		ord, enough = qp.granted(&info, reply.Enhanced)
	}
	if ch == nil {
		conn.Close()
		return info, &RejectError{PrivateData: reply.Private}
	}
	agreed := indicate(s, reply.Indication(asked), min(ord, qp.cfg.ORD))
	if err := d.bindTCP(s, ch, ord); err != nil {
		ch.Kill()
		return info, err
	}
	ch.Run(s)
	switch {
	case !enough:
		s.Fail(ddpmpa.FaultIRD)
		return info, ErrReadDepth
	case !agreed:
		s.Fail(ddpmpa.FaultRTR)
		return info, ErrRTR
	}
	return info, nil
}

// indicate has the stream send the ready-to-receive indications that the channel
// does not send by itself (RFC 6581, Section 9.2). It reports whether there is one
// to send, or none is needed.
func indicate(s *rdmap.Stream, i ddpmpa.Indication, ord int) bool {
	switch i {
	case ddpmpa.IndicationNone:
		return false
	case ddpmpa.IndicationRead:
		if ord == 0 {
			return false
		}
		s.Indicate(OpRead)
	case ddpmpa.IndicationSend:
		s.Indicate(OpSend)
	}
	return true
}

// bindTCP gives a channel that does not run yet to the stream.
func (d *Device) bindTCP(s *rdmap.Stream, ch *ddpmpa.Channel, ord int) error {
	if s.Bind(ch) != nil {
		return ErrQPState
	}
	if !d.track(ch) {
		return ErrClosed
	}
	if s.Start(ord) != nil {
		return ErrQPState // closed by its owner meanwhile
	}
	return nil
}

// track remembers a channel until it is done. It reports false on a closed
// device.
func (d *Device) track(ch *ddpmpa.Channel) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	if d.tcp.channels == nil {
		d.tcp.channels = make(map[*ddpmpa.Channel]struct{})
	}
	d.tcp.channels[ch] = struct{}{}
	go func() {
		<-ch.Done()
		d.mu.Lock()
		delete(d.tcp.channels, ch)
		d.mu.Unlock()
	}()
	return true
}

// closeTCP closes what is left over TCP: listeners, and connections whose peer
// takes its time to end them.
func (d *Device) closeTCP() {
	d.mu.Lock()
	side := d.tcp
	var ls []*TCPListener
	var chs []*ddpmpa.Channel
	for l := range side.listeners {
		ls = append(ls, l)
	}
	for ch := range side.channels {
		chs = append(chs, ch)
	}
	d.mu.Unlock()
	for _, l := range ls {
		l.Close()
	}
	for _, ch := range chs {
		ch.Kill()
		<-ch.Done()
	}
}

// TCPListener takes connection requests over TCP. A device may have many.
type TCPListener struct {
	dev    *Device
	l      net.Listener
	room   chan struct{}    // a token per request that is not answered
	ready  chan *tcpRequest // of the same capacity
	done   chan struct{}
	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once
	take   func(*tcpRequest) bool // not nil: gets the requests instead of Accept
}

// ListenTCP listens on a TCP address, "host:port". At most Config.Backlog requests wait for
// an answer; further ones are refused. At most as many connections may be open without a
// request; a further one closes the oldest, so silent connections cannot block the
// listener.
func (d *Device) ListenTCP(ctx context.Context, addr string) (*TCPListener, error) {
	return d.listenTCP(ctx, addr, d.backlog(), nil)
}

func (d *Device) listenTCP(ctx context.Context, addr string, n int, take func(*tcpRequest) bool) (*TCPListener, error) {
	var lc net.ListenConfig
	nl, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	l := &TCPListener{dev: d, l: nl, take: take, room: make(chan struct{}, n), ready: make(chan *tcpRequest, n),
		done: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		nl.Close()
		return nil, ErrClosed
	}
	if d.tcp.listeners == nil {
		d.tcp.listeners = make(map[*TCPListener]struct{})
	}
	d.tcp.listeners[l] = struct{}{}
	base, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.wg.Add(1)
	go l.serve(base)
	return l, nil
}

// Addr returns the address it listens on.
func (l *TCPListener) Addr() net.Addr { return l.l.Addr() }

// serve takes TCP connections.
func (l *TCPListener) serve(ctx context.Context) {
	defer l.wg.Done()
	s := accept.Server{MaxUnproven: cap(l.room), ProofTimeout: cmp.Or(l.dev.cfg.TCP.Timeout, ddpmpa.StartupTimeout)}
	_ = s.Serve(ctx, l.l, func(c net.Conn, proven func() bool) { // until l is closed
		r, err := ddpmpa.Respond(ctx, c.(*net.TCPConn), l.dev.cfg.TCP)
		if err != nil {
			return
		}
		if !proven() || !l.takeRoom() {
			r.Close()
			return
		}
		t := &tcpRequest{r: r, l: l}
		switch {
		case l.take == nil:
			l.ready <- t // has room: see room
		case !l.take(t):
			t.close()
		}
	})
}

// takeRoom reports whether there is room for a request that waits for an answer.
func (l *TCPListener) takeRoom() bool {
	select {
	case l.room <- struct{}{}:
		return true
	default:
		return false
	}
}

// Accept returns the next connection request. It blocks until there is one,
// ctx is done, or the listener is closed (ErrClosed).
func (l *TCPListener) Accept(ctx context.Context) (*ConnRequest, error) {
	select {
	case <-l.done:
		return nil, ErrClosed
	default:
	}
	select {
	case t := <-l.ready:
		return newTCPRequest(t), nil
	case <-l.done:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, noRequest(l.Addr().String(), ctx.Err())
	}
}

// Close stops listening, and closes the connections that were not returned by
// Accept. Established connections go on.
func (l *TCPListener) Close() error {
	err := ErrClosed
	l.once.Do(func() {
		close(l.done)
		err = l.l.Close()
		l.cancel()
		l.wg.Wait()
		for len(l.ready) > 0 {
			(<-l.ready).close()
		}
		l.dev.mu.Lock()
		delete(l.dev.tcp.listeners, l)
		l.dev.mu.Unlock()
	})
	return err
}

// tcpRequest is a request that waits for an answer.
type tcpRequest struct {
	r    *ddpmpa.Request
	l    *TCPListener
	once sync.Once
}

func newTCPRequest(t *tcpRequest) *ConnRequest {
	c := &ConnRequest{PrivateData: t.r.Private, PeerIRD: -1, PeerORD: -1, RemoteTCP: t.r.Conn().RemoteAddr(), tcp: t}
	if t.r.IsEnhanced {
		c.PeerIRD, c.PeerORD = t.r.Enhanced.IRD, t.r.Enhanced.ORD
	}
	return c
}

// answered gives back its room.
func (t *tcpRequest) answered() { t.once.Do(func() { <-t.l.room }) }

func (t *tcpRequest) close() {
	t.r.Close()
	t.answered()
}

func (t *tcpRequest) accept(qp *QP, e ddp.Enhanced, ord int, private []byte) error {
	defer t.answered()
	s := qp.stream()
	err := t.r.Accept(s, func(ch *ddpmpa.Channel) error { return qp.pd.dev.bindTCP(s, ch, ord) }, e, private)
	if errors.Is(err, ddpmpa.ErrClosed) {
		return ErrDisconnected
	}
	return err
}

func (t *tcpRequest) reject(private []byte) error {
	defer t.answered()
	err := t.r.Reject(ddp.Enhanced{}, private)
	if errors.Is(err, ddpmpa.ErrClosed) {
		return ErrDisconnected
	}
	return err
}
