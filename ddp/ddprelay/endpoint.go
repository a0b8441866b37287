package ddprelay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

const (
	// FirstStream is the first stream of a relay node that endpoints use: service s has the eight from
	// FirstStream+8*s on.
	FirstStream = 1 << 15
	// MaxService is the largest service number.
	MaxService = (1<<16-FirstStream)/lanes - 1

	// MaxTrials bounds the associations that peers have opened and on which no request was accepted yet; beyond it
	// further ones are refused. Each may stay so for sctp.DefaultProbationTimeout, and as long as a request waits.
	MaxTrials = 256
	// KeepAlive is after how long without a message of the peer it is asked for a sign of life. The relay's peer
	// timeout begins then.
	KeepAlive = 5 * time.Second

	tick = time.Second
)

// Errors that callers branch on with errors.Is.
var (
	// ErrService is returned for a service number that is too large, or that is in use on the node.
	ErrService = errors.New("ddprelay: bad service number")
	// ErrReplaced is the end of an association when its peer has opened another one.
	ErrReplaced = errors.New("ddprelay: the peer has opened another association")
)

// Config holds the parameters of an Endpoint.
type Config struct {
	// Streams is the number of streams of each association (default ddpsctp.DefaultStreams): how many sessions there
	// may be with one other process.
	Streams uint16
	// Backlog and OnRequest are as in ddpsctp.Config.
	Backlog   int
	OnRequest func(*ddpsctp.Request)
	// OnNotify, if not nil, is told of associations that are established (err is nil) or have ended. It must not block.
	OnNotify func(peer relay.Address, up bool, err error)
}

// Endpoint is a DDP endpoint on a relay node: one service of the process. It is safe for concurrent use. It owns no
// goroutine but, while it has associations, a timer; what comes is handled on the goroutine that received it.
type Endpoint struct {
	cfg     Config
	node    *relay.Node
	service uint16
	first   uint16 // stream of lane 0
	acc     *ddpsctp.Acceptor

	malformed, unknown, refused, violations atomic.Uint64

	mu     sync.Mutex
	closed bool                    // guarded by mu
	tags   map[uint32]*association // guarded by mu: those that have not ended
	paths  map[relay.Address]*path // guarded by mu
	trials int                     // guarded by mu: associations that are on trial
	timer  *time.Timer             // guarded by mu: nil without associations
}

// path is the way to a peer: its flows, and the associations that use them.
type path struct {
	e      *Endpoint
	peer   relay.Address
	lanes  [lanes]lane
	assocs []*association // guarded by e.mu
	dead   atomic.Bool    // a flow has ended
}

// Listen makes an endpoint: a service of the node, for whose peers it has the number service. The node is the
// caller's, and must be closed after the endpoint. Errors: ErrService, relay.ErrClosed.
func Listen(node *relay.Node, service uint16, cfg Config) (*Endpoint, error) {
	if service > MaxService {
		return nil, fmt.Errorf("%w: %d: at most %d", ErrService, service, MaxService)
	}
	if cfg.Streams == 0 {
		cfg.Streams = ddpsctp.DefaultStreams
	}
	e := &Endpoint{
		cfg: cfg, node: node, service: service, first: FirstStream + service*lanes,
		acc:  ddpsctp.NewAcceptor(cfg.Backlog, cfg.OnRequest),
		tags: make(map[uint32]*association), paths: make(map[relay.Address]*path),
	}
	err := node.Handle(e.first, e.first+lanes-1, relay.Handler{OnFragment: e.onFragment, OnProgress: onProgress})
	if errors.Is(err, relay.ErrConfig) {
		err = fmt.Errorf("%w: %d is in use", ErrService, service)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Addr returns the address of the process, and the service.
func (e *Endpoint) Addr() (relay.Address, uint16) { return e.node.Address(), e.service }

// String names the endpoint by its process and service.
func (e *Endpoint) String() string {
	return fmt.Sprintf("ddprelay.Endpoint %v service %d", e.node.Address(), e.service)
}

func onProgress(s *relay.Sender) {
	if l, _ := s.Value().(*lane); l != nil {
		l.progress(s)
	}
}

// Stats are counters of an endpoint.
type Stats struct {
	ddpsctp.Stats
	// Malformed counts messages that nothing could be made of, Unknown those for associations that this side does not
	// have, RefusedAssociations those that peers could not open because of MaxTrials, Violations those that were
	// aborted because a message came on the wrong flow.
	Malformed, Unknown, RefusedAssociations, Violations uint64
}

// Stats returns a snapshot.
func (e *Endpoint) Stats() Stats {
	st := Stats{
		Stats: e.acc.Stats(), Malformed: e.malformed.Load(), Unknown: e.unknown.Load(),
		RefusedAssociations: e.refused.Load(), Violations: e.violations.Load(),
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.tags {
		if a.state == established {
			st.Associations++
		}
	}
	return st
}

// pathTo returns the path to a peer. mu is held.
func (e *Endpoint) pathTo(peer relay.Address) *path {
	p := e.paths[peer]
	if p == nil {
		p = &path{e: e, peer: peer}
		for i := range p.lanes {
			p.lanes[i].p, p.lanes[i].no = p, i
		}
		e.paths[peer] = p
	}
	return p
}

// trim forgets a path without associations. What its lanes have is still sent, but for what waits when another path
// to the peer takes over the flows: messages to a peer that learns the same when it asks. mu is held.
func (e *Endpoint) trim(p *path) {
	if len(p.assocs) == 0 && e.paths[p.peer] == p {
		delete(e.paths, p.peer)
	}
}

// add makes an association. mu is held.
func (e *Endpoint) add(p *path, active bool) *association {
	a := &association{e: e, p: p, active: active, done: make(chan struct{}), quiet: time.Now()}
	for a.tag == 0 || e.tags[a.tag] != nil {
		a.tag = rand.Uint32()
	}
	e.tags[a.tag] = a
	p.assocs = append(p.assocs, a)
	if e.timer == nil {
		e.timer = time.AfterFunc(tick, e.onTimer)
	}
	return a
}

// Dial returns the association to a process, to the endpoint that has this endpoint's service number there, and opens
// it if there is none. It blocks until that has answered, or ctx is done. Errors to test for: ddpsctp.ErrSelf,
// *AbortError, ddpsctp.ErrClosed, and those of relay.Sender.Send.
func (e *Endpoint) Dial(ctx context.Context, peer relay.Address) (*ddpsctp.Association, error) {
	if peer == e.node.Address() {
		return nil, fmt.Errorf("%w: %v", ddpsctp.ErrSelf, peer)
	}
	for {
		as, again, err := e.dialOnce(ctx, peer)
		if !again {
			return as, err
		}
	}
}

// dialOnce waits for the association that there is, or that it opens. With again it is
// to be tried once more: the peer was opening one, which has ended, or a flow was to a former life of it.
func (e *Endpoint) dialOnce(ctx context.Context, peer relay.Address) (as *ddpsctp.Association, again bool, err error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, false, ddpsctp.ErrClosed
	}
	p := e.pathTo(peer)
	var a *association
	for _, o := range p.assocs {
		switch {
		case o.state == established && !o.ddp.Discarded():
			e.mu.Unlock()
			return o.ddp, false, nil
		case o.state == opening || o.state == answered && a == nil:
			a = o
		}
	}
	if a == nil {
		a = e.add(p, true)
		e.mu.Unlock()
		err = p.lanes[0].sendMessage(a, &message{kind: open, streams: e.cfg.Streams, own: a.tag}, false)
		e.mu.Lock()
	}
	a.waiters++
	e.mu.Unlock()
	if err == nil {
		select {
		case <-a.done:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	e.mu.Lock()
	a.waiters--
	unwanted := a.waiters == 0 && a.state == opening
	switch a.state {
	case established:
		e.mu.Unlock()
		return a.ddp, false, nil
	case ended:
		err = a.err
		again = ctx.Err() == nil && (!a.active || errors.Is(err, relay.ErrRestarted))
	}
	e.mu.Unlock()
	if unwanted {
		e.end(a, err)
	}
	return nil, again, err
}

// end ends an association, and tells its sessions. No lock is held.
func (e *Endpoint) end(a *association, err error) {
	e.mu.Lock()
	if a.state == ended {
		e.mu.Unlock()
		return
	}
	if a.state != established {
		close(a.done)
	}
	was := a.state
	a.state, a.err = ended, err
	a.over.Store(true)
	delete(e.tags, a.tag)
	a.p.assocs = slices.DeleteFunc(a.p.assocs, func(o *association) bool { return o == a })
	if a.onTrial {
		a.onTrial = false
		e.trials--
	}
	e.trim(a.p)
	if len(e.tags) == 0 {
		e.timer.Stop()
		e.timer = nil
	}
	e.mu.Unlock()
	if a.ddp != nil {
		a.up.Lock()
		a.ddp.Down(err, false)
		a.up.Unlock()
	}
	for i := range a.p.lanes {
		a.p.lanes[i].drop(a, err)
	}
	if f := e.cfg.OnNotify; f != nil && was == established {
		f(a.p.peer, false, err)
	}
}

// endPath ends all associations of a path of which a flow has ended, and its other flows: those that nothing was sent
// on lately do not know of the end yet.
func (e *Endpoint) endPath(p *path, err error) {
	e.mu.Lock()
	assocs := slices.Clone(p.assocs)
	e.mu.Unlock()
	for i := range p.lanes {
		l := &p.lanes[i]
		l.mu.Lock()
		if l.err == nil {
			l.err = err
		}
		if l.s != nil && l.s.Value() == l {
			l.s.Close()
		}
		l.mu.Unlock()
	}
	for _, a := range assocs {
		e.end(a, err)
	}
	for i := range p.lanes {
		p.lanes[i].drop(nil, err)
	}
}

// onTimer asks peers for signs of life, repeats what opens an association, and ends trials.
func (e *Endpoint) onTimer() {
	now := time.Now()
	var late, quiet, unanswered []*association
	e.mu.Lock()
	for _, a := range e.tags {
		if a.heard.Swap(false) {
			a.quiet = now
		}
		switch {
		case a.onTrial && !a.until.IsZero() && now.After(a.until):
			late = append(late, a)
		case now.Sub(a.quiet) < KeepAlive:
		case a.state == opening:
			a.quiet = now
			unanswered = append(unanswered, a)
		default:
			a.quiet = now
			quiet = append(quiet, a)
		}
	}
	if e.timer != nil {
		e.timer.Reset(tick)
	}
	e.mu.Unlock()
	for _, a := range late {
		a.Abort("no request was accepted in time")
	}
	for _, a := range unanswered { // the endpoint there may be another one since
		_ = a.p.lanes[0].sendMessage(a, &message{kind: open, streams: e.cfg.Streams, own: a.tag}, true)
	}
	for _, a := range quiet {
		a.ping()
		for i := range a.p.lanes {
			a.p.lanes[i].shrink()
		}
	}
}

// ping asks the peer for a sign of life, unless something waits for its confirmation anyway.
func (a *association) ping() {
	_ = a.p.lanes[0].sendMessage(a, &message{kind: ping, tag: a.peerTag}, true)
}

// Associations returns how many associations the endpoint has with each peer.
func (e *Endpoint) Associations() map[relay.Address]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := make(map[relay.Address]int)
	for _, a := range e.tags {
		if a.state == established {
			n[a.p.peer]++
		}
	}
	return n
}

// Close aborts all associations, and frees the service number for another endpoint.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return ddpsctp.ErrClosed
	}
	e.closed = true
	var all []*association
	for _, a := range e.tags {
		all = append(all, a)
	}
	e.mu.Unlock()
	e.acc.Close()
	for _, a := range all {
		if a.peerTag != 0 {
			_ = a.p.lanes[0].sendMessage(a, &message{kind: abort, tag: a.peerTag, reason: "endpoint closed"}, false)
		}
		e.end(a, ddpsctp.ErrClosed)
	}
	e.node.Unhandle(e.first, e.first+lanes-1)
	return nil
}

// probation is how long a peer that has opened an association has until a request of it comes.
const probation = sctp.DefaultProbationTimeout
