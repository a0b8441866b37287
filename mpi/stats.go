package mpi

import "time"

// PeerStats is what a rank has sent to another one since Init (MPI-4.1, Section 15.3.7).
type PeerStats struct {
	Rank       int     `json:"rank"`       // of the other, in the job
	Messages   Traffic `json:"messages"`   // point-to-point messages of the program
	Collective Traffic `json:"collective"` // messages of collective operations
	OneSided   Traffic `json:"one_sided"`  // messages of windows and files
	Internal   Traffic `json:"internal"`   // messages to make communicators and for barriers of the library
	Writes     Traffic `json:"writes"`     // RDMA Writes to its memory, and copies: see Win
	Reads      Traffic `json:"reads"`      // RDMA Reads of its memory, and copies: the bytes come from it
	Atomics    Traffic `json:"atomics"`    // RDMA atomics on its memory
	// Announced is how many sends wait for a receive of the peer.
	Announced int `json:"announced"`
	// Credit is how many bytes of eager messages may be sent before the peer has received some.
	Credit int64 `json:"credit"`
	// Held is how many bytes the peer has sent that no receive has matched, with a surcharge for
	// each message.
	Held int64 `json:"held"`
}

// Sent returns the sum of what went to the peer (MPI_T_pvar_read).
func (p *PeerStats) Sent() Traffic {
	return p.Messages.add(p.Collective).add(p.OneSided).add(p.Internal).add(p.Writes).add(p.Atomics)
}

// Stats are the counters of a rank: what MPI calls performance variables
// (MPI-4.1, Section 15.3.7).
type Stats struct {
	// Peers is by rank of the job, with the rank itself.
	Peers []PeerStats `json:"peers"`
	// Others is the sum over processes of other jobs, also those that are not
	// connected any more. Its Rank is Undefined.
	Others PeerStats `json:"others"`
	// Posted is how many receives wait for a message, and Unexpected how many
	// messages for a receive.
	Posted     int `json:"posted"`
	Unexpected int `json:"unexpected"`
	// SpinCost and ParkCost are about how long waits take that begin with
	// polling, and that do not.
	SpinCost time.Duration `json:"spin_cost_ns"`
	ParkCost time.Duration `json:"park_cost_ns"`
}

// Stats returns the counters (MPI_T_pvar_read). They are not all taken at the
// same moment. It does not block.
func (w *World) Stats() Stats {
	e := w.eng
	s := Stats{Peers: make([]PeerStats, len(e.peers))}
	s.SpinCost, s.ParkCost = e.prog.choose.Costs()
	for i, p := range e.peers {
		s.Peers[i] = p.stats()
	}
	s.Others = e.farStats()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.contexts {
		if x.comm != nil { // else it is the failure service's
			x.posted.each(func(*elem) { s.Posted++ })
		}
		x.unexp.each(func(el *elem) {
			if el == &el.msg.elems[0] {
				s.Unexpected++
			}
		})
	}
	return s
}

func (p *peer) stats() PeerStats {
	p.mu.Lock()
	sent := p.sent
	p.mu.Unlock()
	return PeerStats{
		Rank: p.rank, Messages: sent[slotUser], Collective: sent[slotColl], OneSided: sent[slotWin], Internal: sent[slotComm],
		Writes: trafficOf(&p.rdma.Writes), Reads: trafficOf(&p.rdma.Reads), Atomics: trafficOf(&p.rdma.Atomics),
		Announced: int(p.announced.Load()), Credit: p.credit.Load(), Held: p.used.Load() - p.owed.Load(),
	}
}

// sum adds what q counts.
func (p *PeerStats) sum(q PeerStats) {
	p.Messages, p.Collective = p.Messages.add(q.Messages), p.Collective.add(q.Collective)
	p.OneSided, p.Internal = p.OneSided.add(q.OneSided), p.Internal.add(q.Internal)
	p.Writes, p.Reads, p.Atomics = p.Writes.add(q.Writes), p.Reads.add(q.Reads), p.Atomics.add(q.Atomics)
	p.Announced, p.Credit, p.Held = p.Announced+q.Announced, p.Credit+q.Credit, p.Held+q.Held
}

// farStats sums up over processes of other jobs.
func (e *engine) farStats() PeerStats {
	e.remotes.mu.Lock()
	all := e.remotes.past
	peers := make([]*peer, 0, len(e.remotes.byHandle))
	for _, p := range e.remotes.byHandle {
		peers = append(peers, p)
	}
	e.remotes.mu.Unlock()
	all.Rank = Undefined
	for _, p := range peers {
		all.sum(p.stats())
	}
	return all
}

// A Tunable is an option in effect: what MPI calls a control variable
// (MPI_T_cvar_get_info; MPI-4.1, Section 15.3.6). It is set before the job
// starts.
type Tunable struct {
	Name  string // of the environment variable
	Value string
	Doc   string
}

// Tunables returns the options in effect (MPI_T_cvar_read). Those of
// collectives are Comm.Tuning.
func (w *World) Tunables() []Tunable {
	o := w.opts
	return []Tunable{
		{"WEFT_TRANSPORT", o.transport, "transport: see WithTransport"},
		{"WEFT_EAGER", formatSize(o.eager), "longest message sent without asking, in bytes"},
		{"WEFT_RENDEZVOUS", w.world.hints.Load().rendezvous.String(), "how longer ones travel: see WithRendezvous"},
		{"WEFT_STREAMS", formatSize(o.streams), "streams that the tags are spread over"},
		{"WEFT_UNEXPECTED", formatSize(o.unexpected), "memory for messages that came before their receives, in bytes"},
		{"WEFT_SPIN", w.eng.prog.choose.Max().String(), "how long a waiting goroutine polls, with nothing coming, before it parks"},
		{"WEFT_SHARED", w.shared.String(), "1 if ranks on one host exchange messages through memory"},
		{"WEFT_ADDRS", formatAddrs(o.addrs), "local addresses; none: all of the host"},
		{"WEFT_CAPTURE", o.capture, "file that sent datagrams are recorded in"},
	}
}
