package datachannel

import (
	"fmt"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/datachannel/dcep"
)

// Payload protocol identifiers (RFC 8831, Section 8; RFC 8832, Section 8.1). Those of partial
// messages, 52 and 54, are deprecated and not supported.
const (
	ppidDCEP        = 50
	ppidString      = 51
	ppidBinary      = 53
	ppidStringEmpty = 56
	ppidBinaryEmpty = 57
)

// maxNames bounds the bytes of labels and protocols of the channels that the peer has opened:
// 1 MiB. Further channels are refused.
const maxNames = 1 << 20

// arrival is what a fragment has completed, to be handled without a lock.
type arrival struct {
	opened  *Channel // by the peer
	channel *Channel // of the message
	msg     Message
	buf     *bufpool.Buffer // of msg, or nil
}

// piece handles a fragment. One goroutine at a time calls it.
func (s *Session) piece(p *sctp.Piece) {
	var a arrival
	s.mu.Lock()
	s.take(p, &a)
	s.unlock()
	if c := a.opened; c != nil {
		_ = c.control(dcep.AppendAck(nil)) // fails only with the association
		if s.cfg.OnChannel != nil {
			s.cfg.OnChannel(c)
		} else {
			s.accepting <- c // take has seen that there is room
		}
	}
	if a.channel != nil {
		s.cfg.OnMessage(a.channel, a.msg)
		a.buf.Put()
	}
}

// take handles a fragment. mu is held.
func (s *Session) take(p *sctp.Piece, a *arrival) {
	sl := s.slots[p.Stream]
	var c *Channel // that may receive
	if sl != nil && sl.in == inUsed {
		c = sl.ch
	}
	var err error
	switch {
	case p.Aborted:
		s.dropPart(p.Message)
	case sl != nil && (sl.in == inDiscard || sl.in == inUsed && c == nil), c != nil && c.closed && p.PPID != ppidDCEP:
		s.dropPart(p.Message)
		if p.End {
			s.stats.Discarded++
		}
	case p.PPID == ppidDCEP:
		err = s.takeControl(p, c, a)
	case c == nil:
		err = fmt.Errorf("%w: message with PPID %d where no channel is open", ErrProtocol, p.PPID)
	default:
		err = s.takeMessage(p, c, a)
	}
	if err != nil {
		s.dropPart(p.Message)
		s.stats.Violations++
		s.reject(p.Stream, err)
	}
}

// takeMessage handles a fragment of a user message on c. mu is held.
func (s *Session) takeMessage(p *sctp.Piece, c *Channel, a *arrival) error {
	m := Message{Kind: Binary}
	empty := false
	switch p.PPID {
	case ppidBinary:
	case ppidString:
		m.Kind = Text
	case ppidStringEmpty:
		m.Kind, empty = Text, true
	case ppidBinaryEmpty:
		empty = true
	default:
		// RFC 8831, Section 6.6: "If a message with an unsupported PPID is received […] the
		// receiver SHOULD close the corresponding data channel."
		return fmt.Errorf("%w: message with PPID %d", ErrProtocol, p.PPID)
	}
	var buf *bufpool.Buffer
	m.Data = p.Data
	switch {
	case empty:
		// "the receiver MUST ignore the SCTP user message and process it as an empty message"
		if !p.End {
			return nil
		}
		m.Data = nil
	case !p.Begin || !p.End:
		var err error
		if m.Data, buf, err = s.assemble(p, s.cfg.MaxMessageSize, c.last); err != nil || !p.End {
			return err
		}
		c.last = len(m.Data)
	case len(m.Data) > s.cfg.MaxMessageSize:
		return fmt.Errorf("%w: %d bytes, at most %d", ErrMessageTooLong, len(m.Data), s.cfg.MaxMessageSize)
	}
	c.hear()
	s.stats.MessagesReceived++
	if s.cfg.OnMessage != nil {
		a.channel, a.msg, a.buf = c, m, buf
		return nil
	}
	if buf == nil && len(m.Data) > 0 {
		buf = bufpool.Get(len(m.Data))
		copy(buf.Bytes(len(m.Data)), m.Data)
	}
	c.enqueue(received{buf: buf, n: len(m.Data), kind: m.Kind})
	if s.cfg.MaxUnread > 0 && c.unread > s.cfg.MaxUnread {
		s.fail(c, fmt.Errorf("%w: %d bytes, at most %d", ErrUnread, c.unread, s.cfg.MaxUnread))
	}
	return nil
}

// takeControl handles a fragment of a message of RFC 8832 on a stream with channel c, or nil. mu is
// held.
func (s *Session) takeControl(p *sctp.Piece, c *Channel, a *arrival) error {
	// Section 6: "All DCEP messages MUST be sent using ordered delivery and reliable
	// transmission."
	if p.Unordered {
		return fmt.Errorf("%w: unordered message of DCEP", ErrProtocol)
	}
	data := p.Data
	if !p.Begin || !p.End {
		var buf *bufpool.Buffer
		var err error
		if data, buf, err = s.assemble(p, dcep.MaxLen, 0); err != nil || !p.End {
			return err
		}
		defer buf.Put()
	}
	kind, err := dcep.TypeOf(data)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if kind == dcep.TypeAck {
		if c == nil || c.remote || c.opts.Negotiated || c.acked {
			return fmt.Errorf("%w: DATA_CHANNEL_ACK that nothing has asked for", ErrProtocol)
		}
		c.acked = true
		c.hear()
		return nil
	}
	var m dcep.Open
	if err := dcep.ParseOpen(data, &m); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return s.takeOpen(p.Stream, c, &m, a)
}

// takeOpen handles a DATA_CHANNEL_OPEN message (RFC 8832, Section 6). mu is held.
func (s *Session) takeOpen(id uint16, c *Channel, m *dcep.Open, a *arrival) error {
	sl := s.slots[id]
	switch {
	case c != nil && s.ours(id) && !c.opts.Negotiated && !c.acked:
		return fmt.Errorf("%w: both sides open channel %d: both have Role %v", ErrProtocol, id, s.cfg.Role)
	case c != nil:
		return fmt.Errorf("%w: DATA_CHANNEL_OPEN for a channel that is open", ErrProtocol)
	case sl != nil && sl.out != outAsked:
		return fmt.Errorf("%w: DATA_CHANNEL_OPEN before the streams of an earlier channel were reset", ErrProtocol)
	case s.ours(id):
		return fmt.Errorf("%w: the peer opens channel %d, a number of this side's, whose Role is %v", ErrProtocol, id, s.cfg.Role)
	}
	names := len(m.Label) + len(m.Protocol)
	out, _ := s.assoc.Streams()
	if s.remote >= s.cfg.MaxChannels || s.names+names > maxNames || id >= out ||
		s.cfg.OnChannel == nil && len(s.accepting) >= s.cfg.Backlog {
		s.stats.Refused++
		s.reject(id, ErrNoStream)
		return nil
	}
	if sl == nil {
		sl = &slot{id: id}
		s.slots[id] = sl
	} else {
		// The peer has performed our reset, although its answer has not come: the earlier
		// channel is closed.
		s.detach(sl)
		sl.again, sl.in = true, inUsed
	}
	c = newChannel(s, id, string(m.Label), optionsOf(m))
	c.slot, sl.ch = sl, c
	c.remote, c.state, c.heard = true, Open, true
	s.remote++
	s.names += names
	s.stats.Accepted++
	_ = s.assoc.SetStreamPriority(id, c.opts.weight()) // the stream exists
	a.opened = c
	return nil
}
