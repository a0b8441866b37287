package ddprelay

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// state is how far an association has come.
type state uint8

const (
	opening     state = iota // active side: asked, not answered
	answered                 // passive side: answered, but the peer is not known to have that
	established              // both sides know of it
	ended
)

// association is what two endpoints have in place of an SCTP association. It is the ddpsctp.Link of its sessions.
type association struct {
	e            *Endpoint
	p            *path
	tag, peerTag uint32 // peerTag and ddp are set before state is established
	active       bool
	ddp          *ddpsctp.Association

	// over is true from the end on: nothing is sent any more. heard is true if something has come since the timer
	// looked.
	over, heard atomic.Bool

	up    sync.Mutex // one upcall at a time, as ddpsctp needs it; taken before all other locks
	piece sctp.Piece // guarded by up

	// in is the flow that each lane of the peer comes on, from its first message on.
	in [lanes]atomic.Pointer[relay.Receiver]

	state   state         // guarded by e.mu
	err     error         // guarded by e.mu: why it ended
	done    chan struct{} // closed when it is established, or has ended
	waiters int           // guarded by e.mu: calls of Dial that wait for done
	quiet   time.Time     // guarded by e.mu: when something came, was asked, or sent to open it, last
	until   time.Time     // guarded by e.mu: end of the probation; zero: none
	onTrial bool          // guarded by e.mu: not admitted yet
}

// reason returns why the association has ended.
func (a *association) reason() error {
	a.e.mu.Lock()
	defer a.e.mu.Unlock()
	return a.err
}

// String tells the peer.
func (a *association) String() string { return fmt.Sprintf("ddprelay association with %v", a.p.peer) }

// lane returns the lane of a stream.
func (a *association) lane(sid uint16) *lane { return &a.p.lanes[sid%lanes] }

// Control implements ddpsctp.Link.
func (a *association) Control(sid uint16, msg []byte, owner ddp.Owner) error {
	if a.over.Load() {
		return a.reason()
	}
	return a.lane(sid).control(a, sid, msg, owner)
}

// Segments implements ddpsctp.Link.
func (a *association) Segments(sid uint16, segs []ddp.Segment) (int, error) {
	if a.over.Load() {
		return 0, a.reason()
	}
	return a.lane(sid).segments(a, sid, segs)
}

// SendSegmented implements ddpsctp.Link.
func (a *association) SendSegmented(sid, ssn uint16, t *ddp.Train) error {
	if a.over.Load() {
		return a.reason()
	}
	return a.lane(sid).train(a, sid, ssn, t)
}

// Hold implements ddpsctp.Link: the bytes count against the window of the flow that they came on, so the sessions of
// one lane share it.
func (a *association) Hold(sid uint16, n int) {
	if r := a.in[sid%lanes].Load(); r != nil {
		r.Hold(n)
	}
}

// MaxPayload implements ddpsctp.Link: what fits a frame of the relay.
func (a *association) MaxPayload() int { return a.e.node.MaxPayload() - prefixLen }

// Tags implements ddpsctp.Link.
func (a *association) Tags() (local, peer uint32) { return a.tag, a.peerTag }

// Abort implements ddpsctp.Link.
func (a *association) Abort(reason string) {
	_ = a.p.lanes[0].sendMessage(a, &message{kind: abort, tag: a.peerTag, reason: reason}, false)
	go a.e.end(a, &AbortError{Peer: a.p.peer, Reason: reason})
}

// Admit implements ddpsctp.Link.
func (a *association) Admit() {
	a.e.mu.Lock()
	defer a.e.mu.Unlock()
	if a.onTrial {
		a.onTrial = false
		a.e.trials--
	}
}

// ExtendProbation implements ddpsctp.Link.
func (a *association) ExtendProbation(d time.Duration) {
	a.e.mu.Lock()
	defer a.e.mu.Unlock()
	a.until = time.Time{}
	if d >= 0 {
		a.until = time.Now().Add(d)
	}
}

// receive takes a message of a session, which came on r.
func (a *association) receive(r *relay.Receiver, sid uint16, ppid uint32, msg []byte) {
	a.up.Lock()
	defer a.up.Unlock()
	if a.over.Load() || a.ddp == nil {
		return
	}
	no := r.Stream() - a.e.first
	if a.in[no].Load() == nil {
		a.in[no].Store(r)
	}
	if a.in[no].Load() != r || no != sid%lanes {
		// What is held counts against one flow: another one would not be stopped by it.
		a.e.violations.Add(1)
		a.Abort(fmt.Sprintf("message of stream %d on lane %d", sid, no))
		return
	}
	a.heard.Store(true)
	a.piece = sctp.Piece{Stream: sid, PPID: ppid, Data: msg, Begin: true, End: true}
	a.ddp.Receive(&a.piece)
	a.piece.Data = nil
}

// AbortError is the end of an association that one side has aborted.
type AbortError struct {
	Peer   relay.Address
	Reason string
	ByPeer bool
}

// Error implements error.
func (e *AbortError) Error() string {
	who := "aborted"
	if e.ByPeer {
		who = "aborted by the peer"
	}
	return fmt.Sprintf("ddprelay: association with %v %s: %s", e.Peer, who, e.Reason)
}

// Peer returns the process at the other end of an association of this package, zero for other ones.
func Peer(a *ddpsctp.Association) relay.Address {
	if l, ok := a.Link().(*association); ok {
		return l.p.peer
	}
	return relay.Address{}
}
