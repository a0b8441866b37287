package sctp

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/transport/v5/deadline"
)

// Stream is a stream in both directions: those with the same number.
type Stream struct {
	a           *Association
	id          uint16
	payloadType atomic.Uint32
	writeDL     *deadline.Deadline

	// Guarded by a.mu.
	state     StreamState
	out       *outgoing
	unordered bool
	relType   byte
	relVal    uint32
	buffered  uint64 // bytes written and not acknowledged
	low       uint64
	onLow     func()
	failed    error // why nothing can be written any more, or nil

	queue     fifo[received]
	unread    int  // bytes of memory in queue
	over      bool // both sides have closed: unread does not count for the association
	last      int  // bytes of the last message that did not fit one packet
	waiting   bool
	accepting bool // waits for AcceptStream
	reader    sync.Cond
	readErr   error // once the queue is empty
	deadline  *readDeadline
}

// OpenStream returns the stream with a number, which the peer may have used already. It does not wait
// for the peer. It returns ErrAssociationClosed if the association has ended or is shutting down.
func (a *Association) OpenStream(streamIdentifier uint16, defaultPayloadType PayloadProtocolIdentifier) (*Stream, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || a.shutdown {
		return nil, fmt.Errorf("%w: open stream %d", ErrAssociationClosed, streamIdentifier)
	}
	s := a.streams[streamIdentifier]
	if s == nil {
		s = a.newStream(streamIdentifier)
	}
	s.SetDefaultPayloadType(defaultPayloadType)
	return s, nil
}

// newStream makes a stream. mu is held.
func (a *Association) newStream(id uint16) *Stream {
	s := &Stream{a: a, id: id, writeDL: deadline.New(), out: a.slots[id]}
	s.reader.L = &a.mu
	if s.out == nil {
		s.out = &outgoing{id: id}
		a.slots[id] = s.out
	}
	s.out.users++
	a.streams[id] = s
	return s
}

// AcceptStream returns the next stream that the peer was the first to use. It blocks until there is
// one. It returns io.EOF when the association has ended.
func (a *Association) AcceptStream() (*Stream, error) {
	a.mu.Lock()
	defer a.unlock()
	for a.accepting.n == 0 {
		if a.ended {
			return nil, io.EOF
		}
		a.acceptors.Wait()
	}
	s := a.accepting.pop()
	s.accepting = false
	a.count(-acceptSize)
	return s, nil
}

// StreamIdentifier returns the number of the stream.
func (s *Stream) StreamIdentifier() uint16 { return s.id }

// State returns the state of the stream.
func (s *Stream) State() StreamState {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	return s.state
}

// SetDefaultPayloadType sets the identifier that Write sends.
func (s *Stream) SetDefaultPayloadType(defaultPayloadType PayloadProtocolIdentifier) {
	s.payloadType.Store(uint32(defaultPayloadType))
}

// SetReliabilityParams tells whether messages may overtake each other, and when they are given up:
// never with ReliabilityTypeReliable, after relVal retransmissions with ReliabilityTypeRexmit, and
// after relVal milliseconds with ReliabilityTypeTimed. Messages with PayloadTypeWebRTCDCEP are
// ordered and reliable in any case (RFC 8832, Section 6).
func (s *Stream) SetReliabilityParams(unordered bool, relType byte, relVal uint32) {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	s.unordered, s.relType, s.relVal = unordered, relType, relVal
}

// BufferedAmount returns the bytes of messages that were written and that the peer has not acknowledged:
// of each all or none.
func (s *Stream) BufferedAmount() uint64 {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	return s.buffered
}

// BufferedAmountLowThreshold returns what SetBufferedAmountLowThreshold has set, by default 0.
func (s *Stream) BufferedAmountLowThreshold() uint64 {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	return s.low
}

// SetBufferedAmountLowThreshold sets the amount for OnBufferedAmountLow.
func (s *Stream) SetBufferedAmountLowThreshold(th uint64) {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	s.low = th
}

// OnBufferedAmountLow has f called each time that BufferedAmount falls from above the threshold to it
// or below. f is called on the goroutine that reads the connection: it must not wait for the
// association, as Write with Config.BlockWrite, Close and Abort of the association do.
func (s *Stream) OnBufferedAmountLow(f func()) {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	s.onLow = f
}

// SetDeadline sets the deadlines of reads and of writes.
func (s *Stream) SetDeadline(t time.Time) error {
	if err := s.SetReadDeadline(t); err != nil {
		return err
	}
	return s.SetWriteDeadline(t)
}

// SetWriteDeadline sets until when writes wait for room: those that wait, too. It has no effect
// without Config.BlockWrite. The zero Time is no deadline.
func (s *Stream) SetWriteDeadline(deadline time.Time) error {
	s.writeDL.Set(deadline)
	return nil
}
