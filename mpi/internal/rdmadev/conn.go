package rdmadev

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi/internal/ctxmutex"
	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
)

// Limits of a connection.
const (
	// Depth is the send queue depth: the number of operations in flight on a queue pair.
	Depth = 256
	// connReads is the number of RDMA Reads and atomics in flight on a queue pair.
	connReads = 64
	// MaxInline is the length up to which writes are inline and need no registration, in bytes.
	MaxInline = verbs.MaxInline
	// MaxSegment bounds one RDMA Write or Read, in bytes: the length of an iWARP message has 32 bits.
	MaxSegment = 1 << 30
)

// Conn is an origin's queue pair to one target. Operations are numbered; the queue pair
// completes them in order, so one number tells which are complete. A goroutine that waits polls the
// completion queue, one at a time.
type Conn struct {
	dev      *Device
	peer     Peer            // the target
	counters *Counters       // of peer
	ready    func() bool     // reports whether there are completions
	up       chan struct{}   // closed when the attempt to connect has ended
	gone     context.Context // done when the rank is known to have failed
	giveUp   context.CancelFunc
	qp       *verbs.QP
	cq       *verbs.CQ
	turn     ctxmutex.Mutex // held by the goroutine that polls cq
	solo     ctxmutex.Mutex // held during an atomic operation: guards word
	word     *verbs.MR      // receives the result of an atomic operation

	mu      sync.Mutex      // guards what follows, and the order of posts
	posted  uint64          // operations posted
	done    uint64          // operations completed
	wrote   uint64          // number of the last write
	where   verbs.RemoteBuf // remote memory of the last write
	proving uint64          // number of the last zero-length read: see StartProof
	mrs     []postedMR      // registrations of operations in flight, in order
	err     error           // set once the connection has failed
}

// postedMR is a registration that operation op uses.
type postedMR struct {
	op uint64
	g  *Registration
}

func newConn(d *Device, p Peer) *Conn {
	c := &Conn{dev: d, peer: p, counters: p.Counters(), up: make(chan struct{}), turn: ctxmutex.New(),
		solo: ctxmutex.New()}
	c.ready = func() bool { return c.cq.Len() > 0 }
	c.gone, c.giveUp = context.WithCancel(d.life)
	return c
}

// connect makes the queue pair and connects it, with the key of memory of the peer. It gives up when the
// device is closed or the peer has failed.
func (c *Conn) connect(key *envelope.Key) {
	defer close(c.up)
	d := c.dev
	err := func() error {
		if err := c.Failure(); err != nil {
			return err
		}
		var err error
		if c.cq, err = d.dev.NewCQ(Depth + 1); err != nil {
			return err
		}
		c.qp, err = d.pd.NewQP(verbs.QPConfig{SendCQ: c.cq, RecvCQ: c.cq, SendDepth: Depth,
			MaxSendSGE: 1, MaxInline: MaxInline, IRD: -1, ORD: connReads})
		if err != nil {
			return err
		}
		if c.word, err = d.pd.Register(make([]byte, 8), verbs.LocalWrite); err != nil {
			return err
		}
		private := binary.BigEndian.AppendUint32(key.Token[:], d.rank)
		return d.dial(c.gone, c.peer, key, c.qp, private)
	}()
	if err != nil && c.gone.Err() == nil {
		c.fail(fmt.Errorf("mpi: connecting a queue pair to rank %d: %w", c.peer.Handle(), c.remoteError(err)))
	}
}

// Failure returns why the connection has failed, or nil.
func (c *Conn) Failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
}

// Post posts one operation and returns its number. It waits while the send queue is full. The
// registration g, which may be nil, is given back when the operation is complete, or at once if it
// cannot be posted.
func (c *Conn) Post(ctx context.Context, wr verbs.SendWR, g *Registration) (uint64, error) {
	one := [1]verbs.SendWR{wr}
	return c.PostAll(ctx, one[:], g)
}

// PostAll posts up to Depth operations together, all or none, and returns the number of the
// last. Otherwise it is like Post.
func (c *Conn) PostAll(ctx context.Context, wrs []verbs.SendWR, g *Registration) (uint64, error) {
	for {
		c.mu.Lock()
		if c.err != nil {
			err := c.err
			c.mu.Unlock()
			return 0, errors.Join(err, c.dev.Registrations.Put(g))
		}
		if c.posted+uint64(len(wrs)) <= c.done+Depth {
			break
		}
		next := c.posted + uint64(len(wrs)) - Depth
		c.mu.Unlock()
		if err := c.Wait(ctx, next); err != nil {
			return 0, errors.Join(err, c.dev.Registrations.Put(g))
		}
	}
	defer c.mu.Unlock()
	for i := range wrs {
		wrs[i].ID = c.posted + 1 + uint64(i)
		wrs[i].Flags |= verbs.Signaled
	}
	if err := c.qp.PostSend(wrs...); err != nil {
		if errors.Is(err, verbs.ErrQPState) {
			if cause := c.qp.Err(); cause != nil {
				err = cause
			}
			err = c.remoteError(err)
			c.err = err
		}
		return 0, errors.Join(err, c.dev.Registrations.Put(g))
	}
	c.posted += uint64(len(wrs))
	for i := range wrs {
		wr := &wrs[i]
		c.counters.count(wr)
		if wr.Op == verbs.OpWrite {
			c.wrote, c.where = wr.ID, wr.Remote
		}
	}
	if g != nil {
		c.mrs = append(c.mrs, postedMR{c.posted, g})
	}
	return c.posted, nil
}

// Unproved reports whether there were writes since the last proof.
func (c *Conn) Unproved() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && c.wrote > c.proving
}

// AwaitEnd closes the queue pair of a connection that has failed, and waits until no operation uses the memory of the
// program any more.
func (c *Conn) AwaitEnd(ctx context.Context) error {
	select {
	case <-c.up:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.qp == nil {
		return nil
	}
	_ = c.qp.Close() // closed already, perhaps
	select {
	case <-c.qp.Done():
	case <-c.dev.life.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Wait polls completions until operation op is complete. After an error that is not of ctx, no operation uses
// the memory of the program any more.
func (c *Conn) Wait(ctx context.Context, op uint64) error {
	for {
		c.mu.Lock()
		done, err := c.done, c.err
		c.mu.Unlock()
		if done >= op {
			return nil
		}
		if err != nil {
			return cmp.Or(c.AwaitEnd(ctx), err)
		}
		if err := c.turn.Lock(ctx); err != nil {
			return err
		}
		err = c.collect(ctx, op)
		c.turn.Unlock()
		if err != nil && c.Failure() == nil {
			return err
		}
	}
}

// collect waits for completions once, unless op is complete by now. c.turn is held.
func (c *Conn) collect(ctx context.Context, op uint64) error {
	c.mu.Lock()
	over := c.done >= op || c.err != nil
	c.mu.Unlock()
	if over {
		return nil
	}
	var wcs [16]verbs.WC
	n := c.cq.Poll(wcs[:])
	if n == 0 {
		host := c.dev.host
		start := host.BeginWait()
		host.Spin(ctx, start, c.ready)
		var err error
		if n, err = c.cq.Wait(ctx, wcs[:]); err != nil {
			if ctx.Err() == nil {
				c.fail(err)
				err = c.Failure() // cq is closed because there was one
			}
			return err
		}
		host.EndWait(start)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range wcs[:n] {
		wc := &wcs[i]
		if wc.Status != verbs.StatusSuccess {
			// An earlier operation may be the cause, so the whole connection
			// has failed.
			if c.err == nil {
				c.err = c.remoteError(wc.Err())
			}
			continue
		}
		c.done = max(c.done, wc.ID)
	}
	used := 0
	for used < len(c.mrs) && (c.mrs[used].op <= c.done || c.err != nil) {
		if err := c.dev.Registrations.Put(c.mrs[used].g); err != nil && c.err == nil {
			c.err = err
		} else if errors.Is(err, verbs.ErrBusy) {
			break // not flushed yet
		}
		used++
	}
	c.mrs = c.mrs[:copy(c.mrs, c.mrs[used:])]
	return nil
}

// remoteError translates the end of a queue pair by its peer: to ErrAccess if the peer refused an
// access, to the error of a lost process if the peer has disconnected or the association under the
// queue pair has ended, which may show before the link of the process does.
func (c *Conn) remoteError(err error) error {
	var term *verbs.TerminateError
	if errors.As(err, &term) {
		return fmt.Errorf("%w: %w", mpierr.ErrAccess, err)
	}
	var aborted *sctp.AbortError
	lost := errors.As(err, &aborted)
	for _, e := range []error{verbs.ErrDisconnected, sctp.ErrTimeout, sctp.ErrRefused} {
		lost = lost || errors.Is(err, e)
	}
	if lost {
		return c.peer.Lost(err)
	}
	return err
}

// StartProof posts, without waiting, a read of no bytes, which proves that all writes so far are
// placed at the target: the response to a read is delivered after the writes before it have been
// placed (RFC 5040, Section 5.5).
func (c *Conn) StartProof(ctx context.Context) {
	c.mu.Lock()
	needed := c.wrote > c.proving && c.err == nil
	where := c.where
	c.mu.Unlock()
	if !needed {
		return
	}
	n, err := c.Post(ctx, verbs.SendWR{Op: verbs.OpRead, Remote: where}, nil)
	if err == nil {
		c.mu.Lock()
		c.proving = max(c.proving, n)
		c.mu.Unlock()
	}
}

// Prove waits until op is complete and all writes posted so far are placed at the target.
func (c *Conn) Prove(ctx context.Context, op uint64) error {
	for {
		c.StartProof(ctx)
		c.mu.Lock()
		op = max(op, c.proving)
		proved := c.wrote <= c.proving
		c.mu.Unlock()
		if err := c.Wait(ctx, op); err != nil || proved {
			return err
		}
		if err := errors.Join(c.Failure(), ctx.Err()); err != nil {
			return err
		}
	}
}

// Atomic performs an RDMA atomic on one word and copies the old value to old. One atomic is in flight at a
// time (RFC 7306, Section 5). If ctx ends first, it returns the number of the operation, which is under way; else 0.
func (c *Conn) Atomic(ctx context.Context, wr verbs.SendWR, old []byte) (uint64, error) {
	if err := c.solo.Lock(ctx); err != nil {
		return 0, err
	}
	defer c.solo.Unlock()
	wr.SGL = []verbs.SGE{c.word.Slice(0, 8)}
	n, err := c.Post(ctx, wr, nil)
	if err != nil {
		return 0, err
	}
	if err := c.Wait(ctx, n); err != nil {
		if ctx.Err() == nil || c.Failure() != nil {
			n = 0 // it has ended
		}
		return n, err
	}
	copy(old, c.word.Bytes())
	return 0, nil
}

// close frees the resources of the connection, once its queue pair has ended. It may be called
// again after an error.
func (c *Conn) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for len(c.mrs) > 0 {
		if err := c.dev.Registrations.Put(c.mrs[0].g); errors.Is(err, verbs.ErrBusy) {
			return err
		} else if err != nil {
			errs = append(errs, err)
		}
		c.mrs = c.mrs[1:]
	}
	// word and cq stay set: other goroutines may still use the connection.
	if c.word != nil {
		if err := c.word.Close(); err != nil && !errors.Is(err, verbs.ErrClosed) {
			return errors.Join(append(errs, err)...)
		}
	}
	if c.cq != nil {
		if err := c.cq.Close(); err != nil && !errors.Is(err, verbs.ErrClosed) {
			return errors.Join(append(errs, err)...)
		}
	}
	return errors.Join(errs...)
}
