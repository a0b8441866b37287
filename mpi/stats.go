package mpi

import (
	"time"

	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport/gateway"
)

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
	// Relayed is what went to it through gateways: messages of all kinds, and the bytes of them with headers.
	Relayed Traffic `json:"relayed"`
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
	s := Stats{Peers: make([]PeerStats, len(e.Peers))}
	s.SpinCost, s.ParkCost = e.Progress.Choose.Costs()
	for i, p := range e.Peers {
		s.Peers[i] = peerStats(p.Rank, p.Counters())
		if l, ok := p.Link.(*gateway.Link); ok {
			s.Peers[i].Relayed.Messages, s.Peers[i].Relayed.Bytes = l.Sent()
		}
	}
	s.Others = peerStats(Undefined, e.RemoteCounters())
	s.Posted, s.Unexpected = e.Queued()
	return s
}

// peerStats returns what c counts.
func peerStats(rank int, c p2p.PeerCounters) PeerStats {
	return PeerStats{
		Rank: rank, Messages: Traffic(c.Sent[p2p.SlotUser]), Collective: Traffic(c.Sent[p2p.SlotColl]),
		OneSided: Traffic(c.Sent[p2p.SlotWin]), Internal: Traffic(c.Sent[p2p.SlotComm]),
		Writes: Traffic(c.Writes), Reads: Traffic(c.Reads), Atomics: Traffic(c.Atomics),
		Announced: c.Announced, Credit: c.Credit, Held: c.Held,
	}
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
		{"WEFT_TRANSPORT", o.Transport, "transport: see WithTransport"},
		{"WEFT_EAGER", formatSize(o.Eager), "longest message sent without asking, in bytes"},
		{"WEFT_RENDEZVOUS", rendezvousNames[w.world.comm.Hints.Load().Rendezvous], "how longer ones travel: see WithRendezvous"},
		{"WEFT_STREAMS", formatSize(o.Streams), "streams that the tags are spread over"},
		{"WEFT_UNEXPECTED", formatSize(o.Unexpected), "memory for messages that came before their receives, in bytes"},
		{"WEFT_SPIN", w.eng.Progress.Choose.Max().String(), "how long a waiting goroutine polls, with nothing coming, before it parks"},
		{"WEFT_SHARED", w.job.Shared.String(), "1 if ranks on one host exchange messages through memory"},
		{"WEFT_SITE", w.Site(), "site of this process; empty: not known"},
		{"WEFT_ADDRS", formatAddrs(o.Addrs), "local addresses; none: all of the host"},
		{"WEFT_CAPTURE", o.Capture, "file that sent datagrams are recorded in"},
	}
}
