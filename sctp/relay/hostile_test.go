package relay_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/frame"
)

const wirePPID = 0x57465431

// intruder speaks the protocol by hand, on one association.
type intruder struct {
	t   *testing.T
	tr  *sctp.Transport
	a   *sctp.Association
	in  chan []byte
	end chan error
}

// intrude connects to an endpoint of a gateway from a host of its own.
func (w *world) intrude(t *testing.T, from, to string, port uint16) *intruder {
	t.Helper()
	x := &intruder{t: t, tr: w.Transport(from), in: make(chan []byte, 1000), end: make(chan error, 1)}
	ep, err := x.tr.Listen(0, &sctp.Config{
		OutStreams: 100,
		OnPiece: func(_ *sctp.Association, p *sctp.Piece) {
			select {
			case x.in <- append([]byte{}, p.Data...):
			default:
			}
		},
		OnNotify: func(_ *sctp.Association, n sctp.Notification) {
			if n.Kind == sctp.NotifyDown {
				x.end <- n.Err
			}
		},
	})
	wantNil(t, err)
	x.a, err = ep.Connect(t.Context(), sctpAddr(to, port))
	wantNil(t, err)
	return x
}

func (x *intruder) send(b []byte) {
	if err := x.a.TrySend(b, sctp.SendOptions{PPID: wirePPID, Force: true, Stream: 1}); err != nil {
		x.t.Logf("TrySend: %v", err)
	}
}

// prove authenticates, with whatever key it is given.
func (x *intruder) prove(g frame.Greeting, key []byte) {
	x.t.Helper()
	_, _ = rand.Read(g.Nonce[:])
	hello := frame.AppendHello(nil, &g)
	x.first(hello)
	select {
	case answer := <-x.in:
		if _, _, err := frame.ParseAnswer(answer, key, hello); err != nil {
			x.t.Fatalf("answer: %v", err)
		}
		x.first(frame.AppendProve(nil, key, hello, answer))
	case err := <-x.end:
		x.end <- err
	case <-time.After(time.Minute):
		x.t.Fatal("no answer")
	}
}

func (x *intruder) first(b []byte) {
	_ = x.a.TrySend(b, sctp.SendOptions{PPID: wirePPID, Force: true})
}

// wantEnd waits until the gateway ends the association with a reason.
func (x *intruder) wantEnd(reason string) {
	x.t.Helper()
	select {
	case err := <-x.end:
		var abort *sctp.AbortError
		if !errors.As(err, &abort) || !abort.ByPeer || !strings.Contains(abort.Reason, reason) {
			x.t.Errorf("association ended with %v, want %q", err, reason)
		}
	case <-time.After(time.Minute):
		x.t.Errorf("association goes on, want its end with %q", reason)
	}
}

// wantUp waits for the welcome.
func (x *intruder) wantUp() {
	x.t.Helper()
	select {
	case b := <-x.in:
		wantNil(x.t, frame.ParseWelcome(b))
	case err := <-x.end:
		x.t.Fatalf("refused: %v", err)
	case <-time.After(time.Minute):
		x.t.Fatal("no welcome")
	}
}

// wantRefuse waits for a refuse frame.
func (x *intruder) wantRefuse(reason frame.Reason) {
	x.t.Helper()
	for {
		select {
		case b := <-x.in:
			var f frame.Frame
			wantNil(x.t, frame.Parse(b, &f))
			if f.Type == frame.Refuse {
				if f.Reason != reason {
					x.t.Errorf("refused as %v, want %v", f.Reason, reason)
				}
				return
			}
		case err := <-x.end:
			x.t.Fatalf("ended: %v", err)
		case <-time.After(time.Minute):
			x.t.Fatalf("not refused, want %v", reason)
		}
	}
}

func nodeGreeting(site, p uint16) frame.Greeting {
	return frame.Greeting{Role: frame.RoleNode, From: address(site, p), Job: testJob, Incarnation: 1, Site: site}
}

// Who cannot prove what it says is refused with a reason, and counted.
func TestUnknownPeers(t *testing.T) {
	good := nodeGreeting(1, 9)
	with := func(set func(*frame.Greeting)) frame.Greeting {
		g := good
		set(&g)
		return g
	}
	for _, tt := range []struct {
		name string
		g    frame.Greeting
		key  []byte
		want string
	}{
		{"wrong key", good, []byte("not the key of job 7"), "authentication failed"},
		{"unknown job", with(func(g *frame.Greeting) { g.Job = 8 }), jobKey, "unknown job 8"},
		{"other site", with(func(g *frame.Greeting) { g.Site = 2 }), jobKey, "this is site 1, not 2"},
		{"process of another site", with(func(g *frame.Greeting) { g.From.Site = 2 }), jobKey, "not of site 1"},
		{"no process", with(func(g *frame.Greeting) { g.From.Process = 0 }), jobKey, "not of site 1"},
		{"unknown gateway", with(func(g *frame.Greeting) { g.Role, g.From = frame.RoleGateway, relay.Address{Site: 9, Node: 1} }), jobKey, "unknown gateway 1 of site 9"},
		{"gateway that is connected to", with(func(g *frame.Greeting) { g.Role, g.From = frame.RoleGateway, relay.Address{Site: 2, Node: 1} }), siteKey(1, 2), "unknown gateway"},
		{"unknown role", with(func(g *frame.Greeting) { g.Role = 3 }), jobKey, "unknown role"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, 2, 1, false, nil)
				defer w.Close()
				x := w.intrude(t, "10.1.0.99", lanAddr(1, 1), relay.DefaultGatewayLAN)
				defer x.tr.Close()
				x.prove(tt.g, tt.key)
				x.wantEnd(tt.want)
				time.Sleep(time.Second)
				s := w.Up[[2]uint16{1, 1}].Stats()
				if s.PeersRefused != 1 || len(s.Legs) != 1 {
					t.Errorf("%d peers refused, %d legs; want 1, 1", s.PeersRefused, len(s.Legs))
				}
			})
		})
	}
}

// Bytes that are no greeting, another version, and silence end an association; and no number of silent peers keeps a
// process out.
func TestGreetings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		hello := frame.AppendHello(nil, &frame.Greeting{})
		hello[0] = 2<<4 | hello[0]&15
		for i, tt := range []struct {
			b    []byte
			want string
		}{
			{hello, "peer speaks version 2, this side 1"},
			{[]byte("GET / HTTP/1.1"), "relay: "},
			{make([]byte, 12_000), "authentication failed"},
			{frame.AppendWelcome(nil), "unknown frame type"},
			{nil, ""}, // nothing: the probation ends
		} {
			x := w.intrude(t, fmt.Sprintf("10.1.0.%d", 50+i), lanAddr(1, 1), relay.DefaultGatewayLAN)
			if tt.b != nil {
				x.first(tt.b)
			}
			x.wantEnd(tt.want)
			_ = x.tr.Close()
		}
		x := w.intrude(t, "10.1.0.99", lanAddr(1, 1), relay.DefaultGatewayLAN)
		defer x.tr.Close()
		for range 400 {
			ep, err := x.tr.Listen(0, nil)
			wantNil(t, err)
			_, err = ep.Connect(t.Context(), sctpAddr(lanAddr(1, 1), relay.DefaultGatewayLAN))
			wantNil(t, err)
		}
		if n := w.Up[[2]uint16{1, 1}].LAN.Stats().Associations; n > 257 {
			t.Errorf("%d silent associations are kept, want 256 at most", n)
		}
		w.Node(1, 1, nil).Close()
	})
}

// A process cannot speak for another process, another job or a former life of itself, nor a gateway for a site that is not
// behind it: such frames are dropped and counted, and do not reach their targets.
func TestForgery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, nil)
		defer w.Close()
		w.connected()
		target := w.Node(1, 1, nil)
		defer target.Close()
		x := w.intrude(t, "10.1.0.99", lanAddr(1, 1), relay.DefaultGatewayLAN)
		defer x.tr.Close()
		x.prove(nodeGreeting(1, 9), jobKey)
		x.wantUp()
		h := frame.Header{
			Type: frame.Single, Flags: frame.Fresh, Hops: 7, Job: testJob, From: address(1, 9), To: address(1, 1), Incarnation: 1,
		}
		send := func(set func(*frame.Header)) {
			g := h
			set(&g)
			x.send(frame.Append(nil, &frame.Frame{Header: g, Payload: []byte("x")}))
		}
		send(func(g *frame.Header) { g.From.Process = 2 })
		send(func(g *frame.Header) { g.From.Site = 2 })
		send(func(g *frame.Header) { g.Job = 8 })
		send(func(g *frame.Header) { g.Incarnation = 0 })
		send(func(g *frame.Header) { g.Type, g.From = frame.Refuse, address(2, 1) })
		time.Sleep(100 * time.Millisecond) // an intruder sends no pings
		if s := w.Up[[2]uint16{1, 1}].Stats(); s.Forged != 5 {
			t.Errorf("%d forged frames counted, want 5", s.Forged)
		}
		if s := target.Stats(); len(s.Receivers) != 0 {
			t.Errorf("forged frames reached their target: %+v", s.Receivers)
		}
		send(func(*frame.Header) {})
		time.Sleep(100 * time.Millisecond) // an intruder sends no pings
		if s := target.Stats(); len(s.Receivers) != 1 || s.Receivers[0].Messages != 1 {
			t.Errorf("the honest frame did not reach its target: %+v", s.Receivers)
		}
		// An association of a former life of a gateway, by its key, does not replace that of the present one.
		w.Kill(1, 1)
		y := w.intrude(t, "192.0.1.99", wanAddr(2, 1), relay.DefaultGatewayWAN)
		defer y.tr.Close()
		y.prove(frame.Greeting{Role: frame.RoleGateway, From: relay.Address{Site: 1, Node: 1}, Incarnation: 1 << 30, Site: 2}, siteKey(1, 2))
		y.wantEnd("later incarnation")
	})
}

// A gateway speaks for its site, and for sites behind it, only; acks of what was never sent change nothing.
func TestHostileGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3, 1, false, nil)
		defer w.Close()
		w.connected()
		target := w.Node(2, 1, nil)
		defer target.Close()
		w.Kill(1, 1)
		time.Sleep(time.Second)
		y := w.intrude(t, "192.0.1.99", wanAddr(2, 1), relay.DefaultGatewayWAN)
		defer y.tr.Close()
		y.prove(frame.Greeting{Role: frame.RoleGateway, From: relay.Address{Site: 1, Node: 1}, Incarnation: 1, Site: 2}, siteKey(1, 2))
		y.wantUp()
		h := frame.Header{
			Type: frame.Single, Flags: frame.Fresh, Hops: 7, Job: testJob, From: address(1, 1), To: address(2, 1), Incarnation: 1,
		}
		send := func(f frame.Frame, set func(*frame.Frame)) {
			f.Header = h
			set(&f)
			y.send(frame.Append(nil, &f))
		}
		send(frame.Frame{Payload: []byte("x")}, func(f *frame.Frame) { f.From = address(3, 1) })
		send(frame.Frame{Payload: []byte("x")}, func(f *frame.Frame) { f.From = address(2, 2) })
		send(frame.Frame{Reason: frame.UnknownSite}, func(f *frame.Frame) { f.Type, f.From = frame.Refuse, address(3, 1) })
		s, err := target.Sender(address(1, 1), 0)
		wantNil(t, err)
		wantNil(t, s.TrySend([]byte("x"), relay.SendOptions{}))
		send(frame.Frame{PeerIncarnation: 1}, func(f *frame.Frame) { f.Type = frame.Ack })
		time.Sleep(100 * time.Millisecond)
		if g := w.Up[[2]uint16{2, 1}].Stats(); g.Forged != 3 {
			t.Errorf("%d forged frames counted, want 3", g.Forged)
		}
		n := target.Stats()
		if len(n.Receivers) != 0 || n.Stale != 1 {
			t.Errorf("%d flows, %d stale frames; want 0, 1", len(n.Receivers), n.Stale)
		}
		// The frame of the target's flow tells its incarnation.
		var f frame.Frame
		for f.Type != frame.Data {
			select {
			case b := <-y.in:
				wantNil(t, frame.Parse(b, &f))
			case <-time.After(time.Second):
				t.Fatal("no data for site 1")
			}
		}
		send(frame.Frame{PeerIncarnation: f.Incarnation, SingleNext: 5}, func(g *frame.Frame) { g.Type, g.Flags, g.Seq = frame.Ack, frame.Resend, 1<<31 })
		time.Sleep(10 * time.Millisecond)
		if n := target.Stats(); n.Invalid != 1 || n.Senders[0].Held == 0 {
			t.Errorf("%d invalid acks, %d bytes kept; want 1, and what was not confirmed", n.Invalid, n.Senders[0].Held)
		}
	})
}

// Sites, jobs and processes that are not known, and loops, are refused, which ends the flow or leaves it waiting.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 3, 1, true, func(c *relay.GatewayConfig) {
			switch c.Site {
			case 1:
				c.Routes[9] = 2
			case 2:
				c.Routes[9] = 3
				c.Routes[8] = 1
			case 3:
				c.Routes[9] = 2 // a loop
				delete(c.Jobs, testJob)
				c.Jobs[5] = jobKey
			}
		})
		defer w.Close()
		w.connected()
		a := w.Node(1, 1, func(c *relay.NodeConfig) { c.PeerTimeout = 3 * time.Second })
		defer a.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, tt := range []struct {
			to     relay.Address
			reason frame.Reason
		}{
			{address(9, 1), frame.UnknownJob}, // site 3 knows neither the job, nor a way
			{address(7, 1), frame.UnknownSite},
			{address(3, 1), frame.UnknownJob},
			{address(1, 5), frame.Unreachable},
			{address(2, 5), frame.Unreachable},
		} {
			s, err := a.Sender(tt.to, 1)
			wantNil(t, err)
			wantNil(t, s.Send(ctx, []byte("x"), relay.SendOptions{}))
			began := time.Now()
			err = s.Flush(ctx)
			var refused *relay.RefusedError
			switch {
			case tt.reason == frame.Unreachable:
				if took := time.Since(began); !errors.Is(err, relay.ErrUnreachable) || took < 2*time.Second || took > 4*time.Second {
					t.Errorf("flow to %v ended with %v after %v, want ErrUnreachable after 3s", tt.to, err, took)
				}
			case !errors.As(err, &refused) || refused.Reason != tt.reason || refused.Target != tt.to:
				t.Errorf("flow to %v ended with %v, want %v", tt.to, err, tt.reason)
			}
			if err := s.Send(ctx, []byte("x"), relay.SendOptions{}); err == nil {
				t.Errorf("Send on the flow to %v, which has ended, succeeded", tt.to)
			}
		}
		for _, g := range w.Up {
			wantNil(t, g.AddJob(testJob, jobKey, relay.JobOptions{}))
		}
		s, err := a.Sender(address(9, 1), 2)
		wantNil(t, err)
		wantNil(t, s.Send(ctx, []byte("x"), relay.SendOptions{}))
		var refused *relay.RefusedError
		if err := s.Flush(ctx); !errors.As(err, &refused) || refused.Reason != frame.Loop {
			t.Errorf("flow in a loop ended with %v", err)
		}
	})
}

// Frames that are no frames end a leg with the reason, of a process and at a process.
func TestBadFrames(t *testing.T) {
	for name, b := range map[string][]byte{
		"short": {0x11}, "version": {0x21, 0}, "type": {0x1f, 0}, "hello again": frame.AppendHello(nil, &frame.Greeting{}),
		"long": append([]byte{0x11, 0}, make([]byte, 20_000)...),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, 2, 1, false, nil)
				defer w.Close()
				x := w.intrude(t, "10.1.0.99", lanAddr(1, 1), relay.DefaultGatewayLAN)
				defer x.tr.Close()
				x.prove(nodeGreeting(1, 9), jobKey)
				x.wantUp()
				x.send(b)
				x.wantEnd("relay: ")
			})
		})
	}
}

func TestConfigs(t *testing.T) {
	tr := &sctp.Transport{}
	good := relay.GatewayConfig{
		Site: 1, Number: 1, LAN: tr, WAN: tr, Jobs: map[uint32][]byte{testJob: jobKey},
		Peers:  []relay.Peer{{Site: 2, Gateway: 1, Addr: sctpAddr("192.0.2.1", 1), Key: siteKey(1, 2)}},
		Routes: map[uint16]uint16{3: 2},
	}
	for want, set := range map[string]func(*relay.GatewayConfig){
		"numbers begin with 1":           func(c *relay.GatewayConfig) { c.Number = 0 },
		"neither LAN nor WAN":            func(c *relay.GatewayConfig) { c.LAN, c.WAN = nil, nil },
		"peers without a WAN":            func(c *relay.GatewayConfig) { c.WAN = nil },
		"job 0, want":                    func(c *relay.GatewayConfig) { c.Jobs = map[uint32][]byte{0: jobKey} },
		"key of job 7 of 3 bytes":        func(c *relay.GatewayConfig) { c.Jobs = map[uint32][]byte{7: []byte("abc")} },
		"is its own peer":                func(c *relay.GatewayConfig) { c.Peers[0].Site = 1 },
		"listed twice":                   func(c *relay.GatewayConfig) { c.Peers = append(c.Peers, c.Peers[0]) },
		"key for site 2 of 0 bytes":      func(c *relay.GatewayConfig) { c.Peers[0].Key = nil },
		"17 associations, want 1 to 16":  func(c *relay.GatewayConfig) { c.Peers[0].Associations = 17 },
		"rate of 1 bytes a second, want": func(c *relay.GatewayConfig) { c.Peers[0].Rate = 1 },
		"control 3, want at most 2":      func(c *relay.GatewayConfig) { c.Peers[0].Congestion = sctp.BBR + 1 },
		"no address to connect to":       func(c *relay.GatewayConfig) { c.Peers[0].Addr = sctp.Addr{} },
		"leads through the own site":     func(c *relay.GatewayConfig) { c.Routes[3] = 1 },
		"through 4, which has no peers":  func(c *relay.GatewayConfig) { c.Routes[3] = 4 },
		"through 2, but it has peers":    func(c *relay.GatewayConfig) { c.Routes[2] = 2 },
		"negative limit":                 func(c *relay.GatewayConfig) { c.Memory = -1 },
		"LegTimeout 1ms, want at least ": func(c *relay.GatewayConfig) { c.LegTimeout = time.Millisecond },
	} {
		c := good
		c.Peers = append([]relay.Peer{}, good.Peers...)
		c.Routes = map[uint16]uint16{3: 2}
		set(&c)
		if _, err := relay.NewGateway(c); !errors.Is(err, relay.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("NewGateway: %v, want %q", err, want)
		}
	}
	node := relay.NodeConfig{
		Address: address(1, 1), Job: 1, Key: jobKey, Gateways: []sctp.Addr{sctpAddr("10.1.255.1", 1)}, Transport: tr,
	}
	for want, set := range map[string]func(*relay.NodeConfig){
		"numbers begin with 1":     func(c *relay.NodeConfig) { c.Address.Process = 0 },
		"job 16777216, want 1":     func(c *relay.NodeConfig) { c.Job = 1 << 24 },
		"key of 15 bytes":          func(c *relay.NodeConfig) { c.Key = jobKey[:15] },
		"no gateways":              func(c *relay.NodeConfig) { c.Gateways = nil },
		"no transport":             func(c *relay.NodeConfig) { c.Transport = nil },
		"mode 3":                   func(c *relay.NodeConfig) { c.Mode = 3 },
		"FlowWindow 1000, want at": func(c *relay.NodeConfig) { c.FlowWindow = 1000 },
		"negative limit":           func(c *relay.NodeConfig) { c.MaxFlows = -1 },
		"LegTimeout 1ns":           func(c *relay.NodeConfig) { c.LegTimeout = 1 },
	} {
		c := node
		set(&c)
		if _, err := relay.NewNode(context.Background(), c); !errors.Is(err, relay.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("NewNode: %v, want %q", err, want)
		}
	}
}
