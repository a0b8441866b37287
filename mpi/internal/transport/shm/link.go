package shm

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// Link carries messages to a rank of the same host through shared memory: a ring buffer in each
// direction, which any polling goroutine drains. The network link under it carries what memory
// cannot: the doorbell (Doorbell), which wakes a rank that does not poll, and the end of the rank.
type Link struct {
	under transport.Link
	peer  *p2p.Peer
	// theirs holds out and awake: it is unmapped when nothing refers to it. It is nil if it could
	// not be mapped: then messages are only received through memory.
	theirs *mapping
	own    *mapping       // segment of this rank, which holds in
	pid    int            // of the peer
	awake  *atomic.Uint32 // of the peer: 1 while it polls

	mu     sync.Mutex // guards writing
	out    ringWriter
	queue  []pending // messages that wait for room, from first on
	first  int       // index of the first message in queue
	closed bool
	idle   *sync.Cond  // signalled when the queue is empty, or closed
	queued atomic.Bool // true while the queue is not empty

	offers  offerSlots     // bodies that the peer may copy
	nonce   [nonceLen]byte // of the peer
	nonceAt uint64         // in its memory

	rmu    sync.Mutex // guards reading
	in     ringReader
	parser p2p.Parser
	quiet  atomic.Bool // set when the parser reads nothing more
	ended  atomic.Bool // set when the link under this one has ended, because of why
	over   atomic.Bool // set when this link has ended
	why    error
}

// Process returns the process id of the peer. ok is false if messages to it do not go through memory.
func (l *Link) Process() (pid int, ok bool) { return l.pid, l.theirs != nil }

// pending is a message that waits for room.
type pending struct {
	hdr  [envelope.MaxLen]byte
	n    int // length of hdr
	off  int // bytes of hdr and body written so far
	body []byte
	own  transport.Owner
}

// copyLimit is the length up to which bodies are sent without an owner, in bytes. Those with an owner
// are copied to the ring buffer, too.
const copyLimit = 32 << 10

func (l *Link) CopyLimit(bool) int { return copyLimit }

// Send implements Link. A message that fits is copied to the ring buffer at once.
func (l *Link) Send(_ uint16, hdr, body []byte, own transport.Owner) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return transport.ErrClosed
	}
	need := padding(l.out.pos) + len(hdr) + len(body)
	empty := l.first == len(l.queue)
	switch {
	case empty && l.out.room(need) >= need:
		l.out.begin()
		l.out.write(hdr)
		l.out.write(body)
		l.out.publish()
	case own == nil && len(body) > 0:
		l.mu.Unlock()
		return transport.ErrFull
	default:
		it := pending{n: len(hdr), body: body, own: own}
		copy(it.hdr[:], hdr)
		l.queue = append(l.queue, it)
		l.queued.Store(true)
		l.mu.Unlock()
		if empty {
			l.pump()
		}
		return nil
	}
	l.mu.Unlock()
	if own != nil {
		own.Released(nil)
	}
	runtime.KeepAlive(l)
	return nil
}

// SendNow implements PromptLink.
func (l *Link) SendNow(stream uint16, hdr, body []byte) error {
	err := l.Send(stream, hdr, body, nil)
	if err == nil {
		l.Flush()
	}
	return err
}

// Flush implements Link: it sends a doorbell if the peer does not poll and no doorbell is in
// flight.
func (l *Link) Flush() {
	if l.awake.Load() == 0 && l.out.ctl.doorbell.CompareAndSwap(0, 1) {
		l.sendDoorbell()
	}
	runtime.KeepAlive(l)
}

// sendDoorbell makes the peer call OnDoorbell.
func (l *Link) sendDoorbell() {
	b := p2p.ControlPool.Get().(*[envelope.MaxLen]byte)
	v := envelope.Header{Kind: envelope.Doorbell}
	_ = l.under.Send(0, v.Encode(b), nil, nil) // fails if the link has ended
	l.under.Flush()
	p2p.ControlPool.Put(b)
}

// OnDoorbell handles a doorbell of the peer.
func (l *Link) OnDoorbell() {
	l.in.ctl.doorbell.Store(0) // before drain loads the tail
	l.drain(true)
	l.pump()
}

// pump writes queued messages as far as there is room, and reports whether it has written any
// bytes.
func (l *Link) pump() (worked bool) {
	var done [16]transport.Owner // released after mu is unlocked
	for more := true; more; {
		n := 0
		l.mu.Lock()
		for more = false; l.first < len(l.queue); {
			it := &l.queue[l.first]
			was := it.off
			whole := l.put(it)
			worked = worked || it.off > was
			if !whole {
				// The reader clears want before it loads awake of this rank.
				if l.out.ctl.want.Swap(1) == 0 && l.out.room(1) > 0 {
					continue
				}
				break
			}
			if it.own != nil {
				done[n] = it.own
				n++
			}
			*it = pending{}
			l.first++
			if more = n == len(done); more {
				break
			}
		}
		if l.first == len(l.queue) {
			l.queue, l.first = l.queue[:0], 0
			l.queued.Store(false)
			l.idle.Broadcast()
		} else if l.first >= len(l.queue)-l.first {
			k := copy(l.queue, l.queue[l.first:])
			clear(l.queue[k:])
			l.queue, l.first = l.queue[:k], 0
		}
		l.mu.Unlock()
		for i := range done[:n] {
			done[i].Released(nil)
			done[i] = nil
		}
	}
	if worked {
		l.Flush()
	}
	return worked
}

// put writes more of a message, and reports whether all of it is written. mu is held.
func (l *Link) put(it *pending) bool {
	if it.off == 0 {
		if pad := padding(l.out.pos) + 1; l.out.room(pad) < pad {
			return false
		}
		l.out.begin()
	}
	if it.off < it.n {
		it.off += l.out.write(it.hdr[it.off:it.n])
	}
	if it.off >= it.n {
		it.off += l.out.write(it.body[it.off-it.n:])
	}
	l.out.publish()
	return it.off == it.n+len(it.body)
}

// drain receives what the peer has written and reports whether there was anything. If all is false
// it receives at most one ring buffer full. What it leaves, or another goroutine is receiving, is
// seen at the next poll or when polling ends.
func (l *Link) drain(all bool) (worked bool) {
	for more := true; more && l.due(); more = all {
		if !l.rmu.TryLock() {
			return worked
		}
		ended := l.ended.Load() // loaded first: then all that the peer has written is there
		room := false
		if !l.quiet.Load() {
			room, worked = l.receive(), true
		}
		last := ended && !l.over.Load()
		if last {
			l.quiet.Store(true)
			l.over.Store(true)
		}
		l.rmu.Unlock()
		if room {
			l.notifyRoom()
		}
		if last {
			l.finish()
		}
	}
	runtime.KeepAlive(l)
	return worked
}

// due reports whether drain has anything to do.
func (l *Link) due() bool {
	return l.in.ready() && !l.quiet.Load() || l.ended.Load() && !l.over.Load()
}

// receive parses at most one ring buffer full, and reports whether the peer waits for room and half
// of the ring is free. rmu is held.
func (l *Link) receive() (room bool) {
	for n := 0; n < len(l.in.data); {
		b, err := l.in.next(!l.parser.InMessage())
		if err == nil && len(b) == 0 {
			break
		}
		pos := l.in.pos.Load()
		for at := 0; at < len(b) && err == nil; {
			var k int
			k, err = l.parser.Parse(b[at:])
			if at += k; !l.parser.InMessage() {
				at = min(at+padding(pos+uint64(at)), len(b))
			}
		}
		if err != nil {
			l.quiet.Store(true)
			l.under.Abort(err.Error())
			return false
		}
		l.in.skip(len(b))
		n += len(b)
	}
	if l.in.ctl.want.Load() != 0 && l.in.half() {
		l.in.ctl.want.Store(0) // before notifyRoom loads awake
		room = true
	}
	return room
}

// notifyRoom sends a doorbell because there is room again, unless the peer polls and sees that
// itself.
func (l *Link) notifyRoom() {
	if l.awake == nil || l.awake.Load() == 0 {
		l.sendDoorbell()
	}
}

// End is called when the link under this one has ended, because of err. This link ends when all
// that the peer has written to memory is received.
func (l *Link) End(err error) {
	l.why = err
	l.ended.Store(true)
	l.drain(true)
}

// AbortParser implements MemoryLink.
func (l *Link) AbortParser(err error) { l.parser.Abort(err) }

// finish ends the link.
func (l *Link) finish() {
	l.mu.Lock()
	l.closed = true
	left := l.queue[l.first:]
	l.queue, l.first = nil, 0
	l.queued.Store(false)
	l.idle.Broadcast()
	l.mu.Unlock()
	for i := range left {
		if own := left[i].own; own != nil {
			own.Released(transport.ErrClosed)
		}
	}
	l.peer.Ended(l.why)
}

// Shutdown implements Link. The peer receives what is in memory when it sees the end of the link
// under this one.
func (l *Link) Shutdown(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.idle.Broadcast()
	})
	defer stop()
	l.mu.Lock()
	for l.first < len(l.queue) && ctx.Err() == nil {
		l.idle.Wait()
	}
	l.closed = true
	l.mu.Unlock()
	return l.under.Shutdown(ctx)
}

// Abort implements Link.
func (l *Link) Abort(reason string) { l.under.Abort(reason) }
