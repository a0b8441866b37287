package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
)

// rdmaEnd is either end of the modes send, write and read.
type rdmaEnd struct {
	tally
	spec      *spec
	tcp       net.Addr        // of the listener, with TCP
	transport *sctp.Transport // nil with TCP
	device    *verbs.Device
	pd        *verbs.PD
	mu        sync.Mutex
	conns     []*rdmaConn
}

// rdmaConn is a queue pair with its memory.
type rdmaConn struct {
	end    *rdmaEnd
	qp     *verbs.QP
	cq     *verbs.CQ
	out    *verbs.MR // what is sent or written, or where reads go
	in     *verbs.MR // where the peer writes, or reads, or its sends go
	remote verbs.RemoteBuf
	turn   uint32 // of the ping-pong
	credit int    // sends for which the peer has receives
	got    int    // receives since the last credit to the peer
	wc     []verbs.WC
	one    [1]verbs.SendWR
	sge    [1]verbs.SGE
	rwr    [1]verbs.RecvWR
	rsge   [1]verbs.SGE
}

// rdmaPoll is how long waits for completions poll unless told otherwise: programs of
// perftest do nothing else.
const rdmaPoll = time.Millisecond

func newRDMAEnd(s *spec) (*rdmaEnd, error) {
	if s.TCP {
		dev, err := verbs.Open(verbs.Config{})
		if err != nil {
			return nil, err
		}
		return &rdmaEnd{spec: s, device: dev, pd: dev.AllocPD()}, nil
	}
	poll := s.BusyPoll
	if poll == 0 {
		poll = rdmaPoll
	}
	tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{s.localPort0()}, BusyPoll: poll})
	if err != nil {
		return nil, err
	}
	streams := uint16(min(65535, max(64, 4*s.Assocs)))
	dev, err := verbs.Open(verbs.Config{Transport: tr, Streams: streams,
		SCTP: &sctp.Config{MTU: s.MTU, ZeroChecksumLocal: s.ZeroSum}})
	if err != nil {
		tr.Close()
		return nil, err
	}
	return &rdmaEnd{spec: s, transport: tr, device: dev, pd: dev.AllocPD()}, nil
}

// newConn makes a queue pair and the memory that it works on.
func (e *rdmaEnd) newConn() (*rdmaConn, error) {
	c := &rdmaConn{end: e, wc: make([]verbs.WC, 64)}
	size := (e.spec.Size + 3) &^ 3 // whole words, see lastByte
	var err error
	if c.cq, err = e.device.NewCQ(4*e.spec.Window + 16); err != nil {
		return nil, err
	}
	if c.out, err = e.pd.Register(make([]byte, size), verbs.LocalWrite); err != nil {
		return nil, err
	}
	in := size
	if e.spec.Mode == "send" {
		in *= e.slots()
	}
	if c.in, err = e.pd.Register(make([]byte, in), verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic); err != nil {
		return nil, err
	}
	c.qp, err = e.pd.NewQP(verbs.QPConfig{
		SendCQ: c.cq, RecvCQ: c.cq, SendDepth: e.spec.Window + creditSends, RecvDepth: e.receives(),
		IRD: min(e.spec.Window, verbs.MaxReadDepth), ORD: min(e.spec.Window, verbs.MaxReadDepth),
	})
	if err != nil {
		return nil, err
	}
	for i := range e.receives() {
		if err := c.postRecv(uint64(i)); err != nil {
			return nil, err
		}
	}
	c.credit = 2 * e.spec.Window
	return c, nil
}

// creditSends is the room for sends that tell of receives posted anew, and for
// the receives that those take.
const creditSends = 8

// receives is how many receives are posted: a message without one would end the
// connection. The peer sends at most two windows that no credit covers.
func (e *rdmaEnd) receives() int { return 2*e.spec.Window + creditSends }

// maxReceiveMemory bounds the memory of a connection's receives.
const maxReceiveMemory = 64 << 20

// slots is how many buffers the receives have: one each, but with large messages
// they share some.
func (e *rdmaEnd) slots() int {
	size := (e.spec.Size + 3) &^ 3
	return max(1, min(e.receives(), maxReceiveMemory/size))
}

// rdmaCard is how one side tells the other where to write and read.
func (c *rdmaConn) card() []byte {
	r := c.in.Remote()
	b := binary.BigEndian.AppendUint32(nil, r.STag)
	b = binary.BigEndian.AppendUint64(b, r.TO)
	return binary.BigEndian.AppendUint64(b, r.Len)
}

func (c *rdmaConn) setRemote(card []byte) error {
	if len(card) != 20 {
		return fmt.Errorf("private data of %d bytes, want 20", len(card))
	}
	c.remote = verbs.RemoteBuf{
		STag: binary.BigEndian.Uint32(card), TO: binary.BigEndian.Uint64(card[4:]), Len: binary.BigEndian.Uint64(card[12:]),
	}
	return nil
}

func (c *rdmaConn) postRecv(id uint64) error {
	c.rsge[0] = c.in.Slice(0, 0)
	if c.end.spec.Mode == "send" {
		size := (c.end.spec.Size + 3) &^ 3
		c.rsge[0] = c.in.Slice(int(id)%c.end.slots()*size, size)
	}
	c.rwr[0] = verbs.RecvWR{ID: id, SGL: c.rsge[:]}
	return c.qp.PostRecv(c.rwr[:]...)
}

func openRDMATarget(ctx context.Context, s *spec) (target, error) {
	e, err := newRDMAEnd(s)
	if err != nil {
		return nil, err
	}
	l, err := e.listen(ctx)
	if err != nil {
		e.close()
		return nil, err
	}
	go func() {
		for {
			req, err := l.Accept(ctx)
			if err != nil {
				return
			}
			if err := e.accept(ctx, req); err != nil {
				req.Reject([]byte(err.Error()))
			}
		}
	}()
	return e, nil
}

// rdmaListener accepts connections over SCTP or TCP.
type rdmaListener interface {
	Accept(ctx context.Context) (*verbs.ConnRequest, error)
}

// listen listens over the lower layer of the measurement.
func (e *rdmaEnd) listen(ctx context.Context) (rdmaListener, error) {
	if !e.spec.TCP {
		return e.device.Listen()
	}
	l, err := e.device.ListenTCP(ctx, e.spec.localPort0().String())
	if err != nil {
		return nil, err
	}
	e.tcp = l.Addr()
	return l, nil
}

func (e *rdmaEnd) accept(ctx context.Context, req *verbs.ConnRequest) error {
	c, err := e.newConn()
	if err != nil {
		return err
	}
	if err := c.setRemote(req.PrivateData); err != nil {
		return err
	}
	if err := req.Accept(c.qp, verbs.ConnParams{PrivateData: c.card()}); err != nil {
		return err
	}
	e.mu.Lock()
	e.conns = append(e.conns, c)
	e.mu.Unlock()
	switch {
	case e.spec.Latency:
		go c.answer(ctx)
	case e.spec.Bidir:
		go c.load(ctx)
	case e.spec.Mode == "send":
		go c.drain(ctx)
	}
	return nil
}

func (e *rdmaEnd) addr() string {
	if e.spec.TCP {
		return e.tcp.String()
	}
	return e.device.Addr().String()
}

func (e *rdmaEnd) close() {
	if !e.spec.TCP {
		e.transport.Close()
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.conns {
		c.qp.Close()
	}
	e.device.Close()
}

func (e *rdmaEnd) counts() counts {
	c := e.tally.counts()
	if e.spec.TCP {
		return c
	}
	for _, a := range e.device.Associations() {
		c.Retransmits += a.Stats().Retransmits
	}
	c.Drops = e.transport.Stats().SocketDrops
	return c
}

func openRDMASource(ctx context.Context, s *spec, addr string) (source, error) {
	var peer sctp.Addr
	var err error
	if !s.TCP {
		if peer, err = sctp.ParseAddr(addr); err != nil {
			return nil, err
		}
	}
	e, err := newRDMAEnd(s)
	if err != nil {
		return nil, err
	}
	for range s.Assocs {
		var c *rdmaConn
		var info verbs.ConnInfo
		if c, err = e.newConn(); err != nil {
			break
		}
		params := verbs.ConnParams{PrivateData: c.card()}
		if s.TCP {
			info, err = e.device.ConnectTCP(ctx, addr, c.qp, params)
		} else {
			info, err = e.device.Connect(ctx, peer, c.qp, params)
		}
		if err != nil {
			break
		}
		if err = c.setRemote(info.PrivateData); err != nil {
			break
		}
		e.conns = append(e.conns, c)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *rdmaEnd) load(ctx context.Context) error {
	return each(len(e.conns), func(i int) error { return e.conns[i].load(ctx) })
}

// ops are the operations of the modes.
var rdmaOps = map[string]verbs.Opcode{"send": verbs.OpSend, "write": verbs.OpWrite, "read": verbs.OpRead,
	"atomic": verbs.OpFetchAdd}

// atomicSize is what an atomic operation works on.
const atomicSize = 8

func isRDMAMode(mode string) bool { return rdmaOps[mode] != 0 }

// post posts one operation of the mode.
func (c *rdmaConn) post(op verbs.Opcode) error {
	c.sge[0] = c.out.Slice(0, c.end.spec.Size)
	c.one[0] = verbs.SendWR{Op: op, Flags: verbs.Signaled, SGL: c.sge[:], Remote: c.remote}
	return c.qp.PostSend(c.one[:]...)
}

// load keeps a window of operations under way.
func (c *rdmaConn) load(ctx context.Context) error {
	e := c.end
	op := rdmaOps[e.spec.Mode]
	pace := newPacer(e.spec, e.spec.Assocs)
	room := e.spec.Window
	for {
		for ; room > 0 && (op != verbs.OpSend || c.credit > 0); room-- {
			pace.wait()
			if err := c.post(op); err != nil {
				return c.why(err)
			}
			c.credit--
		}
		done, err := c.reap(ctx)
		if err != nil {
			return err
		}
		if room += done; op != verbs.OpSend {
			e.msgs.Add(uint64(done))
			e.bytes.Add(uint64(done * e.spec.Size))
		}
	}
}

// reap waits for completions, renews receives and counts them, and returns how
// many sends there were.
func (c *rdmaConn) reap(ctx context.Context) (sends int, err error) {
	n, err := c.cq.Wait(ctx, c.wc)
	if err != nil {
		return 0, err
	}
	for i := range c.wc[:n] {
		wc := &c.wc[i]
		if wc.Status != verbs.StatusSuccess {
			return sends, wc.Err()
		}
		if !wc.Recv {
			if wc.ID != creditID {
				sends++
			}
			continue
		}
		if err := c.postRecv(wc.ID); err != nil {
			return sends, c.why(err)
		}
		if wc.Len == 0 && wc.Flags&verbs.WithImm == 0 {
			c.credit += c.end.spec.Window
			continue
		}
		c.end.msgs.Add(1)
		c.end.bytes.Add(uint64(wc.Len))
		if c.got++; c.got == c.end.spec.Window && c.end.spec.Mode == "send" && !c.end.spec.Latency {
			c.got = 0
			c.one[0] = verbs.SendWR{ID: creditID, Op: verbs.OpSend, Flags: verbs.Signaled}
			if err := c.qp.PostSend(c.one[:]...); err != nil {
				return sends, c.why(err)
			}
		}
	}
	return sends, nil
}

// creditID marks a send that gives the peer credit for a window of sends.
const creditID = ^uint64(0)

// why prefers the reason of a queue pair's end to what follows from it.
func (c *rdmaConn) why(err error) error {
	if errors.Is(err, verbs.ErrQPState) && c.qp.Err() != nil {
		return c.qp.Err()
	}
	return err
}

// drain receives sends.
func (c *rdmaConn) drain(ctx context.Context) error {
	for {
		if _, err := c.reap(ctx); err != nil {
			return err
		}
	}
}

func (e *rdmaEnd) trip(ctx context.Context) error { return e.conns[0].trip(ctx) }

// trip makes one round trip: a send and one back, a write and one back, or a
// read.
func (c *rdmaConn) trip(ctx context.Context) error {
	if op := rdmaOps[c.end.spec.Mode]; op.Responds() {
		if err := c.post(op); err != nil {
			return c.why(err)
		}
		_, err := c.reap(ctx)
		return err
	}
	c.turn++
	if err := c.hit(); err != nil {
		return err
	}
	return c.await(ctx)
}

// answer plays the other side of trip.
func (c *rdmaConn) answer(ctx context.Context) error {
	if rdmaOps[c.end.spec.Mode].Responds() {
		return nil
	}
	for {
		c.turn++
		if err := c.await(ctx); err != nil {
			return err
		}
		if err := c.hit(); err != nil {
			return err
		}
	}
}

// byMemory reports whether the peer's writes are found by looking at the
// memory, as RDMA programs that spin do. Others wait for a completion.
func (c *rdmaConn) byMemory() bool { return c.end.spec.Mode == "write" && c.end.spec.BusyPoll > 0 }

// hit sends the ball to the other side; in memory its last byte is the turn.
func (c *rdmaConn) hit() error {
	op := rdmaOps[c.end.spec.Mode]
	if c.byMemory() {
		c.out.Bytes()[c.end.spec.Size-1] = byte(c.turn)
	} else if op == verbs.OpWrite {
		op = verbs.OpWriteImm
	}
	return c.why(c.post(op))
}

// await waits for the ball.
func (c *rdmaConn) await(ctx context.Context) error {
	if c.byMemory() {
		for c.lastByte() != byte(c.turn) {
			if !c.end.device.Poll() && ctx.Err() != nil {
				return ctx.Err()
			}
		}
		c.cq.Poll(c.wc)
		return nil
	}
	for before := c.end.msgs.Load(); c.end.msgs.Load() == before; {
		if _, err := c.reap(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lastByte looks at the end of the memory that the peer writes, which another
// goroutine may be changing.
func (c *rdmaConn) lastByte() byte {
	at := c.end.spec.Size - 1
	word := (*uint32)(unsafe.Pointer(&c.in.Bytes()[at&^3]))
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], atomic.LoadUint32(word))
	return b[at&3]
}
