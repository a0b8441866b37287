package sctp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/logging"

	weft "github.com/weftstack/weft/sctp"
)

// closeTimeout is how long the Close of the connection may write.
const closeTimeout = 200 * time.Millisecond

// Association is an SCTP association over a net.Conn.
type Association struct {
	name           string
	log            logging.LeveledLogger
	blockWrite     bool
	maxQueue       int // messages of a stream
	weights        map[uint16]uint16
	recvBuffer     int
	slack          int // of held
	zeroReceive    bool
	maxMessageSize atomic.Uint32

	conn *conn
	weft *weft.Association // set before the first message, and not changed

	done     chan struct{} // closed at the end of the association
	closing  atomic.Bool   // Close or Abort was called
	shutting atomic.Bool   // shut was called
	closed   chan struct{} // closed when nothing of the association runs any more

	mu       sync.Mutex
	began    bool // weft is set
	ended    bool
	shutdown bool // by either side
	// peerShutdown tells that the peer has begun a shutdown: all that it sent has come.
	peerShutdown bool
	streams      map[uint16]*Stream
	slots        map[uint16]*outgoing
	accepting    fifo[*Stream]
	acceptors    sync.Cond
	parts        parts
	buffered     int // bytes written and not acknowledged
	held         int // bytes unread that the association below was not told of
	unread       int // bytes of memory unread in all
	freeMsgs     []*message

	resets    []*outgoing // streams to be reset
	resetting bool
	resetDone sync.Cond // the peer has answered
}

// Client opens an association over config.NetConn. Both sides may be clients. It blocks until the
// association is established, or has failed with ErrHandshakeInitAck or
// ErrAssociationClosedBeforeConn.
//
// Deprecated: use ClientWithOptions.
func Client(config Config) (*Association, error) { return ClientWithOptions(config) }

// ClientWithOptions is ClientContext without a context.
func ClientWithOptions(opts ...ClientOption) (*Association, error) {
	return ClientContext(context.Background(), opts...)
}

// ClientContext opens an association over a connection. Both sides may be clients. It blocks until
// the association is established; until it has failed, with ErrHandshakeInitAck or
// ErrAssociationClosedBeforeConn; or until ctx is done, and returns its error. The connection is
// closed then, unless ctx was done before. After that ctx does not matter.
func ClientContext(ctx context.Context, opts ...ClientOption) (*Association, error) {
	var c Config
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o.applyClient(&c); err != nil {
			return nil, err
		}
	}
	if c.NetConn == nil {
		return nil, errNetConn
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return start(ctx, &c, weft.Client)
}

// Server is ServerWithOptions with a Config.
//
// Deprecated: use ServerWithOptions.
func Server(config Config) (*Association, error) { return ServerWithOptions(config) }

// ServerWithOptions accepts an association over a connection. It blocks until the peer has opened
// one, or the connection has ended, and returns ErrAssociationClosedBeforeConn then.
func ServerWithOptions(opts ...ServerOption) (*Association, error) {
	var c Config
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o.applyServer(&c); err != nil {
			return nil, err
		}
	}
	if c.NetConn == nil {
		return nil, errNetConn
	}
	return start(context.Background(), &c, weft.Server)
}

// start makes an association, and opens the one below.
func start(ctx context.Context, c *Config, open func(context.Context, net.Conn, *weft.ConnConfig) (*weft.Association, error)) (*Association, error) {
	c.defaults()
	a := &Association{
		name: c.Name, log: c.LoggerFactory.NewLogger("sctp"),
		blockWrite: c.BlockWrite, maxQueue: int(c.maxQueueEntries),
		weights: c.interleaving.weights, recvBuffer: int(c.MaxReceiveBufferSize),
		slack: max(int(c.MaxReceiveBufferSize)/slackShare, 1), zeroReceive: c.EnableZeroChecksum,
		conn:    &conn{Conn: c.NetConn, closed: make(chan struct{})},
		done:    make(chan struct{}),
		closed:  make(chan struct{}),
		streams: make(map[uint16]*Stream), slots: make(map[uint16]*outgoing),
	}
	a.acceptors.L, a.resetDone.L = &a.mu, &a.mu
	a.parts.init(a.recvBuffer)
	a.maxMessageSize.Store(c.MaxMessageSize)
	if a.name == "" {
		a.name = fmt.Sprintf("%p", a)
	}
	cc := c.weft()
	cc.Log = newLog(a.log, a.name)
	cc.Config.OnAssociation = a.begin
	cc.Config.OnPiece = func(w *weft.Association, p *weft.Piece) {
		if w == a.weft {
			a.piece(p)
		}
	}
	cc.Config.OnNotify = func(w *weft.Association, n weft.Notification) {
		if w == a.weft {
			a.notify(n)
		}
	}
	// Whoever gives up must not wait for the connection to take what is left.
	stop := context.AfterFunc(ctx, func() {
		a.closing.Store(true)
		_ = a.conn.Close()
	})
	w, err := open(ctx, a.conn.lower(), cc)
	switch {
	case !stop():
		go a.shut()
		return nil, ctx.Err()
	case err == nil && w == a.lower():
		observe(c.LoggerFactory, w)
		return a, nil
	}
	a.shut()
	var abort *weft.AbortError
	switch {
	case err == nil:
		return nil, ErrAssociationClosedBeforeConn
	case errors.As(err, &abort):
		return nil, abortError(a.name, abort)
	case errors.Is(err, weft.ErrTimeout):
		return nil, fmt.Errorf("%w: %w", ErrHandshakeInitAck, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrAssociationClosedBeforeConn, err)
}

// begin is called for the association below.
func (a *Association) begin(w *weft.Association) {
	a.mu.Lock()
	first := !a.began
	if first {
		a.began, a.weft = true, w
	}
	a.mu.Unlock()
	if !first {
		w.Abort("the association has ended")
		return
	}
	for id, weight := range a.weights {
		_ = w.SetStreamPriority(id, weight) // what is not a stream has no weight
	}
}

// shut closes all that runs for the association, and waits for it: the connection, too, once it has taken
// what waits, within 200 ms. It must not be called in an upcall.
func (a *Association) shut() {
	// Not a sync.Once: one that waits for it would hold up the virtual time of testing/synctest.
	if a.shutting.CompareAndSwap(false, true) {
		if w := a.lower(); w != nil {
			_ = w.Endpoint().Transport().Close()
		}
		_ = a.conn.Close()
		a.end(nil)
		close(a.closed)
	}
	<-a.closed
}

// Close ends the association at once, and closes the connection. It tells the peer nothing: what it
// has not acknowledged may be lost. See Shutdown. It returns the error of the connection.
func (a *Association) Close() error {
	a.closing.Store(true)
	err := a.conn.Close()
	a.shut()
	return err
}

// Abort ends the association at once, tells the peer (RFC 9260, Section 9.1), with reason as the cause,
// and closes the connection. It waits for the connection to take that for 200 ms at most.
func (a *Association) Abort(reason string) {
	a.closing.Store(true)
	if w := a.lower(); w != nil {
		w.Abort(reason)
	}
	a.shut()
}

// Shutdown ends the association after all that was written is acknowledged (RFC 9260, Section 9.2), and
// closes the connection. It blocks until then, or until ctx is done, and returns its error; the
// shutdown goes on then. It returns ErrShutdownNonEstablished if the association is not established,
// and otherwise nil, even if the association has ended in another way.
func (a *Association) Shutdown(ctx context.Context) error {
	w := a.lower()
	if w == nil || w.State() != weft.Established {
		return fmt.Errorf("%w: %s", ErrShutdownNonEstablished, a.name)
	}
	a.mu.Lock()
	a.shutdown = true
	a.mu.Unlock()
	// What the peer sent before can still be read, so this is not the Close of the association.
	if err := w.Shutdown(ctx); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case <-a.done:
		a.shut()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lower returns the association below, or nil if there is none yet.
func (a *Association) lower() *weft.Association {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.began {
		return nil
	}
	return a.weft
}

// notify handles an event of the association below.
func (a *Association) notify(n weft.Notification) {
	switch n.Kind {
	case weft.NotifyUp:
		a.log.Debugf("[%s] established", a.name)
	case weft.NotifyShutdown:
		a.mu.Lock()
		a.shutdown, a.peerShutdown = true, true
		a.mu.Unlock()
	case weft.NotifyStreamsReset:
		a.peerReset(n.Streams)
	case weft.NotifyRestart:
		a.mu.Lock()
		a.endStreams(ErrAssociationRestarted)
		a.unlock()
	case weft.NotifyDown:
		a.end(n.Err)
		go a.shut() // not here: it waits for the goroutine that calls this
	}
}

// end ends all streams.
func (a *Association) end(err error) {
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return
	}
	a.ended = true
	why := a.conn.ended(err)
	var abort *weft.AbortError
	switch {
	case errors.As(err, &abort) && abort.ByPeer:
		why = abortError(a.name, abort)
	case a.closing.Load(), a.peerShutdown:
		why = io.EOF
	case why != nil: // of the connection
	case err == nil:
		why = io.EOF
	default:
		why = fmt.Errorf("%w: %w", ErrAssociationClosed, err)
	}
	a.log.Debugf("[%s] ended: %v", a.name, why)
	a.endStreams(why)
	a.acceptors.Broadcast()
	a.unlock()
	close(a.done)
}

// endStreams ends all streams because of err. mu is held.
func (a *Association) endStreams(err error) {
	for id, s := range a.streams {
		s.failed = err
		s.endRead(err)
		delete(a.streams, id)
	}
	for _, o := range a.slots {
		o.free()
	}
	a.resets = nil
	a.parts.drop(a, nil)
	a.resetDone.Broadcast()
}

// abortError returns the error for an association that was aborted.
func abortError(name string, e *weft.AbortError) error {
	const userInitiated = 12 // RFC 9260, Section 3.3.10.12
	if e.Cause == userInitiated {
		return fmt.Errorf("[%s] %w: %w: %s", name, ErrChunk, ErrUserInitiatedAbort, e.Reason)
	}
	return fmt.Errorf("[%s] %w: %w", name, ErrChunk, e)
}
