package gateway

import (
	"fmt"
	"strconv"
)

// appendMetrics appends a status in the text format of Prometheus, version 0.0.4. Legs to processes have no series of
// their own: they come and go with each job.
func appendMetrics(b []byte, s *Status) []byte {
	family := func(name, kind, help string) {
		b = fmt.Appendf(b, "# HELP weft_gateway_%s %s\n# TYPE weft_gateway_%[1]s %[3]s\n", name, help, kind)
	}
	value := func(name, labels string, v float64) {
		b = append(b, "weft_gateway_"+name...)
		if labels != "" {
			b = append(b, "{"+labels+"}"...)
		}
		b = append(b, ' ')
		b = strconv.AppendFloat(b, v, 'g', -1, 64)
		b = append(b, '\n')
	}
	one := func(name, kind, help string, v float64) {
		family(name, kind, help)
		value(name, "", v)
	}
	family("info", "gauge", "Site and name of the gateway.")
	value("info", fmt.Sprintf("site=%q,gateway=%q", s.Site, s.Gateway), 1)
	one("up_seconds", "gauge", "Time since the start.", s.UpSeconds)
	one("ready", "gauge", "1 if all legs to other gateways are up.", number(s.Ready))
	one("jobs", "gauge", "Jobs with processes or flows.", float64(s.Jobs))
	one("flows", "gauge", "Directions of flows.", float64(s.FlowCount))
	one("held_bytes", "gauge", "Memory of messages under way.", float64(s.Held))
	processes, queued := 0, 0
	for i := range s.Legs {
		if l := &s.Legs[i]; !l.IsGateway {
			processes++
			queued += l.Queued
		}
	}
	one("process_legs", "gauge", "Legs to processes.", float64(processes+s.LegCount-len(s.Legs)))
	one("process_queued_frames", "gauge", "Frames that wait for legs to processes.", float64(queued))
	for _, m := range []struct {
		name, kind, help string
		of               func(*Leg) float64
	}{
		{"leg_up", "gauge", "1 if the leg to another gateway is up.", func(l *Leg) float64 { return number(l.Up) }},
		{"leg_paths", "gauge", "Active paths of the leg.", func(l *Leg) float64 { return float64(l.ActivePaths) }},
		{"leg_rtt_seconds", "gauge", "Smoothed round-trip time of the leg.", func(l *Leg) float64 { return l.RTT / 1e3 }},
		{"leg_cwnd_bytes", "gauge", "Congestion window of the leg.", func(l *Leg) float64 { return float64(l.CWND) }},
		{"leg_queued_frames", "gauge", "Frames that wait for the leg.", func(l *Leg) float64 { return float64(l.Queued) }},
		{"leg_in_flight_bytes", "gauge", "Bytes that the association of the leg has.", func(l *Leg) float64 { return float64(l.InFlight) }},
		{"leg_sent_frames_total", "counter", "Frames sent.", func(l *Leg) float64 { return float64(l.FramesSent) }},
		{"leg_received_frames_total", "counter", "Frames received.", func(l *Leg) float64 { return float64(l.FramesReceived) }},
		{"leg_sent_bytes_total", "counter", "Bytes of frames sent.", func(l *Leg) float64 { return float64(l.BytesSent) }},
		{"leg_received_bytes_total", "counter", "Bytes of frames received.", func(l *Leg) float64 { return float64(l.BytesReceived) }},
		{"leg_dropped_frames_total", "counter", "Frames in parts for which there was no room.", func(l *Leg) float64 { return float64(l.FramesDropped) }},
		{"leg_chunks_total", "counter", "Data chunks sent.", func(l *Leg) float64 { return float64(l.Chunks) }},
		{"leg_retransmits_total", "counter", "Data chunks sent again.", func(l *Leg) float64 { return float64(l.Retransmits) }},
		{"leg_fast_retransmits_total", "counter", "Data chunks sent again because of acknowledgements.", func(l *Leg) float64 { return float64(l.Fast) }},
		{"leg_timeouts_total", "counter", "Expirations of the retransmission timer.", func(l *Leg) float64 { return float64(l.Timeouts) }},
		{"leg_spurious_retransmits_total", "counter", "Duplicates that the peer reported.", func(l *Leg) float64 { return float64(l.Spurious) }},
		{"leg_congestion_marks_total", "counter", "Reactions to congestion marks.", func(l *Leg) float64 { return float64(l.Marks) }},
	} {
		family(m.name, m.kind, m.help)
		for i := range s.Legs {
			if l := &s.Legs[i]; l.IsGateway {
				value(m.name, fmt.Sprintf("peer=%q,association=\"%d\"", l.Peer, l.Association), m.of(l))
			}
		}
	}
	for _, m := range []struct {
		name, help string
		of         func(*Class) uint64
	}{
		{"class_sent_frames_total", "Frames sent to other gateways.", func(c *Class) uint64 { return c.Frames }},
		{"class_sent_bytes_total", "Bytes of frames sent to other gateways.", func(c *Class) uint64 { return c.Bytes }},
		{"class_waits_total", "How often frames had to wait for a rate.", func(c *Class) uint64 { return c.Waits }},
	} {
		family(m.name, "counter", m.help)
		for i := range s.Classes {
			value(m.name, fmt.Sprintf("class=%q", s.Classes[i].Name), float64(m.of(&s.Classes[i])))
		}
	}
	c := &s.Counters
	one("legs_lost_total", "counter", "Legs that ended and were not closed by their peers.", float64(c.LegsLost))
	one("flow_moves_total", "counter", "Flows that have changed to another leg.", float64(c.Moves))
	one("peers_refused_total", "counter", "Peers that could not authenticate.", float64(c.PeersRefused))
	family("refused_frames_total", "counter", "Frames that were not forwarded, by reason.")
	for _, r := range c.reasons() {
		value("refused_frames_total", fmt.Sprintf("reason=%q", r.key), float64(r.n))
	}
	if s.TCP != nil {
		one("tcp_connections", "gauge", "TCP connections that are carried.", float64(s.TCP.Active))
		for _, c := range s.TCP.counters() {
			one(c.name, "counter", c.help, float64(c.n))
		}
	}
	return b
}

// reason is why frames were not forwarded.
type reason struct {
	key, text string
	n         uint64
}

// reasons lists why frames were not forwarded.
func (c *Counters) reasons() []reason {
	return []reason{
		{"forged", "forged", c.Forged},
		{"unreachable", "process not reachable", c.Unreachable},
		{"unknown_site", "unknown site", c.UnknownSite},
		{"unknown_job", "unknown job", c.UnknownJob},
		{"loop", "loop", c.Loops},
		{"too_many_flows", "too many flows", c.TooManyFlows},
		{"over_flow_limit", "memory of the flow", c.OverFlow},
		{"over_job_limit", "memory of the job", c.OverJob},
		{"over_gateway_limit", "memory of the gateway", c.OverGateway},
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
