package relay_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/frame"
)

const directPort = 4000

// direct has a node listen for direct legs, and reach the nodes of both sites.
func direct(first bool) func(*relay.NodeConfig) {
	return func(c *relay.NodeConfig) {
		c.Port, c.DirectFirst = directPort, first
		c.Direct = func(a relay.Address) (sctp.Addr, bool) {
			return sctpAddr(nodeAddr(a.Site, a.Process), directPort), a.Process < 9
		}
	}
}

// far sets the links between processes of sites 1 and 2.
func (w *world) far() {
	for p := range uint16(3) {
		for q := range uint16(3) {
			w.Net.SetLink(nodeAddr(1, p+1), nodeAddr(2, q+1), wan)
			w.Net.SetLink(nodeAddr(2, p+1), nodeAddr(1, q+1), wan)
		}
	}
}

// exchange sends numbered messages in both directions, and returns how long they take.
type exchange struct {
	t    *testing.T
	ctx  context.Context
	ends [2]*node
	out  [2]*relay.Sender
	in   [2]*relay.Receiver
	n    uint32

	close func() // of newDirectPair
}

// newDirectPair makes two sites with some gateways each, and a process in each that takes direct legs.
func newDirectPair(t *testing.T, gateways int, first bool) (*world, *exchange) {
	t.Helper()
	w := newWorld(t, 1, 2, gateways, false, nil)
	w.far()
	w.connected()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	x := &exchange{t: t, ctx: ctx, ends: [2]*node{w.Node(1, 1, direct(first)), w.Node(2, 1, direct(first))}}
	x.close = func() {
		cancel()
		x.ends[1].Close()
		x.ends[0].Close()
		w.Close()
	}
	for i := range x.out {
		var err error
		x.out[i], err = x.ends[i].Sender(x.ends[1-i].Address(), 0)
		wantNil(t, err)
	}
	return w, x
}

func (x *exchange) round() time.Duration {
	x.t.Helper()
	began := time.Now()
	for i := range x.out {
		msg := make([]byte, 5000)
		binary.BigEndian.PutUint32(msg, x.n)
		wantNil(x.t, x.out[i].Send(x.ctx, msg, relay.SendOptions{}))
	}
	for i := range x.out {
		wantNil(x.t, x.out[i].Flush(x.ctx))
		if x.in[1-i] == nil {
			var err error
			x.in[1-i], err = x.ends[1-i].Next(x.ctx)
			wantNil(x.t, err)
		}
		if msg, _ := recv(x.t, x.in[1-i], x.ctx); len(msg) != 5000 || binary.BigEndian.Uint32(msg) != x.n {
			x.t.Fatalf("message %d: got %d of %d bytes", x.n, binary.BigEndian.Uint32(msg), len(msg))
		}
	}
	x.n++
	return time.Since(began)
}

// path tells what both ends use.
func (x *exchange) path() (s string) {
	for _, n := range x.ends {
		for _, f := range n.Stats().Senders {
			s += fmt.Sprintf("%t ", f.Direct)
		}
	}
	return s
}

// Without gateways, those of one site or all, processes take the direct path within a second, and return to the gateways when these
// are back; what is sent arrives once and in order.
func TestDirectPath(t *testing.T) {
	for _, killed := range []uint16{1, 2, 3} {
		t.Run(fmt.Sprintf("killed=%d", killed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, x := newDirectPair(t, 1, false)
				defer x.close()
				x.round()
				if x.path() != "false false " {
					t.Errorf("direct paths %s while there are gateways", x.path())
				}
				for site := range uint16(2) {
					if killed&(site+1) != 0 {
						w.Kill(site+1, 1)
					}
				}
				pause := x.round()
				t.Logf("pause of %v", pause)
				if pause > time.Second || pause < 100*time.Millisecond {
					t.Errorf("the death of the gateways took %v, want at most 1 s", pause)
				}
				for range 3 {
					if took := x.round(); took > 100*time.Millisecond || x.path() != "true true " {
						t.Errorf("a round without gateways took %v, direct paths %s", took, x.path())
					}
				}
				time.Sleep(7 * time.Second) // gateways are tried again
				if took := x.round(); took > 500*time.Millisecond {
					t.Errorf("a round that tries the gateways took %v", took)
				}
				for site := range uint16(2) {
					if killed&(site+1) != 0 {
						w.Revive(site+1, 1)
					}
				}
				time.Sleep(8 * time.Second)
				x.round()
				if took := x.round(); took > 100*time.Millisecond || x.path() != "false false " {
					t.Errorf("a round with gateways took %v, direct paths %s", took, x.path())
				}
				lost := x.ends[0].Stats().LegsLost + x.ends[1].Stats().LegsLost
				time.Sleep(20 * time.Second)
				for _, n := range x.ends {
					if legs := n.Stats().Legs; len(legs) != 1 {
						t.Errorf("%d legs, want the gateway's only: the direct one is idle", len(legs))
					}
				}
				if n := x.ends[0].Stats().LegsLost + x.ends[1].Stats().LegsLost; n != lost {
					t.Errorf("%d legs lost, want %d: the direct one was closed", n, lost)
				}
			})
		})
	}
}

// By preference the direct path is used as long as it is up, and gateways when it is not.
func TestDirectFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := newDirectPair(t, 1, true)
		defer x.close()
		x.round()
		time.Sleep(time.Second)
		x.round()
		if x.path() != "true true " {
			t.Errorf("direct paths %s", x.path())
		}
		w.Net.Cut(nodeAddr(1, 1), nodeAddr(2, 1))
		pause := x.round()
		t.Logf("pause of %v", pause)
		if pause > time.Second || pause < 100*time.Millisecond || x.path() != "false false " {
			t.Errorf("the end of the direct path took %v, direct paths %s", pause, x.path())
		}
		w.Net.Restore(nodeAddr(1, 1), nodeAddr(2, 1))
		time.Sleep(12 * time.Second)
		x.round()
		time.Sleep(2 * time.Second)
		x.round()
		if x.path() != "true true " {
			t.Errorf("direct paths %s when the network is back", x.path())
		}
	})
}

// Two processes need no gateways at all.
func TestDirectOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, x := newDirectPair(t, 0, false)
		defer x.close()
		x.round()
		if took := x.round(); took > 100*time.Millisecond {
			t.Errorf("a round took %v", took)
		}
		s, err := x.ends[0].Sender(address(2, 9), 0) // has no direct address
		wantNil(t, err)
		wantNil(t, s.Send(x.ctx, []byte("x"), relay.SendOptions{}))
		if err := s.Flush(x.ctx); !errors.Is(err, relay.ErrUnreachable) {
			t.Errorf("flow without a way: %v, want ErrUnreachable", err)
		}
	})
}

// Who may not have a direct leg is refused, and what another process says on one is dropped.
func TestDirectRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1, 1, false, nil)
		defer w.Close()
		n := w.Node(1, 1, direct(false))
		defer n.Close()
		closed := w.Node(1, 2, func(c *relay.NodeConfig) { c.Port = directPort })
		defer closed.Close()
		good := nodeGreeting(2, 1)
		good.Site, good.Node, good.Process = 1, 1, 1
		with := func(set func(*frame.Greeting)) frame.Greeting {
			g := good
			set(&g)
			return g
		}
		for i, tt := range []struct {
			g    frame.Greeting
			key  []byte
			want string
		}{
			{good, []byte("not the key of job 7"), "authentication failed"},
			{with(func(g *frame.Greeting) { g.Job = 8 }), jobKey, "unknown job 8"},
			{with(func(g *frame.Greeting) { g.Process = 3 }), jobKey, "this is process 1/1/1, not 1/1/3"},
			{with(func(g *frame.Greeting) { g.Process = 0 }), jobKey, "not 1/1/0"},
			{with(func(g *frame.Greeting) { g.From = address(1, 1) }), jobKey, "direct leg from 1/1/1"},
			{with(func(g *frame.Greeting) { g.Role = frame.RoleGateway }), siteKey(1, 2), "this is process"},
		} {
			x := w.intrude(t, fmt.Sprintf("10.1.0.%d", 50+i), nodeAddr(1, 1), directPort)
			x.prove(tt.g, tt.key)
			x.wantEnd(tt.want)
			_ = x.tr.Close()
		}
		if s := n.Stats(); s.PeersRefused != 5 || len(s.Legs) != 1 {
			t.Errorf("%d refused, %d legs", s.PeersRefused, len(s.Legs))
		}
		y := w.intrude(t, "10.1.0.98", nodeAddr(1, 2), directPort)
		defer y.tr.Close()
		y.prove(with(func(g *frame.Greeting) { g.Process = 2 }), jobKey)
		y.wantEnd("process 1/1/2 takes no direct legs")
		x := w.intrude(t, "10.1.0.99", nodeAddr(1, 1), directPort)
		defer x.tr.Close()
		x.prove(good, jobKey)
		x.wantUp()
		for _, from := range []relay.Address{address(2, 2), address(2, 1)} {
			x.send(frame.Append(nil, &frame.Frame{Header: frame.Header{
				Type: frame.Single, Flags: frame.Fresh, Hops: 7, Job: testJob, From: from, To: address(1, 1), Incarnation: 1,
			}, Payload: []byte("x")}))
		}
		time.Sleep(100 * time.Millisecond)
		if s := n.Stats(); s.Forged != 1 || len(s.Receivers) != 1 || s.Receivers[0].Origin != address(2, 1) {
			t.Errorf("%d forged frames, receivers %+v", s.Forged, s.Receivers)
		}
	})
}
