package datachannel

import (
	"fmt"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/sctp"
)

// State is the state of a channel.
type State uint8

// The states of a channel, those of the WebRTC API.
const (
	// Connecting: the peer has not acknowledged a channel that this side opened. Messages can
	// be sent already.
	Connecting State = iota
	// Open: the peer has the channel.
	Open
	// Closing: one of the sides has closed the channel. Nothing can be sent any more.
	Closing
	// Closed: both streams have been reset, or the association has ended.
	Closed
)

// String returns the name that the WebRTC API gives the state.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

var stateNames = [...]string{"connecting", "open", "closing", "closed"}

// Kind is the kind of a message.
type Kind uint8

// Kinds of messages.
const (
	Binary Kind = iota
	Text        // in UTF-8, which is not checked
)

// Message is a message that was received.
type Message struct {
	Kind Kind
	Data []byte
}

// Channel is a data channel (RFC 8831, Section 6.4). It is safe for concurrent use.
type Channel struct {
	s        *Session
	slot     *slot
	id       uint16
	remote   bool // opened by the peer
	label    string
	opts     Options
	sendOpts sctp.SendOptions
	done     chan struct{}

	// The other fields are guarded by s.mu.
	state       State
	acked       bool // a DATA_CHANNEL_ACK has come
	heard       bool // any message has come, so that messages may be sent unordered
	closed      bool // Close was called
	eof         bool // no more messages come
	err         error
	outstanding int // messages sent and not released, and sends under way
	buffered    int // their bytes
	low         int
	onLow       func()
	last        int // length of the last message of several fragments
	queue       queue
	unread      int // bytes of memory of queue
	readers     waitList
	opening     waitList // callers of WaitOpen
}

func newChannel(s *Session, id uint16, label string, o Options) *Channel {
	return &Channel{s: s, id: id, label: label, opts: o, sendOpts: o.send(id), done: make(chan struct{})}
}

// Session returns the session of the channel.
func (c *Channel) Session() *Session { return c.s }

// Label returns the label, which need not be unique.
func (c *Channel) Label() string { return c.label }

// ID returns the number of the streams of the channel. Another channel may have it once this one
// is closed.
func (c *Channel) ID() uint16 { return c.id }

// Options returns the properties of the channel. Priority is the peer's, which may be 0, if the
// peer opened the channel.
func (c *Channel) Options() Options {
	o := c.opts
	o.ID = c.id
	return o
}

// State returns the state of the channel.
func (c *Channel) State() State {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.state
}

// Done returns a channel that is closed when the channel is Closed.
func (c *Channel) Done() <-chan struct{} { return c.done }

// Err returns why the channel was closed if that was neither side's wish: ErrClosed if the peer refused it,
// which it does if both sides have the same Role; ErrProtocol,
// ErrMessageTooLong, ErrUnread, ErrAssembly, sctp.ErrRestart if the peer has restarted, the reason
// why the association ended as of sctp.Association.Err, or why the reset of the stream failed.
func (c *Channel) Err() error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.err
}

// String names the channel.
func (c *Channel) String() string {
	label := c.label
	if len(label) > 32 {
		label = label[:32] + "…"
	}
	return fmt.Sprintf("data channel %d %q (%v)", c.id, label, c.State())
}

// Close closes the channel and returns at once: the outgoing stream is reset once the peer has
// acknowledged what was sent, or it was abandoned, and the peer resets its own (RFC 8831, Section
// 6.7); Done tells when both are done. What was received and what comes is discarded. It returns
// ErrClosed if it was called before. A channel that the peer has closed should be closed, too:
// what it holds counts against the receive window until it is received or discarded.
func (c *Channel) Close() error {
	s := c.s
	s.mu.Lock()
	defer s.unlock()
	if c.closed {
		return fmt.Errorf("close %q: %w", c.label, ErrClosed)
	}
	c.closed = true
	for m, ok := c.queue.pop(); ok; m, ok = c.queue.pop() {
		c.count(-m.size())
		m.buf.Put()
	}
	if c.state != Closed { // else the number may be another one's
		s.dropParts(c.id)
	}
	c.close()
	s.mayReset(c)
	return nil
}

// close ends sending, and wakes all that wait. s.mu is held.
func (c *Channel) close() {
	if c.state < Closing {
		c.state = Closing
	}
	c.readers.wakeAll()
	c.s.wakeSenders()
	c.opening.wakeAll()
}

// hear notes that a message has come (RFC 8832, Section 6). s.mu is held.
func (c *Channel) hear() {
	c.heard = true
	if c.state == Connecting {
		c.state = Open
		c.opening.wakeAll()
	}
}

// received is a message that Recv is yet to take.
type received struct {
	buf  *bufpool.Buffer // nil for an empty message
	n    int
	kind Kind
}

// receivedOverhead is what a message takes besides its buffer, in bytes: its place in the queue
// and the head of the buffer.
const receivedOverhead = 96

// size returns the bytes of memory that m takes.
func (m *received) size() int {
	if m.buf == nil {
		return receivedOverhead
	}
	return receivedOverhead + m.buf.Size()
}

// queue is a queue of messages.
type queue struct {
	list []received
	head int
}

func (q *queue) push(m received) {
	if q.head > 0 && len(q.list) == cap(q.list) {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, m)
}

func (q *queue) pop() (received, bool) {
	if q.head == len(q.list) {
		return received{}, false
	}
	m := q.list[q.head]
	q.list[q.head] = received{}
	if q.head++; q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
		if cap(q.list) > 1024 {
			q.list = nil
		}
	}
	return m, true
}

func (q *queue) len() int { return len(q.list) - q.head }
