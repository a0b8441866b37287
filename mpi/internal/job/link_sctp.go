package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport"
	"github.com/weftstack/weft/sctp"
)

// sctpLink carries messages over one association. Each message between ranks is one SCTP message,
// and its fragments arrive by upcall.
type sctpLink struct {
	t *sctpTransport
	a *sctp.Association

	// Used only by upcalls, which come one at a time.
	peer    *p2p.Peer   // nil until the other side is authenticated
	broken  bool        // the peer has violated the protocol
	current *p2p.Parser // parser of the last fragment: it may hold its receive buffer locked

	mu        sync.Mutex
	handshake *handshake.Exchange // nil once it is complete; guarded by mu
	setup     *linkSetup          // that it is for; nil between ranks of the job, and until hello has come; guarded by mu
	waiting   []byte              // hello that came before this rank knew the key
}

const (
	// ppid marks messages between ranks ("WEFT").
	ppid = 0x57454654
	// sctpCopy is the length up to which bodies are copied rather than referenced, sctpCopyBlocking
	// the one for blocking sends, in bytes.
	sctpCopy         = 8 << 10
	sctpCopyBlocking = 64 << 10
	// sctpMinRun is the mean length of runs from which packets are filled from there in less time than a copy of all
	// takes, in bytes.
	sctpMinRun = 256
)

// CopyLimit implements link. A referenced body is released when it has been acknowledged, which
// takes a round trip.
func (l *sctpLink) CopyLimit(blocks bool) int {
	if blocks {
		return sctpCopyBlocking
	}
	return sctpCopy
}

// Send implements Link.
func (l *sctpLink) Send(stream uint16, hdr, body []byte, own transport.Owner) error {
	o := sctp.SendOptions{Stream: stream, PPID: ppid, Header: hdr, More: true}
	if own != nil {
		// The sender waits for the SACK, so it is requested at once (RFC 7053), unless the body is a copy.
		_, copied := own.(*bufpool.Buffer)
		o.Owner, o.Force, o.Immediate = own, true, !copied
	} else if len(body) == 0 {
		o.Force = true
	}
	return full(l.a.TrySend(body, o))
}

// SendRuns implements RunsLink.
func (l *sctpLink) SendRuns(stream uint16, hdr []byte, runs [][]byte, own transport.Owner) error {
	return l.a.TrySendBuffers(runs, sctp.SendOptions{Stream: stream, PPID: ppid, Header: hdr, More: true,
		Owner: own, Force: true, Immediate: true})
}

// MinRun implements RunsLink.
func (l *sctpLink) MinRun() int { return sctpMinRun }

// SendNow implements PromptLink.
func (l *sctpLink) SendNow(stream uint16, hdr, body []byte) error {
	return full(l.a.TrySend(body, sctp.SendOptions{Stream: stream, PPID: ppid, Header: hdr, Force: len(body) == 0}))
}

// full translates ErrWouldBlock of TrySend to ErrFull.
func full(err error) error {
	if errors.Is(err, sctp.ErrWouldBlock) {
		return transport.ErrFull
	}
	return err
}

// Flush implements Link.
func (l *sctpLink) Flush() { l.a.Flush() }

// linger is how long a rank waits for the end of the shutdown handshake with a peer that has
// finalized and needs nothing any more. If the last packet of the handshake is lost and the peer
// has exited, no packet answers.
const linger = 2 * time.Second

// Shutdown implements Link.
func (l *sctpLink) Shutdown(ctx context.Context) error {
	for {
		short, cancel := context.WithTimeout(ctx, linger)
		err := l.a.Shutdown(short)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case l.peer.Disconnected.Load():
			l.a.Abort("finalized")
			return nil
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
}

// Abort implements Link.
func (l *sctpLink) Abort(reason string) { l.a.Abort(reason) }

// onFragment is the upcall for a fragment that the association has received.
func (l *sctpLink) onFragment(p *sctp.Piece) {
	if l.broken {
		return
	}
	var err error
	if l.peer == nil {
		err = l.onHandshake(p)
	} else {
		err = l.onMessage(p)
	}
	if err != nil {
		l.switchTo(nil)
		l.broken = true
		if l.peer == nil {
			l.t.job.Record(slog.LevelDebug, "handshake refused", slog.String("addr", l.a.RemoteAddr().String()), Cause(err))
		} else {
			l.t.job.recordPeer(slog.LevelWarn, "link aborted", l.peer, Cause(err))
		}
		l.a.Abort(err.Error())
	}
}

func (l *sctpLink) onMessage(p *sctp.Piece) error {
	if p.Stream == 0 && l.handshaking() { // the welcome
		l.switchTo(nil)
		return l.onHandshake(p)
	}
	if int(p.Stream) >= len(l.peer.Parsers) || p.Unordered || p.Aborted {
		return fmt.Errorf("%w: fragment of stream %d", mpierr.ErrProtocol, p.Stream)
	}
	f := &l.peer.Parsers[p.Stream]
	l.switchTo(f)
	if p.Begin && f.InMessage() {
		return fmt.Errorf("%w: message cut short", mpierr.ErrProtocol)
	}
	n, err := f.ParseMore(p.Data, p.More)
	if err != nil {
		return err
	}
	// A message without body may end with its envelope.
	if n != len(p.Data) || p.End && f.InMessage() {
		return fmt.Errorf("%w: message of the wrong length", mpierr.ErrProtocol)
	}
	return nil
}

// switchTo makes f, which may be nil, the message parser that may keep its receive buffer locked
// between fragments, and unlocks the buffer of the previous one, because code that handles another
// message must not hold that lock.
func (l *sctpLink) switchTo(f *p2p.Parser) {
	if l.current != nil && l.current != f {
		l.current.UnlockBuffer()
	}
	l.current = f
}

// onHandshake handles a handshake message, which is one fragment.
func (l *sctpLink) onHandshake(p *sctp.Piece) error {
	if !p.Begin || !p.End || p.Stream != 0 || p.Unordered || p.Aborted {
		return fmt.Errorf("%w: not a greeting", mpierr.ErrAuth)
	}
	msg, err := handshake.Body(p.Data)
	if err != nil {
		return err
	}
	if l.peer == nil && !l.handshaking() {
		key, ok := l.t.keyOrQueue(l, msg)
		if !ok {
			l.a.ExtendProbation(-1)
			return nil // connect, which is about to be called, resumes it
		}
		l.acceptHandshake(key)
	}
	return l.handshakeStep(msg)
}

// handshaking reports whether the handshake is in progress.
func (l *sctpLink) handshaking() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handshake != nil
}

// acceptHandshake begins the handshake of the accepting side.
func (l *sctpLink) acceptHandshake(key []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.t.job
	l.handshake = handshake.Accept(handshake.Params{Key: key, Self: j.Rank(), Size: j.Size()}, l.findSetup)
}

// findSetup finds the link setup that hello names. mu is held.
func (l *sctpLink) findSetup(id uint64) (p handshake.Params, ok bool) {
	if l.setup = l.t.job.linkSetup(id); l.setup == nil {
		return p, false
	}
	return l.setup.params(), true
}

// resumeHandshake continues a handshake whose hello came before the key was known.
func (l *sctpLink) resumeHandshake(key []byte) {
	l.a.ExtendProbation(handshake.Timeout)
	l.acceptHandshake(key)
	if err := l.handshakeStep(l.waiting); err != nil {
		l.a.Abort(err.Error())
	}
}

// handshakeStep processes a handshake message and sends the reply, if any.
func (l *sctpLink) handshakeStep(msg []byte) error {
	l.mu.Lock()
	h := l.handshake
	reply, err := h.Step(msg)
	rank, setup, known, over := h.Peer(), l.setup, h.Receiving(), h.Sending()
	if over {
		l.handshake = nil
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if known && l.peer == nil {
		switch {
		case setup != nil:
			if l.peer = setup.claim(rank, l); l.peer == nil {
				return fmt.Errorf("%w: process %d is not expected", mpierr.ErrAuth, rank)
			}
		case !l.t.claim(rank, l):
			return fmt.Errorf("%w: rank %d has a link already", mpierr.ErrAuth, rank)
		default:
			l.peer = l.t.job.Engine.Peers[rank]
		}
		l.a.Admit()
	}
	if reply != nil {
		if err := l.a.TrySend(handshake.Frame(reply), sctp.SendOptions{PPID: ppid, Force: true}); err != nil {
			return err
		}
	}
	switch {
	case over && setup != nil:
		setup.linked(rank, nil)
	case over:
		l.t.linked(nil)
	}
	return nil
}

// down is the upcall for the end of the association.
func (l *sctpLink) down(err error) {
	l.mu.Lock()
	h, setup := l.handshake, l.setup
	l.mu.Unlock()
	// The end of an incoming association that is not authenticated is ignored, but not that of a dialled one.
	switch {
	case h == nil || l.peer == nil && h.Accepting():
	case setup != nil:
		setup.linked(h.Peer(), orClosed(err))
	default:
		l.t.linked(fmt.Errorf("mpi: rank %d: %w", h.Peer(), orClosed(err)))
	}
	if l.peer != nil {
		l.peer.Down(err)
	}
}

func orClosed(err error) error {
	if err == nil {
		return transport.ErrClosed
	}
	return err
}
