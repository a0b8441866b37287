package mpi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/internal/accept"
)

// tcpFabric makes one TCP connection per pair of ranks: the higher rank
// connects to the lower.
type tcpFabric struct {
	w  *World
	ln *net.TCPListener
	wg sync.WaitGroup // reader goroutines

	up    atomic.Bool                // the first links are complete
	links atomic.Pointer[[]*tcpLink] // replaced, never changed
	next  atomic.Uint32              // link to poll

	mu        sync.Mutex
	conns     map[net.Conn]bool // all that are open
	closed    bool
	listening bool // for processes of other jobs
}

const (
	// dialsAtOnce bounds the connections a rank opens at the same time.
	dialsAtOnce = 8
	// helloTimeout bounds the exchange of greetings with one connection.
	helloTimeout = 30 * time.Second
	// strangersAtOnce bounds the connections that have not proved yet who they are.
	// One more closes the oldest.
	strangersAtOnce = 256
)

func newTCPFabric(w *World) (fabric, error) {
	ln, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(w.opts.addr()))
	if err != nil {
		return nil, err
	}
	f := &tcpFabric{w: w, ln: ln, conns: make(map[net.Conn]bool)}
	f.links.Store(new([]*tcpLink))
	return f, nil
}

func (f *tcpFabric) card() string { return f.ln.Addr().String() }

func (f *tcpFabric) polling(bool) (func() bool, func() parker) { return f.poll, nil }

// pollLinks is how many connections one poll looks at: each takes a system call.
const pollLinks = 4

// poll receives from the next few connections.
func (f *tcpFabric) poll() bool {
	if !f.up.Load() {
		return false
	}
	worked := false
	links := *f.links.Load()
	for range min(pollLinks, len(links)) {
		if l := links[int(f.next.Add(1))%len(links)]; l.poll() {
			worked = true
		}
	}
	return worked
}

// close implements fabric.
func (f *tcpFabric) close() error {
	err := f.ln.Close()
	f.mu.Lock()
	f.closed = true
	for c := range f.conns {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
	return err
}

func (f *tcpFabric) keep(c net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		_ = c.Close()
		return
	}
	f.conns[c] = true
}

// drop closes a connection.
func (f *tcpFabric) drop(c net.Conn) {
	_ = c.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
}

// connect implements fabric.
func (f *tcpFabric) connect(ctx context.Context, cards []string, key []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rank, size := f.w.Rank(), f.w.Size()
	links := make([]*tcpLink, size)
	accepted := make(chan error, 1)
	go func() { accepted <- f.acceptAll(ctx, links, key) }()

	var wg sync.WaitGroup
	gate := make(chan struct{}, dialsAtOnce)
	for peer := range rank {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			if err := f.dial(ctx, links, peer, cards[peer], key); err != nil {
				cancel(fmt.Errorf("mpi: connecting to rank %d at %s: %w", peer, cards[peer], err))
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
			f.w.eng.peers[peer].link = l
			f.w.eng.peers[peer].bursts = canBurst()
			up = append(up, l)
		}
	}
	f.links.Store(&up)
	for peer, l := range links {
		if peer != rank {
			f.wg.Go(func() { f.receive(l) })
		}
	}
	f.up.Store(true)
	return nil
}

func (f *tcpFabric) dial(ctx context.Context, links []*tcpLink, peer int, addr string, key []byte) error {
	h, msg := newConnector(key, f.w.Rank(), peer, f.w.Size())
	conn, err := f.visit(ctx, addr, h, msg)
	if err != nil {
		return err
	}
	links[peer], err = f.newLink(conn, f.w.eng.peers[peer])
	return err
}

// visit makes a connection and exchanges greetings.
func (f *tcpFabric) visit(ctx context.Context, addr string, h *hello, first []byte) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	f.keep(conn)
	undo := interrupt(ctx, conn)
	err = greet(conn, h, first)
	if cause := undo(); cause != nil {
		err = cause
	}
	if err != nil {
		f.drop(conn)
		return nil, err
	}
	return conn, nil
}

// newLink makes a connection the link to a peer, and one that ends when the peer
// does not answer.
func (f *tcpFabric) newLink(conn net.Conn, p *peer) (*tcpLink, error) {
	tcp := conn.(*net.TCPConn)
	if err := watchSilence(tcp, f.w.opts.silence); err != nil {
		return nil, err
	}
	return newTCPLink(tcp, p)
}

// tcpProbes is how many probes of an idle connection remain without an answer
// before it ends.
const tcpProbes = 5

// keepAlive returns for how long, and how often, an idle connection is probed before it
// ends. The system counts in seconds.
func keepAlive(silence time.Duration) net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: max(silence/2, time.Second),
		Interval: max(silence/(2*tcpProbes), time.Second), Count: tcpProbes}
}

// dataSilence is how long data may be on its way without an acknowledgement: a little
// more than the silence, as few segments are sent in that time: pauses double.
func dataSilence(silence time.Duration) time.Duration { return silence + silence/3 }

// watchSilence makes a connection end after about the given time without an answer.
func watchSilence(conn *net.TCPConn, silence time.Duration) error {
	if err := conn.SetKeepAliveConfig(keepAlive(silence)); err != nil {
		return err
	}
	return userTimeout(conn, dataSilence(silence))
}

// acceptAll accepts connections until all higher ranks are there.
func (f *tcpFabric) acceptAll(ctx context.Context, links []*tcpLink, key []byte) error {
	rank, size := f.w.Rank(), f.w.Size()
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
		ended <- accepting.Serve(serving, reopenable{f.ln}, func(c net.Conn, proven func() bool) {
			h := newAcceptor(key, rank, size)
			if greet(c, h, nil) != nil || !proven() {
				return
			}
			f.keep(c)
			select {
			case known <- result{h.peer, c}:
			case <-serving.Done():
				f.drop(c)
			}
		})
	}()
	defer func() {
		stop()
		<-ended // it must not take a connection that listen is to have
	}()
	for missing > 0 {
		select {
		case r := <-known:
			if links[r.peer] != nil {
				f.drop(r.conn)
				continue
			}
			l, err := f.newLink(r.conn, f.w.eng.peers[r.peer])
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

// accepting is how connections are accepted of processes that have to prove who they
// are.
var accepting = accept.Server{MaxUnproven: strangersAtOnce, ProofTimeout: helloTimeout}

// reopenable is a listener that can listen again after Close.
type reopenable struct{ *net.TCPListener }

func (l reopenable) Close() error { return l.SetDeadline(past) }

// greet runs the exchange of greetings on conn, which first begins if it is not nil.
func greet(conn net.Conn, h *hello, first []byte) error {
	if first != nil {
		if _, err := conn.Write(helloFrame(first)); err != nil {
			return err
		}
	}
	var buf [envelopeLen + maxHello]byte
	for !h.sending() {
		if _, err := io.ReadFull(conn, buf[:envelopeLen]); err != nil {
			return errors.Join(ErrAuth, err)
		}
		var v envelope
		if !v.get(buf[:envelopeLen]) || v.kind != kindHello || v.length > maxHello {
			return fmt.Errorf("%w: not a greeting", ErrAuth)
		}
		msg := buf[envelopeLen:][:v.length]
		if _, err := io.ReadFull(conn, msg); err != nil {
			return errors.Join(ErrAuth, err)
		}
		reply, err := h.step(msg)
		if err != nil {
			return err
		}
		if reply != nil {
			if _, err := conn.Write(helloFrame(reply)); err != nil {
				return err
			}
		}
	}
	return conn.SetDeadline(time.Time{})
}

// receive is the reader of a link, until it ends.
func (f *tcpFabric) receive(l *tcpLink) {
	l.read()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, l.conn)
	if l.peer.far == nil {
		return // there are only so many
	}
	links := slices.DeleteFunc(slices.Clone(*f.links.Load()), func(x *tcpLink) bool { return x == l })
	f.links.Store(&links)
}

// call implements fabric.
func (f *tcpFabric) call(ctx context.Context, m *meeting, number int) error {
	h, msg := m.connector(number)
	conn, err := f.visit(ctx, m.peer(number).far.addr, h, msg)
	if err != nil {
		return err
	}
	if err = f.adopt(conn, m, number); err != nil {
		f.drop(conn)
	}
	return err
}

// listen implements fabric: it takes connections from now on.
func (f *tcpFabric) listen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listening || f.closed {
		return nil
	}
	f.listening = true
	if err := f.ln.SetDeadline(time.Time{}); err != nil {
		return err
	}
	f.wg.Go(func() {
		_ = accepting.Serve(context.Background(), f.ln, f.welcome) // until f is closed
	})
	return nil
}

// welcome takes the greeting of a process of another job.
func (f *tcpFabric) welcome(c net.Conn, proven func() bool) {
	h := newAcceptor(nil, -1, 0)
	h.find = f.w.meeting
	if greet(c, h, nil) != nil || h.meeting == nil || !proven() {
		return
	}
	f.keep(c)
	if f.adopt(c, h.meeting, h.peer) != nil {
		f.drop(c)
	}
}

// adopt makes a connection the link to a process of another job.
func (f *tcpFabric) adopt(conn net.Conn, m *meeting, number int) error {
	p := m.peer(number)
	if p == nil {
		return fmt.Errorf("%w: process %d is not expected", ErrAuth, number)
	}
	l, err := f.newLink(conn, p)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errLinkClosed
	}
	if m.claim(number, l) == nil {
		return fmt.Errorf("%w: process %d is not expected", ErrAuth, number)
	}
	links := append(slices.Clone(*f.links.Load()), l)
	f.links.Store(&links)
	f.wg.Go(func() { f.receive(l) })
	m.linked(number, nil)
	return nil
}
