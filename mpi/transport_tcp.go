package mpi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/internal/accept"
	"github.com/weftstack/weft/mpi/internal/envelope"
)

// tcpTransport makes one TCP connection per pair of ranks: the higher rank
// connects to the lower.
type tcpTransport struct {
	w  *World
	ln *net.TCPListener
	wg sync.WaitGroup // reader goroutines

	up    atomic.Bool                // the first links are complete
	links atomic.Pointer[[]*tcpLink] // copy on write
	next  atomic.Uint32              // index of the link that is polled next

	mu        sync.Mutex
	conns     map[net.Conn]bool // all that are open
	closed    bool
	listening bool // for processes of other jobs
}

const (
	// dialsAtOnce bounds the connections a rank opens at the same time.
	dialsAtOnce = 8
	// handshakeTimeout bounds the handshake of one connection.
	handshakeTimeout = 30 * time.Second
	// maxUnprovenConns bounds the connections that are not authenticated yet. One more closes the
	// oldest.
	maxUnprovenConns = 256
)

func newTCPTransport(w *World) (transport, error) {
	ln, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(w.opts.addr()))
	if err != nil {
		return nil, err
	}
	t := &tcpTransport{w: w, ln: ln, conns: make(map[net.Conn]bool)}
	t.links.Store(new([]*tcpLink))
	return t, nil
}

func (t *tcpTransport) addr() string { return t.ln.Addr().String() }

func (t *tcpTransport) polling(bool) (func() bool, func() parker) { return t.poll, nil }

// pollLinks is how many connections one poll reads from: each takes a system call.
const pollLinks = 4

// poll receives from the next few connections.
func (t *tcpTransport) poll() bool {
	if !t.up.Load() {
		return false
	}
	worked := false
	links := *t.links.Load()
	for range min(pollLinks, len(links)) {
		if l := links[int(t.next.Add(1))%len(links)]; l.poll() {
			worked = true
		}
	}
	return worked
}

// close implements transport.
func (t *tcpTransport) close() error {
	err := t.ln.Close()
	t.mu.Lock()
	t.closed = true
	for c := range t.conns {
		_ = c.Close()
	}
	t.mu.Unlock()
	t.wg.Wait()
	return err
}

func (t *tcpTransport) keep(c net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = c.Close()
		return
	}
	t.conns[c] = true
}

// drop closes a connection.
func (t *tcpTransport) drop(c net.Conn) {
	_ = c.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
}

// connect implements transport.
func (t *tcpTransport) connect(ctx context.Context, addrs []string, key []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rank, size := t.w.Rank(), t.w.Size()
	links := make([]*tcpLink, size)
	accepted := make(chan error, 1)
	go func() { accepted <- t.acceptAll(ctx, links, key) }()

	var wg sync.WaitGroup
	gate := make(chan struct{}, dialsAtOnce)
	for peer := range rank {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			if err := t.dial(ctx, links, peer, addrs[peer], key); err != nil {
				cancel(fmt.Errorf("mpi: connecting to rank %d at %s: %w", peer, addrs[peer], err))
			}
		})
	}
	wg.Wait()
	err := <-accepted
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return err
	}
	var up []*tcpLink
	for peer, l := range links {
		if peer != rank {
			t.w.eng.peers[peer].link = l
			t.w.eng.peers[peer].coalesces = canCoalesce()
			up = append(up, l)
		}
	}
	t.links.Store(&up)
	for peer, l := range links {
		if peer != rank {
			t.wg.Go(func() { t.receive(l) })
		}
	}
	t.up.Store(true)
	return nil
}

func (t *tcpTransport) dial(ctx context.Context, links []*tcpLink, peer int, addr string, key []byte) error {
	h, msg := newConnector(key, t.w.Rank(), peer, t.w.Size())
	conn, err := t.dialHandshake(ctx, addr, h, msg)
	if err != nil {
		return err
	}
	links[peer], err = t.newLink(conn, t.w.eng.peers[peer])
	return err
}

// dialHandshake makes a connection and runs the handshake.
func (t *tcpTransport) dialHandshake(ctx context.Context, addr string, h *handshake, first []byte) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	t.keep(conn)
	undo := interrupt(ctx, conn)
	err = runHandshake(conn, h, first)
	if cause := undo(); cause != nil {
		err = cause
	}
	if err != nil {
		t.drop(conn)
		return nil, err
	}
	return conn, nil
}

// newLink makes a link to a peer of a connection, with the failure-detection timeout.
func (t *tcpTransport) newLink(conn net.Conn, p *peer) (*tcpLink, error) {
	tcp := conn.(*net.TCPConn)
	if err := setFailureTimeout(tcp, t.w.opts.failureTimeout); err != nil {
		return nil, err
	}
	return newTCPLink(tcp, p)
}

// tcpProbes is how many keepalive probes of an idle connection may remain without an answer.
const tcpProbes = 5

// keepAlive returns the keepalive times of an idle connection. The system counts in seconds.
func keepAlive(timeout time.Duration) net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: max(timeout/2, time.Second),
		Interval: max(timeout/(2*tcpProbes), time.Second), Count: tcpProbes}
}

// userTimeoutFor returns how long data may remain unacknowledged: more than the timeout, because
// few segments are sent in that time, as the retransmission timeout doubles.
func userTimeoutFor(timeout time.Duration) time.Duration { return timeout + timeout/3 }

// setFailureTimeout makes a connection end after about the given time without an answer.
func setFailureTimeout(conn *net.TCPConn, timeout time.Duration) error {
	if err := conn.SetKeepAliveConfig(keepAlive(timeout)); err != nil {
		return err
	}
	return userTimeout(conn, userTimeoutFor(timeout))
}

// acceptAll accepts connections until all higher ranks have connected.
func (t *tcpTransport) acceptAll(ctx context.Context, links []*tcpLink, key []byte) error {
	rank, size := t.w.Rank(), t.w.Size()
	type result struct {
		peer int
		conn net.Conn
	}
	known, ended := make(chan result), make(chan error, 1)
	missing := size - 1 - rank
	if missing == 0 {
		return nil
	}
	serving, stop := context.WithCancel(ctx)
	go func() {
		ended <- handshakeServer.Serve(serving, reopenable{t.ln}, func(c net.Conn, proven func() bool) {
			h := newAcceptor(key, rank, size)
			if !t.accepts(c, h) || !proven() {
				return
			}
			t.keep(c)
			select {
			case known <- result{h.peer, c}:
			case <-serving.Done():
				t.drop(c)
			}
		})
	}()
	defer func() {
		stop()
		<-ended // it must not accept a connection that is meant for listen
	}()
	for missing > 0 {
		select {
		case r := <-known:
			if links[r.peer] != nil {
				t.drop(r.conn)
				continue
			}
			l, err := t.newLink(r.conn, t.w.eng.peers[r.peer])
			if err != nil {
				return err
			}
			links[r.peer] = l
			missing--
		case err := <-ended:
			ended <- err
			return orCause(ctx, err)
		}
	}
	return nil
}

// handshakeServer accepts connections and gives each a bounded time for its handshake.
var handshakeServer = accept.Server{MaxUnproven: maxUnprovenConns, ProofTimeout: handshakeTimeout}

// reopenable is a listener that can listen again after Close.
type reopenable struct{ *net.TCPListener }

func (l reopenable) Close() error { return l.SetDeadline(past) }

// accepts runs the handshake as the acceptor h, and reports whether it has succeeded.
func (t *tcpTransport) accepts(conn net.Conn, h *handshake) bool {
	err := runHandshake(conn, h, nil)
	if err != nil {
		t.w.record(slog.LevelDebug, "handshake refused", slog.String("addr", conn.RemoteAddr().String()), cause(err))
	}
	return err == nil
}

// runHandshake runs the handshake on conn. It blocks until the handshake is complete or fails. The connector
// gives its hello as first, the acceptor nil.
func runHandshake(conn net.Conn, h *handshake, first []byte) error {
	if first != nil {
		if _, err := conn.Write(handshakeFrame(first)); err != nil {
			return err
		}
	}
	var buf [envelope.MinLen + maxHandshake]byte
	for !h.sending() {
		if _, err := io.ReadFull(conn, buf[:envelope.MinLen]); err != nil {
			return errors.Join(ErrAuth, err)
		}
		var v envelope.Header
		if !v.Decode(buf[:envelope.MinLen]) || v.Kind != envelope.Handshake || v.Length > maxHandshake {
			return fmt.Errorf("%w: not a handshake message", ErrAuth)
		}
		msg := buf[envelope.MinLen:][:v.Length]
		if _, err := io.ReadFull(conn, msg); err != nil {
			return errors.Join(ErrAuth, err)
		}
		reply, err := h.step(msg)
		if err != nil {
			return err
		}
		if reply != nil {
			if _, err := conn.Write(handshakeFrame(reply)); err != nil {
				return err
			}
		}
	}
	return conn.SetDeadline(time.Time{})
}

// receive is the reader of a link, until it ends.
func (t *tcpTransport) receive(l *tcpLink) {
	l.read()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, l.conn)
	if l.peer.remote == nil {
		return // there are only so many
	}
	links := slices.DeleteFunc(slices.Clone(*t.links.Load()), func(x *tcpLink) bool { return x == l })
	t.links.Store(&links)
}

// connectRemote implements transport.
func (t *tcpTransport) connectRemote(ctx context.Context, m *linkSetup, number int) error {
	h, msg := m.connector(number)
	conn, err := t.dialHandshake(ctx, m.peer(number).remote.addr, h, msg)
	if err != nil {
		return err
	}
	if err = t.adopt(conn, m, number); err != nil {
		t.drop(conn)
	}
	return err
}

// listen implements transport: it accepts connections of processes of other jobs from now on.
func (t *tcpTransport) listen() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.listening || t.closed {
		return nil
	}
	t.listening = true
	if err := t.ln.SetDeadline(time.Time{}); err != nil {
		return err
	}
	t.wg.Go(func() {
		_ = handshakeServer.Serve(context.Background(), t.ln, t.acceptRemote) // until t is closed
	})
	return nil
}

// acceptRemote runs the handshake with a process of another job.
func (t *tcpTransport) acceptRemote(c net.Conn, proven func() bool) {
	h := newAcceptor(nil, -1, 0)
	h.find = t.w.linkSetup
	if !t.accepts(c, h) || h.setup == nil || !proven() {
		return
	}
	t.keep(c)
	if t.adopt(c, h.setup, h.peer) != nil {
		t.drop(c)
	}
}

// adopt makes a connection the link to a process of another job.
func (t *tcpTransport) adopt(conn net.Conn, m *linkSetup, number int) error {
	p := m.peer(number)
	if p == nil {
		return fmt.Errorf("%w: process %d is not expected", ErrAuth, number)
	}
	l, err := t.newLink(conn, p)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errLinkClosed
	}
	if m.claim(number, l) == nil {
		return fmt.Errorf("%w: process %d is not expected", ErrAuth, number)
	}
	links := append(slices.Clone(*t.links.Load()), l)
	t.links.Store(&links)
	t.wg.Go(func() { t.receive(l) })
	m.linked(number, nil)
	return nil
}
