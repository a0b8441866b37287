package relay

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay/frame"
)

// MaxPartial bounds the bytes that the frames of a leg take that have arrived in part, as they do where
// the path has a smaller MTU than the origin's. Beyond it frames are dropped.
const MaxPartial = 4 << 20

// host is a Node or Gateway, as its connections see it. Its methods are called by upcalls of the
// association, which come one at a time.
type host interface {
	// keyOf returns the key for a peer that wants to connect.
	keyOf(g *frame.Greeting) ([]byte, error)
	// attach is called when the peer has proven who it is; an error refuses it.
	attach(c *conn) error
	// onFrame gets a frame, of which b are the bytes. If p is not nil it has them, and the
	// reference is the host's; otherwise b is valid until onFrame returns.
	onFrame(c *conn, f *frame.Frame, b []byte, p *packet)
	// flush sends what onFrame has queued.
	flush(c *conn)
	// detach is called at the end of a connection that was attached.
	detach(c *conn, err error)
	// identity is what this side says about itself.
	identity() (site, gateway uint16, incarnation uint32)
}

// conn is an association of a Node or Gateway, with the peer that was proven, and its leg.
type conn struct {
	leg
	host host

	// Used by upcalls only.
	key           []byte
	hello, answer []byte
	expects       frame.Type // next step of the authentication; 0 when it is over
	broken        bool
	partial       map[uint64]*packet // by sctp.Piece.Message
	partialBytes  int
	touched       []*leg // legs with frames that flush sends
	frame         frame.Frame

	// Constant after attach.
	role        frame.Role
	peer        Address // a gateway: its site, and its number as node
	direct      bool    // between two processes
	dialed      bool    // this side has connected
	index       uint16  // of a leg between gateways: which of their associations it is
	job         uint32
	incarnation uint32

	attached bool // guarded by the mutex of the host
	dirty    bool // of a direct leg: is in Node.dirty; guarded by the mutex of the node

	proven atomic.Bool // authentication is over

	quiet    int // periods of the timer in which nothing was heard; used by the timer only
	received LegCounters
	flows    int // of a gateway, from this process; guarded by the host
}

// accept makes the connection for an association that a peer has opened.
func accept(h host, a *sctp.Association) *conn {
	c := &conn{host: h, expects: frame.Hello}
	c.a = a
	a.SetValue(c)
	return c
}

// dial makes the connection for an association that this side has opened, and greets.
func dial(h host, a *sctp.Association, key []byte, g frame.Greeting) (*conn, error) {
	c := &conn{host: h, expects: frame.Answer, key: key, role: frame.RoleGateway, dialed: true}
	c.a = a
	_, _ = rand.Read(g.Nonce[:]) // never fails
	c.hello = frame.AppendHello(nil, &g)
	c.peer = g.To()
	if c.direct = g.Process != 0; c.direct {
		c.role = frame.RoleNode
	}
	if g.Role == frame.RoleGateway {
		c.index = g.From.Process
	}
	c.job = g.Job
	a.SetValue(c)
	return c, c.greet(c.hello)
}

func (c *conn) greet(b []byte) error {
	return c.a.TrySend(b, sctp.SendOptions{PPID: ppid, Force: true})
}

// onPiece is the upcall of the association.
func (c *conn) onPiece(p *sctp.Piece) {
	if c.broken {
		return
	}
	if err := c.receive(p); err != nil {
		c.broken = true
		c.a.Abort(err.Error())
	}
	if !p.More {
		c.host.flush(c)
	}
}

// receive handles a fragment.
func (c *conn) receive(p *sctp.Piece) error {
	if p.PPID != ppid {
		return fmt.Errorf("relay: message with PPID %#x", p.PPID)
	}
	if c.expects != 0 {
		if !p.Begin || !p.End || p.Aborted {
			return errAuth
		}
		return c.authenticate(p.Data)
	}
	c.heard.Store(true)
	if p.Begin && p.End {
		return c.onMessage(p.Data, nil)
	}
	q := c.partial[p.Message]
	switch {
	case p.Aborted:
		c.forget(p.Message, q)
		return nil
	case p.Begin:
		if c.partialBytes+frame.MaxSize+packetCost > MaxPartial {
			c.mu.Lock()
			c.received.Dropped++
			c.mu.Unlock()
			return nil
		}
		if c.partial == nil {
			c.partial = make(map[uint64]*packet)
		}
		q = newPacket(frame.MaxSize)
		q.n = 0
		c.partial[p.Message] = q
		c.partialBytes += q.cost()
	case q == nil:
		return nil // its beginning was dropped
	}
	if q.n+len(p.Data) > frame.MaxSize {
		c.forget(p.Message, q)
		return frame.ErrShort
	}
	copy(q.buf.Bytes(frame.MaxSize)[q.n:], p.Data)
	q.n += len(p.Data)
	if !p.End {
		return nil
	}
	delete(c.partial, p.Message)
	c.partialBytes -= q.cost()
	return c.onMessage(q.bytes(), q)
}

// forget drops a frame that has arrived in part.
func (c *conn) forget(message uint64, q *packet) {
	if q != nil {
		delete(c.partial, message)
		c.partialBytes -= q.cost()
		q.release()
	}
}

func (c *conn) onMessage(b []byte, p *packet) error {
	err := frame.Parse(b, &c.frame)
	if err != nil || c.frame.Type == frame.Ping {
		if p != nil {
			p.release()
		}
		return err
	}
	c.mu.Lock()
	c.received.FramesReceived++
	c.received.BytesReceived += uint64(len(b))
	c.mu.Unlock()
	c.host.onFrame(c, &c.frame, b, p)
	return nil
}

// touch has flush send what is queued on l.
func (c *conn) touch(l *leg) {
	for _, t := range c.touched {
		if t == l {
			return
		}
	}
	c.touched = append(c.touched, l)
}

var errAuth = errors.New("relay: authentication failed")

// authenticate handles a message before the leg is up.
func (c *conn) authenticate(b []byte) error {
	switch c.expects {
	case frame.Hello:
		g, err := frame.ParseHello(b)
		if err != nil {
			return err
		}
		if c.key, err = c.host.keyOf(&g); err != nil {
			return err
		}
		c.role, c.peer, c.job, c.incarnation = g.Role, g.From, g.Job, g.Incarnation
		c.direct = c.role == frame.RoleNode && g.Process != 0
		if c.role == frame.RoleGateway {
			c.index, c.peer.Process = c.peer.Process, 0
		}
		c.hello = append(c.hello, b...)
		var r frame.Reply
		r.Site, r.Gateway, r.Incarnation = c.host.identity()
		_, _ = rand.Read(r.Nonce[:]) // never fails
		c.answer = frame.AppendAnswer(nil, &r, c.key, c.hello)
		c.expects = frame.Prove
		return c.greet(c.answer)
	case frame.Answer:
		r, ok, err := frame.ParseAnswer(b, c.key, c.hello)
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("%w: the gateway has another key", errAuth)
		case r.Site != c.peer.Site:
			return fmt.Errorf("%w: gateway of site %d, want %d", errAuth, r.Site, c.peer.Site)
		case c.direct != (r.Gateway == 0) || !c.direct && c.peer.Node != 0 && c.peer.Node != r.Gateway:
			return fmt.Errorf("%w: gateway %d (0: a process) where %v was expected", errAuth, r.Gateway, c.peer)
		}
		if c.incarnation = r.Incarnation; !c.direct {
			c.peer.Node = r.Gateway
		}
		c.expects = frame.Welcome
		return c.greet(frame.AppendProve(nil, c.key, c.hello, b))
	case frame.Prove:
		ok, err := frame.ParseProve(b, c.key, c.hello, c.answer)
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("%w: wrong proof of %v", errAuth, c.peer)
		}
		c.a.Admit()
		// The welcome is the first message of this side, so it precedes all frames.
		if err := c.greet(frame.AppendWelcome(nil)); err != nil {
			return err
		}
		return c.up()
	default:
		if err := frame.ParseWelcome(b); err != nil {
			return err
		}
		return c.up()
	}
}

func (c *conn) up() error {
	c.expects, c.key, c.hello, c.answer = 0, nil, nil, nil
	out, _ := c.a.Streams()
	if out < 2 {
		return fmt.Errorf("relay: %d streams, want at least 2", out)
	}
	c.streams = uint32(out) - 1
	if err := c.host.attach(c); err != nil {
		return err
	}
	c.proven.Store(true)
	return nil
}

// closing is the reason in the ABORT (RFC 9260, Section 3.3.10.12) by which a gateway or process ends a leg in order.
const closing = "relay: closed"

// closed reports whether a leg that has ended with err was closed, by either side, and not lost.
func closed(err error) bool {
	var abort *sctp.AbortError
	return err == nil || errors.As(err, &abort) && abort.Reason == closing
}

// onDown is the upcall for the end of the association.
func (c *conn) onDown(err error) {
	c.leg.close()
	for m, q := range c.partial {
		c.forget(m, q)
	}
	c.host.detach(c, err)
	c.host.flush(c)
}

// check is called four times in the leg timeout. It reports false if the leg is dead.
func (c *conn) check() bool {
	if c.heard.Swap(false) {
		c.quiet = 0
	} else if c.quiet++; c.quiet >= checks {
		return false
	}
	if !c.said.Swap(false) {
		var b [2]byte
		_ = c.a.TrySend(frame.AppendPing(b[:0]), sctp.SendOptions{PPID: ppid, Force: true, Unordered: true})
	}
	return true
}

// checkLegs checks legs, and ends those that are dead.
func checkLegs(legs []*conn) {
	for i, c := range legs {
		if !c.check() {
			c.a.Abort("relay: nothing heard for the leg timeout")
		}
		legs[i] = nil
	}
}

// checks is how often a leg is looked at in the leg timeout.
const checks = 4
