package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi/internal/ctxmutex"
	"github.com/weftstack/weft/verbs"
)

// rmaConn is an origin's queue pair to one target. Operations are numbered; the queue pair
// completes them in order, so one number tells which are complete. A goroutine that waits polls the
// completion queue, one at a time.
type rmaConn struct {
	dev    *rmaDevice
	rank   int             // handle of the target, see procName
	peer   *peer           // the target
	up     chan struct{}   // closed when the attempt to connect has ended
	gone   context.Context // done when the rank is known to have failed
	giveUp context.CancelFunc
	qp     *verbs.QP
	cq     *verbs.CQ
	turn   ctxmutex.Mutex // held by the goroutine that polls cq
	solo   ctxmutex.Mutex // held during an atomic operation: guards word
	word   *verbs.MR      // receives the result of an atomic operation

	mu      sync.Mutex      // guards what follows, and the order of posts
	posted  uint64          // operations posted
	done    uint64          // operations completed
	wrote   uint64          // number of the last write
	where   verbs.RemoteBuf // remote memory of the last write
	proving uint64          // number of the last zero-length read: see startProof
	mrs     []postedMR      // registrations of operations in flight, in order
	err     error           // set once the connection has failed
}

// postedMR is a registration that operation op uses.
type postedMR struct {
	op uint64
	g  *registration
}

func newRMAConn(d *rmaDevice, rank int) *rmaConn {
	c := &rmaConn{dev: d, rank: rank, peer: d.w.eng.peer(int32(rank)), up: make(chan struct{}), turn: ctxmutex.New(),
		solo: ctxmutex.New()}
	c.gone, c.giveUp = context.WithCancel(d.life)
	return c
}

func (c *rmaConn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *rmaConn) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
}

// post posts one operation and returns its number. It waits while the send queue is full. The
// registration g, which may be nil, is given back when the operation is complete, or at once if it
// cannot be posted.
func (c *rmaConn) post(ctx context.Context, wr verbs.SendWR, g *registration) (uint64, error) {
	one := [1]verbs.SendWR{wr}
	return c.postAll(ctx, one[:], g)
}

// postAll posts up to rmaDepth operations together, all or none, and returns the number of the
// last. Otherwise it is like post.
func (c *rmaConn) postAll(ctx context.Context, wrs []verbs.SendWR, g *registration) (uint64, error) {
	for {
		c.mu.Lock()
		if c.err != nil {
			err := c.err
			c.mu.Unlock()
			return 0, errors.Join(err, c.dev.regs.put(g))
		}
		if c.posted+uint64(len(wrs)) <= c.done+rmaDepth {
			break
		}
		next := c.posted + uint64(len(wrs)) - rmaDepth
		c.mu.Unlock()
		if err := c.wait(ctx, next); err != nil {
			return 0, errors.Join(err, c.dev.regs.put(g))
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
		return 0, errors.Join(err, c.dev.regs.put(g))
	}
	c.posted += uint64(len(wrs))
	for i := range wrs {
		wr := &wrs[i]
		c.peer.rdma.count(wr)
		if wr.Op == verbs.OpWrite {
			c.wrote, c.where = wr.ID, wr.Remote
		}
	}
	if g != nil {
		c.mrs = append(c.mrs, postedMR{c.posted, g})
	}
	return c.posted, nil
}

// bursts reports whether there were writes since the last proof.
func (c *rmaConn) bursts() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && c.wrote > c.proving
}

// wait polls completions until operation op is complete.
func (c *rmaConn) wait(ctx context.Context, op uint64) error {
	for {
		c.mu.Lock()
		done, err := c.done, c.err
		c.mu.Unlock()
		if done >= op {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.turn.Lock(ctx); err != nil {
			return err
		}
		err = c.collect(ctx, op)
		c.turn.Unlock()
		if err != nil {
			return err
		}
	}
}

// collect waits for completions once, unless op is complete by now. c.turn is held.
func (c *rmaConn) collect(ctx context.Context, op uint64) error {
	c.mu.Lock()
	over := c.done >= op || c.err != nil
	c.mu.Unlock()
	if over {
		return nil
	}
	var wcs [16]verbs.WC
	n := c.cq.Poll(wcs[:])
	if n == 0 {
		prog := &c.dev.w.eng.prog
		start := prog.begin()
		prog.spin(ctx, start, func() bool { return c.cq.Len() > 0 })
		var err error
		if n, err = c.cq.Wait(ctx, wcs[:]); err != nil {
			if ctx.Err() == nil {
				c.fail(err)
				err = c.failure() // cq is closed because there was one
			}
			return err
		}
		prog.end(start)
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
		if err := c.dev.regs.put(c.mrs[used].g); err != nil && c.err == nil {
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
// access, to a RankError if the peer has disconnected.
func (c *rmaConn) remoteError(err error) error {
	var term *verbs.TerminateError
	if errors.As(err, &term) {
		return fmt.Errorf("%w: %w", ErrAccess, err)
	}
	if errors.Is(err, verbs.ErrDisconnected) {
		return c.peer.lost(err)
	}
	return err
}

// startProof posts, without waiting, a read of no bytes, which proves that all writes so far are
// placed at the target: the response to a read is delivered after the writes before it have been
// placed (RFC 5040, Section 5.5).
func (c *rmaConn) startProof(ctx context.Context) {
	c.mu.Lock()
	needed := c.wrote > c.proving && c.err == nil
	where := c.where
	c.mu.Unlock()
	if !needed {
		return
	}
	n, err := c.post(ctx, verbs.SendWR{Op: verbs.OpRead, Remote: where}, nil)
	if err == nil {
		c.mu.Lock()
		c.proving = max(c.proving, n)
		c.mu.Unlock()
	}
}

// prove waits until op is complete and all writes posted so far are placed at the target.
func (c *rmaConn) prove(ctx context.Context, op uint64) error {
	for {
		c.startProof(ctx)
		c.mu.Lock()
		op = max(op, c.proving)
		proved := c.wrote <= c.proving
		c.mu.Unlock()
		if err := c.wait(ctx, op); err != nil || proved {
			return err
		}
		if err := errors.Join(c.failure(), ctx.Err()); err != nil {
			return err
		}
	}
}

// close frees the resources of the connection, once its queue pair has ended. It may be called
// again after an error.
func (c *rmaConn) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for len(c.mrs) > 0 {
		if err := c.dev.regs.put(c.mrs[0].g); errors.Is(err, verbs.ErrBusy) {
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
