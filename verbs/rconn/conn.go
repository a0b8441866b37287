package rconn

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
)

// Defaults and limits.
const (
	// DefaultBuffers is the default of Config.Buffers, MaxBuffers bounds it.
	DefaultBuffers, MaxBuffers = 64, 4096
	// DefaultSize is the default of Config.Size, MinSize and MaxSize bound it.
	DefaultSize, MinSize, MaxSize = 16 << 10, 64, 1 << 20
	// DefaultMaxMessage is the default of Config.MaxMessage.
	DefaultMaxMessage = 64 << 20
	// Linger bounds how long Close waits for the peer to have taken what was
	// sent.
	Linger = 5 * time.Second

	// spare receives are for messages that only give credits back. Another one
	// is sent when half of the credits have been used again, so few are ever
	// under way.
	spare = 4
)

// Errors of connections.
var (
	// ErrTooLong ends a connection whose peer sends a message over
	// Config.MaxMessage.
	ErrTooLong = errors.New("rconn: message too long")
	// ErrProtocol ends a connection whose peer breaks the rules of this package.
	ErrProtocol = errors.New("rconn: protocol error")
	// ErrInvalid is returned for a Config out of its limits.
	ErrInvalid = errors.New("rconn: invalid configuration")
	// errInterrupted ends a connection that cannot go on because part of a
	// message was sent when its context was done.
	errInterrupted = errors.New("rconn: message was interrupted")
)

// Config holds the parameters of a connection. The two sides may differ.
type Config struct {
	// Buffers is the number of receive buffers, Size that of bytes in each,
	// header included: what the peer may send before the consumer reads.
	Buffers, Size int
	// MaxMessage bounds the messages that Recv returns.
	MaxMessage int
}

func (c *Config) setDefaults() error {
	for _, f := range []struct {
		v             *int
		def, min, max int
	}{
		{&c.Buffers, DefaultBuffers, 1, MaxBuffers}, {&c.Size, DefaultSize, MinSize, MaxSize},
		{&c.MaxMessage, DefaultMaxMessage, 0, 1 << 40},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
		if *f.v < f.min || *f.v > f.max {
			return ErrInvalid
		}
	}
	return nil
}

// part is a received part of a message, in its buffer.
type part struct {
	buf  int // receive buffer
	data []byte
	more bool
}

// Conn is a connection. Its methods may be called by several goroutines; at most
// one sends and one receives at a time, others wait.
type Conn struct {
	cfg  Config
	peer card
	dev  *verbs.Device
	pd   *verbs.PD
	cq   *verbs.CQ
	qp   *verbs.QP
	in   *verbs.MR // receive buffers
	out  *verbs.MR // send slots
	slot int       // size of a send slot

	remote  sctp.Addr
	pumping chan struct{} // closed when pump has returned
	cancel  context.CancelFunc
	closed  chan struct{} // closed by Close
	once    sync.Once

	reading, writing   chan struct{} // hold a token while somebody does
	readable, writable chan struct{} // get a token when there may be something to do

	current part // of reading: what is left of it

	mu      sync.Mutex
	inbox   []part // guarded by mu: ring
	head, n int    // guarded by mu
	credits int    // guarded by mu: what the peer has room for
	owed    int    // guarded by mu: credits to give back
	free    []int  // guarded by mu: send slots
	err     error  // guarded by mu: why nothing more will be received
}

// newConn makes a connection that is not connected. The queue pair has its
// receives.
func newConn(dev *verbs.Device, cfg Config) (c *Conn, err error) {
	c = &Conn{cfg: cfg, dev: dev, pd: dev.AllocPD(), closed: make(chan struct{}), pumping: make(chan struct{}),
		reading: make(chan struct{}, 1), writing: make(chan struct{}, 1),
		readable: make(chan struct{}, 1), writable: make(chan struct{}, 1), inbox: make([]part, cfg.Buffers)}
	defer func() {
		if err != nil {
			c.free = nil
			c.release()
		}
	}()
	recvs, sends := cfg.Buffers+spare, cfg.Buffers+2*spare
	if c.cq, err = dev.NewCQ(recvs + sends); err != nil {
		return nil, err
	}
	if c.in, err = c.pd.Register(make([]byte, recvs*cfg.Size), verbs.LocalWrite); err != nil {
		return nil, err
	}
	if c.qp, err = c.pd.NewQP(verbs.QPConfig{SendCQ: c.cq, RecvCQ: c.cq, SendDepth: sends, RecvDepth: recvs,
		MaxSendSGE: 1, MaxRecvSGE: 1, MaxInline: headerLen, IRD: -1, ORD: -1}); err != nil {
		return nil, err
	}
	for i := range recvs {
		if err = c.post(i); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// card returns what the peer must know.
func (c *Conn) card() []byte { return card{c.cfg.Buffers, c.cfg.Size}.append(nil) }

// start begins the traffic of a connection whose peer is known.
func (c *Conn) start(peer card) error {
	c.peer, c.credits = peer, peer.buffers
	c.slot = min(c.cfg.Size, peer.size)
	slots := min(c.cfg.Buffers, peer.buffers)
	var err error
	if c.out, err = c.pd.Register(make([]byte, slots*c.slot), 0); err != nil {
		return err
	}
	for i := range slots {
		c.free = append(c.free, i)
	}
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	go c.pump(ctx)
	return nil
}

// post gives receive buffer i to the queue pair.
func (c *Conn) post(i int) error {
	sgl := [1]verbs.SGE{c.in.Slice(i*c.cfg.Size, c.cfg.Size)}
	return c.qp.PostRecv(verbs.RecvWR{ID: uint64(i), SGL: sgl[:]})
}

// pump takes completions.
func (c *Conn) pump(ctx context.Context) {
	defer close(c.pumping)
	var wc [32]verbs.WC
	for {
		n, err := c.cq.Wait(ctx, wc[:])
		if err != nil {
			c.fail(err)
			return
		}
		for i := range n {
			c.completed(&wc[i])
		}
	}
}

// completed takes one completion.
func (c *Conn) completed(wc *verbs.WC) {
	switch {
	case wc.Status != verbs.StatusSuccess:
		err := c.qp.Err()
		if errors.Is(err, verbs.ErrDisconnected) {
			err = io.EOF
		} else if err == nil {
			err = wc.Err()
		}
		c.fail(err)
	case wc.Recv:
		if err := c.received(int(wc.ID), int(wc.Len)); err != nil {
			c.fail(err)
			c.qp.Close()
		}
	default:
		c.mu.Lock()
		c.free = append(c.free, int(wc.ID))
		due := c.due()
		c.mu.Unlock()
		signal(c.writable)
		if due {
			c.giveBack()
		}
	}
}

// received takes a message of RDMAP, in receive buffer i.
func (c *Conn) received(i, n int) error {
	b := c.in.Bytes()[i*c.cfg.Size:][:n]
	h, ok := parseHeader(b)
	if !ok {
		return ErrProtocol
	}
	c.mu.Lock()
	c.credits += int(h.credits)
	if c.credits > c.peer.buffers {
		c.mu.Unlock()
		return ErrProtocol
	}
	data := h.flags&flagData != 0
	if data {
		if c.n == len(c.inbox) {
			c.mu.Unlock()
			return ErrProtocol // it had no credit for this
		}
		c.inbox[(c.head+c.n)%len(c.inbox)] = part{i, b[headerLen:], h.flags&flagMore != 0}
		c.n++
	}
	c.mu.Unlock()
	if h.credits > 0 {
		signal(c.writable)
	}
	if data {
		signal(c.readable)
		return nil
	}
	c.post(i) // fails when the connection is at its end: a completion will tell
	return nil
}

// fail notes why nothing more will be received, and wakes everybody.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	signal(c.readable)
	signal(c.writable)
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// until is what a waiting call may be ended by, besides the connection: a context
// or a deadline.
type until struct {
	done <-chan struct{}
	err  func() error
}

// lock takes the token of one direction.
func (c *Conn) lock(ch chan struct{}, u until) error {
	if err := c.ended(u); err != nil {
		return err
	}
	select {
	case ch <- struct{}{}:
		return nil
	case <-u.done:
		return u.err()
	case <-c.closed:
		return net.ErrClosed
	}
}

// ended returns why a call may not go on, if so.
func (c *Conn) ended(u until) error {
	select {
	case <-c.closed:
		return net.ErrClosed
	case <-u.done:
		return u.err()
	default:
		return nil
	}
}

// wait waits for a token.
func (c *Conn) wait(ch chan struct{}, u until) error {
	select {
	case <-ch:
		return nil
	case <-u.done:
		return u.err()
	case <-c.closed:
		return net.ErrClosed
	}
}

// next makes current the next part of a message. reading is held.
func (c *Conn) next(u until) error {
	for {
		c.mu.Lock()
		if c.n > 0 {
			c.current, c.inbox[c.head] = c.inbox[c.head], part{}
			c.head = (c.head + 1) % len(c.inbox)
			c.n--
			c.mu.Unlock()
			return nil
		}
		err := c.err
		c.mu.Unlock()
		if err != nil {
			return err
		}
		if err := c.wait(c.readable, u); err != nil {
			return err
		}
	}
}

// emptied gives the buffer of current back.
func (c *Conn) emptied() {
	i := c.current.buf
	c.current = part{}
	if c.post(i) != nil {
		return // the connection is at its end, which pump finds out
	}
	c.mu.Lock()
	c.owed++
	due := c.due()
	c.mu.Unlock()
	if due {
		c.giveBack()
	}
}

// due reports whether credits should be given back without a message that
// carries them.
func (c *Conn) due() bool { // mu is held
	return c.err == nil && c.owed >= max(1, c.cfg.Buffers/2)
}

// giveBack sends the credits that are owed. If there is no room for that in the
// send queue, it is tried again when there is.
func (c *Conn) giveBack() {
	c.mu.Lock()
	n := c.owed
	c.owed = 0
	c.mu.Unlock()
	if n == 0 {
		return
	}
	var b [headerLen]byte
	header{0, uint16(n)}.put(b[:])
	if c.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, Inline: b[:]}) != nil {
		c.mu.Lock()
		c.owed += n
		c.mu.Unlock()
	}
}

// send sends one part. writing is held.
func (c *Conn) send(p []byte, more bool, u until) error {
	slot, credits := 0, 0
	for {
		if err := c.ended(u); err != nil {
			return err
		}
		c.mu.Lock()
		err := c.err
		ok := err == nil && c.credits > 0 && len(c.free) > 0
		if ok {
			last := len(c.free) - 1
			slot, c.free = c.free[last], c.free[:last]
			credits, c.owed = c.owed, 0
			c.credits--
		}
		c.mu.Unlock()
		if ok {
			break
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrClosedPipe
		}
		if err == nil {
			err = c.wait(c.writable, u)
		}
		if err != nil {
			return err
		}
	}
	h := header{flagData, uint16(credits)}
	if more {
		h.flags |= flagMore
	}
	b := c.out.Bytes()[slot*c.slot:]
	h.put(b)
	n := headerLen + copy(b[headerLen:c.slot], p)
	sgl := [1]verbs.SGE{c.out.Slice(slot*c.slot, n)}
	wr := verbs.SendWR{ID: uint64(slot), Op: verbs.OpSend, Flags: verbs.Signaled, SGL: sgl[:]}
	for {
		err := c.qp.PostSend(wr)
		switch {
		case errors.Is(err, verbs.ErrQueueFull): // of messages that give credits back
			if err := c.wait(c.writable, until{}); err != nil {
				return err
			}
		case errors.Is(err, verbs.ErrQPState):
			return io.ErrClosedPipe
		default:
			return err
		}
	}
}

// room returns the bytes that fit one part.
func (c *Conn) room() int { return c.slot - headerLen }

// of makes an until of a context.
func of(ctx context.Context) until { return until{ctx.Done(), ctx.Err} }

// Send sends p as one message. It copies p, and blocks while the peer has no room
// for it. When ctx is done in the midst of a long message the connection is of no
// more use and ends. Errors are net.ErrClosed after Close, io.ErrClosedPipe after
// the peer's, that of ctx, or why the connection was lost.
func (c *Conn) Send(ctx context.Context, p []byte) error {
	u := of(ctx)
	if err := c.lock(c.writing, u); err != nil {
		return err
	}
	defer func() { <-c.writing }()
	for sent := 0; ; {
		n := min(len(p)-sent, c.room())
		err := c.send(p[sent:sent+n], sent+n < len(p), u)
		if err != nil {
			if sent > 0 && c.ended(until{}) == nil {
				c.fail(errInterrupted)
				c.qp.Close()
			}
			return err
		}
		if sent += n; sent == len(p) {
			return nil
		}
	}
}

// Recv appends the next message to dst and returns the extended slice. It blocks
// until the whole message is there. When ctx is done in the midst of a message
// what has come is kept for no one: the connection ends. Errors are io.EOF after
// the peer's Close, net.ErrClosed after this side's, that of ctx, or why the
// connection was lost.
func (c *Conn) Recv(ctx context.Context, dst []byte) ([]byte, error) {
	u := of(ctx)
	if err := c.lock(c.reading, u); err != nil {
		return dst, err
	}
	defer func() { <-c.reading }()
	whole := dst
	for begun := false; ; begun = true {
		if c.current.data == nil {
			if err := c.next(u); err != nil {
				if begun && c.ended(until{}) == nil {
					c.fail(errInterrupted)
					c.qp.Close()
					if errors.Is(err, io.EOF) {
						err = io.ErrUnexpectedEOF
					}
				}
				return dst, err
			}
		}
		if len(whole)-len(dst)+len(c.current.data) > c.cfg.MaxMessage {
			c.fail(ErrTooLong)
			c.qp.Close()
			return dst, ErrTooLong
		}
		whole = append(whole, c.current.data...)
		more := c.current.more
		c.emptied()
		if !more {
			return whole, nil
		}
	}
}

// Close ends the connection: what was sent still arrives, for which Close waits.
// After Linger it returns context.DeadlineExceeded: whether it has arrived is not
// known, and what the connection has is freed when SCTP no longer needs it. Calls
// that block return net.ErrClosed; the peer's Recv returns io.EOF when it has got
// everything.
func (c *Conn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		close(c.closed)
		ctx, cancel := context.WithTimeout(context.Background(), Linger)
		defer cancel()
		if err = c.qp.Disconnect(ctx); err != nil {
			go c.release() // waits for the end of what is being sent
			return
		}
		c.release()
	})
	return err
}

// release frees what the connection has. It does not matter how far that came.
func (c *Conn) release() {
	if c.qp != nil {
		c.qp.Close()
		<-c.qp.Done()
	}
	if c.cancel != nil {
		c.cancel()
		<-c.pumping
	}
	// A call that is about to post finds the queue pair at its end, but may hold
	// the memory for a moment: it holds the token of its direction.
	c.reading <- struct{}{}
	c.writing <- struct{}{}
	if c.out != nil {
		c.out.Close()
	}
	if c.in != nil {
		c.in.Close()
	}
	if c.cq != nil {
		c.cq.Close()
	}
	c.pd.Close()
}

// QP returns the queue pair, for its state and statistics. Nothing may be posted
// to it.
func (c *Conn) QP() *verbs.QP { return c.qp }

// LocalAddr returns the address of this side's device, RemoteAddr that of the
// peer's.
func (c *Conn) LocalAddr() net.Addr { return c.dev.Addr() }

// RemoteAddr implements net.Conn for Stream.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }
