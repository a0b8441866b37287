package rconn

import (
	"context"
	"errors"
	"io"

	"github.com/weftstack/weft/verbs"
)

// room returns the bytes that fit one part.
func (c *Conn) room() int { return c.slot - headerLen }

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
			if err := c.wait(c.writable, u); err != nil {
				c.mu.Lock() // nothing was sent
				c.free = append(c.free, slot)
				c.credits++
				c.owed += credits
				c.mu.Unlock()
				return err
			}
		case errors.Is(err, verbs.ErrQPState):
			return io.ErrClosedPipe
		default:
			return err
		}
	}
}

// Send sends p as one message. It copies p, which the caller may change afterwards, and
// blocks while there are no credits: while the peer has no receive buffer for p. If ctx is
// done in the middle of a long message, the connection ends. Errors: net.ErrClosed after
// Close, io.ErrClosedPipe after the peer's Close, that of ctx, or the reason for which the
// connection failed.
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
