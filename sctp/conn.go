package sctp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// Conn is a one-to-one association as a net.Conn: a byte stream carried as ordered messages
// on stream 0, one message per Write of up to 1 MiB. The bytes of concurrent Writes are not
// mixed. Message boundaries are not visible: a Read returns at most what is left of one
// message. Errors other than io.EOF are *net.OpError. Methods may be called concurrently.
type Conn struct {
	a           *Association
	read, write deadline
	turn        chan struct{} // holds a token while a Write is in progress
	linger      atomic.Int64  // seconds of SetLinger plus 1; 0: in the background
}

// NewConn returns a Conn on an association. From then on the association should be read and
// written by the Conn only; it must not be in upcall mode, see [Config].OnPiece.
func NewConn(a *Association) *Conn { return &Conn{a: a, turn: make(chan struct{}, 1)} }

// Association returns the association under the Conn.
func (c *Conn) Association() *Association { return c.a }

func (c *Conn) opError(op string, err error) error {
	switch err {
	case nil, io.EOF:
		return err
	case errExpired:
		err = os.ErrDeadlineExceeded
	}
	return &net.OpError{Op: op, Net: "sctp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// expired reports whether a deadline has passed. Read and Write ask it first, so that nothing
// is read or written with a deadline in the past.
func expired(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Read implements net.Conn. It blocks until there is a byte, the read deadline passes
// ([os.ErrDeadlineExceeded]), Close is called ([net.ErrClosed]) or the association ends. It
// returns io.EOF after a graceful shutdown by the peer, otherwise the reason of the end as of
// [Association.Err]. b belongs to the caller again when it returns.
func (c *Conn) Read(b []byte) (int, error) {
	ch := c.read.passed()
	if expired(ch) {
		return 0, c.opError("read", errExpired)
	}
	if len(b) == 0 {
		return 0, nil
	}
	var info RecvInfo
	for {
		n, err := c.a.recv(nil, ch, anyStream, b, &info)
		if n > 0 || err != nil {
			return n, c.opError("read", err)
		}
	}
}

// maxConnMessage is the longest message that a Write makes, 1 MiB: the memory of its copy is
// recycled.
const maxConnMessage = 1 << 20

// Write implements net.Conn. It blocks while the send buffer is full, until the write deadline
// passes ([os.ErrDeadlineExceeded]), Close is called ([net.ErrClosed]), the peer shuts down
// ([ErrShutdown]) or the association ends. It does not wait for acknowledgements: n is how many
// bytes were queued. b belongs to the caller again when it returns.
func (c *Conn) Write(b []byte) (n int, err error) {
	ch := c.write.passed()
	if expired(ch) {
		return 0, c.opError("write", errExpired)
	}
	select {
	case c.turn <- struct{}{}:
	default:
		select {
		case c.turn <- struct{}{}: // all that ends a Write also ends the one in progress
		case <-ch:
			return 0, c.opError("write", errExpired)
		}
	}
	defer func() { <-c.turn }()
	for n < len(b) {
		m := b[n:min(len(b), n+maxConnMessage)]
		o := SendOptions{More: n+len(m) < len(b)}
		if err := c.a.send(nil, ch, m, &o); err != nil {
			if errors.Is(err, ErrShutdown) && c.a.isClosing() {
				err = ErrClosed
			}
			return n, c.opError("write", err)
		}
		n += len(m)
	}
	return n, nil
}

// Close begins a graceful shutdown (RFC 9260, Section 9.2) and returns at once, unless
// [Conn.SetLinger] was called. Data already written is still delivered, in the background and
// within the bounds of [Config].Linger. Blocked Reads and Writes, and a second Close, return an
// error that is net.ErrClosed.
func (c *Conn) Close() error {
	sec := c.linger.Load() - 1
	if sec == 0 {
		if !c.a.startClosing() {
			return c.opError("close", ErrClosed)
		}
		c.a.Abort("")
		return nil
	}
	if err := c.a.close(sec < 0); err != nil || sec < 0 {
		return c.opError("close", err)
	}
	t := time.NewTimer(time.Duration(sec) * time.Second)
	defer t.Stop()
	select {
	case <-c.a.Done():
		return c.opError("close", c.a.Err())
	case <-t.C:
		c.a.Abort("")
		return c.opError("close", ErrTimeout)
	}
}

// SetLinger sets what Close does, like that of a net.TCPConn and SO_LINGER (RFC
// 6458, Section 8.1.4). With sec below 0, the default, data is delivered in the background,
// see Config.Linger. With 0 Close aborts the association, and data is lost. Otherwise Close
// blocks until the association has ended, for at most sec seconds; then it aborts the
// association and returns an error that is ErrTimeout. SetLinger returns nil.
func (c *Conn) SetLinger(sec int) error {
	c.linger.Store(int64(max(sec, -1)) + 1)
	return nil
}

// LocalAddr returns an Addr.
func (c *Conn) LocalAddr() net.Addr { return c.a.LocalAddr() }

// RemoteAddr returns an Addr.
func (c *Conn) RemoteAddr() net.Addr { return c.a.RemoteAddr() }

// SetDeadline implements net.Conn. It holds for calls that block already, too; the zero Time
// is no deadline.
func (c *Conn) SetDeadline(t time.Time) error {
	c.read.set(t)
	c.write.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { c.read.set(t); return nil }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { c.write.set(t); return nil }

// Dialer holds the options of Dial. The zero value is ready for use.
type Dialer struct {
	// Config is the configuration of the association; nil is the zero Config. Its Backlog
	// is ignored, because the endpoint of the association accepts no others.
	Config *Config
	// Transport is the configuration of the transport made for the association. Without
	// LocalAddrs, Conns and IPAddrs the transport binds a free UDP port of all addresses,
	// and has IPAddrs if addresses of the peer have the UDP port 0.
	Transport TransportConfig
	// Timeout bounds how long Dial takes, looking up names included (default
	// DefaultDialTimeout; negative: Config.MaxInitRetransmits and the context decide).
	Timeout time.Duration
}

// DefaultDialTimeout is the default of Dialer.Timeout: INITs are sent after 0, 1, 3 and 7
// seconds by then.
const DefaultDialTimeout = 10 * time.Second

// Dial opens an association to addr (see [ParseAddr]) on a transport of its own, which ends
// with the association. It resolves names, and blocks until the association is established or
// has failed, ctx is done, or DefaultDialTimeout has passed. Errors are *net.OpError and name
// the address; to test for with errors.Is are ErrTimeout (also as os.ErrDeadlineExceeded and
// context.DeadlineExceeded), ErrRefused (also as syscall.ECONNREFUSED) and context.Canceled.
func Dial(ctx context.Context, addr string) (*Conn, error) { return new(Dialer).Dial(ctx, addr) }

// Dial is like the function Dial with the options of d.
func (d *Dialer) Dial(ctx context.Context, addr string) (*Conn, error) {
	var to net.Addr
	fail := func(err error) (*Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "sctp", Addr: to, Err: err}
	}
	if limit := d.Timeout; limit >= 0 {
		if limit == 0 {
			limit = DefaultDialTimeout
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	peer, err := ResolveAddr(ctx, addr)
	if err != nil {
		return fail(err)
	}
	to = peer
	tc := d.Transport
	if len(tc.LocalAddrs) == 0 && len(tc.Conns) == 0 && len(tc.IPAddrs) == 0 {
		tc.LocalAddrs, tc.IPAddrs = anyFor(peer)
	}
	t, err := NewTransport(tc)
	if len(tc.IPAddrs) == 2 && len(d.Transport.IPAddrs) == 0 && errors.Is(err, syscall.EAFNOSUPPORT) {
		tc.IPAddrs = []netip.Addr{netip.IPv4Unspecified()} // on a host without IPv6
		t, err = NewTransport(tc)
	}
	if err != nil {
		return fail(err)
	}
	var cfg Config
	if d.Config != nil {
		cfg = *d.Config
	}
	cfg.Backlog = -1
	e, err := t.Listen(0, &cfg)
	if err != nil {
		t.Close()
		return fail(err)
	}
	a, err := e.connect(ctx, peer)
	if err != nil {
		t.Close()
		return fail(err)
	}
	e.closeWhenIdle()
	return NewConn(a), nil
}

// anyFor returns the addresses to bind for reaching a peer: a free UDP port of all
// addresses, or all addresses of SCTP over IP.
func anyFor(peer Addr) (udp []netip.AddrPort, ip []netip.Addr) {
	for _, a := range peer.Addrs {
		to := netip.IPv6Unspecified()
		if a.Addr().Unmap().Is4() {
			to = netip.IPv4Unspecified()
		}
		switch {
		case a.Port() != 0 && udp == nil:
			udp = []netip.AddrPort{netip.AddrPortFrom(netip.IPv6Unspecified(), 0)}
		case a.Port() == 0 && !slices.Contains(ip, to):
			ip = append(ip, to)
		}
	}
	return udp, ip
}

// Listener accepts one-to-one associations; it is a net.Listener.
type Listener struct{ e *Endpoint }

// NewListener returns a Listener on an endpoint. Its Close stops accepting; closing the
// endpoint and its transport remains the task of the caller.
func NewListener(e *Endpoint) *Listener { return &Listener{e} }

// ListenConfig holds the options of Listen. The zero value is ready for use.
type ListenConfig struct {
	// Config is the configuration of the associations; nil is the zero Config.
	Config *Config
	// Transport is the configuration of the transport made for the listener. Its LocalAddrs
	// are replaced by the address to listen on, unless it has Conns or IPAddrs: then only the
	// SCTP port of the address to listen on counts.
	Transport TransportConfig
}

// Listen listens on addr (see [ParseAddr]) on a transport of its own, which ends when the
// listener is closed and its last association has ended. It resolves names. Errors are
// *net.OpError: of the socket, such as syscall.EADDRINUSE, or ErrConfig.
func Listen(addr string) (*Listener, error) { return new(ListenConfig).Listen(addr) }

// Listen is like the function Listen with the options of c.
func (c *ListenConfig) Listen(addr string) (*Listener, error) {
	var at net.Addr
	fail := func(err error) (*Listener, error) {
		return nil, &net.OpError{Op: "listen", Net: "sctp", Addr: at, Err: err}
	}
	local, err := ResolveAddr(context.Background(), addr)
	if err != nil {
		return fail(err)
	}
	at = local
	tc := c.Transport
	if len(tc.Conns) == 0 && len(tc.IPAddrs) == 0 {
		tc.LocalAddrs = local.Addrs
	}
	t, err := NewTransport(tc)
	if err != nil {
		return fail(err)
	}
	e, err := t.Listen(local.Port, c.Config)
	if err != nil {
		t.Close()
		return fail(err)
	}
	e.owned.Store(true)
	return NewListener(e), nil
}

// Accept blocks until there is the next association and returns it as a *Conn. After Close it
// returns an error that is net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	a, err := l.e.accept(nil, context.Background())
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: "sctp", Addr: l.Addr(), Err: err}
	}
	return NewConn(a), nil
}

// Addr returns the local address, an Addr.
func (l *Listener) Addr() net.Addr { return l.e.Addr() }

// Endpoint returns the endpoint of the listener.
func (l *Listener) Endpoint() *Endpoint { return l.e }

// Close stops accepting. Associations that were not accepted are aborted, accepted ones go
// on. It does not block. A second Close returns an error that is net.ErrClosed.
func (l *Listener) Close() error {
	if !l.e.stopAccepting() {
		return &net.OpError{Op: "close", Net: "sctp", Addr: l.Addr(), Err: ErrClosed}
	}
	return nil
}
