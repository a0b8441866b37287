package rconn

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
)

// Conn is a connection. It is safe for concurrent use: at most one goroutine sends and one
// receives at a time, the others wait for their turn.
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

	reading, writing   chan struct{} // hold a token while a call receives or sends
	readable, writable chan struct{} // get a token when there may be something to do

	current part // of reading: what is left of it
	// partial is the first part of a message that a Recv received before its context
	// ended, for the next Recv. It belongs to reading.
	partial []byte

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

// Close ends the connection gracefully and blocks until the peer has received everything
// that was sent, for at most Linger. After that it returns context.DeadlineExceeded: data
// may be lost, and the memory of the connection is freed when SCTP no longer needs it, on a
// dead network after verbs.Config.CloseTimeout. Blocked calls return net.ErrClosed; the
// peer's Recv returns io.EOF behind the last message.
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

// QP returns the queue pair, for its state and statistics. The caller must not post work
// requests to it.
func (c *Conn) QP() *verbs.QP { return c.qp }

// LocalAddr returns the address of this side's device.
func (c *Conn) LocalAddr() net.Addr { return c.dev.Addr() }

// RemoteAddr returns the address of the peer's device.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }
