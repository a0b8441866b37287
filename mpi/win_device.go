package mpi

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
)

// rmaDevice is a rank's RDMA device. All windows share it, and it uses the sockets that carry the
// messages of the rank. An origin connects a queue pair to a target when it first accesses that;
// the target's end of the queue pair only serves.
type rmaDevice struct {
	w      *World
	tr     *sctpTransport
	dev    *verbs.Device
	pd     *verbs.PD
	l      *verbs.Listener
	idle   *verbs.CQ // of the serving queue pairs, which have no completions
	token  [envelope.TokenLen]byte
	life   context.Context // done when the device is closed
	stop   context.CancelFunc
	served chan struct{} // closed when accept has ended
	regs   regCache

	mu      sync.Mutex // guards what follows
	conns   map[int]*rmaConn
	dead    []*rmaConn // failed connections that still hold resources
	serving []*verbs.QP
	windows map[*verbs.MR]bool // memory of the windows that are not freed; nil once the device is closed
	bulk    *bulkDevice        // for rendezvous by RDMA; nil until it is needed
}

// rmaState is the state of a World for windows.
type rmaState struct {
	once sync.Once
	open atomic.Pointer[rmaDevice] // dev, once it has been opened
	dev  *rmaDevice
	err  error
}

// Limits of the device.
const (
	// rmaDepth is the send queue depth: the number of operations in flight on a queue pair.
	rmaDepth = 256
	// rmaReads is the number of RDMA Reads and atomics in flight on a queue pair.
	rmaReads = 64
	// rmaInline is the length up to which Puts are inline and need no registration, in bytes.
	rmaInline = verbs.MaxInline
	// servingSlack bounds the serving queue pairs beyond three per rank.
	servingSlack = 16
)

// rmaDevice opens the device on first use. It returns nil if the transport has none.
func (w *World) rmaDevice() (*rmaDevice, error) {
	tr, ok := w.transport.(*sctpTransport)
	if !ok || w.opts.transport != TransportHybrid {
		return nil, nil
	}
	w.rma.once.Do(func() {
		w.rma.dev, w.rma.err = openRMA(w, tr)
		w.rma.open.Store(w.rma.dev)
	})
	return w.rma.dev, w.rma.err
}

func openRMA(w *World, tr *sctpTransport) (*rmaDevice, error) {
	d := &rmaDevice{w: w, tr: tr, conns: make(map[int]*rmaConn), windows: make(map[*verbs.MR]bool),
		served: make(chan struct{})}
	cfg := w.opts.sctp.cfg
	cfg.ZeroChecksumLocal = w.opts.zeroChecksum()
	w.opts.timeouts(&cfg, w.Size())
	streams := 3*w.Size() + servingSlack
	var err error
	d.dev, err = verbs.Open(verbs.Config{Transport: tr.udp, Streams: uint16(min(streams, 1<<15)), SCTP: &cfg})
	if err != nil {
		return nil, fmt.Errorf("mpi: opening the RDMA device: %w", err)
	}
	d.pd = d.dev.AllocPD()
	if d.idle, err = d.dev.NewCQ(1); err == nil {
		d.l, err = d.dev.Listen()
	}
	if err != nil {
		return nil, errors.Join(err, d.dev.Close())
	}
	rand.Read(d.token[:]) // never fails
	d.life, d.stop = context.WithCancel(context.Background())
	go d.accept()
	w.onFinalize(d.close)
	return d, nil
}

// accept serves the connection requests of origins until the device is closed.
func (d *rmaDevice) accept() {
	defer close(d.served)
	for {
		req, err := d.l.Accept(d.life)
		if err != nil {
			return
		}
		if err := d.serve(req); err != nil {
			_ = req.Reject(nil) // the association may be gone
		}
	}
}

// serve connects a serving queue pair to an origin that knows the token.
func (d *rmaDevice) serve(req *verbs.ConnRequest) error {
	if n := len(req.PrivateData); n != envelope.TokenLen+4 && n != envelope.TokenLen+procNameLen || subtle.ConstantTimeCompare(req.PrivateData[:envelope.TokenLen], d.token[:]) != 1 {
		return ErrAuth
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	live := d.serving[:0]
	for _, qp := range d.serving {
		if qp.State() == verbs.StateError {
			_ = qp.Close() // it is at its end
		} else {
			live = append(live, qp)
		}
	}
	if d.serving = live; len(live) >= 3*(d.w.Size()+d.w.eng.remoteCount())+servingSlack {
		return verbs.ErrLimit
	}
	qp, err := d.newServing(req.PrivateData[envelope.TokenLen:])
	if err != nil {
		return err
	}
	if err := req.Accept(qp, verbs.ConnParams{}); err != nil {
		return errors.Join(err, qp.Close())
	}
	d.serving = append(d.serving, qp)
	return nil
}

// newServing makes the queue pair for an origin. An origin that moves rendezvous bodies sends its
// name. d.mu is held.
func (d *rmaDevice) newServing(private []byte) (*verbs.QP, error) {
	if len(private) != procNameLen {
		return d.pd.NewQP(verbs.QPConfig{SendCQ: d.idle, RecvCQ: d.idle, IRD: rmaReads, ORD: -1})
	}
	if d.bulk == nil {
		return nil, ErrAuth // it holds no key: no rendezvous has exposed memory
	}
	return d.bulk.serveBulk(private)
}

// conn returns the connection to the process with a handle, connecting it first if there is none.
func (d *rmaDevice) conn(ctx context.Context, rank int, info *winInfo) (*rmaConn, error) {
	d.mu.Lock()
	c := d.conns[rank]
	mine := false
	if c != nil && c.failure() != nil {
		select {
		case <-c.up:
			d.discard(c)
			c = nil
		default: // it is still connecting, in vain
		}
	}
	if c == nil {
		c, mine = newRMAConn(d, rank), true
		d.conns[rank] = c
	}
	d.mu.Unlock()
	if mine {
		if re := c.peer.failed.Load(); re != nil {
			c.fail(re)
		}
		go c.connect(info) // not bound to ctx: other goroutines may wait for it, too
	}
	select {
	case <-c.up:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return c, c.failure()
}

// discard moves a connection that has failed to dead, and frees the dead connections that have
// ended. d.mu is held.
func (d *rmaDevice) discard(c *rmaConn) {
	if c.qp != nil {
		_ = c.qp.Close() // closed already, perhaps
	}
	d.dead = slices.DeleteFunc(append(d.dead, c), func(c *rmaConn) bool {
		if c.qp != nil {
			select {
			case <-c.qp.Done():
			default:
				return false
			}
		}
		return c.close() == nil
	})
}

// connect makes the queue pair and connects it. It gives up when the device is closed or the peer
// has failed.
func (c *rmaConn) connect(info *winInfo) {
	defer close(c.up)
	d := c.dev
	err := func() error {
		if err := c.failure(); err != nil {
			return err
		}
		var err error
		if c.cq, err = d.dev.NewCQ(rmaDepth + 1); err != nil {
			return err
		}
		c.qp, err = d.pd.NewQP(verbs.QPConfig{SendCQ: c.cq, RecvCQ: c.cq, SendDepth: rmaDepth,
			MaxSendSGE: 1, MaxInline: rmaInline, IRD: -1, ORD: rmaReads})
		if err != nil {
			return err
		}
		if c.word, err = d.pd.Register(make([]byte, 8), verbs.LocalWrite); err != nil {
			return err
		}
		private := binary.BigEndian.AppendUint32(info.Token[:], uint32(d.w.Rank()))
		addr := sctp.Addr{Addrs: d.tr.addrsOf(c.peer), Port: info.Port}
		_, err = d.dev.Connect(c.gone, addr, c.qp, verbs.ConnParams{PrivateData: private, Timeout: -1})
		return err
	}()
	if err != nil && c.gone.Err() == nil {
		c.fail(fmt.Errorf("mpi: connecting a queue pair to rank %d: %w", c.rank, err))
	}
}

// rankDown ends the connection to a rank that has failed. Its queue pair would notice the failure
// later.
func (d *rmaDevice) rankDown(rank int, err error) {
	d.mu.Lock()
	c := d.conns[rank]
	d.mu.Unlock()
	if c == nil {
		return
	}
	c.fail(err)
	c.giveUp()
	if <-c.up; c.qp != nil {
		_ = c.qp.Close() // closed already, perhaps
	}
}

// close closes the device, at Finalize. Windows that were not freed cannot be used any more.
func (d *rmaDevice) close(ctx context.Context) error {
	d.stop()
	errs := []error{d.l.Close()}
	<-d.served
	d.mu.Lock()
	for _, c := range d.conns {
		d.dead = append(d.dead, c)
	}
	dead, serving, windows := d.dead, d.serving, d.windows
	d.dead, d.serving, d.conns, d.windows = nil, nil, nil, nil
	bulk := d.bulk
	d.mu.Unlock()
	qps := serving
	if bulk != nil {
		qps = append(qps, bulk.finish()...)
	}
	for _, c := range dead {
		if <-c.up; c.qp != nil {
			qps = append(qps, c.qp)
		}
	}
	for _, qp := range qps {
		if err := qp.Close(); !errors.Is(err, verbs.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for _, qp := range qps {
		// A queue pair references memory until the peer has acknowledged it.
		if d.w.usable() == nil {
			select {
			case <-qp.Done():
			case <-ctx.Done():
			}
		}
	}
	for _, c := range dead {
		errs = append(errs, c.close())
	}
	if bulk != nil {
		errs = append(errs, bulk.close(ctx))
	}
	errs = append(errs, d.regs.close())
	for mr := range windows {
		errs = append(errs, mr.Close())
	}
	errs = append(errs, d.idle.Close(), d.pd.Close(), d.dev.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("mpi: closing the RDMA device: %w", err)
	}
	return nil
}

// register registers the caller's memory and completes what the other ranks need for access.
// Without a device it does nothing.
func (w *window) register(mine *winInfo) error {
	d, err := w.c.w.rmaDevice()
	if d == nil || err != nil {
		return err
	}
	access := verbs.Access(0)
	if w.access&AccessRead != 0 {
		access |= verbs.RemoteRead
	}
	if w.access&AccessWrite != 0 {
		access |= verbs.RemoteWrite
	}
	if w.access&AccessUpdate != 0 {
		access |= verbs.RemoteAtomic
	}
	if w.mr, err = d.pd.Register(w.mem, access); err != nil {
		return fmt.Errorf("mpi: registering the window: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.windows == nil {
		return errors.Join(ErrFinalized, w.mr.Close())
	}
	d.windows[w.mr] = true
	w.dev = d
	mine.STag, mine.Port, mine.Token = w.mr.STag(), d.dev.Addr().Port, d.token
	return nil
}

// unregister ends all RDMA access to the caller's memory.
func (w *window) unregister() error {
	if w.dev == nil {
		return nil
	}
	w.dev.mu.Lock()
	mine := w.dev.windows[w.mr]
	delete(w.dev.windows, w.mr)
	w.dev.mu.Unlock()
	if !mine {
		return nil // the device was closed
	}
	return w.mr.Close()
}
