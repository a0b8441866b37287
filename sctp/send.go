package sctp

import (
	"context"
	"math/bits"
	"sync"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/udpio"
)

// Send queues msg on a stream, waiting for room in the send buffer until ctx
// is done. A message may have any length. msg is copied unless opts.Owner is
// set. Like TrySend it makes no upcalls, so it may be called with locks held that
// upcalls take, unless it has to wait for room.
func (a *Association) Send(ctx context.Context, msg []byte, opts SendOptions) error {
	err := a.send(ctx.Done(), nil, msg, &opts)
	if err == errStopped {
		return ctx.Err()
	}
	return err
}

// TrySend is Send that never waits: it returns ErrWouldBlock when the send
// buffer is full (and opts.Force is not set).
func (a *Association) TrySend(msg []byte, opts SendOptions) error {
	return a.send(stopped, nil, msg, &opts)
}

// Flush transmits what sends with More left unsent.
func (a *Association) Flush() { a.settleLater(a.flush()) }

// stopped makes send and recv return at once instead of waiting. It is a
// channel that is never used: only its identity counts.
var stopped = make(<-chan struct{})

// send queues a message. It waits for room until stop or expired is closed, and
// then returns errStopped or errExpired.
func (a *Association) send(stop, expired <-chan struct{}, msg []byte, opts *SendOptions) error {
	a.fetchToSend()
	m := core.Message{
		SID: opts.Stream, PPID: opts.PPID, Unordered: opts.Unordered, Immediate: opts.Immediate,
		Force: opts.Force, Header: opts.Header, Body: msg, Lifetime: core.Time(opts.Lifetime),
	}
	switch opts.PR {
	case LimitedRetransmissions:
		m.LimitRtx, m.MaxRtx = true, uint32(max(opts.MaxRetransmits, 0))
	case Prioritized:
		m.Droppable, m.Priority = true, opts.Priority
	}
	var own *block
	if opts.Owner != nil {
		m.Owner = opts.Owner
	} else if len(msg) > 0 {
		own = newBlock(msg)
		m.Body, m.Owner = own.b, own
	}
	for {
		a.mu.Lock()
		now := a.t.now()
		err := a.core.Send(now, &m)
		if err != core.ErrWouldBlock || stop == stopped {
			held := false
			if err == nil {
				a.active()
				held = a.core.Held(a.t.sockets().maxSegs, udpio.MaxTrain)
			}
			var w work
			if err == nil && !opts.More && !held {
				w = a.flushLocked(now)
			} else {
				w = a.unlock()
			}
			if err != nil {
				if own != nil {
					own.free()
				}
				return a.sendError(err)
			}
			a.settleLater(w)
			return nil
		}
		// Room comes with acknowledgements: whatever was left unsent has to go.
		wt := a.writers.add(0)
		a.mu.Unlock()
		a.settleLater(a.flush())
		err = a.t.waitOn(wt, stop, expired)
		var k wakeList
		a.mu.Lock()
		if a.writers.recycle(wt) && err != nil {
			a.writers.takeFirst(&k) // the wake-up was for somebody who wants it
		}
		a.mu.Unlock()
		k.wake()
		if err != nil {
			if own != nil {
				own.free()
			}
			return err
		}
	}
}

// sendError translates an error of core.Send.
func (a *Association) sendError(err error) error {
	if err == core.ErrClosed {
		if e := a.Err(); e != nil {
			return e
		}
	}
	return coreError(err)
}

// block is a copy of a message that is being sent.
type block struct {
	mem   []byte
	b     []byte
	class int
}

// Blocks come in sizes of powers of two from 1<<minBlock to 1<<maxBlock; larger
// messages get memory of their own.
const minBlock, maxBlock = 8, 20

var blockPools [maxBlock + 1]sync.Pool

func newBlock(msg []byte) *block {
	class := max(bits.Len(uint(len(msg)-1)), minBlock)
	if class > maxBlock {
		b := &block{b: make([]byte, len(msg)), class: class}
		copy(b.b, msg)
		return b
	}
	b, _ := blockPools[class].Get().(*block)
	if b == nil {
		b = &block{mem: make([]byte, 1<<class), class: class}
	}
	b.b = b.mem[:copy(b.mem, msg)]
	return b
}

// Released implements core.Owner; blocks are recycled without a call to it.
func (b *block) Released(error) { b.free() }

func (b *block) free() {
	if b.class <= maxBlock {
		blockPools[b.class].Put(b)
	}
}
