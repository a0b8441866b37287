package main

import (
	"context"
	"fmt"
	"net"

	"github.com/pion/datachannel"
	"github.com/pion/ice/v4"
	"github.com/pion/transport/v5/stdnet"
	"github.com/pion/webrtc/v4"
)

// newPeer makes a peer on the loopback.
func (o *options) newPeer() (*webrtc.PeerConnection, error) {
	std, err := stdnet.NewNet()
	if err != nil {
		return nil, err
	}
	var se webrtc.SettingEngine
	se.SetNet(linkNet{std, o.link})
	se.SetIncludeLoopbackCandidate(true)
	se.SetIPFilter(net.IP.IsLoopback)
	se.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	se.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	se.EnableSCTPZeroChecksum(true)
	se.SetSCTPMaxReceiveBufferSize(uint32(o.receive))
	se.DetachDataChannels()
	return webrtc.NewAPI(webrtc.WithSettingEngine(se)).NewPeerConnection(webrtc.Configuration{})
}

// openWebRTC opens a data channel of two peers.
func (o *options) openWebRTC(ctx context.Context) (_, _ channel, end func(), err error) {
	a, err := o.newPeer()
	if err != nil {
		return nil, nil, nil, err
	}
	b, err := o.newPeer()
	if err != nil {
		a.Close()
		return nil, nil, nil, err
	}
	end = func() { _, _ = a.Close(), b.Close() }
	defer func() {
		if err != nil {
			end()
		}
	}()
	opened := make(chan *datachannel.DataChannel, 2)
	accepted := make(chan *datachannel.DataChannel, 2)
	detach := func(dc *webrtc.DataChannel, to chan<- *datachannel.DataChannel) {
		dc.OnOpen(func() {
			if raw, err := dc.Detach(); err == nil {
				to <- raw.(*datachannel.DataChannel)
			}
		})
	}
	b.OnDataChannel(func(dc *webrtc.DataChannel) { detach(dc, accepted) })
	dc, err := a.CreateDataChannel("bench", nil)
	if err != nil {
		return nil, nil, nil, err
	}
	detach(dc, opened)
	offer, err := a.CreateOffer(nil)
	if err != nil {
		return nil, nil, nil, err
	}
	if err = exchange(ctx, a, b, offer); err != nil {
		return nil, nil, nil, err
	}
	var ends [2]*datachannel.DataChannel
	for i, from := range []chan *datachannel.DataChannel{opened, accepted} {
		select {
		case ends[i] = <-from:
		case <-ctx.Done():
			err = fmt.Errorf("the data channel does not open: %w", ctx.Err())
			return nil, nil, nil, err
		}
	}
	return ends[0], ends[1], end, nil
}

// exchange has both peers know each other, with all candidates.
func exchange(ctx context.Context, a, b *webrtc.PeerConnection, offer webrtc.SessionDescription) error {
	local := func(p *webrtc.PeerConnection, d webrtc.SessionDescription) error {
		gathered := webrtc.GatheringCompletePromise(p)
		if err := p.SetLocalDescription(d); err != nil {
			return err
		}
		select {
		case <-gathered:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := local(a, offer); err != nil {
		return err
	}
	if err := b.SetRemoteDescription(*a.LocalDescription()); err != nil {
		return err
	}
	answer, err := b.CreateAnswer(nil)
	if err != nil {
		return err
	}
	if err := local(b, answer); err != nil {
		return err
	}
	return a.SetRemoteDescription(*b.LocalDescription())
}
