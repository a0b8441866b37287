package ddpsctp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/sctp"
)

// Defaults.
const (
	// DefaultStreams is the default of Config.Streams.
	DefaultStreams = 1024
	// DefaultBacklog is the default of Config.Backlog.
	DefaultBacklog = 128

	// redial is how long Dial waits for an association that the peer has
	// begun to open, before it looks whether that has failed.
	redial = 50 * time.Millisecond
)

// Config holds the parameters of an Endpoint.
type Config struct {
	// Streams is the number of streams of each association, in both
	// directions (RFC 5043, Section 8).
	Streams uint16
	// Backlog bounds the requests that wait for a decision (RFC 5043, Section
	// 6.4).
	Backlog int
	// SCTP holds other parameters of the associations. Streams, adaptation
	// indication and upcalls in it are not used, nor is the scheduler
	// sctp.FirstCome: sessions take turns, segment by segment.
	SCTP *sctp.Config
	// OnRequest is called for each session a peer initiates. It must not
	// block; the request may be answered later. Without it all are refused.
	OnRequest func(*Request)
	// OnNotify, if not nil, is told what SCTP tells of associations for DDP.
	// It must not block.
	OnNotify func(*Association, sctp.Notification)
}

// Endpoint is a DDP endpoint on one SCTP port. It keeps one association to each
// other endpoint, whoever opened it. It is safe for concurrent use.
type Endpoint struct {
	cfg Config
	ep  *sctp.Endpoint

	mu      sync.Mutex
	dials   map[peer]*dial // guarded by mu
	arrived chan struct{}  // closed, and replaced, when an association is adopted; guarded by mu
	closed  bool           // guarded by mu

	acc *Acceptor
}

// counters are the counters behind Stats.
type counters struct {
	initiated, accepted, rejected, refused, killed, collided, dropped, notDDP atomic.Uint64
}

// Stats are counters of an endpoint.
type Stats struct {
	// Initiated counts sessions opened by this side, Accepted, Rejected and
	// Refused those opened by peers and how they were answered.
	Initiated, Accepted, Rejected, Refused uint64
	// Killed counts sessions ended because of what the peer sent.
	Killed uint64
	// Collided counts Initiates repeated because both sides chose a stream.
	Collided uint64
	// Dropped counts messages that belonged to no session.
	Dropped uint64
	// NotDDP counts associations aborted for lack of the adaptation
	// indication.
	NotDDP uint64
	// Associations and Pending are how many there are now: associations, and
	// requests that wait for a decision.
	Associations, Pending int
}

// Stats returns a snapshot of the counters.
func (e *Endpoint) Stats() Stats {
	st := e.acc.Stats()
	for _, sa := range e.ep.Associations() {
		if adopted(sa) != nil {
			st.Associations++
		}
	}
	return st
}

// adopted returns what onAssociation made of an association; nil if that has not been
// called, or did not want it, or it was discarded.
func adopted(sa *sctp.Association) *Association {
	if sa == nil {
		return nil
	}
	a, _ := sa.Value().(*Association)
	if a == nil || a.discarded.Load() {
		return nil
	}
	return a
}

// peer is one address of an endpoint.
type peer struct {
	addr netip.AddrPort
	port uint16
}

func peerOf(a sctp.Addr, i int) peer {
	ap := a.Addrs[i]
	return peer{netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), a.Port}
}

// dial is an association being opened.
type dial struct {
	done chan struct{}
	a    *Association
	err  error
}

// Listen makes an endpoint on an SCTP port of t; port 0 asks for a free one.
func Listen(t *sctp.Transport, port uint16, cfg Config) (*Endpoint, error) {
	if cfg.Streams == 0 {
		cfg.Streams = DefaultStreams
	}
	e := &Endpoint{
		cfg: cfg, dials: make(map[peer]*dial), arrived: make(chan struct{}), acc: NewAcceptor(cfg.Backlog, cfg.OnRequest),
	}
	var sc sctp.Config
	if cfg.SCTP != nil {
		sc = *cfg.SCTP
	}
	ind := Adaptation
	sc.Adaptation = &ind
	sc.OutStreams, sc.InStreams = cfg.Streams, cfg.Streams
	sc.OneToMany = true
	if sc.Probation == nil {
		// Peers may connect, and say anything, but get little before a request of theirs
		// was accepted, and not for long while there is none.
		sc.Probation = &sctp.Probation{}
	}
	if sc.Scheduler == sctp.FirstCome {
		sc.Scheduler = sctp.RoundRobin
	}
	// RFC 5043 is written for DATA chunks; nothing here is ever fragmented, so
	// interleaving would only cost its longer header.
	sc.NoInterleaving = true
	sc.OnAssociation, sc.OnPiece, sc.OnNotify = e.onAssociation, onPiece, onNotify
	var err error
	if e.ep, err = t.Listen(port, &sc); err != nil {
		return nil, err
	}
	return e, nil
}

// Addr returns the address of the endpoint.
func (e *Endpoint) Addr() sctp.Addr { return e.ep.Addr() }

// sctpLink is the link over a real association.
type sctpLink struct{ a *sctp.Association }

func (l sctpLink) Control(sid uint16, msg []byte, owner ddp.Owner) error {
	return l.a.TrySend(msg, sctp.SendOptions{Stream: sid, PPID: PPIDControl, Unordered: true, Immediate: true,
		Owner: owner, Force: true})
}

func (l sctpLink) Hold(_ uint16, n int) { l.a.KeepReceived(n) }

func (l sctpLink) MaxPayload() int     { return l.a.MaxPayload() }
func (l sctpLink) Abort(reason string) { l.a.Abort(reason) }

func (l sctpLink) Admit()                          { l.a.Admit() }
func (l sctpLink) ExtendProbation(d time.Duration) { l.a.ExtendProbation(d) }

func (l sctpLink) Tags() (local, peer uint32) { return l.a.VerificationTags() }

// onAssociation adopts an association, whoever opened it.
func (e *Endpoint) onAssociation(sa *sctp.Association) {
	if v, ok := sa.PeerAdaptation(); !ok || v != Adaptation {
		// RFC 5043, Section 11.1: DDP procedures MUST NOT be performed.
		e.acc.count.notDDP.Add(1)
		sa.Abort("DDP adaptation indication required")
		return
	}
	out, in := sa.Streams()
	a := NewAssociation(sctpLink{sa}, int(min(out, in)), e.acc)
	a.ep = e
	sa.SetValue(a)
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.arrived)
	e.arrived = make(chan struct{})
}

func onPiece(sa *sctp.Association, p *sctp.Piece) {
	if a, _ := sa.Value().(*Association); a != nil {
		a.Receive(p)
	}
}

func onNotify(sa *sctp.Association, n sctp.Notification) {
	a, _ := sa.Value().(*Association)
	if a == nil {
		return
	}
	if f := a.ep.cfg.OnNotify; f != nil {
		f(a, n)
	}
	switch n.Kind {
	case sctp.NotifyDown:
		err := n.Err
		if err == nil {
			err = sctp.ErrClosed
		}
		a.Down(err, false)
	case sctp.NotifyRestart:
		a.Down(ErrRestart, true)
	}
}

// Dial returns the association to the endpoint at addr and opens it if there is none. It
// blocks until the association is established or ctx is done. An existing association
// matches if one of its confirmed addresses is in addr: addresses that a peer merely lists
// are not trusted before their heartbeat is answered (RFC 9260, Section 5.4). Errors to
// test for: [ErrSelf], since an endpoint cannot dial itself, [ErrNotDDP], and those of
// package sctp.
func (e *Endpoint) Dial(ctx context.Context, addr sctp.Addr) (*Association, error) {
	if len(addr.Addrs) == 0 {
		return nil, sctp.ErrAddress
	}
	key, self := peerOf(addr, 0), e.ep.Addr()
	for i := range self.Addrs {
		if peerOf(self, i) == key {
			return nil, fmt.Errorf("%w: %v", ErrSelf, addr)
		}
	}
	for {
		e.mu.Lock()
		if e.closed {
			e.mu.Unlock()
			return nil, ErrClosed
		}
		if a := adopted(e.ep.Find(addr)); a != nil {
			e.mu.Unlock()
			return a, nil
		}
		d, arrived := e.dials[key], e.arrived
		if d == nil {
			d = &dial{done: make(chan struct{})}
			e.dials[key] = d
			e.mu.Unlock()
			d.a, d.err = e.connect(ctx, addr)
			e.mu.Lock()
			delete(e.dials, key)
			e.mu.Unlock()
			close(d.done)
			if !errors.Is(d.err, sctp.ErrExists) {
				return d.a, d.err
			}
			// The peer was faster; its association is about to be adopted,
			// or about to fail.
			retry := time.NewTimer(redial)
			select {
			case <-arrived:
			case <-retry.C:
			case <-ctx.Done():
			}
			retry.Stop()
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			continue
		}
		e.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-d.done:
		}
		if d.err == nil {
			return d.a, nil
		}
		// Another caller's attempt failed, perhaps only because of its ctx.
	}
}

// connect opens an association.
func (e *Endpoint) connect(ctx context.Context, addr sctp.Addr) (*Association, error) {
	sa, err := e.ep.Connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	if a := adopted(sa); a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("%w: %v", ErrNotDDP, addr)
}

// Close aborts all associations and frees the port.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.acc.Close()
	return e.ep.Close()
}

// Associations returns the SCTP associations of the endpoint, for their
// statistics. Nothing may be sent on them: they carry only DDP (RFC 5043,
// Section 5.1).
func (e *Endpoint) Associations() []*sctp.Association { return e.ep.Associations() }
