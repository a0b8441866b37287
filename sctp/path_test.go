package sctp_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

func TestPathMTUIsFound(t *testing.T) {
	for _, tc := range []struct {
		name string
		mtu  int // of the network
		cfg  sctp.Config
		want int
	}{
		{"discovered", 1300, sctp.Config{}, 1300 - 28},
		{"as told", 9000, sctp.Config{MTU: 600}, 600 - 28},
		{"of the route", 9000, sctp.Config{NoPathMTUDiscovery: true}, 1500 - 28},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond, MTU: tc.mtu}, &tc.cfg, nil)
				if err := p.a.Send(context.Background(), pattern(100_000), sctp.SendOptions{}); err != nil {
					t.Fatal(err)
				}
				recvMessage(t, p.b, make([]byte, 100_000))
				time.Sleep(time.Minute)
				got := p.a.Stats().Paths[0].MTU
				if got > tc.want || got < tc.want-100 {
					t.Errorf("MTU of the path = %d, want about %d", got, tc.want)
				}
			})
		})
	}
}

func TestPathParams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, &sctp.Config{HeartbeatInterval: -1}, &sctp.Config{HeartbeatInterval: -1})
		addr := p.a.RemoteAddr().Addrs[0]
		x, err := p.a.PathParams(addr)
		if err != nil || x.HeartbeatInterval >= 0 || x.MaxRetransmits != 5 {
			t.Errorf("PathParams = %+v, %v", x, err)
		}
		x.HeartbeatInterval = time.Second
		if err := p.a.SetPathParams(addr, x); err != nil {
			t.Fatal(err)
		}
		before := p.a.Stats().Paths[0].HeartbeatsAcked
		time.Sleep(time.Minute)
		if n := p.a.Stats().Paths[0].HeartbeatsAcked - before; n < 20 {
			t.Errorf("%d heartbeats in a minute, want some 25", n)
		}
		if err := p.a.Heartbeat(addr); err != nil {
			t.Error(err)
		}
		if err := p.a.SetPrimary(addr); err != nil {
			t.Error(err)
		}
		bad := netip.MustParseAddrPort("10.9.9.9:1")
		for _, err := range []error{p.a.Heartbeat(bad), p.a.SetPrimary(bad), p.a.SetPathParams(bad, x)} {
			if !errors.Is(err, sctp.ErrAddress) {
				t.Errorf("a stranger's address: %v", err)
			}
		}
		if _, err := p.a.PathParams(bad); !errors.Is(err, sctp.ErrAddress) {
			t.Errorf("a stranger's address: %v", err)
		}
	})
}

func TestMultipathUsesAllPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond, Rate: 1e8, MTU: 1500})
		p := &pair{t: t, net: n}
		p.ta = memTransport(t, n.NewHost(addrA, "10.1.0.1"))
		p.tb = memTransport(t, n.NewHost(addrB, "10.1.0.2"))
		n.Cut(addrA, "10.1.0.2")
		n.Cut("10.1.0.1", addrB)
		cfg := &sctp.Config{Multipath: true}
		p.connect(cfg, cfg)
		time.Sleep(2 * time.Minute) // heartbeats confirm the second path
		start := time.Now()
		p.transfer(20_000_000, 1)
		rate := 20_000_000 * 8 / time.Since(start).Seconds()
		t.Logf("%.0f Mb/s over two links of 100 Mb/s", rate/1e6)
		if rate < 130e6 {
			t.Errorf("%.0f Mb/s over two links of 100 Mb/s", rate/1e6)
		}
	})
}

// RFC 7829, Section 5, rule 1: "Implementations MUST reject any other values of
// PSMR" than those from PFMR on, or from PMR on without potentially failed paths.
func TestSwitchoverLimitIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := memTransport(t, sctptest.NewNetwork(1).NewHost(addrA))
		for _, tc := range []struct {
			cfg sctp.Config
			ok  bool
		}{
			{sctp.Config{SwitchPrimary: true}, true},
			{sctp.Config{SwitchPrimary: true, SwitchRetransmits: 7}, true},
			{sctp.Config{SwitchPrimary: true, SwitchRetransmits: -1}, false},
			{sctp.Config{SwitchPrimary: true, PotentiallyFailedRetransmits: 3}, true},
			{sctp.Config{SwitchPrimary: true, PotentiallyFailedRetransmits: 3, SwitchRetransmits: 3}, true},
			{sctp.Config{SwitchPrimary: true, PotentiallyFailedRetransmits: 3, SwitchRetransmits: 2}, false},
			{sctp.Config{SwitchPrimary: true, PotentiallyFailedRetransmits: -1, SwitchRetransmits: 5}, true},
			{sctp.Config{SwitchPrimary: true, PotentiallyFailedRetransmits: -1, SwitchRetransmits: 4}, false},
			{sctp.Config{SwitchPrimary: true, PotentiallyFailedRetransmits: -1, PathMaxRetransmits: 2, SwitchRetransmits: 2}, true},
		} {
			e, err := tr.Listen(0, &tc.cfg)
			if (err == nil) != tc.ok || err != nil && !errors.Is(err, sctp.ErrConfig) {
				t.Errorf("PFMR %d, PSMR %d: %v", tc.cfg.PotentiallyFailedRetransmits, tc.cfg.SwitchRetransmits, err)
			}
			if e != nil {
				e.Close()
			}
		}
	})
}
