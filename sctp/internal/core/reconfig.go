package core

import (
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
)

const (
	// maxReconfigs bounds the RE-CONFIG requests of the user that wait or are
	// outstanding. One more may be there to answer the peer's.
	maxReconfigs = 16
	// maxResetStreams is how many streams one reset request names: it fits the
	// smallest packet, an AUTH chunk besides. Longer lists take several requests.
	maxResetStreams = 200
	// maxReconfigRetries is how often a request is repeated that the peer had
	// no time for ("request already in progress").
	maxReconfigRetries = 8
	// maxLateRequests is how often a request is repeated while the peer's shutdown
	// waits for nothing else.
	maxLateRequests = 6
	// reconfigMSL is how long after an SSN/TSN reset the next one waits: RFC
	// 6525, Section 5.1.4: "Only one SSN/TSN Reset Request SHOULD be sent
	// within 30 seconds".
	reconfigMSL = clock.Time(30 * time.Second)
	// maxStreams is the largest number of streams in a direction.
	maxStreams = 1<<16 - 1
)

// Reconfigs is a set of re-configurations that a peer may ask for.
type Reconfigs uint8

// Kinds of requests.
const (
	ReconfigStreams Reconfigs = 1 << iota // reset the SSNs of streams
	ReconfigAssoc                         // reset SSNs and TSNs
	ReconfigAdd                           // add streams
)

// reconfig is the re-configuration of streams (RFC 6525): our requests, one of
// which is outstanding at a time, and the answers to the peer's.
type reconfig struct {
	nextSeq  uint32       // of our next request
	queue    []*rcRequest // in order; if the first has begun it is outstanding
	send     bool         // the outstanding one is to be sent
	quiet    bool         // "in progress" was the last answer
	answered bool         // and came since the last transmission
	path     int          // where it went last
	resetAt  clock.Time   // of our last SSN/TSN reset
	resumeAt clock.Time   // nothing begins before
	newSpace bool         // TSNs have been reset: stragglers have others
	seen     seq.TSN      // the highest that had come when the request was sent
	hasSeen  bool         // after we were told "in progress"
	late     []byte       // a FORWARD-TSN that was put off
	lateAsk  bool         // the request was sent again since it came
	response []byte       // goes in front of the outstanding request, when that is sent next

	in rcReceiver
}

// outstanding returns the request in flight, or nil.
func (r *reconfig) outstanding() *rcRequest {
	if len(r.queue) == 0 || len(r.queue[0].chunk) == 0 {
		return nil
	}
	return r.queue[0]
}

// find returns the request that has begun, and its part, with a sequence number
// that is not answered yet; nil if there is none.
func (r *reconfig) find(seq uint32) (*rcRequest, *rcPart) {
	for _, q := range r.queue {
		for i := range q.list() {
			if p := &q.parts[i]; len(q.chunk) > 0 && p.seq == seq && !p.done {
				return q, p
			}
		}
	}
	return nil, nil
}

// openReconfig begins anew: the association was established or restarted. RFC
// 6525, Section 4.1: request sequence numbers begin with the initial TSN.
func (a *Assoc) openReconfig(peerTSN seq.TSN) {
	a.failReconfigs(ErrRestart)
	a.rc = reconfig{nextSeq: uint32(a.tsn), in: rcReceiver{next: uint32(peerTSN)}}
}

// failReconfigs ends all requests.
func (a *Assoc) failReconfigs(err error) {
	for _, q := range a.rc.queue {
		a.requestDone(q.id, err)
	}
	a.rc.queue, a.rc.send, a.rc.response = nil, false, nil
}
