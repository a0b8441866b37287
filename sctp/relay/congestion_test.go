package relay_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/sctptest"
)

// lossyRate returns the rate in Mb/s at which a gateway carries 32 MiB to another over a line of
// 200 Mb/s that loses 1 % of the packets: from the side that has opened the leg, or to it.
func lossyRate(t *testing.T, alg, wan sctp.Congestion, back bool) (mbit float64) {
	t.Helper()
	const message, total = 256 << 10, 32 << 20
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 2, 1, false, func(c *relay.GatewayConfig) {
			c.WANSCTP.Congestion = wan
			for i := range c.Peers {
				c.Peers[i].Congestion = alg
			}
		})
		defer w.Close()
		line := sctptest.Link{Delay: 9 * time.Millisecond, Rate: 200_000_000, Queue: 512 << 10, Loss: 0.01}
		w.Net.SetLink(wanAddr(1, 1), wanAddr(2, 1), line)
		w.Net.SetLink(wanAddr(2, 1), wanAddr(1, 1), line)
		w.connected()
		from, to := uint16(1), uint16(2)
		if back {
			from, to = to, from
		}
		got, done := 0, make(chan struct{})
		a := w.Node(from, 1, nil)
		defer a.Close()
		b := w.Node(to, 1, func(c *relay.NodeConfig) {
			c.OnFragment = func(_ *relay.Receiver, f *relay.Fragment) {
				if got += len(f.Data); got == total {
					close(done)
				}
			}
		})
		defer b.Close()
		s, err := a.Sender(address(to, 1), 0)
		wantNil(t, err)
		began := time.Now()
		msg := make([]byte, message)
		for range total / message {
			wantNil(t, s.Send(t.Context(), msg, relay.SendOptions{}))
		}
		<-done
		mbit = total * 8 / time.Since(began).Seconds() / 1e6
	})
	return mbit
}

// Peer.Congestion is in effect on both sides of a leg, whichever has opened it, and
// WANSCTP.Congestion where it is not set.
func TestCongestionOfLegs(t *testing.T) {
	if raceEnabled {
		t.Skip("takes a minute")
	}
	cubic := lossyRate(t, 0, 0, false)
	for _, tt := range []struct {
		name     string
		alg, wan sctp.Congestion
		back     bool
		bbr      bool
	}{
		{"from the side that opens the leg", sctp.BBR, 0, false, true},
		{"to the side that opens the leg", sctp.BBR, 0, true, true},
		{"of the WAN", 0, sctp.BBR, false, true},
		{"another than of the WAN", sctp.NewReno, sctp.BBR, true, false},
	} {
		got := lossyRate(t, tt.alg, tt.wan, tt.back)
		t.Logf("%s: %.1f Mb/s, CUBIC %.1f", tt.name, got, cubic)
		if bbr := got > 140 && got > 2*cubic; bbr != tt.bbr {
			t.Errorf("%s: %.1f Mb/s, CUBIC %.1f; BBR: want %v", tt.name, got, cubic, tt.bbr)
		}
	}
}
