package relay

import (
	"runtime"
	"slices"
	"time"

	"github.com/weftstack/weft/sctp"
)

// LegCounters count frames of a leg, and their bytes without SCTP's headers.
type LegCounters struct {
	FramesSent, FramesReceived, BytesSent, BytesReceived uint64
	// Dropped counts frames that arrived in part, for which there was no room (MaxPartial).
	Dropped uint64
}

// LegStats describes a leg.
type LegStats struct {
	// Gateway tells a gateway from a process. Peer is its address; a gateway has its
	// number as node, and no process.
	Gateway bool
	Peer    Address
	Job     uint32 // of a process
	// Association is which of the associations with the gateway it is, from 0.
	Association uint16
	LegCounters
	// Queued counts frames that wait, InFlight bytes that the association has.
	Queued, InFlight int
	// SCTP has RTT, cwnd, losses and retransmissions.
	SCTP sctp.Stats
}

func (c *conn) stats() LegStats {
	s := LegStats{Gateway: c.role == roleGateway, Peer: c.peer, Job: c.job, Association: c.index, SCTP: c.a.Stats()}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.LegCounters = c.received
	s.FramesSent, s.BytesSent = c.sent.FramesSent, c.sent.BytesSent
	s.Queued, s.InFlight = c.queued, c.inFlight
	return s
}

// NodeCounters count what a node has seen.
type NodeCounters struct {
	// LegsLost counts legs that ended and were not closed, Stale frames of former incarnations or of flows that have ended,
	// Misrouted frames for other processes, Invalid acks of what was not sent, Refused flows beyond
	// MaxFlows.
	LegsLost, Stale, Misrouted, Invalid, Refused uint64
	// PeersRefused counts processes whose direct legs were refused, Forged frames on direct legs from others than their
	// process.
	PeersRefused, Forged uint64
}

// SenderCounters count what a flow has sent.
type SenderCounters struct {
	Messages, Frames, Bytes uint64
	// Waits and WouldBlock count how often Send waited and TrySend did not; GoBacks how often
	// the flow was sent again from the first unconfirmed frame, Resent the frames of that, Probes
	// the questions, Refusals those of gateways, Moves the changes of leg.
	Waits, WouldBlock, GoBacks, Resent, Probes, Refusals, Moves uint64
}

// SenderStats describes a flow at its origin.
type SenderStats struct {
	Target Address
	Stream uint16
	SenderCounters
	// Gateway is the number of the gateway in use, 0 if there is none. Direct tells that the direct path is.
	Gateway uint16
	Direct  bool
	// Held is the memory in bytes of what is not confirmed, Window the credit.
	Held, Window int
	Err          error
}

// ReceiverCounters count what has arrived of a flow.
type ReceiverCounters struct {
	Messages, Frames, Bytes, Acks uint64
	// Duplicates and Gaps count frames dropped because they had come already, or another one
	// had not; NoMemory those beyond the limits.
	Duplicates, Gaps, NoMemory uint64
}

// ReceiverStats describes a flow at its target.
type ReceiverStats struct {
	Origin Address
	Stream uint16
	ReceiverCounters
	// Held is the memory in bytes of what was not read.
	Held int
	Err  error
}

// NodeStats is a snapshot of a node.
type NodeStats struct {
	NodeCounters
	// SendHeld and RecvHeld are the memory in bytes of all flows.
	SendHeld, RecvHeld int
	Legs               []LegStats
	Senders            []SenderStats
	Receivers          []ReceiverStats
}

// Stats returns a snapshot.
func (n *Node) Stats() NodeStats {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := NodeStats{NodeCounters: n.counters, SendHeld: n.sendHeld, RecvHeld: n.recvHeld}
	for _, c := range n.conns {
		s.Legs = append(s.Legs, c.stats())
	}
	for _, d := range n.directs {
		for _, c := range [...]*conn{d.out, d.in} {
			if c != nil {
				s.Legs = append(s.Legs, c.stats())
			}
		}
	}
	for _, x := range n.senders {
		t := SenderStats{
			Target: x.to, Stream: x.stream, SenderCounters: x.counters, Held: x.held, Window: x.window, Err: x.err,
		}
		if x.leg != nil {
			if t.Direct = x.leg.direct; !t.Direct {
				t.Gateway = x.leg.peer.Node
			}
		}
		s.Senders = append(s.Senders, t)
	}
	for _, r := range n.receivers {
		s.Receivers = append(s.Receivers, ReceiverStats{
			Origin: r.from, Stream: r.stream, ReceiverCounters: r.counters, Held: r.held, Err: r.err,
		})
	}
	return s
}

// GatewayCounters count what a gateway has seen.
type GatewayCounters struct {
	// LegsLost counts legs that ended and were not closed, PeersRefused peers that could not authenticate.
	LegsLost, PeersRefused uint64
	// Forged counts frames from those that may not speak for their maker. Unreachable, UnknownSite,
	// UnknownJob, Loops and TooManyFlows count refused frames.
	Forged, Unreachable, UnknownSite, UnknownJob, Loops, TooManyFlows uint64
	// OverFlow, OverJob and OverGateway count frames dropped at the memory limit of their flow, of their job or
	// of the gateway.
	OverFlow, OverJob, OverGateway uint64
	// Moves counts flows that have changed to another leg, because theirs had ended or a better one was back.
	Moves uint64
}

// FlowStats describes one direction of a flow in a gateway. Acks flow, too.
type FlowStats struct {
	Job           uint32
	From, To      Address
	Stream        uint16
	Frames, Bytes uint64
	Held          int64 // memory in bytes
	Idle          time.Duration
}

// GatewayStats is a snapshot of a gateway.
type GatewayStats struct {
	GatewayCounters
	// Jobs counts those that were added, or have processes or flows.
	Jobs    int
	Held    int64 // memory of all frames in bytes
	Legs    []LegStats
	Flows   []FlowStats
	Classes []ClassStats
}

// statsBatch is how many flows Stats looks at before it lets frames pass.
const statsBatch = 256

// Stats returns a snapshot. Frames pass meanwhile, so that its parts are of slightly different moments.
func (g *Gateway) Stats() GatewayStats {
	g.mu.Lock()
	s := GatewayStats{
		GatewayCounters: g.counters, Held: g.memory.held.Load(), Jobs: len(g.jobs), Classes: g.classStats(),
		Flows: make([]FlowStats, 0, len(g.flows)),
	}
	conns := slices.Clone(g.conns)
	for k, f := range g.flows {
		s.Flows = append(s.Flows, FlowStats{
			Job: k.job, From: k.from, To: k.to, Stream: k.stream, Frames: f.frames, Bytes: f.bytes,
			Held: f.memory.held.Load(), Idle: g.now - f.used,
		})
		if len(s.Flows)%statsBatch == 0 {
			g.mu.Unlock()
			runtime.Gosched()
			g.mu.Lock()
		}
	}
	g.mu.Unlock()
	for _, c := range conns {
		s.Legs = append(s.Legs, c.stats())
	}
	return s
}
