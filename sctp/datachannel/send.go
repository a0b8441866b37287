package datachannel

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/sctp"
)

// outgoing is a message on its way. It owns the memory of its bytes.
type outgoing struct {
	c   *Channel
	buf *bufpool.Buffer // nil for a message without one
	n   int             // user bytes, -1 for a message of RFC 8832
}

// maxFreeMsgs is how many unused outgoing messages a session keeps for later.
const maxFreeMsgs = 1024

// zero is what is sent for an empty message (RFC 8831, Section 6.6).
var zero = []byte{0}

// Send sends a binary message of any length up to Config.PeerMaxMessageSize, also none. It blocks
// while there is no room, see Config.MaxBufferedAmount, until ctx is done.
// It does not wait for the message to be acknowledged. data is copied, and the caller's again
// when Send returns.
//
// The error is ErrMessageTooLong; ErrClosed if either side has closed the channel; that of ctx;
// otherwise as of Err, or that of sctp.Association.Send.
func (c *Channel) Send(ctx context.Context, data []byte) error {
	return send(ctx, c, Binary, data, true)
}

// SendText sends a text message, which should be UTF-8. Otherwise it is like Send.
func (c *Channel) SendText(ctx context.Context, text string) error {
	return send(ctx, c, Text, text, true)
}

// TrySend is Send or SendText that never blocks: it returns ErrWouldBlock if it would. It may be
// called in the callbacks of Config.
func (c *Channel) TrySend(kind Kind, data []byte) error {
	return send(context.Background(), c, kind, data, false)
}

// send sends a message. Unless wait is set it does not block.
func send[B []byte | string](ctx context.Context, c *Channel, kind Kind, data B, wait bool) error {
	s, n := c.s, len(data)
	if limit := s.cfg.PeerMaxMessageSize; n > limit && limit > 0 {
		return fmt.Errorf("send on %q: %w: %d bytes, the peer takes at most %d by Config.PeerMaxMessageSize", c.label, ErrMessageTooLong, n, limit)
	}
	s.mu.Lock()
	for {
		if err := c.sendError(); err != nil {
			s.unlock()
			return err
		}
		if c.hasRoom(n) {
			break
		}
		if !wait {
			s.unlock()
			return ErrWouldBlock
		}
		if err := s.wait(ctx, &s.senders, c, n); err != nil {
			s.wakeSenders() // the wake-up may have been for this one
			s.unlock()
			return err
		}
	}
	m := s.message(c, n)
	c.buffered += n
	s.buffered += n
	opts := c.sendOpts
	// RFC 8832, Section 6: before any message has been received, "all other messages containing
	// user data […] MUST be sent ordered, no matter whether the data channel is ordered or not".
	opts.Unordered = opts.Unordered && c.heard
	s.unlock()

	opts.Owner, opts.Force = m, true
	body := zero
	switch {
	case n == 0 && kind == Text:
		opts.PPID = ppidStringEmpty
	case n == 0:
		opts.PPID = ppidBinaryEmpty
	default:
		if opts.PPID = ppidBinary; kind == Text {
			opts.PPID = ppidString
		}
		m.buf = bufpool.Get(n)
		body = m.buf.Bytes(n)
		copy(body, data)
	}
	var err error
	if !wait {
		err = s.assoc.TrySend(body, opts)
	} else {
		err = s.assoc.Send(ctx, body, opts)
	}
	if err == nil {
		return nil
	}
	m.undo()
	return err
}

// hasRoom reports whether a message of n bytes may be sent now. Each channel may have as much
// buffered as is left of the send buffer, up to its own limit: greedy channels get equal parts, and
// one part stays free for others. A channel with nothing buffered may always send a message, so
// that it is the scheduler that shares the association, not the order of the senders. s.mu is
// held.
func (c *Channel) hasRoom(n int) bool {
	n += c.buffered
	return c.buffered == 0 || n <= c.s.cfg.MaxBufferedAmount && n <= c.s.sendBuffer-c.s.buffered
}

// sendError returns why nothing can be sent any more, or nil. s.mu is held.
func (c *Channel) sendError() error {
	switch {
	case c.state < Closing:
		return nil
	case c.err != nil && !c.closed:
		return c.err
	}
	return fmt.Errorf("channel %q is %v: %w", c.label, c.state, ErrClosed)
}

// control sends a message of RFC 8832, ordered and reliably.
func (c *Channel) control(b []byte) error {
	s := c.s
	s.mu.Lock()
	m := s.message(c, -1)
	s.unlock()
	err := s.assoc.TrySend(b, sctp.SendOptions{Stream: c.id, PPID: ppidDCEP, Force: true, Owner: m})
	if err != nil {
		m.undo()
	}
	return err
}

// message returns a message of n user bytes, -1 for one of RFC 8832, which is outstanding from now
// on. mu is held.
func (s *Session) message(c *Channel, n int) *outgoing {
	var m *outgoing
	if k := len(s.freeMsgs); k > 0 {
		m, s.freeMsgs = s.freeMsgs[k-1], s.freeMsgs[:k-1]
	} else {
		m = new(outgoing)
	}
	m.c, m.n = c, n
	c.outstanding++
	return m
}

// Released implements sctp.SendOwner.
func (m *outgoing) Released(err error) {
	s := m.c.s
	s.mu.Lock()
	if err == nil && m.n >= 0 {
		s.stats.MessagesSent++
	} else if errors.Is(err, sctp.ErrExpired) {
		s.stats.Abandoned++
	}
	m.release()
}

// undo takes back a message that was not sent.
func (m *outgoing) undo() {
	m.c.s.mu.Lock()
	m.release()
}

// release ends a message. s.mu is held, and unlocked.
func (m *outgoing) release() {
	c := m.c
	s := c.s
	before := c.buffered
	c.buffered -= max(m.n, 0)
	s.buffered -= max(m.n, 0)
	c.outstanding--
	var low func()
	if before > c.low && c.buffered <= c.low {
		low = c.onLow
	}
	m.buf.Put()
	m.c, m.buf = nil, nil
	if len(s.freeMsgs) < maxFreeMsgs {
		s.freeMsgs = append(s.freeMsgs, m)
	}
	s.wakeSenders()
	s.mayReset(c)
	s.unlock()
	if low != nil {
		low()
	}
}

// BufferedAmount returns the bytes of messages that were sent and that the peer has not
// acknowledged yet: of each all or none.
func (c *Channel) BufferedAmount() int {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.buffered
}

// SetBufferedAmountLow has f called each time that BufferedAmount falls from above threshold to
// threshold or less. f is called with no lock held, on the goroutine that received the
// acknowledgement; it must not block, and may call TrySend. A nil f ends that.
func (c *Channel) SetBufferedAmountLow(threshold int, f func()) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.low, c.onLow = max(threshold, 0), f
}
