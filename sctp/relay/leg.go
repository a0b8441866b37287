package relay

import (
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/internal/fifo"
	"github.com/weftstack/weft/sctp"
)

const (
	// legWindow is up to how many bytes a leg hands to its association before the peer has
	// acknowledged them: 1.8 times what is under way at 1 Gb/s and a round trip of 18 ms.
	legWindow = 4 << 20
	// unsentLow is how many bytes the association may have that it has not sent for the first time:
	// enough to fill the window that an acknowledgement opens. More would wait there behind each other instead of
	// taking turns by flow and class.
	unsentLow = 256 << 10
	// pumpAfter is how many bytes are given back until it is worth while to look again.
	pumpAfter = 16 << 10
	// ppid marks the messages of relays: "WFT1".
	ppid = 0x57465431
	// pumpBatch is how many frames are handed to the association between two looks at the queues.
	pumpBatch = 32
	// maxControl is how many control frames, of 512 bytes of memory each, wait for a leg: 2 MiB.
	maxControl = 4096
)

// leg is the sending side of an authenticated association: queues of frames that take turns.
type leg struct {
	a       *sctp.Association
	streams uint32 // outgoing streams but the first

	// heard and said are true if something was received or sent since the timer looked.
	heard, said atomic.Bool

	mu       sync.Mutex
	down     bool
	pumping  bool // a goroutine hands frames to the association
	control  queue
	shares       // of the flows
	inFlight int // bytes that the association has
	freed    int // of them that it gave back since pump looked
	queued   int // frames in the queues
	sent     LegCounters
}

// queue has the frames of one flow that wait for a leg. It is guarded by the mutex of the leg, and
// belongs to one leg at a time.
type queue struct {
	frames fifo.Queue[*packet]
	class  uint8
	listed bool
	next   *queue
}

// idle reports whether q, which belongs to l, has no frames.
func (l *leg) idle(q *queue) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return q.frames.Len() == 0
}

// enqueue adds p to q, and takes over a reference. It reports false if the leg is down. A control frame beyond
// maxControl is dropped: the next one says as much.
func (l *leg) enqueue(q *queue, p *packet) bool {
	l.mu.Lock()
	if l.down || q == &l.control && q.frames.Len() >= maxControl {
		down := l.down
		l.mu.Unlock()
		p.release()
		return !down
	}
	q.frames.Push(p)
	l.queued++
	if !q.listed && q != &l.control {
		q.listed = true
		l.list(q)
	}
	l.mu.Unlock()
	return true
}

// waiting reports whether frames could be sent. mu is held.
func (l *leg) waiting() bool {
	return !l.down && l.inFlight < legWindow && (l.control.frames.Len() > 0 || !l.empty() && !l.asleep)
}

// take removes the next frame: of control frames, or of the flow whose turn it is; nil if none may be sent now.
// mu is held.
func (l *leg) take() (p *packet) {
	if l.control.frames.Len() > 0 {
		p = l.control.frames.Pop()
	} else {
		p = l.shares.take()
	}
	if p != nil {
		l.queued--
	}
	return p
}

// pump hands frames to the association while it has room. One goroutine does it at a time; mu is not
// held while it sends.
func (l *leg) pump() {
	var batch [pumpBatch]*packet
	l.mu.Lock()
	if l.pumping {
		l.mu.Unlock()
		return
	}
	l.pumping = true
	more := false // the last frame was sent as one that others follow
	for l.waiting() {
		room := unsentLow
		if l.freed = 0; l.inFlight >= unsentLow {
			l.mu.Unlock()
			room -= l.a.Unsent()
			l.mu.Lock()
		}
		n := 0
		for ; n < len(batch) && room > 0 && l.waiting(); n++ {
			p := l.take()
			if p == nil {
				break
			}
			p.leg = l
			room -= p.n
			l.inFlight += p.n
			l.sent.FramesSent++
			l.sent.BytesSent += uint64(p.n)
			batch[n] = p
		}
		if n == 0 {
			if room <= 0 && l.freed >= pumpAfter {
				continue
			}
			break
		}
		more = room > 0 && l.waiting()
		l.mu.Unlock()
		l.said.Store(true)
		for i, p := range batch[:n] {
			o := sctp.SendOptions{
				Stream: l.streamOf(p.hash), PPID: ppid, Unordered: p.single,
				Owner: p, Force: true, More: more || i < n-1,
			}
			if err := l.a.TrySend(p.bytes(), o); err != nil {
				// The association has ended, or is about to.
				l.mu.Lock()
				l.inFlight -= p.n
				l.mu.Unlock()
				p.release()
				if !o.More {
					l.a.Flush()
				}
			}
			batch[i] = nil
		}
		l.mu.Lock()
	}
	l.pumping = false
	l.mu.Unlock()
	if more {
		l.a.Flush() // no others follow: the association is full, or they were withdrawn
	}
}

// wake ends the sleep of a leg whose frames waited for a rate.
func (l *leg) wake() {
	l.mu.Lock()
	l.asleep = false
	l.mu.Unlock()
	l.pump()
}

// withdraw drops the frames of q.
func (l *leg) withdraw(q *queue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unlist(q)
	l.queued -= q.frames.Len()
	q.drop()
}

// handOver moves q, with its frames, to another leg.
func (l *leg) handOver(q *queue, to *leg) {
	l.mu.Lock()
	l.unlist(q)
	l.queued -= q.frames.Len()
	l.mu.Unlock()
	if q.frames.Len() == 0 {
		return
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.down {
		q.drop()
		return
	}
	to.queued += q.frames.Len()
	q.listed = true
	to.list(q)
}

func (q *queue) drop() {
	for q.frames.Len() > 0 {
		q.frames.Pop().release()
	}
}

// streamOf returns the SCTP stream for a flow. Stream 0 is for control.
func (l *leg) streamOf(hash uint32) uint16 { return uint16(1 + hash%l.streams) }

// close drops all frames, and all that come later.
func (l *leg) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for l.control.frames.Len() > 0 {
		l.control.frames.Pop().release()
	}
	l.shares.drop()
	l.queued = 0
}
