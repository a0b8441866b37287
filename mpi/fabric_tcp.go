package mpi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// tcpFabric makes one TCP connection per pair of ranks: the higher rank
// connects to the lower.
type tcpFabric struct {
	w  *World
	ln *net.TCPListener
	wg sync.WaitGroup // reader goroutines

	up    atomic.Bool // links is complete
	links []*tcpLink
	next  atomic.Uint32 // link to poll

	mu    sync.Mutex
	conns []net.Conn // all that were ever made
}

const (
	// dialsAtOnce bounds the connections a rank opens at the same time.
	dialsAtOnce = 8
	// helloTimeout bounds the exchange of greetings with one connection.
	helloTimeout = 30 * time.Second
	// strangersAtOnce bounds the connections that have not proved yet who they are.
	strangersAtOnce = 256
)

func newTCPFabric(w *World) (fabric, error) {
	addr := netip.AddrPortFrom(primaryAddr(), 0)
	if len(w.opts.addrs) > 0 {
		addr = w.opts.addrs[0]
	}
	ln, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		return nil, err
	}
	return &tcpFabric{w: w, ln: ln}, nil
}

// primaryAddr returns the address that this host reaches others from, or a
// loopback address if it cannot.
func primaryAddr() netip.Addr {
	// Connecting a UDP socket sends nothing; it only asks for a route.
	c, err := net.Dial("udp", "192.0.2.1:9")
	if err == nil {
		defer func() { _ = c.Close() }()
		if ap, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil {
			return ap.Addr()
		}
	}
	return loopback.Addr()
}

func (f *tcpFabric) card() string { return f.ln.Addr().String() }

func (f *tcpFabric) polling() (func() bool, func() parker) { return f.poll, nil }

// pollLinks is how many connections one poll looks at: each takes a system call.
const pollLinks = 4

// poll receives from the next few connections.
func (f *tcpFabric) poll() bool {
	if !f.up.Load() {
		return false
	}
	worked := false
	for range min(pollLinks, len(f.links)) {
		if l := f.links[int(f.next.Add(1))%len(f.links)]; l.poll() {
			worked = true
		}
	}
	return worked
}

// close implements fabric.
func (f *tcpFabric) close() error {
	err := f.ln.Close()
	f.mu.Lock()
	for _, c := range f.conns {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
	return err
}

func (f *tcpFabric) keep(c net.Conn) {
	f.mu.Lock()
	f.conns = append(f.conns, c)
	f.mu.Unlock()
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
	for peer, l := range links {
		if peer != rank {
			f.w.eng.peers[peer].link = l
			f.w.eng.peers[peer].bursts = canBurst()
			f.links = append(f.links, l)
		}
	}
	for peer, l := range links {
		if peer != rank {
			f.wg.Go(l.read)
		}
	}
	f.up.Store(true)
	return nil
}

func (f *tcpFabric) dial(ctx context.Context, links []*tcpLink, peer int, addr string, key []byte) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	f.keep(conn)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	h, msg := newConnector(key, f.w.Rank(), peer, f.w.Size())
	if _, err := conn.Write(helloFrame(msg)); err != nil {
		return err
	}
	if err := greet(conn, h); err != nil {
		return err
	}
	links[peer], err = f.newLink(conn, peer)
	return err
}

// newLink makes a connection the link to a peer, and one that ends when the peer
// does not answer.
func (f *tcpFabric) newLink(conn net.Conn, peer int) (*tcpLink, error) {
	tcp := conn.(*net.TCPConn)
	if err := watchSilence(tcp, f.w.opts.silence); err != nil {
		return nil, err
	}
	return newTCPLink(tcp, f.w.eng.peers[peer])
}

// tcpProbes is how many probes of an idle connection remain without an answer
// before it ends.
const tcpProbes = 5

// watchSilence makes a connection end after about the given time without an
// answer: the system counts in seconds.
func watchSilence(conn *net.TCPConn, silence time.Duration) error {
	cfg := net.KeepAliveConfig{Enable: true, Idle: max(silence/2, time.Second),
		Interval: max(silence/(2*tcpProbes), time.Second), Count: tcpProbes}
	if err := conn.SetKeepAliveConfig(cfg); err != nil {
		return err
	}
	// A little more for data: few segments are sent in that time, as pauses double.
	return userTimeout(conn, silence+silence/3)
}

// acceptAll accepts connections until all higher ranks are there.
func (f *tcpFabric) acceptAll(ctx context.Context, links []*tcpLink, key []byte) error {
	rank, size := f.w.Rank(), f.w.Size()
	stop := context.AfterFunc(ctx, func() { _ = f.ln.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	type result struct {
		peer int
		conn net.Conn
	}
	results := make(chan result)
	conns := make(chan net.Conn)
	failed := make(chan error, 1)
	quit := make(chan struct{})
	defer close(quit)
	missing := size - 1 - rank
	if missing == 0 {
		return nil
	}
	go func() {
		for {
			c, err := f.ln.Accept()
			if err != nil {
				failed <- err
				return
			}
			select {
			case conns <- c:
			case <-quit:
				_ = c.Close()
				return
			}
		}
	}()
	defer func() { _ = f.ln.SetDeadline(time.Unix(1, 0)) }()
	for strangers := 0; missing > 0; {
		in := conns
		if strangers == strangersAtOnce {
			in = nil
		}
		select {
		case c := <-in:
			f.keep(c)
			strangers++
			go func() {
				h := newAcceptor(key, rank, size)
				_ = c.SetDeadline(time.Now().Add(helloTimeout))
				r := result{-1, c}
				if greet(c, h) == nil {
					r.peer = h.peer
				}
				select {
				case results <- r:
				case <-quit:
				}
			}()
		case r := <-results:
			strangers--
			if r.peer < 0 || links[r.peer] != nil {
				_ = r.conn.Close()
				continue
			}
			l, err := f.newLink(r.conn, r.peer)
			if err != nil {
				return err
			}
			links[r.peer] = l
			missing--
		case err := <-failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// greet runs the exchange of greetings on conn.
func greet(conn net.Conn, h *hello) error {
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
