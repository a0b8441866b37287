package ddpmpa

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/ddp"
)

// Conn is what MPA needs of a TCP connection; *net.TCPConn is one.
type Conn interface {
	net.Conn
	// CloseWrite ends the sending direction.
	CloseWrite() error
}

// Sink is the receiving direction of a stream. In addition to the methods of ddp.Sink
// it is told of errors after which MPA can still send: rdmap.Stream sends a
// Terminate message then.
type Sink interface {
	ddp.Sink
	Fail(f ddp.Fault)
}

// Limits of a channel.
const (
	// readBuffer is the size of the receive buffer: an FPDU that is not
	// complete yet, and what one read takes.
	readBuffer = MaxFPDU + 64<<10
	// writeSize is how much is gathered for one write before the next FPDU.
	writeSize = 64 << 10
	// Linger is how long the end of a connection may take without progress.
	Linger = 10 * time.Second
	// firstNudge is how long after the start an initiator repeats itself that has heard
	// nothing, and lastNudge the longest time from one repetition to the next: see nudger.
	firstNudge = 50 * time.Millisecond
	lastNudge  = 5 * time.Second
	// remeasure is the number of writes after which the EMSS is looked up
	// again.
	remeasure = 64
)

// Errors of a channel.
var (
	// ErrClosed is what a channel ends with that was closed by this side.
	ErrClosed = errors.New("ddpmpa: closed")
	// ErrSegment is returned for a segment larger than MaxMULPDU.
	ErrSegment = errors.New("ddpmpa: segment cannot be sent")
	// ErrTruncated is the end of a TCP connection in the midst of an FPDU. It
	// wraps FaultLost.
	ErrTruncated = fmt.Errorf("ddpmpa: stream ends within an FPDU: %w", FaultLost)
)

// Channel is MPA in full operation on one TCP connection. It is the
// ddp.Channel of the connection's stream.
type Channel struct {
	conn   Conn
	tx     *Framer
	rx     *Deframer
	mulpdu atomic.Int32
	rtr    bool // send a ready-to-receive indication first
	done   chan struct{}
	sink   Sink // set by Run
	ending atomic.Bool
	// initiator tells the side that sends first.
	initiator bool

	mu     sync.Mutex
	wake   sync.Cond     // writer: something below changed
	room   sync.Cond     // reader: held or lost changed
	held   atomic.Int64  // see Hold
	queue  []ddp.Segment // guarded by mu
	gated  bool          // guarded by mu: nothing may be sent yet
	barred bool          // guarded by mu: nothing may be sent, ever
	end    bool          // guarded by mu: Terminate was called
	run    bool          // guarded by mu
	loops  int           // guarded by mu: goroutines that still run
	nudge  bool          // guarded by mu: send a zero-length write
	lost   error         // guarded by mu
	sent   uint64        // guarded by mu: FPDUs
	got    uint64        // guarded by mu: FPDUs
}

// newChannel returns a channel that is not running yet. With gated it sends
// nothing before it has received an FPDU.
func newChannel(c Conn, ours, theirs *Frame, gated bool) *Channel {
	crc := ours.CRC || theirs.CRC
	ch := &Channel{conn: c, gated: gated, done: make(chan struct{}),
		tx: NewFramer(theirs.Markers, crc), rx: NewDeframer(ours.Markers, crc)}
	ch.wake.L, ch.room.L = &ch.mu, &ch.mu
	ch.measure()
	return ch
}

// measure looks up what a TCP segment can carry.
func (c *Channel) measure() { c.mulpdu.Store(int32(MULPDU(emss(c.conn), c.tx.f.markers))) }

// Run starts the channel: s hears what comes, on a goroutine of the channel. It
// is called once, by either side after what its stream needs was set up.
func (c *Channel) Run(s Sink) {
	c.mu.Lock()
	c.sink = s
	if c.lost != nil {
		err := c.lost
		c.mu.Unlock()
		c.drop(err)
		s.Lost(err)
		return
	}
	c.run, c.loops = true, 2
	c.mu.Unlock()
	go c.write()
	go c.read()
	if c.initiator {
		c.nudger(firstNudge)
	}
}

// nudger has a zero-length Write sent, which touches nothing, when the peer has
// not sent anything by then, and again after twice the time, up to lastNudge. There are
// responders that do not look at what arrives while they turn from startup to
// full operation until more arrives: without this, the connection stands still
// (Linux siw does, in any mode). How long they take is up to their program, so it goes on
// until the peer sends something or the connection ends.
func (c *Channel) nudger(wait time.Duration) {
	time.AfterFunc(wait, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.got > 0 || c.lost != nil || c.end || c.barred {
			return
		}
		if c.rtr || c.sent > 0 {
			c.nudge = true
			c.wake.Signal()
		}
		c.nudger(min(2*wait, lastNudge))
	})
}

// MULPDU implements ddp.Channel.
func (c *Channel) MULPDU() int { return int(c.mulpdu.Load()) }

// Send implements ddp.Channel. What is sent waits in memory for TCP; the
// stream's window bounds it.
func (c *Channel) Send(segs []ddp.Segment) (int, error) {
	for i := range segs {
		if segs[i].Len() > MaxMULPDU {
			return 0, fmt.Errorf("%w: %d bytes: at most %d", ErrSegment, segs[i].Len(), MaxMULPDU)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.lost != nil:
		return 0, c.lost
	case c.barred || c.end:
		return 0, ErrClosed
	}
	c.queue = append(c.queue, segs...)
	if !c.gated {
		c.wake.Signal()
	}
	return len(segs), nil
}

// Terminate implements ddp.Channel: it closes the sending direction of the TCP
// connection (RFC 5044, Section 7.2) after what was sent before.
func (c *Channel) Terminate() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return nil
	}
	c.end = true
	c.ending.Store(true)
	c.wake.Signal()
	// From now on there must be progress.
	return c.conn.SetDeadline(time.Now().Add(Linger))
}

// Release implements ddp.Channel: it closes the TCP connection.
func (c *Channel) Release() { c.close(ErrClosed) }

// Kill closes the TCP connection at once; the stream is Lost with ErrClosed.
func (c *Channel) Kill() { c.kill(ErrClosed) }

// Done returns a channel that is closed when the TCP connection is, and the
// goroutines are gone.
func (c *Channel) Done() <-chan struct{} { return c.done }

// Counts returns how many FPDUs were sent and received.
func (c *Channel) Counts() (sent, received uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent, c.got
}

// RemoteAddr and LocalAddr return the addresses of the TCP connection.
func (c *Channel) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }

// LocalAddr returns the address of this end.
func (c *Channel) LocalAddr() net.Addr { return c.conn.LocalAddr() }

// close closes the TCP connection. It reports whether it did.
func (c *Channel) close(err error) bool {
	c.mu.Lock()
	if c.lost != nil {
		c.mu.Unlock()
		return false
	}
	c.lost = err
	if !c.run {
		close(c.done)
	}
	c.wake.Signal()
	c.room.Signal()
	c.mu.Unlock()
	c.conn.Close()
	return true
}

// kill ends everything on behalf of the lower layer.
func (c *Channel) kill(err error) {
	if !c.close(err) {
		return
	}
	c.mu.Lock()
	s := c.sink
	c.mu.Unlock()
	if s != nil {
		s.Lost(err)
	}
	c.drop(err)
}

// drop releases what is queued.
func (c *Channel) drop(err error) {
	c.mu.Lock()
	q := c.queue
	c.queue = nil
	c.mu.Unlock()
	release(q, err)
}

func release(q []ddp.Segment, err error) {
	for i := range q {
		o := q[i].Owner
		q[i].Body, q[i].Owner = nil, nil
		o.Released(err)
	}
}

// Hold implements ddp.Holder. Over TCP everything comes in order, so something is held
// only while the stream lacks receives: nothing is read meanwhile.
func (c *Channel) Hold(n int) {
	if c.held.Add(int64(n)) > 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.room.Signal()
}

// awaitRoom waits while the stream holds something.
func (c *Channel) awaitRoom() {
	if c.held.Load() <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.held.Load() > 0 && c.lost == nil {
		c.room.Wait()
	}
}

// exit ends one of the two goroutines.
func (c *Channel) exit() {
	c.mu.Lock()
	c.loops--
	last := c.loops == 0
	c.mu.Unlock()
	if last {
		// Without a Release, the stream has no use for the connection either.
		c.close(ErrClosed)
		close(c.done)
	}
}

// lostError makes the error of a connection that failed.
func lostError(err error) error { return fmt.Errorf("ddpmpa: %w: %w", FaultLost, err) }

// ddpLast is the L bit in the first octet of a segment (RFC 5041, Section 4.1).
const ddpLast = 0x40

// write is the sending goroutine.
func (c *Channel) write() {
	defer c.exit()
	var buf []byte
	if c.rtr {
		buf = c.tx.Append(buf, rtrWrite, nil)
		if _, err := c.conn.Write(buf); err != nil {
			c.kill(lostError(err))
			return
		}
	}
	var q []ddp.Segment
	whole := true // no message is sent in part
	for n := 0; ; n++ {
		if n%remeasure == remeasure-1 {
			c.measure()
		}
		c.mu.Lock()
		for c.lost == nil && !c.barred && !(len(c.queue) > 0 && !c.gated) && !(c.end && len(c.queue) == 0) && !c.nudge {
			c.wake.Wait()
		}
		if c.lost != nil {
			err := c.lost
			c.mu.Unlock()
			c.drop(err)
			return
		}
		barred, end, nudge := c.barred, c.end, c.nudge && whole && !c.end
		q, c.queue = c.queue, q[:0]
		c.nudge = false
		c.mu.Unlock()
		if barred {
			release(q, ErrClosed)
			c.conn.CloseWrite()
			return
		}
		if len(q) == 0 && end {
			if err := c.conn.CloseWrite(); err != nil {
				c.kill(lostError(err))
			}
			return
		}
		var done int
		var err error
		if nudge {
			buf = c.tx.Append(buf[:0], rtrWrite, nil)
			_, err = c.conn.Write(buf)
		}
		if len(q) > 0 && err == nil {
			whole = q[len(q)-1].Frame()[ddp.Headroom]&ddpLast != 0
			buf, done, err = c.flush(buf, q)
		}
		if err != nil {
			err = lostError(err)
			c.kill(err)
			release(q[done:], err)
			return
		}
	}
}

// flush writes segments, many at a time, and releases them. It returns how many
// it did that for.
func (c *Channel) flush(buf []byte, q []ddp.Segment) ([]byte, int, error) {
	done := 0
	for done < len(q) {
		n := done
		buf = buf[:0]
		for n < len(q) && (n == done || len(buf)+q[n].Len() <= writeSize) {
			buf = c.tx.Append(buf, q[n].Frame()[ddp.Headroom:], q[n].Body)
			n++
		}
		if c.ending.Load() {
			c.conn.SetWriteDeadline(time.Now().Add(Linger))
		}
		if _, err := c.conn.Write(buf); err != nil {
			return buf, done, err
		}
		c.mu.Lock()
		c.sent += uint64(n - done)
		c.mu.Unlock()
		release(q[done:n], nil)
		done = n
	}
	return buf, done, nil
}

// read is the receiving goroutine.
func (c *Channel) read() {
	defer c.exit()
	buf := make([]byte, readBuffer)
	var seq uint64
	r, w := 0, 0
	for {
		for {
			ulpdu, n, err := c.rx.Next(buf[r:w])
			if err != nil {
				c.fail(err.(ddp.Fault), seq)
				return
			}
			if n == 0 {
				break
			}
			r += n
			c.received(seq)
			if err := c.sink.Segment(seq, ulpdu); err != nil {
				c.kill(err)
				return
			}
			seq++
			c.awaitRoom()
		}
		if r == w || len(buf)-w < 64<<10 {
			w = copy(buf, buf[r:w])
			r = 0
		}
		n, err := c.more(buf[w:])
		w += n
		if n > 0 {
			continue
		}
		switch {
		case errors.Is(err, io.EOF) && r < w:
			c.kill(ErrTruncated)
		case errors.Is(err, io.EOF):
			c.ended(seq)
		default:
			c.kill(lostError(err))
		}
		return
	}
}

// more reads what there is. A connection that ends must get on.
func (c *Channel) more(b []byte) (int, error) {
	if c.ending.Load() {
		c.conn.SetReadDeadline(time.Now().Add(Linger))
	}
	return c.conn.Read(b)
}

// received notes an FPDU that is valid (RFC 5044, Section 7.1.2, rule 4:
// responders "MUST receive and validate at least one FPDU before sending").
func (c *Channel) received(seq uint64) {
	c.mu.Lock()
	c.got = seq + 1
	if c.gated {
		c.gated = false
		c.wake.Signal()
	}
	c.mu.Unlock()
}

// bar gives up sending if there was no FPDU that would have allowed it.
func (c *Channel) bar() {
	c.mu.Lock()
	c.barred = c.barred || c.gated
	c.wake.Signal()
	c.mu.Unlock()
}

// ended takes the FIN of the peer.
func (c *Channel) ended(seq uint64) {
	c.bar()
	if err := c.sink.End(seq); err != nil {
		c.kill(err)
	}
}

// fail reports an invalid FPDU. RFC 5044, Section 8: "MPA MUST NOT close the
// TCP connection following a reported error"; what still comes is dropped.
func (c *Channel) fail(f ddp.Fault, seq uint64) {
	c.bar()
	c.sink.Fail(f)
	var waste [4096]byte
	for {
		if _, err := c.more(waste[:]); errors.Is(err, io.EOF) {
			c.ended(seq)
			return
		} else if err != nil {
			c.kill(lostError(err))
			return
		}
	}
}
