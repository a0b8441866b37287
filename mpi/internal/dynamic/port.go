package dynamic

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/weftstack/weft/mpi/internal/ctxconn"
	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Limits of ports, and the default of how long Dial waits.
const (
	// MaxPortName bounds the name of a port, in bytes.
	MaxPortName = 256
	// MaxPorts bounds the open ports of a process.
	MaxPorts = 256
	// MaxWaiting bounds the connections that wait at a port for an Accept. More
	// are refused.
	MaxWaiting = 64
	// DefaultConnectTimeout is how long Dial waits for an Accept, unless told otherwise.
	DefaultConnectTimeout = time.Minute
)

const (
	portScheme = "weft://"
	portKeyLen = 16
	// aliveTimeout bounds how long a waiting connection may take to answer that its process still
	// waits.
	aliveTimeout = 10 * time.Second
)

// Ports are the open ports of a process. The zero value has none.
type Ports struct {
	mu   sync.Mutex
	open map[string]*port
}

// ListenTCP returns a listener for Open at a local address, and the address that DialTCP takes.
func ListenTCP(addr netip.Addr) (net.Listener, string, error) {
	ln, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", mpierr.ErrPort, err)
	}
	return ln, ln.Addr().String(), nil
}

// Open opens a port with listeners, which it closes, also after an error, and returns its name. addr is where the
// listeners are found by the function that is given to Dial; it has no slash behind the last one of its own.
func (s *Ports) Open(addr string, lns ...net.Listener) (name string, err error) {
	p := &port{lns: lns, key: make([]byte, portKeyLen), waiting: make(chan net.Conn, MaxWaiting)}
	p.closed = make(chan struct{})
	_, _ = rand.Read(p.key) // never fails
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= MaxPorts {
		p.close()
		return "", fmt.Errorf("%w: more than %d ports", mpierr.ErrLimit, MaxPorts)
	}
	if s.open == nil {
		s.open = make(map[string]*port)
	}
	name = portScheme + addr + "/" + hex.EncodeToString(p.key)
	s.open[name] = p
	for _, ln := range lns {
		go p.listen(ln)
	}
	return name, nil
}

// errNotOpen is the error of a name that is not that of an open port of this process.
var errNotOpen = fmt.Errorf("%w: not opened here", mpierr.ErrPort)

// Close closes a port. What waits at it fails with ErrPort.
func (s *Ports) Close(name string) error {
	s.mu.Lock()
	p := s.open[name]
	delete(s.open, name)
	s.mu.Unlock()
	if p == nil {
		return errNotOpen
	}
	p.close()
	return nil
}

// CloseAll closes all ports.
func (s *Ports) CloseAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.open {
		delete(s.open, name)
		p.close()
	}
}

// Take returns the next connection with a process that waits at a port. It ends with ErrFinalized
// when over is closed.
func (s *Ports) Take(ctx context.Context, name string, over <-chan struct{}) (*RootConn, error) {
	s.mu.Lock()
	p := s.open[name]
	s.mu.Unlock()
	if p == nil {
		return nil, errNotOpen
	}
	return p.take(ctx, over)
}

// port is an open port.
type port struct {
	lns     []net.Listener
	key     []byte
	waiting chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (p *port) close() {
	p.once.Do(func() {
		close(p.closed)
		for _, ln := range p.lns {
			_ = ln.Close()
		}
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
		return "", nil, fmt.Errorf("%w: %.40q is not the name of a port", mpierr.ErrPort, name)
	}
	key, err = hex.DecodeString(rest[at+1:])
	if err != nil || len(key) != portKeyLen {
		return "", nil, fmt.Errorf("%w: %.40q is not the name of a port", mpierr.ErrPort, name)
	}
	return rest[:at], key, nil
}

// DialTCP connects to the address of a port that ListenTCP has opened.
func DialTCP(ctx context.Context, addr string) (net.Conn, error) {
	if ap, err := netip.ParseAddrPort(addr); err != nil || ap.Port() == 0 {
		return nil, fmt.Errorf("%w: %.40q is not the address of a port", mpierr.ErrPort, addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// listen accepts connections of processes that know the key.
func (p *port) listen(ln net.Listener) {
	_ = handshake.Server.Serve(context.Background(), ln, func(c net.Conn, proven func() bool) { // until p is closed
		if handshake.Run(c, handshake.Accept(handshake.Params{Key: p.key, Size: 2}, nil), nil) == nil && proven() &&
			!p.queue(c) {
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

// take returns the next connection with a waiting process.
func (p *port) take(ctx context.Context, over <-chan struct{}) (*RootConn, error) {
	for {
		select {
		case c := <-p.waiting:
			if stillWaits(ctx, c) {
				return &RootConn{conn: c}, nil
			}
			_ = c.Close()
		case <-p.closed:
			return nil, fmt.Errorf("%w: closed", mpierr.ErrPort)
		case <-over:
			return nil, mpierr.ErrFinalized
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// stillWaits reports whether the process at the other end of a connection still waits.
func stillWaits(ctx context.Context, c net.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	undo := ctxconn.Interrupt(ctx, c)
	b := []byte{aliveProbe}
	_, err := c.Write(b)
	if err == nil {
		_, err = io.ReadFull(c, b)
	}
	return undo() == nil && err == nil && b[0] == aliveReply
}
