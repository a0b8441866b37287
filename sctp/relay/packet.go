package relay

import (
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/sctp"
)

const (
	// packetCost is what a frame in memory counts in addition to its buffer, in bytes.
	packetCost = 256
	// creditCost is what a frame counts against the window of its flow in addition to its
	// payload, in bytes. With it no frame holds more than twice what it counts.
	creditCost = 512
)

// packet is a frame in memory. It is shared, read-only, by those that have a reference: the origin that
// keeps it, the queue of a leg, an association. It implements sctp.SendOwner for the last one.
type packet struct {
	buf    *bufpool.Buffer
	n      int
	refs   atomic.Int32
	hash   uint32         // of its flow: chooses the stream
	single bool           // is sent unordered
	owner  sctp.SendOwner // is told when the frame is confirmed; may be nil
	group  uint32         // of the message of owner
	credit int            // what it counts against the window of its flow
	leg    *leg           // whose association has it
	lossy  *Sender        // that keeps it, in mode Lossy
	pays   *account       // for its memory; may be nil
}

var packets = sync.Pool{New: func() any { return new(packet) }}

// newPacket returns a packet of n bytes with one reference.
func newPacket(n int) *packet {
	p := packets.Get().(*packet)
	p.buf, p.n = bufpool.Get(n), n
	p.refs.Store(1)
	return p
}

// clone returns a copy of p, with one reference, that can be changed.
func (p *packet) clone() *packet {
	c := newPacket(p.n)
	copy(c.bytes(), p.bytes())
	c.hash, c.single, c.credit, c.lossy = p.hash, p.single, p.credit, p.lossy
	c.owner, c.group = p.owner, p.group
	return c
}

func (p *packet) bytes() []byte { return p.buf.Bytes(p.n) }

// cost is the memory that p takes.
func (p *packet) cost() int {
	if p.buf == nil { // see Sender.strip
		return packetCost
	}
	return p.buf.Size() + packetCost
}

// release gives up a reference.
func (p *packet) release() {
	if p.refs.Add(-1) > 0 {
		return
	}
	if p.pays != nil {
		p.pays.give(p.cost())
	}
	if p.buf != nil {
		p.buf.Put()
	}
	p.buf, p.owner, p.leg, p.lossy, p.pays = nil, nil, nil, nil, nil
	packets.Put(p)
}

// Released implements sctp.SendOwner.
func (p *packet) Released(err error) {
	l := p.leg
	l.mu.Lock()
	l.inFlight -= p.n
	l.freed += p.n
	more := !l.pumping && (l.freed >= pumpAfter || l.inFlight < unsentLow) && l.waiting()
	l.mu.Unlock()
	if s := p.lossy; s != nil && err == nil {
		s.strip(p)
	}
	p.release()
	if more {
		l.pump()
	}
}

// account counts memory in bytes, for itself and for those above it.
type account struct {
	held  atomic.Int64
	limit int64
	above *account
}

// take counts n bytes more, or returns the account whose limit forbids it.
func (a *account) take(n int) (full *account) {
	for p := a; p != nil; p = p.above {
		if p.held.Add(int64(n)) > p.limit {
			for q := a; ; q = q.above {
				q.held.Add(-int64(n))
				if q == p {
					return p
				}
			}
		}
	}
	return nil
}

// give takes n bytes back.
func (a *account) give(n int) {
	for p := a; p != nil; p = p.above {
		p.held.Add(-int64(n))
	}
}
