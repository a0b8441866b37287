package mpi

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// peer is the state that a rank keeps for another rank of the job, or a process of another job.
type peer struct {
	e       *engine
	rank    int      // in its world
	handle  int32    // see procName
	name    procName // in all worlds
	host    int      // see World.hostColor; of ranks of this job
	window  int64    // bytes of unmatched eager messages that it may have here
	parsers []messageParser
	remote  *remoteProcess // nil for ranks of this job

	// mu makes sequence numbers and the order of sends agree. Upcalls may come
	// while it is held, so they do not take it.
	mu     sync.Mutex
	link   transport.Link             // constant once messages can be exchanged
	shared atomic.Pointer[memoryLink] // set if messages come through shared memory
	credit atomic.Int64               // bytes of eager messages that may be sent to it; decreased under mu
	sent   [slotCount]traffic         // guarded by mu
	rdma   rdmadev.Counters

	coalesces bool         // short messages may be coalesced
	dirty     atomic.Bool  // in sendCoalescer.dirty
	unsent    atomic.Int32 // approximate bytes that wait for the coalescing goroutine

	announced atomic.Int32 // sends that wait for a CTS or ReadFIN
	ready     atomic.Int32 // RTS messages of the peer in the unexpected queue

	used atomic.Int64 // cost of the peer's eager messages that credit has not been returned for
	owed atomic.Int64 // part of used that was consumed

	liveness livenessReporter // reports that it does not answer

	disconnected   atomic.Bool           // the peer has sent Disconnect: it has finalized
	failureReason  atomic.Pointer[error] // set by markFailed
	reportedFailed atomic.Bool           // others have reported that it has failed
	failed         atomic.Pointer[error] // why it has failed; nil while it has not
}

// memoryLink is a link through memory that this process shares with the peer. The network link under it carries what
// memory cannot: doorbells and the end of the peer.
type memoryLink interface {
	transport.Link
	// OnDoorbell receives what the peer has written: it has rung because this process did not poll.
	OnDoorbell()
	// End is called when the link under it has ended, because of err. It calls peer.ended when all that the peer has
	// written is received.
	End(err error)
	// AbortParser ends the parser of what arrives through memory.
	AbortParser(err error)
	// Offer lets the peer copy the buffer of send r, sets r.offered and returns the key of the buffer. It reports false
	// if that is not possible.
	Offer(r *request) (envelope.Key, bool)
	// Fetch copies the body of a receive from the buffer that the peer has offered, and then calls engine.readDone or
	// engine.readFailed, perhaps before it returns. It does not block for long.
	Fetch(f fetch)
}

// setMemory tells p that messages from it come through shared memory.
func (p *peer) setMemory(l memoryLink) { p.shared.Store(&l) }

// failure returns why the peer has failed, or nil.
func (p *peer) failure() error {
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// gone reports whether the peer is known to have failed, by the end of its link or by a report.
func (p *peer) gone() bool { return p.failed.Load() != nil || p.reportedFailed.Load() }

// markFailed aborts the link to a peer that has failed according to a report.
func (p *peer) markFailed(why string) {
	if p.failure() != nil || p.disconnected.Load() || !p.reportedFailed.CompareAndSwap(false, true) {
		return
	}
	err := errors.New(why)
	p.failureReason.Store(&err)
	p.link.Abort("died: " + why)
}

// lost returns the error of operations with a peer that has failed.
func (p *peer) lost(err error) error { return p.e.peerError(p, err) }

// maxAnnounced bounds the sends to one peer that wait for a CTS. Further sends fail with ErrLimit.
// Withdrawals may be in flight, so the receiver tolerates twice as many.
const maxAnnounced = 1 << 20

// messageCost is the memory that an unexpected message takes in addition to its body, in bytes.
const messageCost = 512

// cost returns the credit that an eager message of n bytes takes.
func cost(n int) int64 { return int64(n) + messageCost }

// charge counts an eager message that arrived. It reports false if the peer has exceeded its
// credit.
func (p *peer) charge(length uint64) bool {
	return length <= uint64(p.window) && p.used.Add(cost(int(length))) <= p.window
}

// repay counts an eager message that was consumed, and returns credit to the peer once that of half
// the window has accumulated.
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

// control sends a message without a body. Errors are ignored: if the link has ended, the operations
// that wait for an answer fail anyway.
func (p *peer) control(stream uint16, v *envelope.Header) {
	b := controlPool.Get().(*[envelope.MaxLen]byte)
	_ = p.link.Send(stream, v.Encode(b), nil, nil)
	p.link.Flush()
	controlPool.Put(b)
}

// goodbye sends Disconnect: this rank has finalized. With an owner the link requests an
// acknowledgement at once, so it ends sooner.
func (p *peer) goodbye() {
	var b [envelope.MaxLen]byte
	v := envelope.Header{Kind: envelope.Disconnect}
	_ = p.link.Send(0, v.Encode(&b), nil, noOwner{}) // fails if the peer was faster
	p.link.Flush()
}

type noOwner struct{}

func (noOwner) Released(error) {}

// down is called by the link when it has ended, after the last message. err is nil for a graceful
// end.
func (p *peer) down(err error) {
	if l := p.shared.Load(); l != nil {
		(*l).End(err)
		return
	}
	p.ended(err)
}

// ended handles the end of the peer.
func (p *peer) ended(err error) {
	if why := p.failureReason.Load(); why != nil {
		err = *why
	}
	rerr := p.lost(err)
	if !p.failed.CompareAndSwap(nil, &rerr) {
		return
	}
	p.remote.markLeft()
	for i := range p.parsers {
		p.parsers[i].abort(rerr)
	}
	if l := p.shared.Load(); l != nil {
		(*l).AbortParser(rerr)
	}
	p.e.peerDown(p, rerr)
}
