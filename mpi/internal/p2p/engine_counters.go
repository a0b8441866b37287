package p2p

import "github.com/weftstack/weft/mpi/internal/rdmadev"

// traffic is a number of messages and of the bytes in them, without headers.
type traffic struct{ Messages, Bytes uint64 }

func (t *traffic) count(n int) {
	t.Messages++
	t.Bytes += uint64(n)
}

func (t *traffic) add(u traffic) {
	t.Messages += u.Messages
	t.Bytes += u.Bytes
}

// PeerCounters are the counters of a peer, or of several.
type PeerCounters struct {
	Sent                   [SlotCount]traffic // messages, by context
	Writes, Reads, Atomics traffic            // of RDMA
	Announced              int                // sends that wait for a receive
	Credit                 int64              // bytes of eager messages that may be sent
	Held                   int64              // bytes of eager messages that no receive has matched
}

// Counters returns the counters of p.
func (p *Peer) Counters() PeerCounters {
	p.mu.Lock()
	sent := p.sent
	p.mu.Unlock()
	return PeerCounters{
		Sent: sent, Writes: TrafficOf(&p.RDMA.Writes), Reads: TrafficOf(&p.RDMA.Reads), Atomics: TrafficOf(&p.RDMA.Atomics),
		Announced: int(p.Announced.Load()), Credit: p.Credit.Load(), Held: p.Used.Load() - p.owed.Load(),
	}
}

// TrafficOf returns what c counts.
func TrafficOf(c *rdmadev.Counter) (t traffic) {
	t.Messages, t.Bytes = c.Load()
	return t
}

// add adds what q counts.
func (c *PeerCounters) add(q *PeerCounters) {
	for s := range c.Sent {
		c.Sent[s].add(q.Sent[s])
	}
	c.Writes.add(q.Writes)
	c.Reads.add(q.Reads)
	c.Atomics.add(q.Atomics)
	c.Announced, c.Credit, c.Held = c.Announced+q.Announced, c.Credit+q.Credit, c.Held+q.Held
}

// RemoteCounters returns the sum over the processes of other jobs, also of those that have been
// reaped.
func (e *Engine) RemoteCounters() PeerCounters {
	e.Remotes.Mu.Lock()
	all := e.Remotes.past
	peers := make([]*Peer, 0, len(e.Remotes.ByHandle))
	for _, p := range e.Remotes.ByHandle {
		peers = append(peers, p)
	}
	e.Remotes.Mu.Unlock()
	for _, p := range peers {
		c := p.Counters()
		all.add(&c)
	}
	return all
}

// Queued returns how many receives wait for a message, and how many messages for a receive.
func (e *Engine) Queued() (posted, unexpected int) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	for _, x := range e.Contexts {
		if x.comm != nil { // else it belongs to a service of the library
			x.posted.each(func(*matchElem) { posted++ })
		}
		x.unexpected.each(func(el *matchElem) {
			if el == &el.msg.elems[0] {
				unexpected++
			}
		})
	}
	return posted, unexpected
}

// OwnerOf returns the owner of the communicator with an id, or nil.
func (e *Engine) OwnerOf(id uint64) any {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if x := e.Contexts[id]; x != nil && x.comm != nil {
		return x.comm.owner
	}
	return nil
}
