package datachannel

import (
	"context"
	"fmt"
	"sync"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/datachannel/dcep"
)

// Session has the data channels of one association. It is safe for concurrent use.
type Session struct {
	assoc *sctp.Association
	cfg   Config // with defaults filled in
	slack int    // bytes of held that the association need not know
	// sendBuffer is that of the association, in bytes.
	sendBuffer int

	accepting chan *Channel
	done      chan struct{}

	mu        sync.Mutex
	slots     map[uint16]*slot // streams in use; guarded by mu
	low       int              // no stream of ours below it is free; guarded by mu
	remote    int              // channels that the peer opened; guarded by mu
	names     int              // bytes of labels and protocols of those; guarded by mu
	unopened  int              // slots with unopened set; guarded by mu
	resets    []*slot          // whose outgoing stream is to be reset; guarded by mu
	resetting bool             // a reset request is under way; guarded by mu
	ended     bool             // guarded by mu
	err       error            // why it ended; guarded by mu
	parts     parts            // guarded by mu
	held      int              // bytes held that the association was not told of; guarded by mu
	buffered  int              // bytes buffered on all channels; guarded by mu
	senders   waitList         // guarded by mu
	freeMsgs  []*outgoing      // guarded by mu
	freeWaits []*sctp.Waiter   // guarded by mu
	stats     Stats            // guarded by mu

	adding chan struct{} // has an element while streams are being added
}

// From returns the session of an association whose configuration is from [Config.SCTP], and nil
// before the association is established. It takes the place of the association's value.
func From(a *sctp.Association) *Session {
	s, _ := a.Value().(*Session)
	return s
}

func newSession(a *sctp.Association, cfg Config, sendBuffer, recvBuffer int) *Session {
	return &Session{assoc: a, cfg: cfg, sendBuffer: sendBuffer, slack: recvBuffer / 16, slots: map[uint16]*slot{},
		low: int(cfg.Role - Client), parts: parts{list: map[uint64]*part{}},
		accepting: make(chan *Channel, cfg.Backlog), done: make(chan struct{}), adding: make(chan struct{}, 1)}
}

// Association returns the association of the session: for its statistics, or its shutdown.
func (s *Session) Association() *sctp.Association { return s.assoc }

// Done returns a channel that is closed when the session has ended, and all channels with it.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err returns why the session has ended: nil before, and after a graceful end, otherwise as
// sctp.Association.Err.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close begins a graceful shutdown of the association and returns at once, see
// sctp.Association.Close: what was sent is delivered in the background, what comes is discarded.
func (s *Session) Close() error { return s.assoc.Close() }

// String names the session by its association.
func (s *Session) String() string { return fmt.Sprintf("datachannel session on %v", s.assoc) }

// Accept returns the next channel that the peer has opened. It blocks until there is one, until
// ctx is done, and returns its error, or until the session has ended, and returns the reason as
// Err, or ErrClosed. A channel that was closed meanwhile is returned, too: its messages can be
// received. With Config.OnChannel there is never one.
func (s *Session) Accept(ctx context.Context) (*Channel, error) {
	select {
	case c := <-s.accepting:
		return c, nil
	default:
	}
	select {
	case c := <-s.accepting:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, s.endError()
	}
}

// endError returns why operations on a session that has ended fail. mu is held.
func (s *Session) endError() error {
	if s.err != nil {
		return s.err
	}
	return fmt.Errorf("%w: the association has ended", ErrClosed)
}

// Open opens a channel. Messages may be sent at once: they come after the DATA_CHANNEL_OPEN message
// (RFC 8832, Section 6). It does not wait for the peer, but for streams to be added if the
// association has none left and the peer agrees, until ctx is done.
//
// Errors are ErrOptions, ErrInUse, ErrNoStream, sctp.ErrShutdown, that of ctx, and the reason of
// the end as of Err, or ErrClosed, after it.
func (s *Session) Open(ctx context.Context, label string, o Options) (*Channel, error) {
	m, err := o.open(label)
	if err != nil {
		return nil, fmt.Errorf("open channel %q: %w", label, err)
	}
	o.Priority = m.Priority
	s.mu.Lock()
	sl, err := s.reserve(&o)
	s.mu.Unlock()
	if err == nil {
		var c *Channel
		if c, err = s.openOn(ctx, sl, label, &o, &m); err == nil {
			return c, nil
		}
		s.mu.Lock()
		s.release(sl)
		s.mu.Unlock()
	}
	return nil, fmt.Errorf("open channel %q: %w", label, err)
}

// openOn opens a channel on a stream that was reserved for it.
func (s *Session) openOn(ctx context.Context, sl *slot, label string, o *Options, m *dcep.Open) (*Channel, error) {
	if err := s.addStreams(ctx, int(sl.id)); err != nil {
		return nil, err
	}
	b, err := dcep.AppendOpen(nil, m)
	if err != nil {
		return nil, err
	}
	if err := s.assoc.SetStreamPriority(sl.id, o.weight()); err != nil {
		return nil, err
	}
	c := newChannel(s, sl.id, label, *o)
	if o.Negotiated {
		c.state, c.heard = Open, true
	}
	s.mu.Lock()
	switch {
	case s.ended:
		err = s.endError()
	case sl.gone: // the peer has restarted meanwhile
		err = sctp.ErrRestart
	default:
		c.slot, sl.ch = sl, c
		s.stats.Opened++
	}
	s.mu.Unlock()
	if err == nil && !o.Negotiated {
		err = c.control(b)
	}
	return c, err
}

// addStreams makes sure that there is a stream in both directions.
func (s *Session) addStreams(ctx context.Context, id int) error {
	if out, in := s.assoc.Streams(); id < int(min(out, in)) {
		return nil
	}
	select {
	case s.adding <- struct{}{}: // one at a time, so that there are not more than needed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.adding }()
	out, in := s.assoc.Streams()
	moreOut, moreIn := max(id+1-int(out), 0), max(id+1-int(in), 0)
	if moreOut+moreIn == 0 {
		return nil
	}
	if err := s.assoc.AddStreams(ctx, uint16(moreOut), uint16(moreIn)); err != nil {
		return fmt.Errorf("%w: %d outgoing and %d incoming ones, and adding %d and %d: %w",
			ErrNoStream, out, in, moreOut, moreIn, err)
	}
	return nil
}

// Stats counts what has happened in a session.
type Stats struct {
	// Opened and Accepted count the channels that this side and the peer opened.
	Opened, Accepted uint64
	// Refused counts channels of the peer's that a limit did not allow: MaxChannels, Backlog,
	// or that of labels.
	Refused uint64
	// Violations counts messages that violate RFC 8831 or RFC 8832 and closed their channel,
	// or the stream on which there was none.
	Violations uint64
	// Discarded counts messages that came on a channel that was closed already.
	Discarded uint64
	// Abandoned counts messages that were given up by their partial reliability policy.
	Abandoned uint64
	// MessagesSent and MessagesReceived count user messages.
	MessagesSent, MessagesReceived uint64
	// Channels is the number of channels now, and AssemblyBytes the memory of incomplete
	// messages.
	Channels, AssemblyBytes int
}

// Stats returns a snapshot of the counters.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	for _, sl := range s.slots {
		if sl.ch != nil {
			st.Channels++
		}
	}
	st.AssemblyBytes = s.parts.bytes
	return st
}
