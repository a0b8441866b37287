package sctp

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/asconf"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/internal/timerqueue"
)

// Association is an SCTP association. It is safe for concurrent use.
//
// One mutex guards the protocol state. The reader of a socket, a sending goroutine or
// the timer runs the protocol to completion when it has work for it. Transmission
// (flush) and upcalls (runCallbacks) happen outside the mutex, each on one goroutine
// at a time.
type Association struct {
	// What every packet needs comes first, and near to it what the core begins with:
	// see prefetch.
	t         *Transport
	ep        *Endpoint
	core      *core.Assoc // &body; what it points to is guarded by mu
	onPiece   func(*Association, *Piece)
	autoClose clock.Time

	mu        sync.Mutex
	tag       atomic.Uint32 // local verification tag; written under the demux lock
	seq       atomic.Uint32 // moves when waiters may find something new
	flushing  atomic.Int32
	callbacks atomic.Int32
	gone      atomic.Bool // the association has ended
	squeezed  bool        // in memoryBudget.squeezed; guarded by mu
	canBorrow atomic.Bool // the send buffer of the next long message may be borrowed; see endBorrow
	opened    bool        // by Connect, not by the peer

	unwanted    bool // refused by the driver; guarded by mu
	up, dead    bool // guarded by mu
	known       bool // up, and OnAssociation has returned; guarded by mu
	eof         bool // the peer sends no more; guarded by mu
	closing     bool // Close was called: discard what comes; guarded by mu
	queued      bool // in Endpoint.ready; guarded by its mu
	kernelReads bool // a batch being sent refers to messages, which are not released; guarded by mu

	deadline *timerqueue.Slot[Association] // nil until it is needed; guarded by mu
	armed    clock.Time                    // what deadline was set to last, 0 if it has passed; guarded by mu
	addrGen  uint32                        // of the local addresses, see addrMonitor; guarded by mu
	idle     clock.Time                    // when user data last moved; guarded by mu
	counted  int64                         // what it has of the transport's memory; guarded by mu
	admitBy  clock.Time                    // when the probation ends, 0 if there is none; guarded by mu
	closeAt  clock.Time                    // when the end that Close began is looked at, 0 if it is not; guarded by mu
	readers  waitList                      // guarded by mu
	releases []tx.Release                  // of the callers' owners; guarded by mu
	notes    []note                        // for OnNotify and the log, in order; guarded by mu
	calls    upcalls                       // used by the goroutine that runs callbacks
	posted   postedRead

	body core.Assoc

	writers      waitList            // guarded by mu
	unread       int                 // bytes sent since looked; guarded by mu
	senderPolled clock.Time          // when a sender waited for room, or read the sockets; guarded by mu
	openers      waitList            // wait for known or dead; guarded by mu
	requests     map[uint32]*request // that the peer has to answer; guarded by mu
	err          error               // why it ended; guarded by mu
	keys         peerKeys            // guarded by the demux lock
	rare         *rareFields
	done         chan struct{}
	value        atomic.Pointer[any]
	few          [2]tx.Release // what releases begins with
}

// rareFields are fields of an Association that no packet needs. They are elsewhere, so that
// it and its core stay within two pages.
type rareFields struct {
	origin   peerKey // the peer's address that it was opened with or from; set before others know it
	cause    error   // why this side aborts, if err is to say more than the ABORT; guarded by mu
	closeHad int     // bytes that the peer had not acknowledged when closeAt was set; guarded by mu
}

// newAssociation returns an association whose core is yet to be set up.
func newAssociation(e *Endpoint, opened bool) *Association {
	a := &Association{t: e.t, ep: e, opened: opened, onPiece: e.cfg.OnPiece, autoClose: clock.Time(e.cfg.AutoClose),
		done: make(chan struct{}), rare: new(rareFields)}
	a.core, a.releases = &a.body, a.few[:0]
	return a
}

// cookiesUntil returns when the last state cookie that might set the association up
// again will be too old, if none with its tag is made from now on.
func (a *Association) cookiesUntil() clock.Time {
	return a.t.now() + a.ep.life
}

// Done returns a channel that is closed when the association has ended, after its last upcall.
func (a *Association) Done() <-chan struct{} { return a.done }

// Err returns nil while the association lives and after a graceful end, otherwise why it ended:
// an [*AbortError], [ErrTimeout], [ErrRefused] or the error of a lost connection under the
// transport.
func (a *Association) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Streams returns the negotiated numbers of outgoing and incoming streams.
func (a *Association) Streams() (out, in uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o, i := a.core.Streams()
	return uint16(min(o, 65535)), uint16(min(i, 65535))
}

// VerificationTags returns the verification tags of both sides (RFC 9260, Section
// 3.1): what the peer's packets carry, and what ours do. The peer knows the same two,
// also if both sides opened the association at once, so that an upper layer may
// break ties with them. The peer's is 0 as long as it is not known, and may change
// when the peer restarts. Tags keep others from sending packets for the peer: they
// are not for everybody to read.
func (a *Association) VerificationTags() (local, peer uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.Tag(), a.core.PeerTag()
}

// MaxPayload returns the size in bytes of the largest message that is sent as one chunk in
// one packet on every path. It changes with the path MTU.
func (a *Association) MaxPayload() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.MaxPayload()
}

// PeerAdaptation returns the peer's Adaptation Layer Indication (RFC 5061, Section 4.2.6), if
// it sent one.
func (a *Association) PeerAdaptation() (uint32, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.PeerAdaptation()
}

// LocalAddr returns the local addresses and SCTP port.
func (a *Association) LocalAddr() Addr { return a.ep.Addr() }

// RemoteAddr returns the peer's addresses, the primary one first. Among them are those
// that the peer listed and that are not confirmed: they may be of another host. See
// ConfirmedAddr.
func (a *Association) RemoteAddr() Addr { return a.remoteAddr(false) }

// ConfirmedAddr is RemoteAddr without addresses that are not confirmed: the peer has shown
// that it receives what is sent to the rest (RFC 9260, Section 5.4), so these identify it.
func (a *Association) ConfirmedAddr() Addr { return a.remoteAddr(true) }

func (a *Association) remoteAddr(confirmed bool) Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, port := a.core.Ports()
	addr := Addr{Port: port}
	for i := range a.core.NumPaths() {
		p := a.core.PathStats(i)
		if a.t.conn != nil {
			break // no addresses
		}
		if confirmed && !p.Confirmed {
			continue
		}
		if p.Primary {
			addr.Addrs = append([]netip.AddrPort{p.Remote}, addr.Addrs...)
		} else {
			addr.Addrs = append(addr.Addrs, p.Remote)
		}
	}
	return addr
}

// Endpoint returns the endpoint of the association.
func (a *Association) Endpoint() *Endpoint { return a.ep }

// SetValue attaches a value of the caller's to the association, Value returns
// it.
func (a *Association) SetValue(v any) { a.value.Store(&v) }

// Value returns what SetValue stored last.
func (a *Association) Value() any {
	if p := a.value.Load(); p != nil {
		return *p
	}
	return nil
}

// Poll is [Transport.Poll] of the transport of the association.
func (a *Association) Poll() bool { return a.t.Poll() }

// Shutdown ends the association gracefully: it waits until all sent data is
// acknowledged and the shutdown handshake is done (RFC 9260, Section 9.2), or
// until ctx is done; the shutdown goes on then, for as long as after Close. Sends that
// wait for room return ErrShutdown. It returns nil after a graceful end.
func (a *Association) Shutdown(ctx context.Context) error {
	a.beginShutdown(false)
	select {
	case <-a.done:
		return a.Err()
	case <-ctx.Done():
		a.mu.Lock()
		a.goOnClosing(a.t.now())
		a.arm()
		a.mu.Unlock()
		return ctx.Err()
	}
}

// Close begins a graceful shutdown and returns at once; data already sent is
// still delivered, in the background and within the bounds of Config.Linger, what is
// received from now on is discarded. All calls that block return: receives and requests
// to the peer ErrClosed, sends ErrShutdown. It returns ErrClosed if it was called before.
func (a *Association) Close() error { return a.close(true) }

// close is Close; unless in the background the caller waits for the end and bounds it.
func (a *Association) close(background bool) error {
	if !a.startClosing() {
		return ErrClosed
	}
	a.beginShutdown(background)
	return nil
}

// beginShutdown begins a graceful shutdown, which goes on in the background if no
// caller waits for its end.
func (a *Association) beginShutdown(background bool) {
	var k wakeList
	a.mu.Lock()
	now := a.t.now()
	a.shutDown(now, &k)
	if background {
		a.goOnClosing(now)
	}
	a.goCallbacks(a.flushLocked(now))
	k.wake()
}

// shutDown begins a graceful shutdown. a.mu is held.
func (a *Association) shutDown(now clock.Time, k *wakeList) {
	a.core.Shutdown(now)
	a.writers.takeAll(k) // they can send nothing any more
}

// startClosing notes that the user has closed the association. It reports whether
// it had not before.
func (a *Association) startClosing() (first bool) {
	a.mu.Lock()
	first = !a.closing
	a.closing = true
	var k wakeList
	a.readers.takeAll(&k)
	a.answerAll(ErrClosed, &k)
	a.mu.Unlock()
	k.wake()
	return first
}

// Abort ends the association at once (RFC 9260, Section 9.1); the peer is
// given reason, of which at most 512 bytes are sent.
func (a *Association) Abort(reason string) { a.goCallbacks(a.abort(reason)) }

func (a *Association) abort(reason string) deferred { return a.abortFor(nil, reason) }

// abortFor is abort, after which Err returns cause, if that is not nil.
func (a *Association) abortFor(cause error, reason string) deferred {
	a.mu.Lock()
	now := a.t.now()
	a.rare.cause = cause
	if cause != nil && State(a.core.State()) == ShutdownAckSent {
		a.rare.cause = errComplete
	}
	a.core.Abort(now, []byte(reason))
	return a.flushLocked(now)
}

func (a *Association) isClosing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closing
}

// waitUp waits until the association is established. If ctx is done first, the
// attempt is given up, unless another goroutine waits for it too.
func (a *Association) waitUp(ctx context.Context) error {
	began := a.t.now()
	a.mu.Lock()
	for !(a.up && a.known) && !a.dead {
		w := a.openers.add(0)
		a.mu.Unlock()
		var over error
		select {
		case <-w.ch:
		case <-ctx.Done():
			over = ctx.Err()
		}
		a.mu.Lock()
		a.openers.recycle(w)
		if over == nil || a.up && a.known || a.dead {
			continue
		}
		over = a.noAnswer(began, over)
		if a.openers.head != nil {
			a.mu.Unlock()
			return over
		}
		now := a.t.now()
		a.core.Abort(now, []byte("gave up"))
		a.goCallbacks(a.flushLocked(now))
		return over
	}
	defer a.mu.Unlock()
	if a.dead && !a.up {
		switch a.err {
		case nil:
			return ErrClosed
		case ErrTimeout:
			return a.noAnswer(began, ErrTimeout)
		}
		return a.err
	}
	return nil
}

// peerKeys returns how the association is found by address. a.mu is held, or
// the association is not shared yet.
func (a *Association) peerKeys() (keys peerKeys) {
	local, peer := a.core.Ports()
	for i := range a.core.NumPaths() {
		p := a.core.PathStats(i)
		if k := (peerKey{p.Remote, local, peer}); p.Confirmed {
			keys.confirmed = append(keys.confirmed, k)
		} else {
			keys.claimed = append(keys.claimed, k)
		}
	}
	return keys
}

// setPathMTUs tells the core the MTUs of the routes. a.mu is held.
func (a *Association) setPathMTUs(now clock.Time) {
	for i := range a.core.NumPaths() {
		a.setPathMTU(now, a.core.PathStats(i).Remote)
	}
}

// setPathMTU tells the core the MTU of the route to one address of the peer.
// a.mu is held.
func (a *Association) setPathMTU(now clock.Time, addr netip.AddrPort) {
	if _, limit, discover := a.t.pathMTU(&a.ep.cfg, addr); discover {
		_ = a.core.SetPathLimit(now, addr, limit)
	} else {
		_ = a.core.SetPathMTU(addr, limit)
	}
}

// coreError translates errors of the core.
func coreError(err error) error {
	switch err { // before ab, which is allocated
	case nil:
		return nil
	case tx.ErrWouldBlock:
		return ErrWouldBlock
	}
	var ab *core.AbortError
	switch {
	case errors.As(err, &ab):
		return &AbortError{Cause: uint16(ab.Cause), Reason: ab.Reason, ByPeer: ab.ByPeer}
	case errors.Is(err, core.ErrShutdown):
		return ErrShutdown
	case errors.Is(err, core.ErrClosed):
		return ErrClosed
	case errors.Is(err, tx.ErrStream):
		return ErrNoStream
	case errors.Is(err, tx.ErrNoUserData):
		return ErrEmpty
	case errors.Is(err, tx.ErrHeaderTooLong), errors.Is(err, tx.ErrTooLong):
		return ErrMessageTooLong
	case errors.Is(err, tx.ErrMessageOpen):
		return ErrMessageOpen
	case errors.Is(err, tx.ErrPolicy), errors.Is(err, tx.ErrSegmented):
		return ErrOptions
	case errors.Is(err, tx.ErrRestart):
		return ErrRestart
	case errors.Is(err, tx.ErrAbandoned):
		return ErrExpired
	case errors.Is(err, core.ErrUnreachable), errors.Is(err, core.ErrStale):
		return ErrTimeout
	case errors.Is(err, requests.ErrNotSupported):
		return ErrNotSupported
	case errors.Is(err, requests.ErrDenied):
		return ErrDenied
	case errors.Is(err, core.ErrNoKey):
		return ErrNoKey
	case errors.Is(err, requests.ErrBusy):
		return ErrBusy
	case errors.Is(err, requests.ErrTooMany):
		return ErrLimit
	case errors.Is(err, core.ErrParams), errors.Is(err, asconf.ErrLocalAddr), errors.Is(err, asconf.ErrLastAddr),
		errors.Is(err, core.ErrPath):
		return ErrAddress
	}
	return err
}
