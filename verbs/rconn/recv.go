package rconn

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/weftstack/weft/verbs"
)

// part is a received part of a message, in its buffer.
type part struct {
	buf  int // receive buffer
	data []byte
	more bool
}

// post gives receive buffer i to the queue pair.
func (c *Conn) post(i int) error {
	sgl := [1]verbs.SGE{c.in.Slice(i*c.cfg.Size, c.cfg.Size)}
	return c.qp.PostRecv(verbs.RecvWR{ID: uint64(i), SGL: sgl[:]})
}

// received takes a message of RDMAP, in receive buffer i.
func (c *Conn) received(i, n int) error {
	b := c.in.Bytes()[i*c.cfg.Size:][:n]
	h, ok := parseHeader(b)
	if !ok {
		return fmt.Errorf("%w: message of %d bytes without a header of this package", ErrProtocol, n)
	}
	c.mu.Lock()
	c.credits += int(h.credits)
	if c.credits > c.peer.buffers {
		n := c.credits
		c.mu.Unlock()
		return fmt.Errorf("%w: credits for %d buffers of %d", ErrProtocol, n, c.peer.buffers)
	}
	data := h.flags&flagData != 0
	if data {
		if c.n == len(c.inbox) {
			c.mu.Unlock()
			return fmt.Errorf("%w: message without credit: all %d buffers are in use", ErrProtocol, len(c.inbox))
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

// Recv appends the next message to dst and returns the extended slice. It blocks until the
// whole message has arrived. If ctx is done before, it returns the error of ctx and keeps the
// received part for the next Recv, so no message is lost. Other errors: io.EOF after the
// peer's Close, net.ErrClosed after this side's, or the reason for which the connection
// failed.
func (c *Conn) Recv(ctx context.Context, dst []byte) ([]byte, error) {
	u := of(ctx)
	if err := c.lock(c.reading, u); err != nil {
		return dst, err
	}
	defer func() { <-c.reading }()
	whole := append(dst, c.partial...)
	for begun := c.partial != nil; ; begun = true {
		if c.current.data == nil {
			if err := c.next(u); err != nil {
				switch {
				case begun && err == ctx.Err():
					c.partial = append(make([]byte, 0, len(whole)-len(dst)), whole[len(dst):]...)
				case begun && c.ended(until{}) == nil:
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
			err := fmt.Errorf("%w: more than Config.MaxMessage, %d bytes, from %v", ErrTooLong, c.cfg.MaxMessage, c.remote)
			c.fail(err)
			c.qp.Close()
			return dst, err
		}
		whole = append(whole, c.current.data...)
		more := c.current.more
		c.emptied()
		if !more {
			c.partial = nil
			return whole, nil
		}
	}
}
