package mpi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weftstack/weft/mpi/internal/handshake"
)

// Connections between jobs that were started separately (MPI-4.1, Section 11.9). A port is a TCP
// address, whatever the transport, and a secret: a process that knows its name may connect.

// Limits of ports.
const (
	// MaxPortName bounds the name of a port, in bytes.
	MaxPortName = 256
	// MaxPorts bounds the open ports of a process.
	MaxPorts = 256
	// MaxWaiting bounds the connections that wait at a port for an Accept. More
	// are refused.
	MaxWaiting = 64
	// DefaultConnectTimeout is how long Connect waits for an Accept, unless the
	// hint InfoTimeout says otherwise.
	DefaultConnectTimeout = time.Minute
)

// InfoTimeout is the hint of Comm.Connect for how long to wait for an Accept, in
// seconds.
const InfoTimeout = "timeout"

const (
	portScheme = "weft://"
	portKeyLen = 16
	// aliveTimeout bounds how long a waiting connection may take to answer that its process still
	// waits.
	aliveTimeout = 10 * time.Second
)

// port is an open port.
type port struct {
	ln      *net.TCPListener
	key     []byte
	waiting chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// OpenPort opens a port, and returns its name, by which processes of other jobs connect to it with
// [Comm.Connect] (MPI_Open_port). It is local and does not block.
func (w *World) OpenPort() (string, error) {
	if err := w.usable(); err != nil {
		return "", err
	}
	addr := netip.AddrPortFrom(w.opts.addr().Addr(), 0)
	p := &port{key: make([]byte, portKeyLen), waiting: make(chan net.Conn, MaxWaiting), closed: make(chan struct{})}
	_, _ = rand.Read(p.key) // never fails
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.ports) >= MaxPorts {
		return "", fmt.Errorf("%w: more than %d ports", ErrLimit, MaxPorts)
	}
	var err error
	if p.ln, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr)); err != nil {
		return "", fmt.Errorf("%w: %w", ErrPort, err)
	}
	if w.ports == nil {
		w.ports = make(map[string]*port)
		w.closers = append(w.closers, func(context.Context) error { w.closePorts(); return nil })
	}
	name := portScheme + p.ln.Addr().String() + "/" + hex.EncodeToString(p.key)
	w.ports[name] = p
	go p.listen()
	return name, nil
}

// ClosePort closes a port (MPI_Close_port). Calls of [Comm.Accept] and [Comm.Connect] that wait at
// it return ErrPort.
func (w *World) ClosePort(name string) error {
	w.mu.Lock()
	p := w.ports[name]
	delete(w.ports, name)
	w.mu.Unlock()
	if p == nil {
		return fmt.Errorf("%w: not opened here", ErrPort)
	}
	p.close()
	return nil
}

func (w *World) closePorts() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, p := range w.ports {
		delete(w.ports, name)
		p.close()
	}
}

func (p *port) close() {
	p.once.Do(func() {
		close(p.closed)
		_ = p.ln.Close()
		for {
			select {
			case c := <-p.waiting:
				_ = c.Close()
			default:
				return
			}
		}
	})
}

// parsePort returns the address and the key in the name of a port.
func parsePort(name string) (addr string, key []byte, err error) {
	rest, ok := strings.CutPrefix(name, portScheme)
	at := strings.LastIndexByte(rest, '/')
	if !ok || at < 0 || len(name) > MaxPortName {
		return "", nil, fmt.Errorf("%w: %.40q is not the name of a port", ErrPort, name)
	}
	ap, err := netip.ParseAddrPort(rest[:at])
	if err == nil {
		key, err = hex.DecodeString(rest[at+1:])
	}
	if err != nil || len(key) != portKeyLen || ap.Port() == 0 {
		return "", nil, fmt.Errorf("%w: %.40q is not the name of a port", ErrPort, name)
	}
	return ap.String(), key, nil
}

// listen accepts connections of processes that know the key.
func (p *port) listen() {
	_ = handshake.Server.Serve(context.Background(), p.ln, func(c net.Conn, proven func() bool) { // until p is closed
		if handshake.Run(c, handshake.Accept(handshake.Params{Key: p.key, Size: 2}, nil), nil) == nil && proven() && !p.queue(c) {
			_ = c.Close()
		}
	})
}

// queue adds a connection to those that wait for an Accept.
func (p *port) queue(c net.Conn) bool {
	select {
	case p.waiting <- c:
	default:
		return false
	}
	select {
	case <-p.closed: // perhaps it came too late for close
		select {
		case c := <-p.waiting:
			_ = c.Close()
		default:
		}
	default:
	}
	return true
}

// Bytes that the roots exchange before the intercommunicator handshake.
const (
	aliveProbe = 'k' // from the port: is anybody there?
	aliveReply = 'a'
)

// takeAt returns the next connection with a waiting process at the open port with a name.
func (w *World) takeAt(ctx context.Context, name string) (*rootConn, error) {
	w.mu.Lock()
	p := w.ports[name]
	w.mu.Unlock()
	if p == nil {
		if err := w.usable(); err != nil {
			return nil, err // which closes ports
		}
		return nil, fmt.Errorf("%w: not opened here", ErrPort)
	}
	return p.take(ctx, w.eng.over)
}

// take returns the next connection with a waiting process.
func (p *port) take(ctx context.Context, over <-chan struct{}) (*rootConn, error) {
	for {
		select {
		case c := <-p.waiting:
			if stillWaits(ctx, c) {
				return &rootConn{conn: c}, nil
			}
			_ = c.Close()
		case <-p.closed:
			return nil, fmt.Errorf("%w: closed", ErrPort)
		case <-over:
			return nil, ErrFinalized
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// stillWaits reports whether the process at the other end of a connection still waits.
func stillWaits(ctx context.Context, c net.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	undo := interrupt(ctx, c)
	b := []byte{aliveProbe}
	_, err := c.Write(b)
	if err == nil {
		_, err = io.ReadFull(c, b)
	}
	return undo() == nil && err == nil && b[0] == aliveReply
}

// Accept makes an intercommunicator of c and a group that calls [Comm.Connect] with the name of the
// port (MPI_Comm_accept). All ranks of c must call it; port is the one that rank root has opened,
// and ignored on other ranks. It blocks until a group connects or ctx ends. Errors to test for:
// ErrPort, ErrRoot, ErrComm for an intercommunicator.
func (c *Comm) Accept(ctx context.Context, port string, root int) (*Comm, error) {
	t := c.enter()
	d, err := c.connectGroups(ctx, root, true, func(ctx context.Context) (*rootConn, error) { return c.w.takeAt(ctx, port) })
	c.leave(t, "Comm.Accept", root, 0, 0, err)
	return d, c.raise(err)
}

// Connect makes an intercommunicator of c and the group that calls [Comm.Accept] at a port
// (MPI_Comm_connect). All ranks of c must call it; port and info are those of rank root, and
// ignored on other ranks. Both groups must use the same transport and number of streams, else they
// get ErrOption. It blocks until the group accepts, ctx ends, or [DefaultConnectTimeout], or the
// time of [InfoTimeout], is over. A port that is closed gives ErrPort at once. Errors to test for:
// ErrPort, ErrRoot, ErrOption, ErrComm for an intercommunicator.
func (c *Comm) Connect(ctx context.Context, port string, root int, info Info) (*Comm, error) {
	t := c.enter()
	d, err := c.connectGroups(ctx, root, false, func(ctx context.Context) (*rootConn, error) {
		wait := DefaultConnectTimeout
		if s := info[InfoTimeout]; s != "" {
			n, err := strconv.ParseUint(s, 10, 31)
			if err != nil {
				return nil, fmt.Errorf("%w: %s=%q", ErrOption, InfoTimeout, s)
			}
			wait = time.Duration(n) * time.Second
		}
		return dialPort(ctx, port, wait)
	})
	c.leave(t, "Comm.Connect", root, 0, 0, err)
	return d, c.raise(err)
}

// dialPort connects to a port and waits for an Accept.
func dialPort(ctx context.Context, name string, wait time.Duration) (*rootConn, error) {
	addr, key, err := parsePort(name)
	if err != nil {
		return nil, err
	}
	limit := fmt.Errorf("%w: nobody accepted within %v", ErrPort, wait)
	ctx, cancel := context.WithTimeoutCause(ctx, wait, limit)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPort, orCause(ctx, err))
	}
	undo := interrupt(ctx, conn)
	err = func() error {
		h, msg := handshake.Connect(handshake.Params{Key: key, Self: 1, Size: 2}, 0)
		if err := handshake.Run(conn, h, msg); err != nil {
			return err
		}
		var b [1]byte
		if _, err := io.ReadFull(conn, b[:]); err != nil {
			return err
		}
		if b[0] != aliveProbe {
			return ErrProtocol
		}
		b[0] = aliveReply
		_, err := conn.Write(b[:])
		return err
	}()
	if cause := undo(); cause != nil {
		err = cause
	}
	if err != nil {
		_ = conn.Close()
		if errors.Is(err, io.EOF) {
			err = errors.New("closed")
		}
		return nil, fmt.Errorf("%w: %w", ErrPort, orCause(ctx, err))
	}
	return &rootConn{conn: conn}, nil
}

// orCause returns why ctx has ended, or err if it has not.
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
