package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weftstack/weft/sctp"
)

// sctpLink carries messages over one association. Each message between ranks
// is one SCTP message, whose fragments arrive by upcall.
type sctpLink struct {
	t *sctpTransport
	a *sctp.Association

	// Owned by the upcalls, which come one at a time.
	peer    *peer          // nil until the other side has proved who it is
	broken  bool           // the peer has broken the protocol
	current *messageParser // parser of the last fragment: it may hold its receive buffer locked

	mu      sync.Mutex
	hello   *hello // the greeting, until it is over; guarded by mu
	waiting []byte // first greeting, if it came before this rank knew the key
}

const (
	// ppid marks messages between ranks ("WEFT").
	ppid = 0x57454654
	// sctpCopy is the length up to which bodies are copied rather than
	// referenced, sctpCopyBlocking that for blocking sends.
	sctpCopy         = 8 << 10
	sctpCopyBlocking = 64 << 10
)

// copyLimit implements link: a body that is referenced is released when it has
// been acknowledged, which takes a round trip.
func (l *sctpLink) copyLimit(blocks bool) int {
	if blocks {
		return sctpCopyBlocking
	}
	return sctpCopy
}

// send implements link.
func (l *sctpLink) send(stream uint16, hdr, body []byte, own owner) error {
	o := sctp.SendOptions{Stream: stream, PPID: ppid, Header: hdr, More: true}
	if own != nil {
		// Somebody waits for the acknowledgement (RFC 7053).
		o.Owner, o.Force, o.Immediate = own, true, true
	} else if len(body) == 0 {
		o.Force = true
	}
	return full(l.a.TrySend(body, o))
}

// sendNow implements promptLink.
func (l *sctpLink) sendNow(stream uint16, hdr, body []byte) error {
	return full(l.a.TrySend(body, sctp.SendOptions{Stream: stream, PPID: ppid, Header: hdr, Force: len(body) == 0}))
}

// full translates an error of TrySend.
func full(err error) error {
	if errors.Is(err, sctp.ErrWouldBlock) {
		return errLinkFull
	}
	return err
}

// flush implements link.
func (l *sctpLink) flush() { l.a.Flush() }

// linger is how long a rank waits for the end of the shutdown handshake with a
// peer that has finalized, and so needs nothing any more. When the last packet
// of the handshake is lost, and the peer is no longer there to repeat it, the
// wait would be in vain.
const linger = 2 * time.Second

// shutdown implements link.
func (l *sctpLink) shutdown(ctx context.Context) error {
	for {
		short, cancel := context.WithTimeout(ctx, linger)
		err := l.a.Shutdown(short)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case l.peer.bye.Load():
			l.a.Abort("finalized")
			return nil
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
}

// abort implements link.
func (l *sctpLink) abort(reason string) { l.a.Abort(reason) }

// onFragment is the upcall for a fragment that the association received.
func (l *sctpLink) onFragment(p *sctp.Piece) {
	if l.broken {
		return
	}
	var err error
	if l.peer == nil {
		err = l.greeting(p)
	} else {
		err = l.onMessage(p)
	}
	if err != nil {
		l.switchTo(nil)
		l.broken = true
		l.a.Abort(err.Error())
	}
}

func (l *sctpLink) onMessage(p *sctp.Piece) error {
	if p.Stream == 0 && l.greets() { // the welcome
		l.switchTo(nil)
		return l.greeting(p)
	}
	if int(p.Stream) >= len(l.peer.parsers) || p.Unordered || p.Aborted {
		return fmt.Errorf("%w: fragment of stream %d", ErrProtocol, p.Stream)
	}
	f := &l.peer.parsers[p.Stream]
	l.switchTo(f)
	if p.Begin && f.inMessage() {
		return fmt.Errorf("%w: message cut short", ErrProtocol)
	}
	n, err := f.parseMore(p.Data, p.More)
	if err != nil {
		return err
	}
	// A body of length 0 may come as a message that ends with its envelope.
	if n != len(p.Data) || p.End && f.inMessage() {
		return fmt.Errorf("%w: message of the wrong length", ErrProtocol)
	}
	return nil
}

// switchTo makes f, which may be nil, the message parser that may keep its receive buffer locked between fragments, and
// unlocks the buffer of the one before: code that runs for another message must not hold it.
func (l *sctpLink) switchTo(f *messageParser) {
	if l.current != nil && l.current != f {
		l.current.unlockBuffer()
	}
	l.current = f
}

// greeting takes in one of the first messages, which are short.
func (l *sctpLink) greeting(p *sctp.Piece) error {
	if !p.Begin || !p.End || p.Stream != 0 || p.Unordered || p.Aborted {
		return fmt.Errorf("%w: not a greeting", ErrAuth)
	}
	msg, err := helloBody(p.Data)
	if err != nil {
		return err
	}
	if l.peer == nil && !l.greets() {
		key, ok := l.t.jobKey(l, msg)
		if !ok {
			l.a.ExtendProbation(-1)
			return nil // taken up by connect, which comes soon
		}
		l.accept(key)
	}
	return l.greet(msg)
}

// greets reports whether the exchange of greetings is going on.
func (l *sctpLink) greets() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hello != nil
}

// accept begins the greeting as the side that waits.
func (l *sctpLink) accept(key []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hello = newAcceptor(key, l.t.w.Rank(), l.t.w.Size())
	l.hello.find = l.t.w.meeting
}

// resume takes up a greeting that came before the key was known.
func (l *sctpLink) resume(key []byte) {
	l.a.ExtendProbation(helloTimeout)
	l.accept(key)
	if err := l.greet(l.waiting); err != nil {
		l.a.Abort(err.Error())
	}
}

// greet takes the greeting one step further.
func (l *sctpLink) greet(msg []byte) error {
	l.mu.Lock()
	h := l.hello
	reply, err := h.step(msg)
	rank, meeting, known, over := h.peer, h.meeting, h.receiving(), h.sending()
	if over {
		l.hello = nil
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if known && l.peer == nil {
		switch {
		case meeting != nil:
			if l.peer = meeting.claim(rank, l); l.peer == nil {
				return fmt.Errorf("%w: process %d is not expected", ErrAuth, rank)
			}
		case !l.t.claim(rank, l):
			return fmt.Errorf("%w: rank %d is here already", ErrAuth, rank)
		default:
			l.peer = l.t.w.eng.peers[rank]
		}
		l.a.Admit()
	}
	if reply != nil {
		if err := l.a.TrySend(helloFrame(reply), sctp.SendOptions{PPID: ppid, Force: true}); err != nil {
			return err
		}
	}
	switch {
	case over && meeting != nil:
		meeting.linked(rank, nil)
	case over:
		l.t.linked(nil)
	}
	return nil
}

// down is the end of the association.
func (l *sctpLink) down(err error) {
	l.mu.Lock()
	h := l.hello
	l.mu.Unlock()
	// Strangers may come and go, but not the peers that we called.
	switch {
	case h == nil || l.peer == nil && h.accept:
	case h.meeting != nil:
		h.meeting.linked(h.peer, orClosed(err))
	default:
		l.t.linked(fmt.Errorf("mpi: rank %d: %w", h.peer, orClosed(err)))
	}
	if l.peer != nil {
		l.peer.down(err)
	}
}

func orClosed(err error) error {
	if err == nil {
		return errLinkClosed
	}
	return err
}
