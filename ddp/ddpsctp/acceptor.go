package ddpsctp

import "sync"

// Acceptor takes the requests of the peers of an endpoint, for all its associations: it bounds and counts them.
type Acceptor struct {
	backlog   int // 0: no bound
	onRequest func(*Request)

	mu      sync.Mutex
	pending int  // guarded by mu: requests without a decision
	closed  bool // guarded by mu

	count counters
}

// NewAcceptor makes an acceptor of up to backlog requests without a decision (default DefaultBacklog), each of which
// is given to onRequest as Config.OnRequest says.
func NewAcceptor(backlog int, onRequest func(*Request)) *Acceptor {
	if backlog <= 0 {
		backlog = DefaultBacklog
	}
	return &Acceptor{backlog: backlog, onRequest: onRequest}
}

// Stats returns a snapshot of the counters. It leaves Associations to the caller.
func (c *Acceptor) Stats() Stats {
	n := &c.count
	st := Stats{
		Initiated: n.initiated.Load(), Accepted: n.accepted.Load(), Rejected: n.rejected.Load(),
		Refused: n.refused.Load(), Killed: n.killed.Load(), Collided: n.collided.Load(),
		Dropped: n.dropped.Load(), NotDDP: n.notDDP.Load(),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	st.Pending = c.pending
	return st
}

// Close has all requests refused that come later.
func (c *Acceptor) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// take counts a pending request, unless there are too many.
func (c *Acceptor) take() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.backlog > 0 && c.pending >= c.backlog {
		return false
	}
	c.pending++
	return true
}

// give counts a decision.
func (c *Acceptor) give() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending--
}
