package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pion/logging"
	"github.com/weftstack/weft/sctp"
)

// peerState is what the program knows of a peer.
type peerState struct {
	Peer     string         `json:"peer"`
	Seconds  float64        `json:"seconds"` // since the offer
	Module   string         `json:"module"`  // that the SCTP is of
	State    string         `json:"state"`   // of the peer connection
	SCTP     sctpState      `json:"sctp"`
	Loss     float64        `json:"loss"`    // percent of the packets that the program loses on purpose
	Dropped  uint64         `json:"dropped"` // packets that it has lost so
	Channels []channelState `json:"channels"`
}

// sctpState describes the association below the channels.
type sctpState struct {
	RTT          float64     `json:"rtt"`  // smoothed, in milliseconds
	Cwnd         uint32      `json:"cwnd"` // congestion window, in bytes
	Rwnd         uint32      `json:"rwnd"` // the peer's receive window, in bytes
	MTU          uint32      `json:"mtu"`
	Sent         uint64      `json:"sent"` // bytes of user data
	Received     uint64      `json:"received"`
	Interleaving bool        `json:"interleaving"`   // RFC 8260
	ZeroChecksum bool        `json:"zeroChecksum"`   // RFC 9653, in both directions
	Weft         *sctp.Stats `json:"weft,omitempty"` // what weft counts, if weft is below
}

// channelState describes a channel.
type channelState struct {
	Channel           uint16  `json:"channel"`
	Label             string  `json:"label"`
	Service           string  `json:"service"`
	Ordered           bool    `json:"ordered"`
	MaxRetransmits    *uint16 `json:"maxRetransmits,omitempty"`
	MaxPacketLifeTime *uint16 `json:"maxPacketLifeTime,omitempty"`
	SentMessages      uint64  `json:"sentMessages"`
	SentBytes         uint64  `json:"sentBytes"`
	Buffered          uint64  `json:"buffered"`
	Received          report  `json:"received"`
}

func (p *peer) state() peerState {
	s := peerState{
		Peer:     p.id,
		Seconds:  time.Since(p.started).Seconds(),
		Module:   sctpModule(),
		State:    p.pc.ConnectionState().String(),
		Loss:     float64(p.net.loss.Load()) / 100,
		Dropped:  p.net.dropped.Load(),
		Channels: []channelState{},
	}
	t := p.pc.SCTP().Stats()
	s.SCTP = sctpState{
		RTT:      t.SmoothedRoundTripTime * 1000,
		Cwnd:     t.CongestionWindow,
		Rwnd:     t.ReceiverWindow,
		MTU:      t.MTU,
		Sent:     t.BytesSent,
		Received: t.BytesReceived,
	}
	if m := t.Metadata; m != nil {
		s.SCTP.Interleaving = m.MessageInterleavingEnabled
		s.SCTP.ZeroChecksum = m.ZeroChecksumSendingEnabled && m.ZeroChecksumReceivingEnabled
	}
	if read := p.stats.Load(); read != nil {
		w := (*read)()
		s.SCTP.Weft = &w
	}
	p.mu.Lock()
	channels := make([]*channel, 0, len(p.channels))
	for c := range p.channels {
		channels = append(channels, c)
	}
	p.mu.Unlock()
	for _, c := range channels {
		s.Channels = append(s.Channels, c.state())
	}
	slices.SortFunc(s.Channels, func(a, b channelState) int { return cmp.Compare(a.Channel, b.Channel) })
	return s
}

func (c *channel) state() channelState {
	s := channelState{
		Label:             c.dc.Label(),
		Service:           c.service,
		Ordered:           c.dc.Ordered(),
		MaxRetransmits:    c.dc.MaxRetransmits(),
		MaxPacketLifeTime: c.dc.MaxPacketLifeTime(),
		SentMessages:      c.sentMessages.Load(),
		SentBytes:         c.sentBytes.Load(),
		Buffered:          c.dc.BufferedAmount(),
	}
	if id := c.dc.ID(); id != nil {
		s.Channel = *id
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Received = c.received.report
	return s
}

// loggers gives pion its loggers, and weft, if it is below, the place to leave its statistics.
type loggers struct {
	logging.LoggerFactory
	peer *peer
}

// ObserveStats is called with the function that reads the statistics of the peer's association, once there is one.
func (l *loggers) ObserveStats(read func() sctp.Stats) { l.peer.stats.Store(&read) }

// A printer writes the states of peers as a table.
type printer struct {
	w    io.Writer
	last map[string]peerState
}

// print writes a row for each peer, with what has been moved since the last call, and a heading if there are rows.
func (p *printer) print(states []peerState) {
	now := make(map[string]peerState, len(states))
	for i, s := range states {
		now[s.Peer] = s
		if i == 0 {
			fmt.Fprintf(p.w, "%-8s %-12s %5s %9s %9s %8s %9s %6s %8s %6s\n",
				"peer", "state", "chans", "in Mb/s", "out Mb/s", "RTT ms", "cwnd KiB", "MTU", "retrans", "loss %")
		}
		var in, out float64
		if was, ok := p.last[s.Peer]; ok && s.Seconds > was.Seconds {
			t := s.Seconds - was.Seconds
			in = float64(s.SCTP.Received-was.SCTP.Received) * 8 / 1e6 / t
			out = float64(s.SCTP.Sent-was.SCTP.Sent) * 8 / 1e6 / t
		}
		retrans := "-" // not told
		if s.SCTP.Weft != nil {
			retrans = fmt.Sprint(s.SCTP.Weft.Retransmits)
		}
		fmt.Fprintf(p.w, "%-8.8s %-12s %5d %9.1f %9.1f %8.2f %9.1f %6d %8s %6.1f\n", s.Peer, s.State, len(s.Channels),
			in, out, s.SCTP.RTT, float64(s.SCTP.Cwnd)/1024, s.SCTP.MTU, retrans, s.Loss)
	}
	p.last = now
}
