package job

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/mpi/internal/ctxconn"
	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport"
	"github.com/weftstack/weft/mpi/internal/transport/tcp"
)

// tcpTransport makes one TCP connection per pair of ranks: the higher rank
// connects to the lower.
type tcpTransport struct {
	job *Job
	ln  *net.TCPListener
	wg  sync.WaitGroup // reader goroutines

	up    atomic.Bool                 // the first links are complete
	links atomic.Pointer[[]*tcp.Link] // copy on write
	next  atomic.Uint32               // index of the link that is polled next

	mu        sync.Mutex
	conns     map[net.Conn]bool // all that are open
	closed    bool
	listening bool // for processes of other jobs
}

// dialsAtOnce bounds the connections a rank opens at the same time.
const dialsAtOnce = 8

func newTCPTransport(j *Job) (Transport, error) {
	ln, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(j.Options.Addr()))
	if err != nil {
		return nil, err
	}
	t := &tcpTransport{job: j, ln: ln, conns: make(map[net.Conn]bool)}
	t.links.Store(new([]*tcp.Link))
	return t, nil
}

func (t *tcpTransport) Addr() string { return t.ln.Addr().String() }

func (t *tcpTransport) Polling(bool, time.Duration) (func() bool, func() transport.Parker) {
	return t.poll, nil
}

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
		if l := links[int(t.next.Add(1))%len(links)]; l.Poll() {
			worked = true
		}
	}
	return worked
}

// Close implements Transport.
func (t *tcpTransport) Close() error {
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

// Connect implements Transport.
func (t *tcpTransport) Connect(ctx context.Context, addrs []string, key []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rank, size := t.job.Rank(), t.job.Size()
	links := make([]*tcp.Link, size)
	accepted := make(chan error, 1)
	higher := 0 // ranks that connect to this one
	for _, a := range addrs[rank+1:] {
		if a != "" { // else it is reached otherwise
			higher++
		}
	}
	go func() { accepted <- t.acceptAll(ctx, links, key, higher) }()

	var wg sync.WaitGroup
	gate := make(chan struct{}, dialsAtOnce)
	for peer := range rank {
		if addrs[peer] == "" {
			continue
		}
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
	var up []*tcp.Link
	for peer, l := range links {
		if l != nil {
			t.job.Engine.Peers[peer].Link = l
			t.job.Engine.Peers[peer].Coalesces = t.job.Engine.CanCoalesce()
			up = append(up, l)
		}
	}
	t.links.Store(&up)
	for _, l := range links {
		if l != nil {
			t.wg.Go(func() { t.receive(l) })
		}
	}
	t.up.Store(true)
	return nil
}

func (t *tcpTransport) dial(ctx context.Context, links []*tcp.Link, peer int, addr string, key []byte) error {
	h, msg := handshake.Connect(handshake.Params{Key: key, Self: t.job.Rank(), Size: t.job.Size()}, peer)
	conn, err := t.dialHandshake(ctx, addr, h, msg)
	if err != nil {
		return err
	}
	links[peer], err = t.newLink(conn, t.job.Engine.Peers[peer])
	return err
}

// dialHandshake makes a connection and runs the handshake.
func (t *tcpTransport) dialHandshake(ctx context.Context, addr string, h *handshake.Exchange, first []byte) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	t.keep(conn)
	undo := ctxconn.Interrupt(ctx, conn)
	err = handshake.Run(conn, h, first)
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
func (t *tcpTransport) newLink(conn net.Conn, p *p2p.Peer) (*tcp.Link, error) {
	c := conn.(*net.TCPConn)
	if err := tcp.SetFailureTimeout(c, t.job.Options.FailureTimeout); err != nil {
		return nil, err
	}
	return tcp.NewLink(c, p)
}

// acceptAll accepts connections until all higher ranks have connected.
func (t *tcpTransport) acceptAll(ctx context.Context, links []*tcp.Link, key []byte, missing int) error {
	rank, size := t.job.Rank(), t.job.Size()
	type result struct {
		peer int
		conn net.Conn
	}
	known, ended := make(chan result), make(chan error, 1)
	if missing == 0 {
		return nil
	}
	serving, stop := context.WithCancel(ctx)
	go func() {
		ended <- handshake.Server.Serve(serving, reopenable{t.ln}, func(c net.Conn, proven func() bool) {
			h := handshake.Accept(handshake.Params{Key: key, Self: rank, Size: size}, nil)
			if !t.accepts(c, h) || !proven() {
				return
			}
			t.keep(c)
			select {
			case known <- result{h.Peer(), c}:
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
			l, err := t.newLink(r.conn, t.job.Engine.Peers[r.peer])
			if err != nil {
				return err
			}
			links[r.peer] = l
			missing--
		case err := <-ended:
			ended <- err
			return ctxconn.Cause(ctx, err)
		}
	}
	return nil
}

// reopenable is a listener that can listen again after Close.
type reopenable struct{ *net.TCPListener }

func (l reopenable) Close() error { return l.SetDeadline(ctxconn.Past) }

// accepts runs the handshake as the acceptor h, and reports whether it has succeeded.
func (t *tcpTransport) accepts(conn net.Conn, h *handshake.Exchange) bool {
	err := handshake.Run(conn, h, nil)
	if err != nil {
		t.job.Record(slog.LevelDebug, "handshake refused", slog.String("addr", conn.RemoteAddr().String()), Cause(err))
	}
	return err == nil
}

// receive is the reader of a link, until it ends.
func (t *tcpTransport) receive(l *tcp.Link) {
	l.Read()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, l.Conn)
	if l.Peer.Remote == nil {
		return // there are only so many
	}
	links := slices.DeleteFunc(slices.Clone(*t.links.Load()), func(x *tcp.Link) bool { return x == l })
	t.links.Store(&links)
}

// connectRemote implements Transport.
func (t *tcpTransport) connectRemote(ctx context.Context, m *linkSetup, number int) error {
	h, msg := m.connector(number)
	conn, err := t.dialHandshake(ctx, directOf(m.peer(number).Remote.Addr), h, msg)
	if err != nil {
		return err
	}
	if err = t.adopt(conn, m, number); err != nil {
		t.drop(conn)
	}
	return err
}

// Listen implements Transport: it accepts connections of processes of other jobs from now on.
func (t *tcpTransport) Listen() error {
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
		_ = handshake.Server.Serve(context.Background(), t.ln, t.acceptRemote) // until t is closed
	})
	return nil
}

// acceptRemote runs the handshake with a process of another job.
func (t *tcpTransport) acceptRemote(c net.Conn, proven func() bool) {
	h := handshake.Accept(handshake.Params{Self: -1}, t.job.setupParams)
	if !t.accepts(c, h) || !proven() {
		return
	}
	m := t.job.linkSetup(h.Setup())
	if m == nil {
		return // it has ended meanwhile
	}
	t.keep(c)
	if t.adopt(c, m, h.Peer()) != nil {
		t.drop(c)
	}
}

// adopt makes a connection the link to a process of another job.
func (t *tcpTransport) adopt(conn net.Conn, m *linkSetup, number int) error {
	p := m.peer(number)
	if p == nil {
		return fmt.Errorf("%w: process %d is not expected", mpierr.ErrAuth, number)
	}
	l, err := t.newLink(conn, p)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return transport.ErrClosed
	}
	if m.claim(number, l) == nil {
		return fmt.Errorf("%w: process %d is not expected", mpierr.ErrAuth, number)
	}
	links := append(slices.Clone(*t.links.Load()), l)
	t.links.Store(&links)
	t.wg.Go(func() { t.receive(l) })
	m.linked(number, nil)
	return nil
}
