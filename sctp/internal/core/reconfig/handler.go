// Package reconfig changes the streams of an association while it is in use (RFC 6525): it
// resets the numbers of streams, or those of streams and TSNs together, and adds streams.
package reconfig

import (
	"fmt"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
)

const (
	// MaxRequests bounds the requests of the user that wait or are outstanding.
	// One more may be there to answer the peer's.
	MaxRequests = 16
	// MaxResetStreams is how many streams one reset request names: it fits the
	// smallest packet, together with an AUTH chunk. Longer lists take several requests.
	MaxResetStreams = 200
	// MaxRetries is how often a request is repeated that the peer had
	// no time for ("request already in progress").
	MaxRetries = 8
	// maxLateRequests is how often a request is repeated while the peer's shutdown
	// waits for nothing else.
	maxLateRequests = 6
	// MSL is how long after an SSN/TSN reset the next one waits: RFC
	// 6525, Section 5.1.4: "Only one SSN/TSN Reset Request SHOULD be sent
	// within 30 seconds".
	MSL = clock.Time(30 * time.Second)
	// MaxStreams is the largest number of streams in a direction.
	MaxStreams = 1<<16 - 1
)

// Kinds is a set of re-configurations that a peer may ask for.
type Kinds uint8

// Kinds of requests.
const (
	Streams Kinds = 1 << iota // reset the SSNs of streams
	TSNs                      // reset SSNs and TSNs
	Add                       // add streams
)

// Config says what a peer may ask for.
type Config struct {
	Deny Kinds
	// InStreams and MaxOutStreams bound the streams in each direction.
	InStreams, MaxOutStreams uint16
}

// Handler re-configures the streams of one association: it has our requests, one of which is
// outstanding at a time, and the answers to the peer's. The zero Handler has no requests, and
// takes none until it is opened.
type Handler struct {
	assoc    Association
	cfg      Config
	send     bool       // the outstanding one is to be sent
	quiet    bool       // "in progress" was the last answer
	answered bool       // and came since the last transmission
	newSpace bool       // TSNs have been reset: stragglers have others
	hasSeen  bool       // seen is known: the request was sent again after "in progress"
	lateAsk  bool       // the request was sent again since late came
	nextSeq  uint32     // of our next request
	seen     seq.TSN    // the highest that had come when the request was sent
	queue    []*request // in order; if the first has begun it is outstanding
	path     int        // where it went last
	from     int        // the path by which the chunk in hand came
	resetAt  clock.Time // of our last SSN/TSN reset
	resumeAt clock.Time // nothing begins before
	late     []byte     // a FORWARD-TSN that was put off
	response []byte     // goes in front of the outstanding request, when that is sent next

	in received
}

func (h *Handler) tx() Sender   { return h.assoc.Sender() }
func (h *Handler) rx() Receiver { return h.assoc.Receiver() }

// Open begins anew, without requests: the association was established or restarted. RFC
// 6525, Section 4.1: request sequence numbers begin with the initial TSN, ours tsn and the
// peer's peerTSN.
func (h *Handler) Open(cfg Config, assoc Association, tsn, peerTSN seq.TSN) {
	*h = Handler{cfg: cfg, assoc: assoc, nextSeq: uint32(tsn), in: received{next: uint32(peerTSN)}}
}

// Fail ends all requests.
func (h *Handler) Fail(err error) {
	for _, q := range h.queue {
		h.assoc.Done(q.id, err)
	}
	h.queue, h.send, h.response = nil, false, nil
}

// Len returns how many requests wait or are outstanding.
func (h *Handler) Len() int { return len(h.queue) }

// Full reports whether the user has to wait before another request.
func (h *Handler) Full() bool { return len(h.queue) >= MaxRequests }

// Due reports whether the outstanding request is to be sent, and Outstanding whether there is
// one, sent or to be sent.
func (h *Handler) Due() bool { return h.send }

// Outstanding reports whether a request has begun that is not done.
func (h *Handler) Outstanding() bool { return h.outstanding() != nil }

// HoldsData reports whether a request of the peer's waits for data or for acknowledgements.
func (h *Handler) HoldsData() bool { return h.in.deferred || h.in.holding }

// Deferred reports whether a reset of the peer's waits for data, or for the user to take it.
func (h *Handler) Deferred() bool { return h.in.deferred }

// NextSeq returns the sequence number of our next request, and PeerSeq that of the peer's.
func (h *Handler) NextSeq() uint32 { return h.nextSeq }

// PeerSeq returns the sequence number that the peer's next request must have.
func (h *Handler) PeerSeq() uint32 { return h.in.next }

// OtherSpace reports whether a TSN that the peer names cannot be of the numbers
// in use now, d away from it: a straggler of before an SSN/TSN reset, whose
// numbers are 2^31 apart, or a forerunner of after it.
func (h *Handler) OtherSpace(d int) bool { return h.newSpace && (d > 1<<30 || d < -1<<30) }

// ResettingTSNs reports whether our own SSN/TSN reset is outstanding.
func (h *Handler) ResettingTSNs() bool {
	q := h.outstanding()
	return q != nil && q.resetsTSNs()
}

// outstanding returns the request in flight, or nil.
func (h *Handler) outstanding() *request {
	if len(h.queue) == 0 || !h.queue[0].begun() {
		return nil
	}
	return h.queue[0]
}

// find returns the request that has begun, and its part, with a sequence number
// that is not answered yet; nil if there is none.
func (h *Handler) find(seq uint32) (*request, *part) {
	for _, q := range h.queue {
		for i := range q.list() {
			if p := &q.parts[i]; q.begun() && p.seq == seq && !p.done {
				return q, p
			}
		}
	}
	return nil, nil
}

// Verify checks the invariants of the handler.
func (h *Handler) Verify() error {
	begun, answers := 0, 0
	for i, q := range h.queue {
		if q.begun() {
			begun++
		}
		if q.answers {
			answers++
		}
		switch {
		case q.n < 1 || q.n > len(q.parts):
			return fmt.Errorf("reconfig: request %d of %d parts", i, q.n)
		case q.from > len(q.all):
			return fmt.Errorf("reconfig: request %d has reset %d of %d streams", i, q.from, len(q.all))
		case q.begun() && i > 1:
			return fmt.Errorf("reconfig: request %d has begun before its turn", i)
		case q.answers && i > 1:
			return fmt.Errorf("reconfig: the answer to the peer is request %d", i)
		}
	}
	switch {
	case len(h.queue)-answers > MaxRequests:
		return fmt.Errorf("reconfig: %d requests of the user", len(h.queue)-answers)
	case answers > 1:
		return fmt.Errorf("reconfig: %d requests answer the peer", answers)
	case begun > 1 && !h.queue[0].answers:
		return fmt.Errorf("reconfig: %d requests are outstanding", begun)
	case h.send && h.outstanding() == nil:
		return fmt.Errorf("reconfig: a request is due but none outstanding")
	case int(h.in.n) > len(h.in.answers):
		return fmt.Errorf("reconfig: %d answers", h.in.n)
	case h.in.deferred && h.in.find(h.in.seq) == nil && h.in.n < MaxAnswers:
		return fmt.Errorf("reconfig: no answer to the request that waits")
	}
	return nil
}
