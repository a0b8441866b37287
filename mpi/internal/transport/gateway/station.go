package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/sctp/relay"
)

const (
	// maxFlows bounds the flows to a process, but for flow 0: one for control messages, 8 for envelopes, 8 for bodies.
	maxFlows = 1 + 2*8
	// flowBudget is how many flows a job may have through a gateway, in each direction: each takes the places of two,
	// with its acknowledgements, and a gateway has relay.DefaultMaxFlows for both directions.
	flowBudget = relay.DefaultMaxFlows / 4
	// attachTimeout bounds how long a process waits for a gateway of its site.
	attachTimeout = 30 * time.Second
)

// Station is the end of a process for all links to other sites. It is safe for concurrent use.
type Station struct {
	cfg   Config
	node  atomic.Pointer[relay.Node] // nil until a gateway has answered
	flows atomic.Int32               // to each process, but for flow 0
	mode  relay.Mode
	stop  chan struct{}
	ctx   context.Context // of connections; ends with Close
	end   context.CancelFunc
	conns conns
	tasks sync.WaitGroup
	up    chan struct{} // closed when all links to ranks are up, or one has failed

	connecting atomic.Bool // ranks is set
	broken     atomic.Bool // a link has ended by an error: the other process may not be there any more

	counters struct{ Stale, Invalid atomic.Uint64 }

	mu       sync.Mutex
	closed   bool
	pairs    map[relay.Address]*pair
	ranks    map[int]relay.Address // of the job, at other sites; nil until Connect
	links    map[int]*Link         // by rank
	missing  int                   // links to ranks that are not up
	upClosed bool
	err      error // why a link to a rank has failed before all were up
}

// New makes the station of a process, and connects it to the gateways of its site. It blocks until one of them has
// authenticated it.
func New(ctx context.Context, cfg Config) (*Station, error) {
	s := &Station{
		cfg: cfg, mode: mode(cfg.Process.Mode), stop: make(chan struct{}), up: make(chan struct{}),
		pairs: make(map[relay.Address]*pair), links: make(map[int]*Link),
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.conns = conns{s: s, open: make(map[connID]*conn), listeners: make(map[uint16]*listener)}
	s.spread(1)
	limit := fmt.Errorf("no gateway of site %s has answered within %v (%s)", cfg.siteName(cfg.Process.Site), attachTimeout, cfg.gateways())
	ctx, cancel := context.WithTimeoutCause(ctx, attachTimeout, limit)
	defer cancel()
	node, err := relay.NewNode(ctx, relay.NodeConfig{
		Address: addressOf(cfg.Process), Job: cfg.Process.Job, Key: cfg.Process.Key, Gateways: cfg.Process.Gateways,
		Transport: cfg.Transport, SCTP: cfg.SCTP, Mode: s.mode, PeerTimeout: cfg.Timeout, OnFragment: s.onFragment, OnProgress: s.onProgress, Log: cfg.Log,
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("mpi: process %v: %w", addressOf(cfg.Process), err)
	}
	s.node.Store(node)
	s.tasks.Go(s.timer)
	return s, nil
}

// Node returns the node, on which others may use streams from ddprelay.FirstStream on.
func (s *Station) Node() *relay.Node { return s.node.Load() }

func (s *Station) chained() bool { return s.mode == relay.Chained }

// spread chooses how many flows there are to each process, so that the flows of all pairs of processes fit into a gateway.
func (s *Station) spread(pairs int) {
	n := min(maxFlows, 1+2*s.cfg.Streams, flowBudget/max(1, pairs))
	if n = (n-1)/2*2 + 1; n < 3 {
		n = 1
	}
	s.flows.Store(int32(n))
}

// flowOf returns the flow of a stream of MPI: flow 1 has control messages, then come those of envelopes, and those of
// bodies.
func (s *Station) flowOf(stream uint16) int {
	n, k := int(stream), (int(s.flows.Load())-1)/2
	switch {
	case n == 0 || k == 0:
		return 1
	case n <= s.cfg.Streams:
		return 2 + (n-1)%k
	}
	return 2 + k + (n-1-s.cfg.Streams)%k
}

// connStream is the stream of the relay for connections: see Listen. Those of flows are below it.
const connStream = maxFlows + 1

// goTask runs f on a goroutine that Close waits for.
func (s *Station) goTask(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		go f()
		return
	}
	s.tasks.Go(f)
}

// onFragment is the upcall for data.
func (s *Station) onFragment(r *relay.Receiver, f *relay.Fragment) {
	if s.node.Load() == nil { // nobody knows this process yet: it is meant for a former one
		s.counters.Stale.Add(1)
		return
	}
	if r.Stream() == connStream {
		s.onConn(r, f)
		return
	}
	p, _ := r.Value().(*pair)
	if f.Err != nil { // the flow has ended
		if p != nil {
			p.fail(f.Err)
		}
		return
	}
	if p == nil || p.dead.Load() {
		if p = s.meet(r); p == nil {
			s.counters.Invalid.Add(1)
			return
		}
	}
	p.onFragment(r, f)
}

// onProgress is the upcall for confirmations and ends of flows.
func (s *Station) onProgress(x *relay.Sender) {
	if f, _ := x.Value().(*flow); f != nil {
		f.progress()
	}
}

// meet finds the process that a new flow comes from.
func (s *Station) meet(r *relay.Receiver) *pair {
	if r.Stream() > maxFlows {
		return nil
	}
	for {
		p, err := s.pairOf(r.Origin())
		if err != nil {
			return nil
		}
		p.mu.Lock()
		known := &p.receivers[r.Stream()]
		restarted := *known != nil && *known != r
		if !restarted {
			*known = r
		}
		p.mu.Unlock()
		if !restarted {
			r.SetValue(p)
			return p
		}
		p.fail(relay.ErrRestarted) // the next pairOf makes another one
	}
}

// errTooMany is the error of a process beyond the limit.
var errTooMany = fmt.Errorf("%w: too many processes at other sites", mpierr.ErrLimit)

// pairOf returns the state of a process at another site.
func (s *Station) pairOf(to relay.Address) (*pair, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pairs[to]
	switch {
	case p != nil:
		return p, nil
	case s.closed:
		return nil, relay.ErrClosed
	case len(s.pairs) >= s.cfg.MaxProcesses:
		return nil, errTooMany
	}
	p = newPair(s, to)
	s.pairs[to] = p
	return p, nil
}

// drop forgets a process whose flows have ended.
func (s *Station) drop(p *pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pairs[p.to] == p {
		delete(s.pairs, p.to)
	}
}

// claim makes l the link to a rank of the job. It reports false if the process at that address is not the rank, or has a
// link.
func (s *Station) claim(rank int, l *Link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to, ok := s.ranks[rank]; !ok || to != l.pair.to || s.links[rank] != nil {
		return false
	}
	s.links[rank] = l
	return true
}

// Link returns the link to a rank, once Connect has returned.
func (s *Station) Link(rank int) *Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.links[rank]
}

// linked records that a link to a rank is up, or has failed.
func (s *Station) linked(rank int, err error) {
	s.mu.Lock()
	if err == nil {
		s.missing--
	} else if s.err == nil && !s.upClosed {
		s.err = fmt.Errorf("mpi: connecting to rank %d: %w", rank, err)
	}
	s.mu.Unlock()
	s.checkUp()
}

// checkUp ends Connect if all links are up, or one has failed.
func (s *Station) checkUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ranks != nil && !s.upClosed && (s.missing == 0 || s.err != nil) {
		s.upClosed = true
		close(s.up)
	}
}

// explain says what the end of a flow to a process means.
func (s *Station) explain(to relay.Address, err error) error {
	var refused *relay.RefusedError
	what := "lost"
	switch {
	case errors.Is(err, relay.ErrUnreachable):
		what = fmt.Sprintf("no answer in %v", s.cfg.Timeout)
	case errors.Is(err, relay.ErrRestarted):
		what = "the process has restarted"
	case errors.Is(err, relay.ErrLost):
		what = "messages were lost with a gateway, as the mode lossy allows"
	case errors.As(err, &refused):
		what = "refused by a gateway"
	case errors.Is(err, relay.ErrClosed):
		return err
	}
	legs := s.upGateways()
	if legs == "" {
		legs = "none of the gateways of site " + s.cfg.siteName(s.cfg.Process.Site) + " is up: " + s.cfg.gateways()
	} else {
		legs = "through " + legs
	}
	return fmt.Errorf("process %v at site %s: %s (%s): %w", to, s.cfg.siteName(to.Site), what, legs, err)
}

// upGateways lists the gateways that the process has an association with.
func (s *Station) upGateways() string {
	names := ""
	node := s.node.Load()
	if node == nil {
		return names
	}
	for _, l := range node.Stats().Legs {
		if names != "" {
			names += ", "
		}
		names += fmt.Sprintf("gateway %d of site %s", l.Peer.Node, s.cfg.siteName(l.Peer.Site))
	}
	return names
}

// logLink logs something about a link.
func (s *Station) logLink(l *Link, msg string, err error) {
	if s.cfg.Log != nil {
		s.cfg.Log.Warn(msg, slog.String("process", l.pair.to.String()), slog.String("site", s.cfg.siteName(l.pair.to.Site)), slog.Any("error", err))
	}
}

// Close ends the links that are up, and waits until what was sent is confirmed, but not for long, see farewell.
func (s *Station) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	var links []*Link
	for _, p := range s.pairs {
		links = append(links, *p.links.Load()...)
	}
	s.mu.Unlock()
	for _, l := range links {
		l.Abort("closed")
	}
	s.conns.closeAll()
	limit := farewell
	if s.broken.Load() {
		limit = linger // what is not confirmed belongs to processes that have ended
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = s.node.Load().Shutdown(ctx)
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	s.end()
	s.tasks.Wait()
	return nil
}
