package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/webrtc/v4"
)

// innocent has a peer do echoes until stop, which returns how many there were. Each must come back within 5 s.
func innocent(t *testing.T, ctx context.Context, p *program) (stop func() int) {
	t.Helper()
	var se webrtc.SettingEngine
	se.SetIncludeLoopbackCandidate(true)
	se.SetIPFilter(net.IP.IsLoopback)
	se.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	pc, err := webrtc.NewAPI(webrtc.WithSettingEngine(se)).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	control, err := pc.CreateDataChannel("control", &webrtc.DataChannelInit{Protocol: new("control")})
	if err != nil {
		t.Fatal(err)
	}
	control.OnMessage(func(webrtc.DataChannelMessage) {})
	dc, err := pc.CreateDataChannel("echo", &webrtc.DataChannelInit{Protocol: new("echo")})
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan struct{})
	answers := make(chan string, 1)
	dc.OnOpen(func() { close(opened) })
	dc.OnMessage(func(m webrtc.DataChannelMessage) { answers <- string(m.Data) })
	offer, err := pc.CreateOffer(nil)
	if err != nil {
		t.Fatal(err)
	}
	gathered := webrtc.GatheringCompletePromise(pc)
	if err := pc.SetLocalDescription(offer); err != nil {
		t.Fatal(err)
	}
	<-gathered
	body, err := json.Marshal(description{SDP: *pc.LocalDescription()})
	if err != nil {
		t.Fatal(err)
	}
	status, answer := p.post(t, "/offer", string(body))
	var d description
	if err := json.Unmarshal([]byte(answer), &d); err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %v: %s", status, err, answer)
	}
	if err := pc.SetRemoteDescription(d.SDP); err != nil {
		t.Fatal(err)
	}
	select {
	case <-opened:
	case <-ctx.Done():
		t.Fatal("no channel: ", ctx.Err())
	}
	end := make(chan struct{})
	var wg sync.WaitGroup
	count := 0
	wg.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(5 * time.Millisecond):
			}
			want := fmt.Sprint("echo ", count)
			if err := dc.SendText(want); err != nil {
				t.Errorf("the other peer cannot send: %v", err)
				return
			}
			select {
			case got := <-answers:
				if got != want {
					t.Errorf("the other peer got %q back, want %q", got, want)
					return
				}
			case <-time.After(5 * time.Second):
				t.Error("the other peer has no answer after 5s")
				return
			}
			count++
		}
	})
	stop = sync.OnceValue(func() int {
		close(end)
		wg.Wait()
		if err := pc.Close(); err != nil {
			t.Error(err)
		}
		return count
	})
	t.Cleanup(func() { stop() })
	return stop
}
