package relay_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/frame"
)

// Flows are hashed over the associations of two gateways; when one of these is cut its flows go on over the others, and return.
func TestAssociations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const associations, flows = 3, 30
		w := newWorld(t, 1, 2, 1, false, func(c *relay.GatewayConfig) {
			for i := range c.Peers {
				c.Peers[i].Associations = associations
			}
		})
		defer w.Close()
		w.connected()
		a, b := w.Node(1, 1, nil), w.Node(2, 1, nil)
		defer a.Close()
		defer b.Close()
		legs := func() map[uint16]uint64 {
			m := make(map[uint16]uint64)
			for _, l := range w.Up[[2]uint16{1, 1}].Stats().Legs {
				if l.Gateway {
					m[l.Association] = l.FramesSent
				}
			}
			return m
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		sent := 0
		round := func() time.Duration {
			t.Helper()
			began := time.Now()
			for i := range uint16(flows) {
				s, err := a.Sender(address(2, 1), i)
				wantNil(t, err)
				msg := make([]byte, 3000)
				binary.BigEndian.PutUint32(msg, uint32(sent/flows))
				wantNil(t, s.Send(ctx, msg, relay.SendOptions{}))
				sent++
			}
			for i := range uint16(flows) {
				s, _ := a.Sender(address(2, 1), i)
				wantNil(t, s.Flush(ctx))
			}
			return time.Since(began)
		}
		round()
		before := legs()
		if len(before) != associations {
			t.Fatalf("%d legs between the gateways, want %d", len(before), associations)
		}
		for k, n := range before {
			if n < flows/associations/3 {
				t.Errorf("association %d has sent %d frames of %d", k, n, 3*flows)
			}
		}
		// Cut the one from an ephemeral port that was seen first.
		var port atomic.Uint32
		cut := wan
		cut.Filter = func(b []byte) bool {
			from, to := uint32(binary.BigEndian.Uint16(b)), uint32(binary.BigEndian.Uint16(b[2:]))
			if to == relay.DefaultGatewayWAN && from != to {
				port.CompareAndSwap(0, from)
			}
			return from != port.Load() && to != port.Load()
		}
		w.SetWAN(cut)
		pause := round()
		t.Logf("%v with an association cut, legs %v", pause, legs())
		if pause > time.Second || pause < 100*time.Millisecond {
			t.Errorf("the end of an association took %v, want at most 1 s", pause)
		}
		remained := legs()
		if n := len(remained); n != associations-1 {
			t.Errorf("%d legs, want %d", n, associations-1)
		}
		w.SetWAN(wan)
		time.Sleep(10 * time.Second)
		round()
		if n := len(legs()); n != associations {
			t.Errorf("%d legs when the network is back, want %d", n, associations)
		}
		for k, n := range legs() {
			if n < flows/associations/3 || remained[k] > 0 && n <= remained[k] {
				t.Errorf("association %d is not used again", k)
			}
		}
		for range flows {
			r, err := b.Next(ctx)
			wantNil(t, err)
			for i := range 3 {
				if msg, _ := recv(t, r, ctx); len(msg) != 3000 || int(binary.BigEndian.Uint32(msg)) != i {
					t.Fatalf("flow %d: message %d is not what was sent", r.Stream(), i)
				}
			}
		}
	})
}

// A gateway accepts as many associations as it is told of.
func TestTooManyAssociations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, func(c *relay.GatewayConfig) { c.Peers[0].Associations = 2 })
		defer w.Close()
		for k, want := range []string{"later incarnation", "later incarnation", "association 3 of gateway 1 of site 1, want at most 2"} {
			w.connected()
			x := w.intrude(t, fmt.Sprintf("192.0.1.%d", 90+k), wanAddr(2, 1), relay.DefaultGatewayWAN)
			x.prove(frame.Greeting{
				Role: frame.RoleGateway, From: relay.Address{Site: 1, Node: 1, Process: uint16(k)}, Incarnation: 1 << 30, Site: 2,
			}, siteKey(1, 2))
			x.wantEnd(want)
			_ = x.tr.Close()
		}
	})
}
