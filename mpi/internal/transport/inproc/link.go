package inproc

import (
	"context"
	"errors"
	"sync"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// Link carries messages between two ranks of one process, in one direction. The goroutine
// that calls flush delivers the messages itself, including those that other goroutines have queued
// meanwhile.
type Link struct {
	To  *p2p.Peer // the peer of the receiving rank that stands for the sender
	Rev *Link     // the other direction

	mu       sync.Mutex
	queue    []frame
	spare    []frame
	draining bool  // a goroutine is delivering
	closed   bool  // send fails
	ended    bool  // down of the peer has been called
	err      error // why it was closed
}

type frame struct {
	stream uint16
	hdr    [envelope.MaxLen]byte
	nhdr   int
	body   []byte
	own    transport.Owner
}

func (l *Link) CopyLimit(bool) int { return 0 }

// Send implements Link. Bodies are always referenced: flush releases them.
func (l *Link) Send(stream uint16, hdr, body []byte, own transport.Owner) error {
	if own == nil && len(body) > 0 {
		return transport.ErrFull
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return transport.ErrClosed
	}
	l.queue = append(l.queue, frame{stream: stream, nhdr: len(hdr), body: body, own: own})
	copy(l.queue[len(l.queue)-1].hdr[:], hdr)
	return nil
}

// Flush implements Link.
func (l *Link) Flush() {
	l.mu.Lock()
	if l.draining {
		l.mu.Unlock()
		return // the draining goroutine delivers the new messages, too
	}
	l.draining = true
	for len(l.queue) > 0 {
		batch := l.queue
		l.queue = l.spare
		l.mu.Unlock()
		for i := range batch {
			if err := l.deliver(&batch[i]); err != nil {
				l.close(err)
				l.Rev.close(err)
			}
			batch[i] = frame{}
		}
		l.mu.Lock()
		l.spare = batch[:0]
	}
	end := l.closed && !l.ended
	l.ended = l.ended || end
	l.draining = false
	l.mu.Unlock()
	if end {
		l.To.Down(l.err)
		if l.err != nil {
			l.Rev.Flush() // was closed, too
		}
	}
}

func (l *Link) deliver(fr *frame) error {
	l.mu.Lock()
	cut := l.closed && l.err != nil
	l.mu.Unlock()
	if cut {
		if fr.own != nil {
			fr.own.Released(l.err)
		}
		return nil
	}
	f := &l.To.Parsers[fr.stream]
	_, err := f.Parse(fr.hdr[:fr.nhdr])
	if err == nil && len(fr.body) > 0 {
		_, err = f.Parse(fr.body)
	}
	if fr.own != nil {
		fr.own.Released(err)
	}
	return err
}

// close makes send fail. The receiver is given err as the reason.
func (l *Link) close(err error) {
	l.mu.Lock()
	if !l.closed {
		l.closed, l.err = true, err
	}
	l.mu.Unlock()
}

// Shutdown implements Link.
func (l *Link) Shutdown(context.Context) error {
	l.close(nil)
	l.Flush()
	return nil
}

// Abort implements Link.
func (l *Link) Abort(reason string) {
	err := errors.New("mpi: peer aborted: " + reason)
	l.close(err)
	l.Rev.close(err)
	l.Flush()
	l.Rev.Flush()
}
