package p2p

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// Peer is the state that a rank keeps for another rank of the job, or a process of another job.
type Peer struct {
	Engine     *Engine
	Rank       int      // in its world
	ProcHandle int32    // see ProcName
	name       ProcName // in all worlds
	Host       int      // see World.hostColor; of ranks of this job
	Site       string   // name of its site; empty: not known
	Distant    bool     // it is at another site, and reached through gateways: bodies of messages go without RDMA
	window     int64    // bytes of unmatched eager messages that it may have here
	Parsers    []Parser
	Remote     *RemoteProcess // nil for ranks of this job

	// mu makes sequence numbers and the order of sends agree. Upcalls may come
	// while it is held, so they do not take it.
	mu     sync.Mutex
	Link   transport.Link             // constant once messages can be exchanged
	Shared atomic.Pointer[MemoryLink] // set if messages come through shared memory
	Credit atomic.Int64               // bytes of eager messages that may be sent to it; decreased under mu
	sent   [SlotCount]traffic         // guarded by mu
	RDMA   rdmadev.Counters

	Coalesces bool         // short messages may be coalesced
	dirty     atomic.Bool  // in SendCoalescer.dirty
	unsent    atomic.Int32 // approximate bytes that wait for the coalescing goroutine

	Announced atomic.Int32 // sends that wait for a CTS or ReadFIN
	Ready     atomic.Int32 // RTS messages of the peer in the unexpected queue

	Used atomic.Int64 // cost of the peer's eager messages that credit has not been returned for
	owed atomic.Int64 // part of used that was consumed

	Liveness LivenessReporter // reports that it does not answer

	Disconnected   atomic.Bool           // the peer has sent Disconnect: it has finalized
	failureReason  atomic.Pointer[error] // set by MarkFailed
	ReportedFailed atomic.Bool           // others have reported that it has failed
	Failed         atomic.Pointer[error] // why it has failed; nil while it has not
}

// MemoryLink is a link through memory that this process shares with the peer. The network link under it carries what
// memory cannot: doorbells and the end of the peer.
type MemoryLink interface {
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
	Offer(r *Request) (envelope.Key, bool)
	// Fetch copies the body of a receive from the buffer that the peer has offered, and then calls engine.ReadDone or
	// engine.ReadFailed, perhaps before it returns. It does not block for long.
	Fetch(f Fetch)
}

// SetMemory tells p that messages from it come through shared memory.
func (p *Peer) SetMemory(l MemoryLink) { p.Shared.Store(&l) }

// Failure returns why the peer has failed, or nil.
func (p *Peer) Failure() error {
	if err := p.Failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Gone reports whether the peer is known to have failed, by the end of its link or by a report.
func (p *Peer) Gone() bool { return p.Failed.Load() != nil || p.ReportedFailed.Load() }

// MarkFailed aborts the link to a peer that has failed according to a report.
func (p *Peer) MarkFailed(why string) {
	if p.Failure() != nil || p.Disconnected.Load() || !p.ReportedFailed.CompareAndSwap(false, true) {
		return
	}
	err := errors.New(why)
	p.failureReason.Store(&err)
	p.Link.Abort("died: " + why)
}

// Lost returns the error of operations with a peer that has failed.
func (p *Peer) Lost(err error) error { return p.Engine.peerError(p, err) }

// MaxAnnounced bounds the sends to one peer that wait for a CTS. Further sends fail with ErrLimit.
// Withdrawals may be in flight, so the receiver tolerates twice as many.
const MaxAnnounced = 1 << 20

// MessageCost is the memory that an unexpected message takes in addition to its body, in bytes.
const MessageCost = 512

// Cost returns the credit that an eager message of n bytes takes.
func cost(n int) int64 { return int64(n) + MessageCost }

// charge counts an eager message that arrived. It reports false if the peer has exceeded its
// credit.
func (p *Peer) charge(length uint64) bool {
	return length <= uint64(p.window) && p.Used.Add(cost(int(length))) <= p.window
}

// repay counts an eager message that was consumed, and returns credit to the peer once that of half
// the window has accumulated.
func (p *Peer) repay(length uint64) {
	if owed := p.owed.Add(cost(int(length))); owed < p.window/2 {
		return
	}
	if owed := p.owed.Swap(0); owed > 0 {
		p.Used.Add(-owed)
		p.control(0, &envelope.Header{Kind: envelope.Credit, Length: uint64(owed)})
	}
}

// ControlPool holds buffers for control messages.
var ControlPool = sync.Pool{New: func() any { return new([envelope.MaxLen]byte) }}

// control sends a message without a body. Errors are ignored: if the link has ended, the operations
// that wait for an answer fail anyway.
func (p *Peer) control(stream uint16, v *envelope.Header) {
	b := ControlPool.Get().(*[envelope.MaxLen]byte)
	_ = p.Link.Send(stream, v.Encode(b), nil, nil)
	p.Link.Flush()
	ControlPool.Put(b)
}

// Goodbye sends Disconnect: this rank has finalized. With an owner the link requests an
// acknowledgement at once, so it ends sooner.
func (p *Peer) Goodbye() {
	var b [envelope.MaxLen]byte
	v := envelope.Header{Kind: envelope.Disconnect}
	_ = p.Link.Send(0, v.Encode(&b), nil, noOwner{}) // fails if the peer was faster
	p.Link.Flush()
}

type noOwner struct{}

func (noOwner) Released(error) {}

// Down is called by the link when it has ended, after the last message. err is nil for a graceful
// end.
func (p *Peer) Down(err error) {
	if l := p.Shared.Load(); l != nil {
		(*l).End(err)
		return
	}
	p.Ended(err)
}

// Ended handles the end of the peer.
func (p *Peer) Ended(err error) {
	if why := p.failureReason.Load(); why != nil {
		err = *why
	}
	rerr := p.Lost(err)
	if !p.Failed.CompareAndSwap(nil, &rerr) {
		return
	}
	p.Remote.markLeft()
	for i := range p.Parsers {
		p.Parsers[i].Abort(rerr)
	}
	if l := p.Shared.Load(); l != nil {
		(*l).AbortParser(rerr)
	}
	p.Engine.peerDown(p, rerr)
	if f := p.Engine.onDown; f != nil {
		go f(p, err)
	}
}
