package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport"
	"github.com/weftstack/weft/sctp/relay"
)

const (
	// copyLimit is the length in bytes up to which bodies are copied in mode Piecewise: twice, once to go together with
	// others, and once by the relay.
	copyLimit = 4 << 10
	// maxCopied bounds the copies that wait, in bytes, beyond which a body must have an owner.
	maxCopied = 256 << 10
	// linger is how long a process waits for the end of a link to one that has finalized, and may have exited before its
	// last message was repaired.
	linger = 2 * time.Second
	// farewell is how long a process that leaves waits until the other ones have confirmed the ends of its links, while
	// gateways are out: without them the others would wait for an answer until they give it up.
	farewell = 15 * time.Second
)

// Link carries messages to a process at another site.
type Link struct {
	pair *pair
	id   uint32 // of the link among those between the two processes

	queued atomic.Int64    // items that wait
	copied atomic.Int64    // bytes of them that are copies
	sent   []atomic.Uint64 // bytes given to the relay, by flow

	messages, bytes atomic.Uint64 // see Sent

	// recv serializes upcalls. Send, Flush and Abort do not take it.
	recv     sync.Mutex
	got      []uint64 // bytes received, by flow; guarded by recv
	reported bool     // Down has been called; guarded by recv

	mu        sync.Mutex
	peer      *p2p.Peer           // nil until the other side is authenticated
	exchange  *handshake.Exchange // nil once it is complete
	setup     uint64              // link setup that it is for; 0 between ranks of the job
	number    int                 // of the other side, in the job or the link setup; -1: not known
	waiting   []byte              // hello that came before this rank knew the key
	closing   bool                // Send fails: this side or the other one shuts the link down
	finSent   bool
	fin       []total // what the other side has sent, from its FIN; nil: it has not come
	finished  bool    // and all of it was received
	ended     bool
	err       error         // why, if not by shutdowns
	down      chan struct{} // closed when Down has been called
	completed bool          // Host.Linked has been called
}

// total is how many bytes a side has sent on a flow.
type total struct {
	flow  int
	bytes uint64
}

func newLink(p *pair, id uint32) *Link {
	return &Link{
		pair: p, id: id, number: -1, sent: make([]atomic.Uint64, 1+maxFlows),
		got:  make([]uint64, 1+maxFlows),
		down: make(chan struct{}),
	}
}

// Address returns where the other process is.
func (l *Link) Address() relay.Address { return l.pair.to }

// CopyLimit implements transport.Link.
func (l *Link) CopyLimit(bool) int {
	if l.pair.station.chained() {
		return 0
	}
	return copyLimit
}

// Send implements transport.Link.
func (l *Link) Send(stream uint16, hdr, body []byte, own transport.Owner) error {
	if own == nil && len(body) > 0 && l.copied.Load()+int64(len(body)) > maxCopied {
		return transport.ErrFull
	}
	f, err := l.pair.flow(l.pair.station.flowOf(stream))
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := l.sendable(); err != nil {
		return err
	}
	if own == nil {
		f.addCopy(l, hdr, body, false)
	} else {
		f.addCopy(l, hdr, nil, false)
		f.addOwned(l, body, own)
	}
	l.messages.Add(1)
	f.dirty.Store(true)
	return nil
}

// sendable returns why nothing can be sent, or nil.
func (l *Link) sendable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil:
		return l.err
	case l.ended || l.closing:
		return transport.ErrClosed
	}
	return nil
}

// Flush implements transport.Link.
func (l *Link) Flush() { l.pair.flush() }

// Sent returns how many messages were sent, and how many bytes of them, with headers, the relay has taken.
func (l *Link) Sent() (messages, bytes uint64) { return l.messages.Load(), l.bytes.Load() }

// count counts bytes that the relay has taken.
func (l *Link) count(n int) { l.bytes.Add(uint64(n)) }

// over reports whether the link has ended.
func (l *Link) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// failure returns why the link has ended, nil if by shutdowns or not at all.
func (l *Link) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// receive handles bytes of MPI messages that have arrived on a flow.
func (l *Link) receive(number int, b []byte) {
	l.recv.Lock()
	defer l.recv.Unlock()
	l.mu.Lock()
	p, ended := l.peer, l.ended
	l.mu.Unlock()
	switch {
	case p == nil || ended || l.reported:
		l.pair.station.counters.Stale.Add(1)
		return
	case number-1 >= len(p.Parsers):
		l.violated(fmt.Errorf("%w: flow %d", mpierr.ErrProtocol, number))
		return
	}
	l.got[number] += uint64(len(b))
	f := &p.Parsers[number-1]
	for len(b) > 0 {
		n, err := f.Parse(b)
		if err == nil && n == 0 {
			err = fmt.Errorf("%w: %d bytes that belong to no message", mpierr.ErrProtocol, len(b))
		}
		if err != nil {
			l.violated(err)
			return
		}
		b = b[n:]
	}
	l.checkFinished()
}

// violated ends the link because the other side has violated the protocol.
func (l *Link) violated(err error) {
	l.pair.station.logLink(l, "link aborted", err)
	l.Abort(err.Error())
}

// Shutdown implements transport.Link.
func (l *Link) Shutdown(ctx context.Context) error {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	l.pair.flush()
	l.drained()
	for {
		t := time.NewTimer(linger)
		select {
		case <-l.down:
			t.Stop()
			return l.failure()
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
		l.mu.Lock()
		p := l.peer
		l.mu.Unlock()
		if p != nil && p.Disconnected.Load() {
			l.Abort("finalized")
			return nil
		}
	}
}

// drained sends FIN if the link is shut down and nothing waits.
func (l *Link) drained() {
	l.mu.Lock()
	send := l.closing && !l.ended && !l.finSent && l.queued.Load() == 0
	l.finSent = l.finSent || send
	l.mu.Unlock()
	if send {
		l.pair.sendFIN(l)
		l.checkEnd()
	}
}

// checkFinished looks whether all that the other side has sent before FIN has come. recv is held.
func (l *Link) checkFinished() {
	l.mu.Lock()
	if l.fin == nil || l.finished {
		l.mu.Unlock()
		return
	}
	for _, t := range l.fin {
		if l.got[t.flow] < t.bytes {
			l.mu.Unlock()
			return
		}
	}
	l.finished, l.closing = true, true
	l.mu.Unlock()
	l.pair.flush()
	l.drained()
	l.checkEnd()
}

// checkEnd ends the link when both sides have shut it down.
func (l *Link) checkEnd() {
	l.mu.Lock()
	over := l.finished && l.finSent
	l.mu.Unlock()
	if over {
		l.end(nil)
	}
}

// Abort implements transport.Link.
func (l *Link) Abort(reason string) {
	if l.end(fmt.Errorf("%w: %s", transport.ErrClosed, reason)) {
		l.pair.sendAbort(l, reason)
	}
}

// aborted handles ABORT.
func (l *Link) aborted(reason string) { l.end(errors.New("peer aborted: " + reason)) }

// end ends the link, and has Down called on a goroutine of its own. It reports false if the link had ended before.
func (l *Link) end(err error) bool {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return false
	}
	l.ended, l.closing, l.err = true, true, err
	l.mu.Unlock()
	if err != nil {
		l.pair.station.broken.Store(true)
	}
	l.pair.station.goTask(l.report) // the caller may be an upcall, which has recv
	return true
}

// report tells of the end.
func (l *Link) report() {
	l.pair.forget(l)
	l.recv.Lock()
	l.mu.Lock()
	p, err := l.peer, l.err
	l.mu.Unlock()
	l.reported = true
	l.complete(orClosed(err))
	if p != nil {
		p.Down(err)
	}
	l.recv.Unlock()
	close(l.down)
	l.pair.sweepAll()
}

func orClosed(err error) error {
	if err == nil {
		return transport.ErrClosed
	}
	return err
}
