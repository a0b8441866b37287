package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/weftstack/weft/sctp/relay"
)

const (
	// DefaultMaxConns bounds the connections of an endpoint. With the memory limits of its node that
	// bounds what they hold: relay.FlowReserve for each, in each direction, beyond the node's limits.
	DefaultMaxConns = 4096
	// Backlog is how many connections wait for Accept; further ones are refused.
	Backlog = 1024
	// DefaultKeepalive is how often endpoints with connections send a ping to each other.
	DefaultKeepalive = 2 * time.Second
	// DefaultLinger is how long a connection that was closed may take to send what it has, and to see the
	// end of the other direction, before it is reset.
	DefaultLinger = time.Minute
	// maxPeers bounds the processes that an endpoint has connections with, or has had.
	maxPeers = 1024
)

// Errors that callers branch on with errors.Is.
var (
	// ErrReset is the end of a connection that the other end has reset, or which is gone.
	ErrReset = errors.New("stream: connection reset")
	// ErrClosed is returned by operations on a closed Conn or Endpoint. It matches net.ErrClosed.
	ErrClosed = fmt.Errorf("stream: closed: %w", net.ErrClosed)
	// ErrLimit is returned by Dial when an endpoint has the largest number of connections.
	ErrLimit = errors.New("stream: limit reached")
	// ErrConfig is returned for a configuration that contradicts itself.
	ErrConfig = errors.New("stream: bad configuration")
)

// RefusedError is returned by Dial for a connection that the other end has refused.
type RefusedError struct {
	Code Code
	Text string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("stream: refused (code %d): %s", e.Code, e.Text)
}

// Config holds the parameters of an Endpoint. Node must be set.
type Config struct {
	// Node has the flows, in mode relay.Piecewise and without OnFragment. All of them are the endpoint's. The
	// node belongs to the caller, and is closed after the endpoint. Its FlowWindow bounds what a connection
	// holds in each direction, its PeerTimeout is after how long the connections with a process that does not
	// answer are reset.
	Node *relay.Node
	// MaxConns bounds the connections (default DefaultMaxConns).
	MaxConns int
	// Allow, if not nil, tells whether a process may open connections to this one. It must not block.
	Allow func(relay.Address) bool
	// Keepalive and Linger are times; see the constants of these names.
	Keepalive, Linger time.Duration
	// Log, if not nil, gets a line for each process that is gone, and for those that break the protocol.
	Log *slog.Logger
}

// Endpoint has the connections of a process. It is safe for concurrent use.
//
// It has two goroutines, one that learns which flows have something to read, and one for a timer. A connection has
// none, but while it is being closed and its last bytes wait for credit.
type Endpoint struct {
	cfg     Config
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	accepts chan *Request

	// mu guards the state of connections, peers and flows. Nothing is sent or received with it held.
	mu         sync.Mutex
	closed     bool
	peers      map[relay.Address]*peer
	conns      int
	generation uint32 // of the last connection
	counters   Counters
}

// New makes the endpoint of a node. Errors: ErrConfig.
func New(cfg Config) (*Endpoint, error) {
	if cfg.Node == nil {
		return nil, fmt.Errorf("%w: no node", ErrConfig)
	}
	if cfg.MaxConns < 0 || cfg.Keepalive < 0 || cfg.Linger < 0 {
		return nil, fmt.Errorf("%w: negative MaxConns %d, Keepalive %v or Linger %v", ErrConfig, cfg.MaxConns, cfg.Keepalive, cfg.Linger)
	}
	if cfg.MaxConns == 0 {
		cfg.MaxConns = DefaultMaxConns
	}
	if cfg.Keepalive == 0 {
		cfg.Keepalive = DefaultKeepalive
	}
	if cfg.Linger == 0 {
		cfg.Linger = DefaultLinger
	}
	e := &Endpoint{
		cfg: cfg, accepts: make(chan *Request, Backlog),
		peers: make(map[relay.Address]*peer), generation: firstGeneration(),
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.tasks.Go(e.dispatch)
	e.tasks.Go(e.timer)
	return e, nil
}

// Address returns the address of the process.
func (e *Endpoint) Address() relay.Address { return e.cfg.Node.Address() }

// dispatch learns which flows have something to read. It wakes the reader of the connection, or reads itself where
// there is none.
func (e *Endpoint) dispatch() {
	for {
		r, err := e.cfg.Node.Next(e.ctx)
		if err != nil {
			if e.ctx.Err() == nil { // the node was closed
				e.end()
			}
			return
		}
		e.mu.Lock()
		p := e.peer(r.Origin())
		if p == nil {
			e.mu.Unlock()
			discard(r)
			continue
		}
		f := p.flow(r.Stream())
		known := f.r == r
		e.mu.Unlock()
		if !known {
			f.adopt(r)
		}
		f.drain()
	}
}

// tick is the period of the timer.
const tick = time.Second

// timer runs until Close.
func (e *Endpoint) timer() {
	t := time.NewTicker(tick)
	defer t.Stop()
	every := max(1, int(e.cfg.Keepalive/tick))
	for i := 1; ; i++ {
		select {
		case <-e.ctx.Done():
			return
		case now := <-t.C:
			e.onTimer(now, i%every == 0)
		}
	}
}

// onTimer ends connections that have lingered, and sends pings and notices that had to wait.
func (e *Endpoint) onTimer(now time.Time, ping bool) {
	var late, all []*Conn
	var peers []*peer
	e.mu.Lock()
	for _, p := range e.peers {
		if p.open > 0 || len(p.notices) > 0 {
			peers = append(peers, p)
		}
		for _, f := range p.flows {
			c := f.conn
			if c == nil {
				continue
			}
			if !c.linger.IsZero() && now.After(c.linger) {
				late = append(late, c)
			}
			if c.s != nil {
				all = append(all, c)
			}
		}
	}
	e.mu.Unlock()
	for _, c := range all {
		if _, err := c.s.Progress(); err != nil {
			c.fail(fmt.Errorf("%w: %w", ErrReset, err), CodeUnspecified, true)
		}
	}
	for _, c := range late {
		c.fail(fmt.Errorf("%w: it lingered for %v", ErrReset, e.cfg.Linger), CodeUnspecified, true)
	}
	for _, p := range peers {
		p.tell(ping)
	}
}

// Accept waits for a connection that another process opens. Errors: that of ctx, ErrClosed.
func (e *Endpoint) Accept(ctx context.Context) (*Request, error) {
	select {
	case r := <-e.accepts:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.ctx.Done():
		return nil, ErrClosed
	}
}

// Close resets all connections, and ends calls that block. The node is the caller's, who closes it then.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return ErrClosed
	}
	e.end()
	e.tasks.Wait()
	return nil
}

// end resets all connections.
func (e *Endpoint) end() {
	e.mu.Lock()
	e.closed = true
	var all []*Conn
	for _, p := range e.peers {
		all = p.conns(all)
	}
	e.mu.Unlock()
	for _, c := range all {
		c.fail(ErrClosed, CodeUnspecified, true)
	}
	e.cancel()
}

// note writes a line into the log. mu is not held.
func (e *Endpoint) note(level slog.Level, msg string, attrs ...slog.Attr) {
	if e.cfg.Log != nil {
		e.cfg.Log.LogAttrs(context.Background(), level, msg, attrs...)
	}
}
