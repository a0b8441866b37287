package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/pion/datachannel"
	"github.com/pion/webrtc/v4"
)

// A channel is a data channel and what the program does on it. Its protocol says what that is, as the path and the
// query of a URL:
//
//	control            the page's commands, and the program's state
//	echo               sends each message back
//	sink               checks the test messages that arrive, see messageFormat
//	source?size=1024   sends test messages until the channel closes
//	both?size=1024     sink and source
//
// A source with count=N sends N messages, and with close=1 then closes the channel. With text=1 it sends text.
type channel struct {
	peer    *peer
	dc      *webrtc.DataChannel
	service string
	options sourceOptions
	err     error // of the protocol

	raw     datachannel.ReadWriteCloser // nil until it is open; set before the service runs
	low     chan struct{}               // has a token when half of the send buffer has left
	ended   chan struct{}               // closed when the reader has ended
	writeMu sync.Mutex                  // one writer at a time; guards nothing else

	sentMessages, sentBytes atomic.Uint64

	mu       sync.Mutex
	received tracker
	sendErr  error // why the source has ended early
}

type sourceOptions struct {
	size  int
	count uint64 // 0: until the channel closes
	close bool
	text  bool
}

func newChannel(p *peer, dc *webrtc.DataChannel) *channel {
	c := &channel{peer: p, dc: dc, low: make(chan struct{}, 1), ended: make(chan struct{})}
	c.service, c.options, c.err = parseProtocol(dc.Protocol())
	dc.SetBufferedAmountLowThreshold(sendBuffer / 2)
	dc.OnBufferedAmountLow(func() {
		select {
		case c.low <- struct{}{}:
		default:
		}
	})
	return c
}

// parseProtocol takes the protocol of a channel apart.
func parseProtocol(protocol string) (service string, o sourceOptions, err error) {
	u, err := url.Parse(protocol)
	if err != nil {
		return "", o, fmt.Errorf("protocol %q: %w", protocol, err)
	}
	q := u.Query()
	number := func(name string, most uint64) uint64 {
		s := q.Get(name)
		if s == "" {
			return 0
		}
		n, e := strconv.ParseUint(s, 10, 64)
		if e != nil || n > most {
			err = fmt.Errorf("protocol %q: %s: want a number of at most %d", protocol, name, most)
		}
		return n
	}
	o.size = int(number("size", maxMessage))
	o.count = number("count", 1<<32)
	o.close = number("close", 1) == 1
	o.text = number("text", 1) == 1
	switch u.Path {
	case "control", "echo", "sink", "source", "both":
	default:
		err = fmt.Errorf("protocol %q: want control, echo, sink, source or both", protocol)
	}
	return u.Path, o, err
}

// serve runs the service of the channel until it has closed in both directions.
func (c *channel) serve(raw datachannel.ReadWriteCloser) {
	c.raw = raw
	err := c.err
	if err == nil {
		err = c.run()
	}
	if err != nil {
		c.raw.Close()
		c.read(func([]byte, bool) error { return nil }) // it closes in both directions
	}
	close(c.ended)
	c.mu.Lock()
	err = cmp.Or(err, c.sendErr)
	c.mu.Unlock()
	c.peer.channelClosed(c, err)
	c.peer.forget(c)
}

func (c *channel) run() error {
	switch c.service {
	case "control":
		return c.peer.serveControl(c)
	case "echo":
		return c.read(func(b []byte, text bool) error {
			c.note(len(b))
			return c.write(b, text)
		})
	}
	if c.service != "sink" {
		go c.send()
	}
	return c.read(func(b []byte, text bool) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.received.add(b, text)
		return nil
	})
}

// note counts a message that is not looked at.
func (c *channel) note(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received.Messages++
	c.received.Bytes += uint64(n)
}

// read calls f with each message until the peer has closed the channel. f must not keep b. The buffer grows with
// the messages.
func (c *channel) read(f func(b []byte, text bool) error) error {
	buf := make([]byte, 4<<10)
	for {
		n, text, err := c.raw.ReadDataChannel(buf)
		switch {
		case errors.Is(err, io.ErrShortBuffer) && len(buf) < maxMessage:
			buf = make([]byte, min(max(2*len(buf), n), maxMessage))
		case errors.Is(err, io.ErrShortBuffer):
			err = fmt.Errorf("a message of more than %d bytes on channel %q", maxMessage, c.dc.Label())
			c.peer.end(err)
			return err
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read from channel %q: %w", c.dc.Label(), err)
		default:
			if err := f(buf[:n], text); err != nil {
				return err
			}
		}
	}
}

// write sends a message, waiting while more than sendBuffer is queued. It does not keep b.
func (c *channel) write(b []byte, text bool) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	for c.dc.BufferedAmount() > sendBuffer {
		select {
		case <-c.low:
		case <-c.ended:
			return errClosed
		case <-c.peer.done.Done():
			return errClosed
		}
	}
	if _, err := c.raw.WriteDataChannel(b, text); err != nil {
		return fmt.Errorf("write to channel %q: %w", c.dc.Label(), err)
	}
	c.sentMessages.Add(1)
	c.sentBytes.Add(uint64(len(b)))
	return nil
}

// errClosed ends a write to a channel that has closed meanwhile.
var errClosed = errors.New("the channel has closed")

// send is the source of test messages.
func (c *channel) send() {
	buf := make([]byte, c.options.size)
	for seq := uint64(0); c.options.count == 0 || seq < c.options.count; seq++ {
		formatOf(c.options.text).fill(buf, uint32(seq))
		if err := c.write(buf, c.options.text); err != nil {
			if !errors.Is(err, errClosed) {
				c.mu.Lock()
				c.sendErr = err
				c.mu.Unlock()
				c.raw.Close()
			}
			return
		}
	}
	if c.options.close {
		c.raw.Close()
	}
}

// hasEnded tells whether the channel has closed in both directions.
func (c *channel) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}
