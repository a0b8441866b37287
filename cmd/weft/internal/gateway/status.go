package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weftstack/weft/sctp/relay"
)

// maxShownFlows and maxShownLegs bound what a status lists, so that a large job does not make it endless. Totals
// count all.
const (
	maxShownFlows = 1000
	maxShownLegs  = 10_000
)

// Status is the state of a gateway, as /status tells it.
type Status struct {
	Site       string  `json:"site"`
	SiteNumber uint16  `json:"site_number"`
	Gateway    string  `json:"gateway"`
	Number     uint16  `json:"number"`
	UpSeconds  float64 `json:"up_seconds"`
	// Ready is true if all legs to other gateways are up.
	Ready bool  `json:"ready"`
	Jobs  int   `json:"jobs"`
	Held  int64 `json:"held_bytes"`
	// Legs are those to other gateways, up or not, then those to processes. Flows are those with most bytes.
	Legs      []Leg    `json:"legs"`
	LegCount  int      `json:"leg_count"`
	Flows     []Flow   `json:"flows"`
	FlowCount int      `json:"flow_count"`
	Classes   []Class  `json:"classes"`
	Counters  Counters `json:"counters"`
	// TCP is what has been carried of other programs' connections, if any are.
	TCP *TCP `json:"tcp,omitempty"`
}

// Leg describes a leg.
type Leg struct {
	Peer        string  `json:"peer"` // gateway SITE/GATEWAY, or process SITE NODE/PROCESS
	IsGateway   bool    `json:"gateway"`
	Association int     `json:"association"` // from 1
	Job         uint32  `json:"job,omitempty"`
	Up          bool    `json:"up"`
	RTT         float64 `json:"rtt_ms"`
	CWND        int     `json:"cwnd_bytes"`
	Paths       int     `json:"paths"`
	ActivePaths int     `json:"active_paths"`

	FramesSent     uint64 `json:"frames_sent"`
	FramesReceived uint64 `json:"frames_received"`
	BytesSent      uint64 `json:"bytes_sent"`
	BytesReceived  uint64 `json:"bytes_received"`
	FramesDropped  uint64 `json:"frames_dropped"`
	Queued         int    `json:"queued_frames"`
	InFlight       int    `json:"in_flight_bytes"`

	Chunks      uint64 `json:"chunks_sent"`
	Retransmits uint64 `json:"retransmits"`
	Fast        uint64 `json:"fast_retransmits"`
	Timeouts    uint64 `json:"timeouts"`
	Spurious    uint64 `json:"spurious_retransmits"`
	Marks       uint64 `json:"congestion_marks"`
}

// Flow describes one direction of a flow.
type Flow struct {
	Job    uint32  `json:"job"`
	From   string  `json:"from"` // SITE NODE/PROCESS
	To     string  `json:"to"`
	Stream uint16  `json:"stream"`
	Frames uint64  `json:"frames"`
	Bytes  uint64  `json:"bytes"`
	Held   int64   `json:"held_bytes"`
	Idle   float64 `json:"idle_seconds"`
}

// Class describes a class of jobs.
type Class struct {
	Name   string `json:"name"`
	Weight int    `json:"weight"`
	Rate   int64  `json:"rate_bits_per_s,omitempty"`
	Frames uint64 `json:"frames_sent"`
	Bytes  uint64 `json:"bytes_sent"`
	Waits  uint64 `json:"waits"`
}

// Counters count what was lost, refused and dropped since the start.
type Counters struct {
	LegsLost     uint64 `json:"legs_lost"`
	Moves        uint64 `json:"flow_moves"`
	PeersRefused uint64 `json:"peers_refused"`
	Forged       uint64 `json:"forged_frames"`
	Unreachable  uint64 `json:"unreachable_frames"`
	UnknownSite  uint64 `json:"unknown_site_frames"`
	UnknownJob   uint64 `json:"unknown_job_frames"`
	Loops        uint64 `json:"loop_frames"`
	TooManyFlows uint64 `json:"too_many_flows_frames"`
	OverFlow     uint64 `json:"over_flow_limit_frames"`
	OverJob      uint64 `json:"over_job_limit_frames"`
	OverGateway  uint64 `json:"over_gateway_limit_frames"`
}

// status returns the present state.
func (d *daemon) status() *Status {
	s := d.relay.Stats()
	out := &Status{
		Site: d.site.Name, SiteNumber: d.site.Number, Gateway: d.gateway.Name, Number: d.gateway.Number,
		UpSeconds: time.Since(d.began).Seconds(), Jobs: s.Jobs, Held: s.Held, FlowCount: len(s.Flows), Flows: []Flow{},
		Classes: []Class{}, TCP: d.tcpStatus(), Counters: Counters{
			LegsLost: s.LegsLost, Moves: s.Moves, PeersRefused: s.PeersRefused, Forged: s.Forged, Unreachable: s.Unreachable,
			UnknownSite: s.UnknownSite, UnknownJob: s.UnknownJob, Loops: s.Loops, TooManyFlows: s.TooManyFlows,
			OverFlow: s.OverFlow, OverJob: s.OverJob, OverGateway: s.OverGateway,
		},
	}
	var down int
	out.Legs, down = d.legs(s.Legs)
	out.Ready, out.LegCount = down == 0, len(out.Legs)
	out.Legs = out.Legs[:min(len(out.Legs), maxShownLegs)]
	slices.SortFunc(s.Flows, func(a, b relay.FlowStats) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for _, f := range s.Flows[:min(len(s.Flows), maxShownFlows)] {
		out.Flows = append(out.Flows, Flow{
			Job: f.Job, From: d.process(f.From), To: d.process(f.To), Stream: f.Stream, Frames: f.Frames, Bytes: f.Bytes,
			Held: f.Held, Idle: f.Idle.Seconds(),
		})
	}
	for _, c := range s.Classes {
		out.Classes = append(out.Classes, Class{c.Name, c.Weight, c.Rate * 8, c.Frames, c.Bytes, c.Waits})
	}
	return out
}

// siteName returns the name of a site.
func (d *daemon) siteName(number uint16) string {
	if s := d.file.SiteNumber(number); s != nil {
		return s.Name
	}
	return fmt.Sprint(number)
}

// process names a process.
func (d *daemon) process(a relay.Address) string {
	return fmt.Sprintf("%s %d/%d", d.siteName(a.Site), a.Node, a.Process)
}

// peerGateway names a gateway.
func (d *daemon) peerGateway(site, number uint16) string {
	name := fmt.Sprint(number)
	if s := d.file.SiteNumber(site); s != nil && number >= 1 && int(number) <= len(s.Gateways) {
		name = s.Gateways[number-1].Name
	}
	return d.siteName(site) + "/" + name
}

// legs returns the legs to other gateways in the order of the file, whether they are up or not, and those to
// processes; and how many of the first are down.
func (d *daemon) legs(up []relay.LegStats) (legs []Leg, down int) {
	type key struct{ site, number, association uint16 }
	gateways := make(map[key]*relay.LegStats)
	for i := range up {
		if l := &up[i]; l.Gateway {
			gateways[key{l.Peer.Site, l.Peer.Node, l.Association}] = l
		}
	}
	legs = []Leg{}
	for _, p := range d.cfg.Peers {
		for k := range uint16(max(1, p.Associations)) {
			x := Leg{Peer: d.peerGateway(p.Site, p.Gateway), IsGateway: true, Association: int(k) + 1}
			if l := gateways[key{p.Site, p.Gateway, k}]; l != nil {
				x.fill(l)
			} else {
				down++
			}
			legs = append(legs, x)
		}
	}
	n := len(legs)
	for i := range up {
		if l := &up[i]; !l.Gateway {
			x := Leg{Peer: d.process(l.Peer), Association: 1, Job: l.Job}
			x.fill(l)
			legs = append(legs, x)
		}
	}
	slices.SortFunc(legs[n:], func(a, b Leg) int { return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Peer, b.Peer)) })
	return legs, down
}

// fill sets what is known of a leg that is up.
func (x *Leg) fill(l *relay.LegStats) {
	x.Up = true
	x.FramesSent, x.FramesReceived = l.FramesSent, l.FramesReceived
	x.BytesSent, x.BytesReceived = l.BytesSent, l.BytesReceived
	x.FramesDropped, x.Queued, x.InFlight = l.Dropped, l.Queued, l.InFlight
	s := &l.SCTP
	x.Chunks, x.Retransmits, x.Fast, x.Timeouts = s.ChunksSent, s.Retransmits, s.FastRetransmits, s.Timeouts
	x.Spurious, x.Marks, x.Paths = s.SpuriousRetransmits, s.CongestionMarks, len(s.Paths)
	for i, p := range s.Paths {
		if p.Active {
			x.ActivePaths++
		}
		if p.Primary || i == 0 {
			x.RTT, x.CWND = float64(p.SRTT)/float64(time.Millisecond), p.CWND
		}
	}
}
