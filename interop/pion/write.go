package sctp

import (
	"context"
	"errors"
	"fmt"
	"time"

	weft "github.com/weftstack/weft/sctp"
)

// maxFreeMsgs is how many unused messages an association keeps for later.
const maxFreeMsgs = 1024

// minLifetime is the shortest lifetime of a message: with none it would be given up before it was sent
// once.
const minLifetime = time.Millisecond

// message is a message on its way. It owns the memory of its bytes.
type message struct {
	s   *Stream
	out *outgoing
	buf *buffer
	n   int
}

// Write is WriteSCTP with the identifier of OpenStream or SetDefaultPayloadType.
func (s *Stream) Write(payload []byte) (n int, err error) {
	return s.WriteSCTP(payload, PayloadProtocolIdentifier(s.payloadType.Load()))
}

// WriteSCTP sends payload as one message. Without a byte it does nothing, because SCTP cannot carry
// that. payload is copied. Without Config.BlockWrite it does not wait, but to reset the stream if
// an earlier one of the same number was closed; with it, it waits while the send buffer is full, until
// the write deadline, and returns context.DeadlineExceeded then. It never waits for the message to be
// acknowledged.
//
// Other errors are ErrOutboundPacketTooLarge, ErrStreamClosed after Close, ErrPayloadDataStateNotExist
// when the association has ended or is shutting down, and ErrAssociationRestarted.
func (s *Stream) WriteSCTP(payload []byte, ppi PayloadProtocolIdentifier) (int, error) {
	a, n := s.a, len(payload)
	if limit := a.MaxMessageSize(); uint64(n) > uint64(limit) {
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrOutboundPacketTooLarge, n, limit)
	}
	a.mu.Lock()
	for {
		if err := s.writable(); err != nil {
			a.mu.Unlock()
			return 0, err
		}
		if n == 0 {
			a.mu.Unlock()
			return 0, nil
		}
		if !s.out.closing() {
			break
		}
		// The peer must have agreed to the reset before the stream is used again.
		a.hurry(s.out)
		batch := a.nextResets()
		if batch != nil {
			go a.reset(batch)
		}
		a.resetDone.Wait()
	}
	m := a.newMessage(s, n)
	opts := weft.SendOptions{Stream: s.id, PPID: uint32(ppi), Owner: m}
	if ppi != PayloadTypeWebRTCDCEP {
		opts.Unordered = s.unordered
		switch s.relType {
		case ReliabilityTypeRexmit:
			opts.PR, opts.MaxRetransmits = weft.LimitedRetransmissions, int(min(s.relVal, 1<<30))
		case ReliabilityTypeTimed:
			opts.PR, opts.Lifetime = weft.Timed, max(time.Duration(s.relVal)*time.Millisecond, minLifetime)
		}
	}
	a.mu.Unlock()

	m.buf = getBuffer(n)
	body := m.buf.b[:n]
	copy(body, payload)
	var err error
	if a.blockWrite {
		if err = a.weft.TrySend(body, opts); errors.Is(err, weft.ErrWouldBlock) {
			ctx := s.writeDL.Context()
			if err = a.weft.Send(ctx, body, opts); err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
		}
	} else {
		opts.Force = true
		err = a.weft.TrySend(body, opts)
	}
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, weft.ErrShutdown), errors.Is(err, weft.ErrClosed):
		err = fmt.Errorf("%w: %w", ErrPayloadDataStateNotExist, err)
	}
	a.mu.Lock()
	if a.ended {
		err = fmt.Errorf("%w: %w", ErrPayloadDataStateNotExist, err)
	}
	m.release()
	return 0, err
}

// writable returns why nothing can be written any more, or nil. mu is held.
func (s *Stream) writable() error {
	switch {
	case s.state != StreamStateOpen:
		return ErrStreamClosed
	case s.a.ended || s.a.shutdown:
		return fmt.Errorf("%w: stream %d of %s", ErrPayloadDataStateNotExist, s.id, s.a.name)
	}
	return s.failed
}

// newMessage returns a message of n bytes, which is outstanding from now on. mu is held.
func (a *Association) newMessage(s *Stream, n int) *message {
	var m *message
	if k := len(a.freeMsgs); k > 0 {
		m, a.freeMsgs = a.freeMsgs[k-1], a.freeMsgs[:k-1]
	} else {
		m = new(message)
	}
	m.s, m.out, m.n = s, s.out, n
	s.buffered += uint64(n)
	a.buffered += n
	s.out.outstanding++
	return m
}

// Released implements weft.SendOwner.
func (m *message) Released(error) {
	m.s.a.mu.Lock()
	m.release()
}

// release ends a message. a.mu is held, and unlocked.
func (m *message) release() {
	s, out := m.s, m.out
	a := s.a
	before := s.buffered
	s.buffered -= uint64(m.n)
	a.buffered -= m.n
	out.outstanding--
	var low func()
	if before > s.low && s.buffered <= s.low {
		low = s.onLow
	}
	m.buf.put()
	*m = message{}
	if len(a.freeMsgs) < maxFreeMsgs {
		a.freeMsgs = append(a.freeMsgs, m)
	}
	a.mayReset(out)
	a.unlock()
	if low != nil {
		low()
	}
}
