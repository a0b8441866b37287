package mpi

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/envelope"
)

// peer is what a rank knows about another rank of the job, or a process of
// another job.
type peer struct {
	e       *engine
	rank    int      // in its world
	handle  int32    // see procName
	name    procName // in all worlds
	host    int      // see World.hostColor; of ranks of this job
	window  int64    // eager bytes that it may have with us, not yet matched
	parsers []messageParser
	remote  *remoteProcess // nil for ranks of this job

	// mu makes sequence numbers and the order of sends agree. Upcalls may come
	// while it is held, so they do not take it.
	mu     sync.Mutex
	link   link                    // constant once messages can be exchanged
	shared atomic.Pointer[shmLink] // messages come through memory; nil: they do not
	credit atomic.Int64            // bytes of eager messages we may send; taken from under mu
	sent   [slotCount]Traffic      // guarded by mu
	rdma   rdmaCounts

	coalesces bool         // short messages may be coalesced
	dirty     atomic.Bool  // in sendCoalescer.dirty
	unsent    atomic.Int32 // about how many bytes are to be transmitted later

	announced atomic.Int32 // sends that wait for the peer to ask for them
	ready     atomic.Int32 // sends of the peer that wait for a receive here

	used atomic.Int64 // cost of the peer's eager messages that we hold or have yet to acknowledge
	owed atomic.Int64 // part of used that was consumed and not yet acknowledged

	liveness livenessReporter // whether it answers

	disconnected   atomic.Bool               // the peer said that it has finalized
	failureReason  atomic.Pointer[error]     // by the report of others
	reportedFailed atomic.Bool               // others report that it has failed
	failed         atomic.Pointer[RankError] // why it is gone; nil while it is there
}

// failure returns why the peer is gone, as a RankError, or nil.
func (p *peer) failure() error {
	if err := p.failed.Load(); err != nil {
		return err
	}
	return nil
}

// gone reports whether the peer is known to have failed, by the end of its link or by the
// report of others.
func (p *peer) gone() bool { return p.failed.Load() != nil || p.reportedFailed.Load() }

// markFailed aborts the link to a peer that others report to have failed.
func (p *peer) markFailed(why string) {
	if p.failure() != nil || p.disconnected.Load() || !p.reportedFailed.CompareAndSwap(false, true) {
		return
	}
	err := errors.New(why)
	p.failureReason.Store(&err)
	p.link.abort("died: " + why)
}

// lost returns the error of operations with a peer that is gone.
func (p *peer) lost(err error) *RankError {
	return &RankError{Rank: p.rank, Other: p.remote != nil, Err: err}
}

// maxAnnounced bounds the announced sends to one peer that no receive has
// matched. More fail with ErrLimit. Withdrawals may be on their way, so the
// receiver tolerates twice as many.
const maxAnnounced = 1 << 20

// messageCost is what a message that waits for a receive takes besides its body.
const messageCost = 512

// cost returns the credit that an eager message of n bytes takes.
func cost(n int) int64 { return int64(n) + messageCost }

// charge books an eager message that arrived. It reports false if the peer
// has sent more than it had credit for.
func (p *peer) charge(length uint64) bool {
	return length <= uint64(p.window) && p.used.Add(cost(int(length))) <= p.window
}

// repay books that an eager message was consumed, and gives the credit back
// to the peer when half of the window has come together.
func (p *peer) repay(length uint64) {
	if owed := p.owed.Add(cost(int(length))); owed < p.window/2 {
		return
	}
	if owed := p.owed.Swap(0); owed > 0 {
		p.used.Add(-owed)
		p.control(0, &envelope.Header{Kind: envelope.Credit, Length: uint64(owed)})
	}
}

// controlPool holds buffers for control messages.
var controlPool = sync.Pool{New: func() any { return new([envelope.MaxLen]byte) }}

// control sends a message without a body. Errors are not returned: if the
// link is gone everything that waits for an answer fails anyway.
func (p *peer) control(stream uint16, v *envelope.Header) {
	b := controlPool.Get().(*[envelope.MaxLen]byte)
	_ = p.link.send(stream, v.Encode(b), nil, nil)
	p.link.flush()
	controlPool.Put(b)
}

// goodbye says that this rank has finalized. Giving it an owner makes the link
// ask for an acknowledgement at once, which ends the link sooner.
func (p *peer) goodbye() {
	var b [envelope.MaxLen]byte
	v := envelope.Header{Kind: envelope.Disconnect}
	_ = p.link.send(0, v.Encode(&b), nil, noOwner{}) // fails if the peer was faster
	p.link.flush()
}

type noOwner struct{}

func (noOwner) Released(error) {}

// down is called by the link when it has ended, after the last message. err is
// nil for a graceful end.
func (p *peer) down(err error) {
	if l := p.shared.Load(); l != nil {
		l.end(err)
		return
	}
	p.ended(err)
}

// ended acts on the end of the peer.
func (p *peer) ended(err error) {
	if why := p.failureReason.Load(); why != nil {
		err = *why
	}
	rerr := p.lost(err)
	if !p.failed.CompareAndSwap(nil, rerr) {
		return
	}
	p.remote.markLeft()
	for i := range p.parsers {
		p.parsers[i].abort(rerr)
	}
	if l := p.shared.Load(); l != nil {
		l.parser.abort(rerr)
	}
	p.e.peerDown(p, rerr)
}
