package mpi

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// shmLink carries messages to a rank on the same host through memory: a ring of
// bytes in each direction, which whoever polls empties. The link under it, over
// the network, stays for what memory cannot tell: it wakes a rank that does not
// poll (kindBell), and ends when the rank does.
type shmLink struct {
	under link
	peer  *peer
	// theirs holds out and awake: it is unmapped when nobody refers to it. It is nil if
	// it could not be mapped: then messages are only received through memory.
	theirs *shmSegment
	own    *shmSegment    // of this rank, which holds in
	pid    int            // of the peer
	awake  *atomic.Uint32 // of the peer: it polls

	mu     sync.Mutex // guards writing
	out    ringWriter
	queue  []shmItem // what there was no room for; see first
	first  int       // of the queue
	closed bool
	idle   *sync.Cond  // signalled when the queue is empty, or closed
	queued atomic.Bool // the queue is not empty

	near    nearSlots         // bodies that the peer may copy
	nonce   [shmNonceLen]byte // of the peer
	nonceAt uint64            // in its memory

	rmu    sync.Mutex // guards reading
	in     ringReader
	parser messageParser
	quiet  atomic.Bool // nothing is read any more
	ended  atomic.Bool // the link under it has, because of why
	over   atomic.Bool // this one has
	why    error
}

// shmItem is a message that waits for room.
type shmItem struct {
	hdr  [envelopeMaxLen]byte
	n    int // length of hdr
	off  int // bytes of hdr and body that are written
	body []byte
	own  owner
}

// shmCopy is the length up to which bodies are sent without an owner: with one
// they are copied to the ring, too.
const shmCopy = 32 << 10

func (l *shmLink) copyLimit(bool) int { return shmCopy }

// send implements link. What fits is copied to the ring at once.
func (l *shmLink) send(_ uint16, hdr, body []byte, own owner) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return errLinkClosed
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
		return errLinkFull
	default:
		it := shmItem{n: len(hdr), body: body, own: own}
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

// sendNow implements promptLink.
func (l *shmLink) sendNow(stream uint16, hdr, body []byte) error {
	err := l.send(stream, hdr, body, nil)
	if err == nil {
		l.flush()
	}
	return err
}

// flush implements link: it makes sure that the peer looks.
func (l *shmLink) flush() {
	if l.awake.Load() == 0 && l.out.ctl.rung.CompareAndSwap(0, 1) {
		l.bell()
	}
	runtime.KeepAlive(l)
}

// bell has the peer call rung.
func (l *shmLink) bell() {
	b := controlPool.Get().(*[envelopeMaxLen]byte)
	v := envelope{kind: kindBell}
	_ = l.under.send(0, v.put(b), nil, nil) // fails if it is at its end
	l.under.flush()
	controlPool.Put(b)
}

// rung is called when the peer has rung the bell.
func (l *shmLink) rung() {
	l.in.ctl.rung.Store(0) // before the tail is looked at
	l.drain(true)
	l.pump()
}

// pump writes of the queue what there is room for, and reports whether there was
// some.
func (l *shmLink) pump() (worked bool) {
	var done [16]owner // released without the lock
	for more := true; more; {
		n := 0
		l.mu.Lock()
		for more = false; l.first < len(l.queue); {
			it := &l.queue[l.first]
			was := it.off
			whole := l.put(it)
			worked = worked || it.off > was
			if !whole {
				// The reader clears want before it looks whether this rank polls.
				if l.out.ctl.want.Swap(1) == 0 && l.out.room(1) > 0 {
					continue
				}
				break
			}
			if it.own != nil {
				done[n] = it.own
				n++
			}
			*it = shmItem{}
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
		l.flush()
	}
	return worked
}

// put writes more of a message, and reports whether it is all written. mu is held.
func (l *shmLink) put(it *shmItem) bool {
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

// drain takes in what the peer has written, or, if all is not set, a part of it,
// and reports whether there was something. What another goroutine is taking in
// already, and what a part leaves, is seen at the next poll or when polling ends.
func (l *shmLink) drain(all bool) (worked bool) {
	for more := true; more && l.due(); more = all {
		if !l.rmu.TryLock() {
			return worked
		}
		ended := l.ended.Load() // so what the peer has written is all there
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
			l.tellRoom()
		}
		if last {
			l.finish()
		}
	}
	runtime.KeepAlive(l)
	return worked
}

// due reports whether drain has something to do.
func (l *shmLink) due() bool {
	return l.in.ready() && !l.quiet.Load() || l.ended.Load() && !l.over.Load()
}

// receive takes in up to as much as the ring holds, and reports whether the peer
// waits for room, and there is. rmu is held.
func (l *shmLink) receive() (room bool) {
	for n := 0; n < len(l.in.data); {
		b, err := l.in.next(!l.parser.inMessage())
		if err == nil && len(b) == 0 {
			break
		}
		pos := l.in.pos.Load()
		for at := 0; at < len(b) && err == nil; {
			var k int
			k, err = l.parser.parse(b[at:])
			if at += k; !l.parser.inMessage() {
				at = min(at+padding(pos+uint64(at)), len(b))
			}
		}
		if err != nil {
			l.quiet.Store(true)
			l.under.abort(err.Error())
			return false
		}
		l.in.skip(len(b))
		n += len(b)
	}
	if l.in.ctl.want.Load() != 0 && l.in.half() {
		l.in.ctl.want.Store(0) // before awake is looked at
		room = true
	}
	return room
}

// tellRoom tells the peer that there is room, unless it polls.
func (l *shmLink) tellRoom() {
	if l.awake == nil || l.awake.Load() == 0 {
		l.bell()
	}
}

// end is called instead of down of the peer: it comes when what is in memory has
// been taken in.
func (l *shmLink) end(err error) {
	l.why = err
	l.ended.Store(true)
	l.drain(true)
}

// finish ends the link.
func (l *shmLink) finish() {
	l.mu.Lock()
	l.closed = true
	left := l.queue[l.first:]
	l.queue, l.first = nil, 0
	l.queued.Store(false)
	l.idle.Broadcast()
	l.mu.Unlock()
	for i := range left {
		if own := left[i].own; own != nil {
			own.Released(errLinkClosed)
		}
	}
	l.peer.ended(l.why)
}

// shutdown implements link. The peer takes in what is in memory when it sees the
// end of the link under this one.
func (l *shmLink) shutdown(ctx context.Context) error {
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
	return l.under.shutdown(ctx)
}

// abort implements link.
func (l *shmLink) abort(reason string) { l.under.abort(reason) }
