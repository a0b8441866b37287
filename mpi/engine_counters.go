package mpi

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

// peerCounters are the counters of a peer, or of several.
type peerCounters struct {
	Sent                   [slotCount]traffic // messages, by context
	Writes, Reads, Atomics traffic            // of RDMA
	Announced              int                // sends that wait for a receive
	Credit                 int64              // bytes of eager messages that may be sent
	Held                   int64              // bytes of eager messages that no receive has matched
}

// counters returns the counters of p.
func (p *peer) counters() peerCounters {
	p.mu.Lock()
	sent := p.sent
	p.mu.Unlock()
	return peerCounters{
		Sent: sent, Writes: trafficOf(&p.rdma.Writes), Reads: trafficOf(&p.rdma.Reads), Atomics: trafficOf(&p.rdma.Atomics),
		Announced: int(p.announced.Load()), Credit: p.credit.Load(), Held: p.used.Load() - p.owed.Load(),
	}
}

// trafficOf returns what c counts.
func trafficOf(c *rdmadev.Counter) (t traffic) {
	t.Messages, t.Bytes = c.Load()
	return t
}

// add adds what q counts.
func (c *peerCounters) add(q *peerCounters) {
	for s := range c.Sent {
		c.Sent[s].add(q.Sent[s])
	}
	c.Writes.add(q.Writes)
	c.Reads.add(q.Reads)
	c.Atomics.add(q.Atomics)
	c.Announced, c.Credit, c.Held = c.Announced+q.Announced, c.Credit+q.Credit, c.Held+q.Held
}

// remoteCounters returns the sum over the processes of other jobs, also of those that have been
// reaped.
func (e *engine) remoteCounters() peerCounters {
	e.remotes.mu.Lock()
	all := e.remotes.past
	peers := make([]*peer, 0, len(e.remotes.byHandle))
	for _, p := range e.remotes.byHandle {
		peers = append(peers, p)
	}
	e.remotes.mu.Unlock()
	for _, p := range peers {
		c := p.counters()
		all.add(&c)
	}
	return all
}

// queued returns how many receives wait for a message, and how many messages for a receive.
func (e *engine) queued() (posted, unexpected int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.contexts {
		if x.comm != nil { // else it belongs to a service of the library
			x.posted.each(func(*elem) { posted++ })
		}
		x.unexp.each(func(el *elem) {
			if el == &el.msg.elems[0] {
				unexpected++
			}
		})
	}
	return posted, unexpected
}

// eachPosted calls f for each posted receive of a communicator, with the owner and the slot of its
// context, and the source and the tag that it waits for. f must not call the engine.
func (e *engine) eachPosted(f func(owner any, s slot, src, tag int32)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, x := range e.contexts {
		if x.comm == nil || x.internal {
			continue
		}
		x.posted.each(func(el *elem) {
			f(x.comm.owner, slot(id&uint64(slotMask)), el.req.src, el.req.tag)
		})
	}
}

// ownerOf returns the owner of the communicator with an id, or nil.
func (e *engine) ownerOf(id uint64) any {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.contexts[id]; x != nil && x.comm != nil {
		return x.comm.owner
	}
	return nil
}

// awaited returns the peer of each request that waits for an answer.
func (e *engine) awaited() []*peer { return e.ids.peers() }
