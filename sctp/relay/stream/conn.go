package stream

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/weftstack/weft/sctp/relay"
)

// state is how far a connection is.
type state uint8

const (
	stateOpening state = iota // waits for the answer of the other end
	statePending              // waits for Request.Accept
	stateOpen
	stateClosed // by Close: it has an end to send, or to receive
	stateOver
)

const (
	// largeWrite is the length in bytes of the longest message; smallWrite that of messages that wait for
	// credit: it fits one frame on every path with an MTU of 1,280 bytes.
	largeWrite = 32 << 10
	smallWrite = 1024
)

// Conn is a connection. It is a net.Conn, safe for concurrent use.
//
// Bytes of a Write are in the memory of this process until the other one has them; Write waits when its flow has no
// more credit.
type Conn struct {
	e          *Endpoint
	f          *flow
	s          *relay.Sender
	generation uint32
	opener     bool          // this side has opened it
	opened     chan struct{} // closed when it is open, or over; of the opener
	dead       chan struct{} // closed when it has failed
	signal     chan struct{} // a reader may try again
	writing    chan struct{} // full while a message is being sent
	reads      gate
	writes     gate
	blocked    until // context of the goroutine that is writing

	// Guarded by Endpoint.mu.
	state                state
	r                    *relay.Receiver // of the other end, once it has said something
	err                  error           // why it has failed
	endReceived, endSent bool
	peerDone             bool      // the side that has not opened it needs its stream no more
	endWanted            bool      // CloseWrite or Close was called
	closed               bool      // Close or Reset was called
	linger               time.Time // when it is reset, after Close
}

// Addr is the address of an end of a connection.
type Addr struct {
	Process relay.Address
	Stream  uint16
}

// Network implements net.Addr.
func (a Addr) Network() string { return "weft" }

// String implements net.Addr.
func (a Addr) String() string { return fmt.Sprintf("%v/%d", a.Process, a.Stream) }

// newConn makes a connection on a flow, and replaces the former one. mu is held.
func (e *Endpoint) newConn(f *flow, generation uint32, s state) *Conn {
	c := &Conn{
		e: e, f: f, generation: generation, state: s, opener: s == stateOpening,
		opened: make(chan struct{}), dead: make(chan struct{}), signal: make(chan struct{}, 1), writing: make(chan struct{}, 1),
	}
	f.conn = c
	f.p.open++
	e.conns++
	return c
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return Addr{c.e.Address(), c.f.stream} }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return Addr{c.f.p.addr, c.f.stream} }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	c.reads.set(t)
	c.writes.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.reads.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.writes.set(t)
	return nil
}

func (c *Conn) wake() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// Read implements net.Conn: it waits until there is a byte, the other end has ended its direction (io.EOF), the
// deadline has passed (os.ErrDeadlineExceeded), or the connection has failed (ErrReset) or was closed.
func (c *Conn) Read(b []byte) (int, error) {
	for {
		n, err := c.tryRead(b)
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		if err := c.awaitRead(); err != nil {
			return 0, err
		}
	}
}

// tryRead reads what is there: nothing and no error if that is nothing.
func (c *Conn) tryRead(b []byte) (int, error) {
	if c.reads.passed() {
		return 0, c.readEnd(os.ErrDeadlineExceeded)
	}
	c.f.turn <- struct{}{}
	n, _ := c.f.read(c, b)
	c.f.leave()
	if n > 0 {
		return n, nil
	}
	return 0, c.readEnd(nil)
}

// readEnd returns why there is nothing more to read, else if there may be.
func (c *Conn) readEnd(otherwise error) error {
	c.e.mu.Lock()
	err := otherwise
	switch {
	case c.closed:
		err = ErrClosed
	case c.err != nil:
		err = c.err
	case c.endReceived:
		err = io.EOF
	}
	c.e.mu.Unlock()
	if err != nil {
		c.wake() // others who read
	}
	return err
}

// awaitRead waits until there may be something to read.
func (c *Conn) awaitRead() error {
	select {
	case <-c.signal:
		return nil
	case <-c.reads.wait():
		return c.readEnd(os.ErrDeadlineExceeded)
	}
}

// Write implements net.Conn: it waits until the bytes are in the memory of the node, the deadline has passed
// (os.ErrDeadlineExceeded), or the connection has failed (ErrReset) or was closed for writing.
func (c *Conn) Write(b []byte) (n int, err error) {
	select {
	case c.writing <- struct{}{}:
	default:
		select {
		case c.writing <- struct{}{}:
		case <-c.writes.wait():
			return 0, c.writeEnd(os.ErrDeadlineExceeded)
		}
	}
	defer func() { <-c.writing }()
	if c.writes.passed() {
		return 0, c.writeEnd(os.ErrDeadlineExceeded)
	}
	if err := c.writeEnd(nil); err != nil {
		return 0, err
	}
	o := relay.SendOptions{PPID: ppidOf(kindData, c.generation)}
	for size := largeWrite; n < len(b); {
		k := min(size, len(b)-n)
		if k <= smallWrite {
			c.blocked.done = c.writes.wait()
			err = c.s.Send(&c.blocked, b[n:n+k], o)
			size = largeWrite
		} else if err = c.s.TrySend(b[n:n+k], o); isAgain(err) {
			size = k / 4
			continue
		}
		if err != nil {
			return n, c.writeFailed(err)
		}
		n += k
		if err := c.wrote(k); err != nil && n < len(b) {
			return n, err
		}
	}
	return n, nil
}

// wrote counts k bytes, and returns why nothing more can be written.
func (c *Conn) wrote(k int) error {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.e.counters.BytesSent += uint64(k)
	return c.writeEndLocked(nil)
}

// writeEnd returns why nothing more can be written, else otherwise.
func (c *Conn) writeEnd(otherwise error) error {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.writeEndLocked(otherwise)
}

// writeEndLocked is writeEnd with mu held.
func (c *Conn) writeEndLocked(otherwise error) error {
	switch {
	case c.closed:
		return ErrClosed
	case c.err != nil:
		return c.err
	case c.endWanted:
		return ErrClosed
	}
	return otherwise
}

// writeFailed returns the error of a write for that of the sender.
func (c *Conn) writeFailed(err error) error {
	if c.blocked.done != nil && isClosed(c.blocked.done) && errors.Is(err, c.blocked.Err()) {
		return c.writeEnd(os.ErrDeadlineExceeded)
	}
	c.fail(fmt.Errorf("%w: %w", ErrReset, err), CodeUnspecified, true)
	return c.writeEnd(err)
}

// CloseWrite ends the direction to the other end, which reads io.EOF after what was written. It does not wait. A Write
// that waits returns with an error that matches net.ErrClosed.
func (c *Conn) CloseWrite() error {
	c.e.mu.Lock()
	err := c.err
	if err == nil && c.endWanted {
		err = ErrClosed
	}
	if err != nil {
		c.e.mu.Unlock()
		return err
	}
	c.endWanted = true
	c.e.mu.Unlock()
	c.sendEnd()
	return nil
}

// sendEnd sends the end of this direction, at once or when there is room.
func (c *Conn) sendEnd() {
	c.writes.close()
	o := relay.SendOptions{PPID: ppidOf(kindEnd, c.generation)}
	select {
	case c.writing <- struct{}{}:
		err := c.s.TrySend([]byte{version}, o)
		<-c.writing
		if !isAgain(err) {
			c.endSendDone(err)
			return
		}
	default:
	}
	c.e.mu.Lock()
	if c.e.closed {
		c.e.mu.Unlock()
		return
	}
	c.e.tasks.Add(1)
	c.e.mu.Unlock()
	go func() {
		defer c.e.tasks.Done()
		c.writing <- struct{}{} // a Write that has it returns, since its gate is closed
		err := c.s.Send(&until{c.dead}, []byte{version}, o)
		<-c.writing
		c.endSendDone(err)
	}()
}

func (c *Conn) endSendDone(err error) {
	if err != nil {
		c.fail(fmt.Errorf("%w: %w", ErrReset, err), CodeUnspecified, true)
		return
	}
	c.e.mu.Lock()
	c.endSent = true
	tell := c.finish()
	c.e.mu.Unlock()
	if tell {
		c.f.p.tell(false)
	}
	c.f.drain()
}

// Close ends both directions, and returns at once: what was written is sent, as long as the endpoint lives and for
// Config.Linger at most. Data that arrives afterwards, or was not read, makes it a reset, as with TCP.
func (c *Conn) Close() error {
	c.e.mu.Lock()
	if c.closed {
		c.e.mu.Unlock()
		return ErrClosed
	}
	c.closed = true
	c.linger = time.Now().Add(c.e.cfg.Linger)
	first := !c.endWanted && c.err == nil
	c.endWanted = true
	if c.state != stateOver {
		c.state = stateClosed
	}
	c.e.mu.Unlock()
	c.reads.close()
	c.wake()
	if first {
		c.sendEnd()
	}
	c.f.drain()
	return nil
}

// Reset ends the connection at once: what was not read or not sent is lost, and the other end learns of it.
func (c *Conn) Reset() {
	c.e.mu.Lock()
	c.closed = true
	c.e.mu.Unlock()
	c.fail(ErrClosed, CodeUnspecified, true)
}

// finish forgets a connection whose directions have both ended. It reports whether there is a notice to send. mu is
// held; the caller drains the flow.
func (c *Conn) finish() (tell bool) {
	if !c.endSent || !c.endReceived || c.state == stateOver {
		return false
	}
	c.over()
	f := c.f
	if !c.opener {
		f.p.notices[f.stream] = notice{kindDone, f.stream, c.generation, 0}
		return true
	}
	f.awaits, f.awaited = true, c.generation
	if c.peerDone {
		f.release()
	}
	return false
}

// over takes the connection from its flow. mu is held.
func (c *Conn) over() {
	c.state = stateOver
	c.f.conn = nil
	c.f.p.open--
	c.e.conns--
	c.f.dirty.Store(true)
}

// fail ends the connection with an error, and tells the other end if it does not know. What was sent may not arrive.
func (c *Conn) fail(err error, code Code, tell bool) { c.end(err, code, tell, false) }

// refused ends a connection that was refused. The refusal arrives.
func (c *Conn) refused(code Code, text string) {
	c.end(&RefusedError{Code: code, Text: text}, code, false, true)
}

func (c *Conn) end(err error, code Code, tell, keep bool) {
	e, f := c.e, c.f
	e.mu.Lock()
	if c.err != nil || c.state == stateOver {
		e.mu.Unlock()
		return
	}
	c.err = err
	opening := c.state == stateOpening
	c.over()
	if tell {
		f.p.notices[f.stream] = notice{kindReset, f.stream, c.generation, code}
		e.counters.Resets++
	}
	s := c.s
	if keep {
		s = nil
	} else {
		f.renew = true // what it still has is not for the next connection
	}
	if c.opener {
		f.p.free = append(f.p.free, f.stream)
	}
	e.mu.Unlock()
	if s != nil {
		s.End()
	}
	close(c.dead)
	if opening {
		close(c.opened)
	}
	c.reads.close()
	c.writes.close()
	c.wake()
	if tell {
		f.p.tell(false)
	}
	f.drain()
}
