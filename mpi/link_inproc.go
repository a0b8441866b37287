package mpi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// inprocLink carries messages between two ranks of one process, in one direction. The goroutine
// that calls flush delivers the messages itself, including those that other goroutines have queued
// meanwhile.
type inprocLink struct {
	to  *p2p.Peer   // the peer of the receiving rank that stands for the sender
	rev *inprocLink // the other direction

	mu       sync.Mutex
	queue    []inprocFrame
	spare    []inprocFrame
	draining bool  // a goroutine is delivering
	closed   bool  // send fails
	ended    bool  // down of the peer has been called
	err      error // why it was closed
}

type inprocFrame struct {
	stream uint16
	hdr    [envelope.MaxLen]byte
	nhdr   int
	body   []byte
	own    transport.Owner
}

func (l *inprocLink) CopyLimit(bool) int { return 0 }

// Send implements Link. Bodies are always referenced: flush releases them.
func (l *inprocLink) Send(stream uint16, hdr, body []byte, own transport.Owner) error {
	if own == nil && len(body) > 0 {
		return transport.ErrFull
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return transport.ErrClosed
	}
	l.queue = append(l.queue, inprocFrame{stream: stream, nhdr: len(hdr), body: body, own: own})
	copy(l.queue[len(l.queue)-1].hdr[:], hdr)
	return nil
}

// Flush implements Link.
func (l *inprocLink) Flush() {
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
				l.rev.close(err)
			}
			batch[i] = inprocFrame{}
		}
		l.mu.Lock()
		l.spare = batch[:0]
	}
	end := l.closed && !l.ended
	l.ended = l.ended || end
	l.draining = false
	l.mu.Unlock()
	if end {
		l.to.Down(l.err)
		if l.err != nil {
			l.rev.Flush() // was closed, too
		}
	}
}

func (l *inprocLink) deliver(fr *inprocFrame) error {
	l.mu.Lock()
	cut := l.closed && l.err != nil
	l.mu.Unlock()
	if cut {
		if fr.own != nil {
			fr.own.Released(l.err)
		}
		return nil
	}
	f := &l.to.Parsers[fr.stream]
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
func (l *inprocLink) close(err error) {
	l.mu.Lock()
	if !l.closed {
		l.closed, l.err = true, err
	}
	l.mu.Unlock()
}

// Shutdown implements Link.
func (l *inprocLink) Shutdown(context.Context) error {
	l.close(nil)
	l.Flush()
	return nil
}

// Abort implements Link.
func (l *inprocLink) Abort(reason string) {
	err := errors.New("mpi: peer aborted: " + reason)
	l.close(err)
	l.rev.close(err)
	l.Flush()
	l.rev.Flush()
}

// inprocTransport connects ranks of one process.
type inprocTransport struct {
	w    *World
	meet func(context.Context, *World) error // links the ranks of the job when all have called it
	name string
}

// inprocTransports holds the transports of this process by address.
var inprocTransports sync.Map

func newInprocTransport(w *World, meet func(context.Context, *World) error) *inprocTransport {
	t := &inprocTransport{w: w, meet: meet, name: TransportInproc + ":" + rand.Text()}
	inprocTransports.Store(t.name, t)
	return t
}

func (t *inprocTransport) addr() string { return t.name }

func (t *inprocTransport) close() error {
	inprocTransports.Delete(t.name)
	return nil
}

// listen implements jobTransport.
func (t *inprocTransport) listen() error { return nil }

// connectRemote implements jobTransport.
func (t *inprocTransport) connectRemote(_ context.Context, m *linkSetup, number int) error {
	p := m.peer(number)
	x, ok := inprocTransports.Load(p.Remote.Addr)
	if !ok {
		return fmt.Errorf("%w: the other one is not in this process", ErrPort)
	}
	w := x.(*inprocTransport).w
	there := w.linkSetup(m.id)
	if there == nil {
		return fmt.Errorf("%w: no link setup %x", ErrAuth, m.id)
	}
	ab := &inprocLink{}
	ba := &inprocLink{to: p, rev: ab}
	ab.rev = ba
	if ab.to = there.claim(m.self, ba); ab.to == nil {
		return fmt.Errorf("%w: process %d is not expected", ErrAuth, m.self)
	}
	m.claim(number, ab)
	there.linked(m.self, nil)
	m.linked(number, nil)
	return nil
}

func (t *inprocTransport) polling(bool) (func() bool, func() transport.Parker) { return nil, nil }

// connect implements jobTransport: the last rank to come links all of them.
func (t *inprocTransport) connect(ctx context.Context, addrs []string, key []byte) error {
	return t.meet(ctx, t.w)
}
