package gateway

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"sync"

	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/sctp/relay"
)

// Connections of bytes between processes, for the roots of groups that connect: they need no speed, and few of them. Each
// message on connStream begins with one of these; the payload protocol identifier is the number of the connection, which
// the side that dials has chosen.
const (
	connOpen  = 'o' // to the dialled side: then the number of the listener (2 bytes)
	connData  = 'd' // to the dialled side, connReply to the other one: then bytes
	connReply = 'r'
	connEnd   = 'e' // to the dialled side, connClose to the other one: the sender has closed the connection
	connClose = 'c'
)

const (
	// connChunk is how many bytes go in one message.
	connChunk = 32 << 10
	// maxConns bounds the connections of a process, maxConnBytes what all have received and not read, in bytes.
	maxConns, maxConnBytes = 512, 96 << 20
	// connBacklog bounds the connections that wait at a listener.
	connBacklog = 64
)

// connID names a connection for one of its ends.
type connID struct {
	peer   relay.Address
	id     uint32
	dialed bool // by this end
}

// conns are the connections of a station.
type conns struct {
	s *Station

	mu        sync.Mutex
	open      map[connID]*conn
	listeners map[uint16]*listener
	last      uint16 // number of a listener
	held      int    // bytes that were not read
}

// conn is an end of a connection: the program has the other end of the pipe, so that deadlines are those of net.Pipe.
type conn struct {
	c      *conns
	id     connID
	pipe   net.Conn
	sender *relay.Sender
	come   chan struct{}

	// The rest is guarded by conns.mu.
	queue  [][]byte
	ended  bool // the other end has closed it, or it has failed
	closed bool
}

// listener accepts connections.
type listener struct {
	c      *conns
	number uint16
	queue  chan net.Conn
	done   chan struct{}
	once   sync.Once
}

// Listen returns a listener, and the number that Open finds it by.
func (s *Station) Listen() (net.Listener, uint16, error) {
	c := &s.conns
	c.mu.Lock()
	defer c.mu.Unlock()
	for range 1 << 16 {
		c.last++
		if c.last != 0 && c.listeners[c.last] == nil {
			l := &listener{c: c, number: c.last, queue: make(chan net.Conn, connBacklog), done: make(chan struct{})}
			c.listeners[c.last] = l
			return l, c.last, nil
		}
	}
	return nil, 0, fmt.Errorf("%w: %d listeners", mpierr.ErrLimit, len(c.listeners))
}

// Open connects to a listener of a process, which may be at the own site. It does not wait for an answer: if there is no
// such listener the connection ends.
func (s *Station) Open(ctx context.Context, to relay.Address, number uint16) (net.Conn, error) {
	c := &s.conns
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	x, theirs, err := c.add(connID{to, binary.BigEndian.Uint32(id[:]), true})
	if err != nil {
		return nil, err
	}
	if err := x.send(ctx, connOpen, binary.BigEndian.AppendUint16(nil, number)); err != nil {
		_ = theirs.Close()
		return nil, s.explain(to, err)
	}
	x.start()
	return theirs, nil
}

// add makes a connection. theirs is the end of the program.
func (c *conns) add(id connID) (x *conn, theirs net.Conn, err error) {
	sender, err := c.s.node.Load().Sender(id.peer, connStream)
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= maxConns || c.open[id] != nil {
		return nil, nil, fmt.Errorf("%w: %d connections", mpierr.ErrLimit, len(c.open))
	}
	x = &conn{c: c, id: id, sender: sender, come: make(chan struct{}, 1)}
	x.pipe, theirs = net.Pipe()
	c.open[id] = x
	return x, theirs, nil
}

// send sends a message of the connection. It blocks as relay.Sender.Send does.
func (x *conn) send(ctx context.Context, kind byte, b []byte) error {
	return x.sender.Send(ctx, b, relay.SendOptions{PPID: x.id.id, Header: []byte{kind}})
}

// start starts what moves bytes between the pipe and the relay.
func (x *conn) start() {
	data, end := byte(connReply), byte(connClose)
	if x.id.dialed {
		data, end = connData, connEnd
	}
	x.c.s.goTask(func() {
		buf := make([]byte, connChunk)
		for {
			n, err := x.pipe.Read(buf)
			if n > 0 && x.send(x.c.s.ctx, data, buf[:n]) != nil || err != nil {
				break
			}
		}
		x.end(true)
		_ = x.send(x.c.s.ctx, end, nil)
		_ = x.pipe.Close()
	})
	x.c.s.goTask(func() {
		for {
			b, over := x.next()
			if b == nil && over {
				_ = x.pipe.Close()
				return
			}
			if b == nil {
				<-x.come
				continue
			}
			if _, err := x.pipe.Write(b); err != nil {
				x.end(true)
			}
		}
	})
}

// next returns the next bytes, and whether there are no more.
func (x *conn) next() (b []byte, over bool) {
	c := x.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(x.queue) == 0 || x.closed {
		return nil, x.ended || x.closed
	}
	b = x.queue[0]
	x.queue = x.queue[1:]
	c.held -= len(b)
	return b, false
}

// end ends the connection: at once, or when what has come is read.
func (x *conn) end(atOnce bool) {
	c := x.c
	c.mu.Lock()
	x.ended = true
	if atOnce && !x.closed {
		x.closed = true
		for _, b := range x.queue {
			c.held -= len(b)
		}
		x.queue = nil
	}
	if c.open[x.id] == x {
		delete(c.open, x.id)
	}
	c.mu.Unlock()
	select {
	case x.come <- struct{}{}:
	default:
	}
}

// assembly is the message of a flow of connStream that is arriving. Messages have up to connChunk bytes.
type assembly struct {
	mu  sync.Mutex
	buf []byte
}

// onConn handles a part of a message of connStream.
func (s *Station) onConn(r *relay.Receiver, f *relay.Fragment) {
	if f.Err != nil {
		s.conns.lost(r.Origin())
		return
	}
	a, _ := r.Value().(*assembly)
	if a == nil {
		a = &assembly{}
		r.SetValue(a)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.Begin {
		a.buf = a.buf[:0]
	}
	if f.Aborted || f.Unordered || len(a.buf)+len(f.Data) > connChunk+1 {
		s.counters.Invalid.Add(1)
		return
	}
	if a.buf = append(a.buf, f.Data...); f.End {
		s.conns.onMessage(r.Origin(), f.PPID, a.buf)
	}
}

// onMessage handles a message.
func (c *conns) onMessage(from relay.Address, id uint32, b []byte) {
	kind, b := b[0], b[1:]
	if kind == connOpen {
		c.accept(connID{from, id, false}, b)
		return
	}
	c.mu.Lock()
	x := c.open[connID{from, id, kind == connReply || kind == connClose}]
	fits := c.held+len(b) <= maxConnBytes
	if x != nil && fits && (kind == connData || kind == connReply) && !x.closed {
		x.queue = append(x.queue, append([]byte(nil), b...))
		c.held += len(b)
	}
	c.mu.Unlock()
	switch {
	case x == nil:
	case kind == connEnd || kind == connClose:
		x.end(false)
	case !fits:
		x.end(true)
	default:
		select {
		case x.come <- struct{}{}:
		default:
		}
	}
}

// accept handles connOpen.
func (c *conns) accept(id connID, b []byte) {
	if len(b) != 2 {
		c.s.counters.Invalid.Add(1)
		return
	}
	c.mu.Lock()
	l := c.listeners[binary.BigEndian.Uint16(b)]
	c.mu.Unlock()
	x, theirs, err := c.add(id)
	if err != nil {
		c.s.counters.Invalid.Add(1)
		return
	}
	x.start()
	if l == nil || !l.add(theirs) {
		_ = theirs.Close() // which tells the other end
	}
}

// add queues a connection for Accept. It reports false if there is no room.
func (l *listener) add(c net.Conn) bool {
	select {
	case <-l.done:
		return false
	default:
	}
	select {
	case l.queue <- c:
		return true
	default:
		return false
	}
}

// lost ends the connections to a process whose flow has ended.
func (c *conns) lost(peer relay.Address) {
	var gone []*conn
	c.mu.Lock()
	for id, x := range c.open {
		if id.peer == peer {
			gone = append(gone, x)
		}
	}
	c.mu.Unlock()
	for _, x := range gone {
		x.end(true)
	}
}

// closeAll ends all connections.
func (c *conns) closeAll() {
	c.mu.Lock()
	var all []*conn
	for _, x := range c.open {
		all = append(all, x)
	}
	c.mu.Unlock()
	for _, x := range all {
		x.end(true)
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Connections that wait are closed.
func (l *listener) Close() error {
	err := net.ErrClosed
	l.once.Do(func() {
		err = nil
		l.c.mu.Lock()
		delete(l.c.listeners, l.number)
		l.c.mu.Unlock()
		close(l.done)
		for {
			select {
			case c := <-l.queue:
				_ = c.Close()
			default:
				return
			}
		}
	})
	return err
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return connAddr{l.c.s.node.Load().Address(), l.number} }

// connAddr is the address of a listener.
type connAddr struct {
	process relay.Address
	number  uint16
}

func (connAddr) Network() string  { return "relay" }
func (a connAddr) String() string { return fmt.Sprintf("%v:%d", a.process, a.number) }
