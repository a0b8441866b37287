package sctp

import (
	"context"

	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// maxPiece is the most of a Write to a MessageWriter that is copied and queued at
// once, minPiece the least unless there is no more; in between it is a quarter of
// Config.SendBuffer.
const (
	maxPiece = 64 << 10
	minPiece = 1 << 10
)

// MessageWriter sends one message in parts: of any length, which need not be
// known beforehand (RFC 6458, Section 8.1.26, SCTP_EXPLICIT_EOR). It is an
// io.WriteCloser: Close ends the message, so
//
//	w, err := a.OpenMessage(ctx, sctp.SendOptions{Stream: 1})
//	…
//	_, err = io.Copy(w, file)
//	…
//	err = w.Close()
//
// sends a file as one message. The peer receives it as any other; if it is larger
// than its receive buffer, in parts as well (see RecvInfo.EOR).
//
// Until the message has ended, sends of others on the same stream return
// ErrMessageOpen. Messages on other streams go on if the peer takes interleaved
// messages (RFC 8260, see Association.Extensions); otherwise they wait until this
// one has ended, because the fragments of a message need consecutive TSNs (RFC
// 9260, Section 3.3.1). Requests to reset the stream wait in either case. What was
// begun must be ended: SCTP cannot take it back, and if the association is shut
// down before, by either side, it ends with an ABORT once what was written is
// acknowledged.
//
// A MessageWriter is for one goroutine at a time.
type MessageWriter struct {
	a    *Association
	ctx  context.Context
	opts SendOptions
	of   tx.OpenMessage
	// What was written and not yet queued: an SCTP chunk cannot be empty, so one
	// byte is kept to end the message with. At the beginning it is the header.
	held  [MaxHeader]byte
	n     int
	piece int
	ended bool
}

// OpenMessage begins a message that is sent in parts. opts may not have an Owner
// or a partial reliability policy or Lifetime (ErrOptions); opts.Header goes
// first. Writes wait for room in the send buffer until ctx is done. The stream is
// taken by the message when its first part is sent: the first byte stays with the
// writer until there is a second one.
//
// It returns ErrMessageOpen, ErrNoStream, ErrShutdown or the end of the association
// if Write could only fail, and ErrMessageTooLong with Config.NoFragmentation.
func (a *Association) OpenMessage(ctx context.Context, opts SendOptions) (*MessageWriter, error) {
	switch {
	case opts.Owner != nil || opts.PR != Reliable || opts.Lifetime != 0:
		return nil, ErrOptions
	case len(opts.Header) > MaxHeader:
		return nil, ErrMessageTooLong
	}
	a.mu.Lock()
	err, buffer := a.core.CanOpen(opts.Stream), a.core.SendBuffer()
	a.mu.Unlock()
	if err != nil {
		return nil, a.sendError(err)
	}
	w := &MessageWriter{a: a, ctx: ctx, opts: opts, piece: min(maxPiece, max(minPiece, buffer/4))}
	w.n = copy(w.held[:], opts.Header)
	w.opts.Header = nil
	return w, nil
}

// Write sends p as the next part of the message, all but the last byte, which
// goes with what follows. p is copied. It waits for room in the send buffer
// unless opts.Force was set, and transmits at once unless opts.More was. If it
// returns an error, n bytes of p are part of the message. The rest can be written
// again if the error is that of the context, which Write does not look at while
// there is room. After Close it returns ErrClosed; after the peer has restarted,
// ErrRestart.
func (w *MessageWriter) Write(p []byte) (n int, err error) {
	if w.ended {
		return 0, ErrClosed
	}
	for len(p) > 0 {
		k := min(len(p), w.piece+1)
		if w.n > 0 || k > 1 {
			if err := w.send(p[:k-1], false); err != nil {
				return n, err
			}
		}
		w.held[0], w.n = p[k-1], 1
		p = p[k:]
		n += k
	}
	return n, nil
}

// Close ends the message. If no part was sent before it waits for room as Write
// does, and may be called again if it returns the error of the context. Otherwise
// it does not block. It returns ErrEmpty if nothing was written, and sends nothing
// then; ErrShutdown or why the association has ended if the message could not be
// ended; and ErrClosed if it was called before.
func (w *MessageWriter) Close() error {
	switch {
	case w.ended:
		return ErrClosed
	case w.n == 0:
		w.ended = true
		return ErrEmpty
	}
	w.opts.More = false
	// The last part is short, and the message may be what others wait for.
	w.opts.Force = w.opts.Force || w.of.Begun()
	err := w.send(nil, true)
	w.ended = err == nil || err != w.ctx.Err()
	return err
}

// send sends a part: what was held back, and p.
func (w *MessageWriter) send(p []byte, last bool) error {
	w.opts.Header = w.held[:w.n]
	var m tx.Message
	own := newMessage(&m, p, &w.opts)
	m.Of, m.Last = &w.of, last
	err := w.a.push(w.ctx.Done(), nil, &m, own, w.opts.More)
	if err == errStopped {
		return w.ctx.Err()
	}
	return err
}
