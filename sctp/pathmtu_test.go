package sctp_test

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// RFC 8899: packets begin with a size that nearly every path takes, so that a
// tunnel with an MTU of 1400 costs no time; where the path takes more, they grow
// within a round trip, and with them the largest message that is one chunk.
func TestPacketsGrowFromTheBase(t *testing.T) {
	for _, mtu := range []int{1400, 1500} {
		synctest.Test(t, func(t *testing.T) {
			const delay = 10 * time.Millisecond
			p := newPair(t, 1, sctptest.Link{Delay: delay, MTU: mtu}, nil, nil)
			first := p.a.MaxPayload()
			if first > 1200 {
				t.Errorf("MTU %d: the first messages of one chunk have %d bytes", mtu, first)
			}
			start := time.Now()
			msg := pattern(50_000)
			if err := p.a.Send(context.Background(), msg, sctp.SendOptions{}); err != nil {
				t.Fatal(err)
			}
			got, _ := recvMessage(t, p.b, make([]byte, 100_000))
			if d := time.Since(start); !bytes.Equal(got, msg) || d > 10*delay {
				t.Errorf("MTU %d: 50 kB took %v", mtu, d)
			}
			if mtu == 1500 && p.a.MaxPayload() <= first {
				t.Errorf("MaxPayload is still %d", p.a.MaxPayload())
			}
			time.Sleep(time.Minute)
			if got, want := p.a.MaxPayload(), mtu-28-12-20; got > want || got < want-20 {
				t.Errorf("MTU %d: MaxPayload %d, want %d", mtu, got, want)
			}
		})
	}
}

// When a path starts to take less in the middle of a transfer, it goes on, with
// everything in order; what had been cut for the larger size is fragmented by IP.
func TestPathMTUDecreasesUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes atomic.Int32
		link := sctptest.Link{Delay: 5 * time.Millisecond, Rate: 50e6, MTU: 1500}
		p := newPair(t, 2, link, &sctp.Config{OnNotify: func(_ *sctp.Association, n sctp.Notification) {
			if n.Kind == sctp.NotifyPathMTU {
				changes.Add(1)
			}
		}}, nil)
		time.Sleep(time.Second)
		before := p.a.MaxPayload()
		time.AfterFunc(time.Second, func() {
			link.MTU = 1300
			p.net.SetDefault(link)
		})
		start := time.Now()
		p.transfer(20_000_000, 2)
		if d := time.Since(start); d > 8*time.Second {
			t.Errorf("20 MB took %v, want about 4 s", d)
		}
		st := p.a.Stats().Paths[0]
		t.Logf("took %v: %+v", time.Since(start), st)
		if st.BlackHoles != 1 || st.MTU > 1272 || st.MTU < 1240 {
			t.Errorf("%d black holes, packets of %d bytes", st.BlackHoles, st.MTU)
		}
		if changes.Load() < 2 {
			t.Errorf("%d changes of the MTU were told", changes.Load())
		}
		if before != 1500-28-12-20 {
			t.Errorf("MaxPayload was %d", before)
		}
	})
}

// Congestion marks keep the queue of a bottleneck short without a packet lost
// (RFC 9260, Table 1; RFC 4960, Appendix A).
func TestCongestionMarksReplaceLosses(t *testing.T) {
	for _, off := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cfg := &sctp.Config{NoECN: off, Congestion: sctp.NewReno}
			p := newPair(t, 3, sctptest.Link{Delay: 10 * time.Millisecond, Rate: 50e6, MTU: 1500, Queue: 256 << 10, MarkAt: 60 << 10}, cfg, cfg)
			rate := p.goodput(30e6, 30_000)
			c, st := p.net.Total(), p.a.Stats()
			t.Logf("NoECN=%v: %.1f Mb/s, %d marked, %d dropped; %+v", off, rate/1e6, c.Marked, c.QueueDrops, st.Paths[0])
			if off != (c.Marked == 0) || off != (st.Paths[0].CongestionMarks == 0) || off != (st.CongestionMarks == 0) {
				t.Errorf("NoECN=%v: %d packets marked, %d and %d reactions", off, c.Marked, st.Paths[0].CongestionMarks, st.CongestionMarks)
			}
			if !off && (c.QueueDrops > 0 || st.Retransmits > 0) {
				t.Errorf("%d packets dropped, %d chunks sent again although the queue was marked", c.QueueDrops, st.Retransmits)
			}
			if rate < 40e6 {
				t.Errorf("NoECN=%v: %.1f Mb/s of 50", off, rate/1e6)
			}
			if b := p.b.Stats(); off != (b.MarkedPackets == 0) {
				t.Errorf("NoECN=%v: the receiver counted %d marks", off, b.MarkedPackets)
			}
		})
	}
}

// RFC 9653 between two transports: no checksum after the handshake if both want
// it, and full ones else.
func TestZeroChecksum(t *testing.T) {
	for _, both := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			zero, full := 0, 0
			n := sctptest.NewNetwork(4)
			n.SetDefault(sctptest.Link{Delay: time.Millisecond, Filter: func(b []byte) bool {
				mu.Lock()
				defer mu.Unlock()
				if b[8]|b[9]|b[10]|b[11] == 0 {
					zero++
				} else {
					full++
				}
				return true
			}})
			p := &pair{t: t, net: n}
			p.ta, p.tb = memTransport(t, n.NewHost(addrA)), memTransport(t, n.NewHost(addrB))
			p.connect(&sctp.Config{ZeroChecksum: true}, &sctp.Config{ZeroChecksum: both})
			p.transfer(1_000_000, 4)
			if bad := p.ta.Stats().BadPackets + p.tb.Stats().BadPackets; bad > 0 {
				t.Errorf("%d packets were refused", bad)
			}
			mu.Lock()
			defer mu.Unlock()
			if both && (zero < 100 || full > 4) || !both && zero > 0 {
				t.Errorf("both %v: %d packets without checksum, %d with", both, zero, full)
			}
		})
	}
}

// IPv4 and IPv6 addresses in one association, and failover between them.
func TestBothFamiliesInOneAssociation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(5)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond, Rate: 100e6, MTU: 1500})
		p := &pair{t: t, net: n}
		p.ta, p.tb = memTransport(t, n.NewHost(addrA, "fd00::1")), memTransport(t, n.NewHost(addrB, "fd00::2"))
		p.connect(nil, nil)
		p.waitConfirmed()
		time.AfterFunc(100*time.Millisecond, func() { n.Cut(addrA, addrB) })
		p.transfer(5_000_000, 5)
		for _, st := range p.a.Stats().Paths {
			if st.BytesSent == 0 || st.Local.Addr().Is4() != st.Remote.Addr().Is4() {
				t.Errorf("path from %v to %v carried %d bytes", st.Local, st.Remote, st.BytesSent)
			}
		}
	})
}

// The loopback interface is a path as any other: what is behind it may take less than the
// interface does. A link of 1300 bytes stands for a relay or a peer with small buffers.
func TestLoopbackMTUIsDiscovered(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := sctptest.NewNetwork(6)
			n.SetDefault(sctptest.Link{Delay: 10 * time.Microsecond, MTU: 1300})
			p := &pair{t: t, net: n}
			p.ta, p.tb = memTransport(t, n.NewHost("127.0.0.1")), memTransport(t, n.NewHost("127.0.0.2"))
			// A size that is assumed has to be given up.
			cfg := &sctp.Config{NoPathMTUDiscovery: fixed}
			p.connect(cfg, cfg)
			start := time.Now()
			p.transfer(1_000_000, 6)
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("1 MB took %v", d)
			}
			if st := p.a.Stats().Paths[0]; st.MTU > 1272 || st.MTU < 1200 {
				t.Errorf("packets of %d bytes", st.MTU)
			}
		})
	}
}

// Where the loopback interface takes large packets, they are found in a round trip.
func TestLoopbackTakesLargePackets(t *testing.T) {
	p := newLoopbackPair(t, sctp.TransportConfig{}, nil, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	buf := make([]byte, 10_000)
	for p.a.MaxPayload() < 60_000 || p.b.MaxPayload() < 60_000 {
		if err := p.a.Send(ctx, pattern(1000), sctp.SendOptions{}); err != nil {
			t.Fatalf("packets of %d and %d bytes: %v", p.a.MaxPayload(), p.b.MaxPayload(), err)
		}
		recvMessage(t, p.b, buf)
	}
}
