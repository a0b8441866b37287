package gateway

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/internal/fifo"
	"github.com/weftstack/weft/mpi/internal/transport"
	"github.com/weftstack/weft/sctp/relay"
)

const (
	// chunk is the longest message that is given to the relay, in bytes: long ones cost least for each byte, but the
	// relay takes all or nothing of one.
	chunk = 64 << 10
	// smallChunk is tried when there is no room for chunk. A flow that has nothing under way always has room for it: its
	// frames take less than relay.FlowReserve.
	smallChunk = 8 << 10
	// copySize is the memory for short messages that go together, in bytes.
	copySize = 16 << 10
)

// flow is what goes to another process on one stream of the relay: a queue in front of its sender.
type flow struct {
	pair   *pair
	sender *relay.Sender
	number int

	dirty atomic.Bool // something was queued since the last flush

	mu        sync.Mutex
	queue     fifo.Queue[item]
	owners    fifo.Queue[owner] // of bodies that the relay has and the target has not confirmed; in mode Chained
	sent      uint64            // bytes that the relay has taken
	confirmed uint64            // of them, by the target
	draining  bool              // a goroutine gives items to the relay
	again     bool              // it has to look once more
	sweep     bool              // a link has ended: its items are removed
	ended     bool              // the flow has failed, and before it the links
}

// item is a part of a message that waits: copies of headers and short bodies, or a body with an owner.
type item struct {
	link  *Link
	data  []byte          // what is left
	buf   *bufpool.Buffer // of data; nil: data is the owner's
	room  int             // bytes of buf behind data
	own   transport.Owner
	whole bool // one message to the other side, not a part of a series of bytes
}

// owner is notified when the target has confirmed all bytes before end.
type owner struct {
	link *Link
	own  transport.Owner
	end  uint64
}

// addCopy queues hdr and body by copying them. mu is held.
func (f *flow) addCopy(l *Link, hdr, body []byte, whole bool) {
	n := len(hdr) + len(body)
	var last *item
	if f.queue.Len() > 0 && !whole {
		last = f.queue.At(f.queue.Len() - 1)
	}
	if last == nil || last.link != l || last.whole || last.buf == nil || last.room < n {
		size := n
		if !whole {
			size = max(n, copySize)
		}
		b := bufpool.Get(size)
		f.queue.Push(item{link: l, buf: b, data: b.Bytes(size)[:0], room: size, whole: whole})
		last = f.queue.At(f.queue.Len() - 1)
		l.queued.Add(1)
	}
	last.data = append(append(last.data, hdr...), body...)
	last.room -= n
	l.copied.Add(int64(n))
}

// addOwned queues a body by reference, behind its header. mu is held.
func (f *flow) addOwned(l *Link, body []byte, own transport.Owner) {
	if len(body) == 0 { // the header takes the owner along
		last := f.queue.At(f.queue.Len() - 1)
		last.own, last.room = own, 0
		return
	}
	f.queue.Push(item{link: l, data: body, own: own})
	l.queued.Add(1)
}

// pump gives the relay what it takes. No lock is held. Of several goroutines that call it one does the work.
func (f *flow) pump() {
	f.mu.Lock()
	if f.draining {
		f.again = true
		f.mu.Unlock()
		return
	}
	f.draining = true
	for {
		f.again = false
		f.drop()
		for f.queue.Len() > 0 && f.give() {
		}
		if !f.again {
			break
		}
	}
	f.draining = false
	f.mu.Unlock()
}

// give gives the relay the next message. It reports false if the relay does not take it. mu is held; it is released
// meanwhile.
func (f *flow) give() bool {
	first := *f.queue.At(0)
	if f.ended || first.link.over() && !first.whole {
		f.pop(first.link.failure())
		return true
	}
	header, body, own := first.data, []byte(nil), first.own
	if first.buf == nil {
		header, body = nil, first.data
	} else if !first.whole && f.queue.Len() > 1 {
		if next := f.queue.At(1); next.link == first.link && next.buf == nil {
			body, own = next.data, next.own
		}
	}
	for limit := chunk; ; limit = smallChunk {
		o := relay.SendOptions{PPID: first.link.id, Header: header[:min(len(header), limit)]}
		msg := body[:min(len(body), limit-len(o.Header))]
		n := len(o.Header) + len(msg)
		o.AckNow = first.whole || own != nil && n == len(header)+len(body) && f.pair.station.chained()
		f.mu.Unlock()
		err := f.sender.TrySend(msg, o)
		if err != nil && !errors.Is(err, relay.ErrWouldBlock) {
			f.pair.fail(err)
		}
		f.mu.Lock()
		switch {
		case err == nil:
			f.taken(first.link, n)
			return true
		case !errors.Is(err, relay.ErrWouldBlock):
			f.ended = true
			return true
		case n <= smallChunk:
			return false
		}
	}
}

// taken records that the relay has taken the first n bytes of the queue. mu is held; it is released meanwhile.
func (f *flow) taken(l *Link, n int) {
	f.sent += uint64(n)
	if f.number > 0 {
		l.sent[f.number].Add(uint64(n))
	}
	l.count(n)
	for n > 0 {
		it := f.queue.At(0)
		k := min(n, len(it.data))
		it.data = it.data[k:]
		n -= k
		if it.buf != nil {
			l.copied.Add(-int64(k))
		}
		if len(it.data) > 0 {
			continue
		}
		if it.own != nil && f.pair.station.chained() {
			f.owners.Push(owner{l, it.own, f.sent})
			it.own = nil
		}
		f.pop(nil)
	}
	f.releaseConfirmed() // the confirmation may have come before the owner was in the queue
}

// releaseConfirmed releases the bodies that the target has confirmed. mu is held; it is released meanwhile.
func (f *flow) releaseConfirmed() {
	for f.owners.Len() > 0 && f.owners.At(0).end <= f.confirmed {
		o := f.owners.Pop()
		f.mu.Unlock()
		o.own.Released(nil)
		f.mu.Lock()
	}
}

// pop removes the first item, whose owner is told err. mu is held; it is released meanwhile.
func (f *flow) pop(err error) {
	it := f.queue.Pop()
	f.mu.Unlock()
	it.finish(err)
	f.mu.Lock()
}

// finish gives the memory of an item back that has left its queue. No lock is held.
func (it *item) finish(err error) {
	if it.buf != nil {
		it.link.copied.Add(-int64(len(it.data)))
		it.buf.Put()
	}
	if it.own != nil {
		it.own.Released(err)
	}
	if it.link.queued.Add(-1) == 0 {
		it.link.drained()
	}
}

// drop removes what belongs to links that have ended. mu is held; it is released meanwhile.
func (f *flow) drop() {
	if !f.sweep && !f.ended {
		return
	}
	f.sweep = false
	var gone []item
	var lost []owner
	f.queue.Filter(func(it *item) bool {
		if f.ended || it.link.over() && !it.whole {
			gone = append(gone, *it)
			return false
		}
		return true
	})
	f.owners.Filter(func(o *owner) bool {
		if f.ended || o.link.failure() != nil {
			lost = append(lost, *o)
			return false
		}
		return true
	})
	f.mu.Unlock()
	for i := range gone {
		gone[i].finish(gone[i].link.failure())
	}
	for _, o := range lost {
		o.own.Released(o.link.failure())
	}
	f.mu.Lock()
}

// progress is called when the target has confirmed more, or the flow has ended.
func (f *flow) progress() {
	confirmed, err := f.sender.Progress()
	f.pair.alive.Store(true)
	if err != nil {
		f.pair.fail(err)
		f.mu.Lock()
		f.ended = true
		f.mu.Unlock()
		f.pump()
		return
	}
	f.mu.Lock()
	f.confirmed = max(f.confirmed, confirmed)
	f.releaseConfirmed()
	f.mu.Unlock()
	f.pump()
}
