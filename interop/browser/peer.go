package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/logging"
	"github.com/pion/transport/v5/stdnet"
	"github.com/pion/webrtc/v4"
	"github.com/weftstack/weft/sctp"
)

// What one page can make the program hold.
const (
	maxMessage  = 256 << 10 // longest message, which the description announces as max-message-size
	maxChannels = 64        // channels served at a time; each holds a read buffer of up to maxMessage, and sendBuffer
	maxRefused  = 64        // channels beyond that, which are being closed; each holds a read buffer
	sendBuffer  = 256 << 10 // bytes that wait in a channel before its writer waits for half of them to leave
	maxOpened   = 8192      // channels opened over the life of a peer: pion/webrtc keeps something of each until the end
)

// How long a page may take.
const (
	gatherTimeout = 5 * time.Second  // for our own addresses
	setupTimeout  = 30 * time.Second // from the offer to the control channel
	lostTimeout   = 12 * time.Second // without an answer to ICE's checks
)

// A peer is the connection to one page.
type peer struct {
	id      string
	pc      *webrtc.PeerConnection
	net     *lossyNet
	started time.Time
	stats   atomic.Pointer[func() sctp.Stats] // weft's statistics, if weft is below
	done    context.Context                   // ends when the peer has
	end     context.CancelCauseFunc
	closed  func() // called once, when everything has been freed

	mu       sync.Mutex
	channels map[*channel]struct{}
	opened   int      // channels over the life of the peer
	control  *channel // nil until the page has one
}

// errPageClosed is why a peer ends whose page said so.
var errPageClosed = errors.New("the page has closed")

// newPeer makes a peer whose pc has no description yet. Call start, or close.
func newPeer(loopback bool, closed func()) (*peer, error) {
	std, err := stdnet.NewNet()
	if err != nil {
		return nil, fmt.Errorf("browser: look up the network interfaces: %w", err)
	}
	p := &peer{
		id:       rand.Text(),
		net:      &lossyNet{Net: std},
		started:  time.Now(),
		closed:   closed,
		channels: make(map[*channel]struct{}),
	}
	p.done, p.end = context.WithCancelCause(context.Background())
	var se webrtc.SettingEngine
	se.SetNet(p.net)
	se.SetIncludeLoopbackCandidate(true)
	if loopback {
		se.SetIPFilter(net.IP.IsLoopback)
	}
	// Names ending in .local stay names: the browser that hides its addresses so reaches ours, and ICE learns its
	// from that.
	se.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	se.SetSCTPMaxMessageSize(maxMessage)
	se.SetICETimeouts(lostTimeout/3, lostTimeout*2/3, 2*time.Second)
	se.EnableSCTPZeroChecksum(true)
	se.DetachDataChannels()
	se.LoggerFactory = &loggers{logging.NewDefaultLoggerFactory(), p}
	api := webrtc.NewAPI(webrtc.WithSettingEngine(se), webrtc.WithMediaEngine(&webrtc.MediaEngine{}), // no audio, no video
		webrtc.WithInterceptorRegistry(&interceptor.Registry{}))
	p.pc, err = api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, fmt.Errorf("browser: make a peer connection: %w", err)
	}
	p.pc.OnDataChannel(p.adopt)
	p.pc.OnConnectionStateChange(func(s webrtc.PeerConnectionState) {
		switch s {
		case webrtc.PeerConnectionStateFailed, webrtc.PeerConnectionStateClosed:
			p.end(fmt.Errorf("the connection is %s", s))
		default:
		}
	})
	p.pc.SCTP().OnClose(func(err error) {
		p.end(cmp.Or(err, errors.New("the page has ended the SCTP association")))
	})
	go p.supervise()
	return p, nil
}

// supervise frees the peer when it has ended, or when the page has not opened its control channel in time.
func (p *peer) supervise() {
	timer := time.NewTimer(setupTimeout)
	defer timer.Stop()
	for ended := false; !ended; {
		select {
		case <-p.done.Done():
			ended = true
		case <-timer.C:
			p.mu.Lock()
			if p.control == nil {
				p.end(fmt.Errorf("no control channel within %v of the offer", setupTimeout))
			}
			p.mu.Unlock()
		}
	}
	p.pc.Close() // ends the association, and so the reader of each channel
	p.closed()
}

// answer takes the offer of a page, and returns the program's answer with its addresses.
func (p *peer) answer(ctx context.Context, offer webrtc.SessionDescription) (*webrtc.SessionDescription, error) {
	if err := p.pc.SetRemoteDescription(offer); err != nil {
		return nil, err
	}
	d, err := p.pc.CreateAnswer(nil)
	if err != nil {
		return nil, err
	}
	return p.describe(ctx, d)
}

// offer returns an offer of the program, with its addresses.
func (p *peer) offer(ctx context.Context) (*webrtc.SessionDescription, error) {
	if err := p.open(channelRequest{Label: "control", Protocol: "control"}); err != nil {
		return nil, err
	}
	d, err := p.pc.CreateOffer(nil)
	if err != nil {
		return nil, err
	}
	return p.describe(ctx, d)
}

func (p *peer) describe(ctx context.Context, d webrtc.SessionDescription) (*webrtc.SessionDescription, error) {
	gathered := webrtc.GatheringCompletePromise(p.pc)
	if err := p.pc.SetLocalDescription(d); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, gatherTimeout)
	defer cancel()
	select {
	case <-gathered:
		return p.pc.LocalDescription(), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("gather addresses: %w", ctx.Err())
	case <-p.done.Done():
		return nil, context.Cause(p.done)
	}
}

// A channelRequest asks the program to open a channel.
type channelRequest struct {
	Label             string  `json:"label"`
	Protocol          string  `json:"protocol"` // the service, see channel
	Unordered         bool    `json:"unordered"`
	MaxRetransmits    *uint16 `json:"maxRetransmits"`
	MaxPacketLifeTime *uint16 `json:"maxPacketLifeTime"` // in milliseconds
	Negotiated        bool    `json:"negotiated"`
	ID                *uint16 `json:"id"` // stream number; nil: the next one
}

// open opens a channel and starts its service once it is open.
func (p *peer) open(r channelRequest) error {
	ordered := !r.Unordered
	dc, err := p.pc.CreateDataChannel(r.Label, &webrtc.DataChannelInit{
		Ordered:           &ordered,
		MaxRetransmits:    r.MaxRetransmits,
		MaxPacketLifeTime: r.MaxPacketLifeTime,
		Protocol:          &r.Protocol,
		Negotiated:        &r.Negotiated,
		ID:                r.ID,
	})
	if err != nil {
		return err
	}
	p.adopt(dc)
	return nil
}

// adopt serves a channel that either side has opened.
func (p *peer) adopt(dc *webrtc.DataChannel) {
	c := newChannel(p, dc)
	p.mu.Lock()
	p.opened++
	if p.opened > maxOpened {
		p.end(fmt.Errorf("%d channels opened: at most %d in the life of a peer", p.opened, maxOpened))
	}
	if open := len(p.channels); open >= maxChannels {
		c.err = fmt.Errorf("%d channels are open: at most %d", open, maxChannels)
		if open >= maxChannels+maxRefused {
			p.end(fmt.Errorf("%d channels are open: at most %d, and %d that are being closed", open, maxChannels, maxRefused))
		}
	}
	p.channels[c] = struct{}{}
	p.mu.Unlock()
	dc.OnOpen(func() {
		raw, err := dc.Detach()
		if err != nil {
			p.end(fmt.Errorf("detach channel %q: %w", dc.Label(), err))
			return
		}
		go c.serve(raw)
	})
}

// forget takes a channel off the peer's list.
func (p *peer) forget(c *channel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.channels, c)
}

// find returns the open channel with a stream number, or nil.
func (p *peer) find(id uint16) *channel {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.channels {
		if got := c.dc.ID(); got != nil && *got == id && !c.hasEnded() {
			return c
		}
	}
	return nil
}
