package sctp

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// Endpoint is one SCTP port of a Transport: a one-to-many endpoint in the
// sense of RFC 6458, Section 3. It accepts associations and opens them. It is
// safe for concurrent use.
type Endpoint struct {
	t    *Transport
	cfg  Config
	core core.Config // what cfg means to the core
	// accepted is core for associations that peers open, which may be on probation.
	accepted  core.Config
	probation *Probation // nil: none
	unproven  unproven
	life      clock.Time // the longest of a state cookie
	port      uint16     // set before the endpoint is known

	hsMu     sync.Mutex   // serialises the listener
	made     *Association // by the listener, for the packet in hand; guarded by hsMu
	listener *core.Listener

	backlog chan *Association
	closed  atomic.Bool
	deaf    atomic.Bool   // accepts no more
	idle    atomic.Bool   // the transport is closed with the last association
	owned   atomic.Bool   // the transport was made for this endpoint
	done    chan struct{} // closed when there is nothing to accept any more

	many    atomic.Bool // read with Recv rather than accepted
	mu      sync.Mutex
	ready   []*Association // that have something for Recv; guarded by mu
	waiters waitList       // in Recv; guarded by mu
}

func newEndpoint(t *Transport, cfg *Config) *Endpoint {
	e := &Endpoint{t: t, done: make(chan struct{})}
	if cfg != nil {
		e.cfg = *cfg
	}
	if e.cfg.OnAssociation != nil || e.cfg.OnPiece != nil {
		e.cfg.OneToMany = true
	}
	if e.cfg.Backlog == 0 {
		e.cfg.Backlog = DefaultBacklog
	}
	e.many.Store(e.cfg.OneToMany)
	e.core = e.cfg.core()
	e.core.TellStates = t.cfg.Log != nil
	e.core.SinglePath = t.conn != nil
	e.life = clock.Time(e.core.MaxCookieLife())
	e.accepted = e.core
	if e.cfg.Probation != nil {
		p := e.cfg.Probation.withDefaults()
		e.probation, e.accepted.RecvBuffer = &p, p.RecvBuffer
	}
	e.backlog = make(chan *Association, max(e.cfg.Backlog, 0))
	return e
}

// listen makes the endpoint ready for packets, with the addresses there are. Its
// port is known by then, and hsMu held if others know the endpoint.
func (e *Endpoint) listen() {
	p := core.ListenerParams{
		Port: e.port, Local: e.t.sockets().locals, Cookies: e.t.cookies,
		TagInUse:   func(tag uint32) bool { return e.t.demux.byTag(tag) != nil },
		TagRetired: func(tag uint32) bool { return e.t.demux.retired(tag, e.t.now()) },
		Find: func(remote netip.AddrPort, local, peer uint16) (uint32, bool) {
			a := e.t.demux.byPeer(peerKey{remote, local, peer})
			if a == nil {
				return 0, false
			}
			return a.tag.Load(), true
		},
	}
	p.New = func() *core.Assoc {
		e.made = newAssociation(e, false)
		return e.made.core
	}
	rand.Read(p.Seed[:])
	e.listener = core.NewListener(&e.accepted, p)
}

// accepts reports whether peers may open associations.
func (e *Endpoint) accepts() bool { return e.cfg.Backlog > 0 && !e.deaf.Load() && !e.closed.Load() }

// roomFor reports whether the first chunk of packet d may make an association:
// INIT and COOKIE ECHO are not answered when the backlog or the transport is
// full.
func (e *Endpoint) roomFor(d []byte) bool {
	if len(d) <= wire.HeaderLen {
		return true
	}
	switch wire.ChunkType(d[wire.HeaderLen]) {
	case wire.ChunkInit, wire.ChunkCookieEcho:
		return (e.many.Load() || len(e.backlog) < cap(e.backlog)) && !e.t.demux.full(e.t.cfg.MaxAssociations) && !e.t.memory.short()
	}
	return true
}

// adopt takes in the association a that a peer opened. The caller finishes it. If
// Connect was a moment faster the packet is for the association that it made, as any
// collision (RFC 9260, Section 5.2.4): adopt returns that one.
func (e *Endpoint) adopt(now clock.Time, a *Association) (existing *Association, made touched) {
	c := a.core
	keys := a.peerKeys()
	a.rare.origin = keys.confirmed[0]
	a.mu.Lock()
	existing, err := e.t.demux.add(a, c.Tag(), keys, e.t.cfg.MaxAssociations)
	if err == ErrExists {
		a.mu.Unlock()
		return existing, touched{}
	}
	if err != nil {
		c.Abort(now, []byte("out of resources"))
		a.unwanted = true
	} else {
		a.setPathMTUs(now)
		a.joinMemory()
		if oldest := a.beginProbation(now); oldest != nil {
			go oldest.Abort("others wait to be admitted") // not under a.mu
		}
	}
	c.EndBatch(now)
	return nil, touched{a: a, packets: 1, deferred: a.drainAndUnlock()}
}

// Connect opens an association with peer (RFC 9260, Section 11.1.2). The local port is that of
// the endpoint. It blocks until the association is established, the attempt fails, or ctx is
// done, which gives the attempt up. Without a deadline in ctx that takes minutes with a peer
// that does not answer, see [Config].MaxInitRetransmits.
//
// The error names the peer. Test with errors.Is for [ErrTimeout] (also
// os.ErrDeadlineExceeded and context.DeadlineExceeded), [ErrRefused] (also
// syscall.ECONNREFUSED), [ErrExists], [ErrAddress], [ErrLimit], [ErrClosed] and
// context.Canceled.
func (e *Endpoint) Connect(ctx context.Context, peer Addr) (*Association, error) {
	a, err := e.connect(ctx, peer)
	if err != nil {
		return nil, &connectError{peer, err}
	}
	return a, nil
}

func (e *Endpoint) connect(ctx context.Context, peer Addr) (*Association, error) {
	a, err := e.begin(peer)
	if err == nil {
		err = a.waitUp(ctx)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// begin sends an INIT.
func (e *Endpoint) begin(peer Addr) (*Association, error) {
	if e.closed.Load() {
		return nil, e.t.closedError()
	}
	if peer.Port == 0 || len(peer.Addrs) == 0 {
		return nil, ErrAddress
	}
	set := e.t.sockets()
	p := core.ClientParams{LocalPort: e.port, PeerPort: peer.Port, Local: set.locals, Cookies: e.t.cookies}
	for _, ap := range peer.Addrs {
		ap = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
		if !ap.IsValid() || ap.Addr().IsMulticast() || set.direct != (ap.Port() == 0) {
			return nil, ErrAddress
		}
		if set.reaches(ap) {
			p.Peer = append(p.Peer, ap)
		}
	}
	if len(p.Peer) == 0 {
		return nil, ErrAddress // of a family that no socket has
	}
	cfg := e.core
	cfg.MTU, cfg.MaxMTU, cfg.Discover = e.t.pathMTU(&e.cfg, p.Peer[0])
	rand.Read(p.Seed[:])
	for p.Tag == 0 || e.t.demux.byTag(p.Tag) != nil || e.t.demux.retired(p.Tag, e.t.now()) {
		var b [4]byte
		rand.Read(b[:])
		p.Tag = binary.BigEndian.Uint32(b[:])
	}
	a := newAssociation(e, true)
	a.rare.origin = peerKey{remote: p.Peer[0], local: e.port, peer: peer.Port}
	if err := a.core.InitClient(&cfg, e.t.now(), p); err != nil {
		return nil, coreError(err)
	}
	if _, err := e.t.demux.add(a, p.Tag, a.peerKeys(), e.t.cfg.MaxAssociations); err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.joinMemory()
	a.mu.Unlock()
	if e.closed.Load() {
		a.Abort("endpoint closed") // Close may have missed it
	}
	a.goCallbacks(a.flush())
	return a, nil
}

// Accept returns the next association that a peer opened. It blocks until there is one; until
// ctx is done, and returns its error; or until the endpoint is closed, and returns
// [ErrClosed]. With [Config].OneToMany there is never one.
func (e *Endpoint) Accept(ctx context.Context) (*Association, error) {
	return e.accept(ctx.Done(), ctx)
}

func (e *Endpoint) accept(stop <-chan struct{}, ctx context.Context) (*Association, error) {
	if e.deaf.Load() {
		return nil, e.t.closedError()
	}
	select {
	case a := <-e.backlog:
		return a, nil
	default:
	}
	e.t.resumeReaders()
	select {
	case a := <-e.backlog:
		return a, nil
	case <-e.done:
		return nil, e.t.closedError()
	case <-stop:
		return nil, ctx.Err()
	}
}

// SendTo sends to peer, and opens the association first if there is none. It blocks as
// [Endpoint.Connect] and [Association.Send] do, and returns their errors.
func (e *Endpoint) SendTo(ctx context.Context, peer Addr, msg []byte, opts SendOptions) error {
	for {
		a := e.Find(peer)
		if a == nil {
			var err error
			if a, err = e.connect(ctx, peer); err == ErrExists {
				continue // another goroutine was faster
			} else if err != nil {
				return &connectError{peer, err}
			}
		}
		if err := a.waitUp(ctx); err != nil {
			return &connectError{peer, err}
		}
		return a.Send(ctx, msg, opts)
	}
}

// SendAll sends msg to every association of the endpoint that is established (RFC 6458,
// Section 5.3.4, SCTP_SENDALL), one after the other. It blocks as [Association.Send] does.
// After a failure it continues with the next one; the error joins those of all. opts.Owner,
// if any, is released once for each association that took the message.
func (e *Endpoint) SendAll(ctx context.Context, msg []byte, opts SendOptions) error {
	var errs []error
	for _, a := range e.Associations() {
		if a.State() != Established {
			continue
		}
		if err := a.Send(ctx, msg, opts); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Find returns the association with a peer that has one of the addresses, or nil. An address
// that a peer has listed counts once it is confirmed (RFC 9260, Section 5.4).
func (e *Endpoint) Find(peer Addr) *Association {
	for _, ap := range peer.Addrs {
		ap = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
		if a := e.t.demux.byPeer(peerKey{ap, e.port, peer.Port}); a != nil {
			return a
		}
	}
	return nil
}

// Port returns the SCTP port.
func (e *Endpoint) Port() uint16 { return e.port }

// Addr returns the local address of the endpoint.
func (e *Endpoint) Addr() Addr { return Addr{Addrs: e.t.LocalAddrs(), Port: e.port} }

// Transport returns the transport of the endpoint.
func (e *Endpoint) Transport() *Transport { return e.t }

// Associations returns the live associations in no particular order.
func (e *Endpoint) Associations() []*Association { return e.t.demux.associations(e) }

// Close aborts the associations of the endpoint (RFC 9260, Section 9.1) and frees its port. It
// makes their last upcalls itself, so it must not be called with locks held that those take.
func (e *Endpoint) Close() error {
	if e.closed.Swap(true) {
		return ErrClosed
	}
	if !e.deaf.Swap(true) {
		close(e.done)
	}
	for _, a := range e.Associations() {
		a.runCallbacks(a.abortFor(e.t.lostCause(), "endpoint closed"))
	}
	e.t.demux.removeEndpoint(e)
	var k wakeList
	e.mu.Lock()
	e.waiters.takeAll(&k)
	e.mu.Unlock()
	k.wake()
	return nil
}

// stopAccepting refuses new associations and aborts those that were not
// accepted. It reports false if it was called before.
func (e *Endpoint) stopAccepting() bool {
	if e.deaf.Swap(true) {
		return false
	}
	close(e.done)
	for more := true; more; {
		select {
		case a := <-e.backlog:
			a.Abort("listener closed")
		default:
			more = false
		}
	}
	if e.owned.Load() {
		e.closeWhenIdle()
	}
	return true
}

// closeWhenIdle closes the transport when the last association has ended.
func (e *Endpoint) closeWhenIdle() {
	e.idle.Store(true)
	e.checkIdle()
}

// checkIdle is called after each end of an association.
func (e *Endpoint) checkIdle() {
	switch {
	case !e.idle.Load() || e.t.demux.len() > 0:
	case e.t.conn != nil:
		time.AfterFunc(connLinger, func() { e.t.Close() })
	default:
		go e.t.Close() // not here: it waits for the goroutine that may call this
	}
}
