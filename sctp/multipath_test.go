package sctp_test

import (
	"context"
	"encoding/binary"
	"io"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

const addrA2, addrB2 = "10.1.0.1", "10.1.0.2"

// newDualPair is a pair with two networks between its hosts, one link each; they
// do not reach from one network into the other.
func newDualPair(t testing.TB, seed uint64, l1, l2 sctptest.Link, ca, cb *sctp.Config) *pair {
	t.Helper()
	n := sctptest.NewNetwork(seed)
	for _, x := range [][2]string{{addrA, addrB}, {addrB, addrA}} {
		n.SetLink(x[0], x[1], l1)
	}
	for _, x := range [][2]string{{addrA2, addrB2}, {addrB2, addrA2}} {
		n.SetLink(x[0], x[1], l2)
	}
	n.Cut(addrA, addrB2)
	n.Cut(addrA2, addrB)
	p := &pair{t: t, net: n}
	p.ta, p.tb = memTransport(t, n.NewHost(addrA, addrA2)), memTransport(t, n.NewHost(addrB, addrB2))
	p.connect(ca, cb)
	return p
}

// waitConfirmed waits until both ends have confirmed all paths.
func (p *pair) waitConfirmed() {
	p.t.Helper()
	for range 600 {
		ok := true
		for _, a := range []*sctp.Association{p.a, p.b} {
			for _, st := range a.Stats().Paths {
				ok = ok && st.Confirmed && st.SRTT > 0
			}
		}
		if ok {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.t.Fatal("paths are not confirmed after a minute")
}

// goodput moves size bytes from a to b in messages of n bytes and returns the
// bits per second between the first and the last.
func (p *pair) goodput(size, n int) float64 {
	p.t.Helper()
	ctx := context.Background()
	start := time.Now()
	var wg sync.WaitGroup
	wg.Go(func() {
		msg := pattern(n)
		for sent := 0; sent < size; sent += n {
			if err := p.a.Send(ctx, msg, sctp.SendOptions{}); err != nil {
				p.t.Error("Send:", err)
				return
			}
		}
	})
	buf := make([]byte, n)
	for got := 0; got < size; {
		k, _, err := p.b.Recv(ctx, buf)
		if err != nil {
			p.t.Fatal("Recv:", err)
		}
		got += k
	}
	wg.Wait()
	return float64(size) * 8 / time.Since(start).Seconds()
}

// Two equal paths of 100 Mb/s carry at least 1.8 times what one does, whatever
// the congestion control and the loss detection.
func TestTwoPathsCarryTwiceAsMuch(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("a figure of virtual time, which takes minutes with the race detector")
	}
	for _, tc := range []struct {
		name string
		cfg  sctp.Config
	}{
		{"cubic", sctp.Config{}},
		{"newreno", sctp.Config{Congestion: sctp.NewReno}},
		{"no RACK", sctp.Config{NoRACK: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var rate [2]float64
			for i := range rate {
				synctest.Test(t, func(t *testing.T) {
					link := sctptest.Link{Delay: 5 * time.Millisecond, Rate: 100e6, MTU: 1500, Queue: 256 << 10}
					cfg := tc.cfg
					cfg.Multipath = i == 1
					p := newDualPair(t, 1, link, link, &cfg, &cfg)
					p.waitConfirmed()
					rate[i] = p.goodput(100e6, 60_000)
					for _, st := range p.a.Stats().Paths {
						t.Logf("%d paths: %.1f Mb/s: %v sent %d, timeouts %d, cwnd %d", i+1, rate[i]/1e6, st.Remote, st.BytesSent, st.Timeouts, st.CWND)
					}
					st := p.a.Stats()
					t.Logf("%d chunks, %d again, %d fast, %d duplicates", st.ChunksSent, st.Retransmits, st.FastRetransmits, st.SpuriousRetransmits)
				})
			}
			if rate[1] < 1.8*rate[0] {
				t.Errorf("two paths carry %.1f Mb/s, one %.1f: %.2f times as much, want 1.8", rate[1]/1e6, rate[0]/1e6, rate[1]/rate[0])
			}
		})
	}
}

// A second path that is slow and far away does not hold back the first, even if
// the receive buffer is small against what it holds.
func TestSlowPathDoesNotBlock(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("a figure of virtual time, which takes a minute with the race detector")
	}
	for _, buffer := range []int{128 << 10, 512 << 10, 4 << 20, 32 << 20} {
		var rate [2]float64
		for i := range rate {
			synctest.Test(t, func(t *testing.T) {
				fast := sctptest.Link{Delay: 5 * time.Millisecond, Rate: 100e6, MTU: 1500}
				slow := sctptest.Link{Delay: 100 * time.Millisecond, Rate: 10e6, MTU: 1500}
				cfg := &sctp.Config{Multipath: i == 1, RecvBuffer: buffer, SendBuffer: buffer}
				p := newDualPair(t, 2, fast, slow, cfg, cfg)
				p.waitConfirmed()
				rate[i] = p.goodput(40e6, 10_000)
				st := p.a.Stats()
				t.Logf("buffer %d, %d paths: %.1f Mb/s, second path carried %d, %d again", buffer, i+1, rate[i]/1e6, st.Paths[1].BytesSent, st.Retransmits)
			})
		}
		if rate[1] < 0.9*rate[0] {
			t.Errorf("buffer %d: with the slow path %.1f Mb/s, without %.1f", buffer, rate[1]/1e6, rate[0]/1e6)
		}
	}
}

// With several paths the loss of one in the middle of a transfer loses no data,
// changes no order, and stops the transfer for at most three RTO.Min.
func TestPrimaryPathDiesUnderLoad(t *testing.T) {
	before, after := 2*time.Second, 4*time.Second // the path dies
	if sctp.RaceEnabled {
		before, after = time.Second, time.Second
	}
	for _, tc := range []struct {
		name string
		cfg  sctp.Config
	}{
		{"one path at a time", sctp.Config{}},
		{"all paths at once", sctp.Config{Multipath: true}},
		{"no RACK", sctp.Config{NoRACK: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const streams, size, rtoMin = 4, 1000, 200 * time.Millisecond
				link := sctptest.Link{Delay: 5 * time.Millisecond, Rate: 100e6, MTU: 1500}
				cfg := tc.cfg
				cfg.RTOMin = rtoMin
				p := newDualPair(t, 3, link, link, &cfg, &cfg)
				p.waitConfirmed()
				ctx := context.Background()
				dies := time.Now().Add(before)
				time.AfterFunc(before, func() { p.net.Cut(addrA, addrB) })
				var wg sync.WaitGroup
				sent := [streams]uint32{}
				wg.Go(func() {
					for i := 0; time.Now().Before(dies.Add(after)); i++ {
						msg := pattern(size)
						sid := i % streams
						binary.BigEndian.PutUint32(msg, sent[sid])
						sent[sid]++
						if err := p.a.Send(ctx, msg, sctp.SendOptions{Stream: uint16(sid)}); err != nil {
							t.Error("Send:", err)
							return
						}
					}
					if err := p.a.Shutdown(ctx); err != nil {
						t.Error("Shutdown:", err)
					}
				})
				var got [streams]uint32
				gap, last := time.Duration(0), time.Now()
				buf := make([]byte, size)
				for {
					n, info, err := p.b.Recv(ctx, buf)
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatal("Recv:", err)
					}
					now := time.Now()
					gap, last = max(gap, now.Sub(last)), now
					if seq := binary.BigEndian.Uint32(buf); n != size || seq != got[info.Stream] {
						t.Fatalf("stream %d: message %d of %d bytes, want %d of %d", info.Stream, seq, n, got[info.Stream], size)
					}
					got[info.Stream]++
				}
				wg.Wait()
				if got != sent {
					t.Errorf("received %d messages, sent %d", got, sent)
				}
				t.Logf("the transfer stood still for %v; %d messages", gap, got)
				if gap > 3*rtoMin {
					t.Errorf("the transfer stood still for %v, want at most three RTO.Min", gap)
				}
			})
		})
	}
}

// On a path with 10 ms of round trip that loses 2 % of all packets, of small
// messages sent every 5 ms one in a thousand takes more than five round trips.
func TestSmallMessagesOnLossyPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count, every, rtt = 40_000, 5 * time.Millisecond, 10 * time.Millisecond
		p := newPair(t, 4, sctptest.Link{Delay: rtt / 2, Loss: 0.02}, nil, nil)
		ctx := context.Background()
		var wg sync.WaitGroup
		wg.Go(func() {
			msg := make([]byte, 64)
			tick := time.NewTicker(every)
			defer tick.Stop()
			for range count {
				<-tick.C
				binary.BigEndian.PutUint64(msg, uint64(time.Now().UnixNano()))
				if err := p.a.Send(ctx, msg, sctp.SendOptions{}); err != nil {
					t.Error("Send:", err)
					return
				}
			}
		})
		took := make([]time.Duration, count)
		buf := make([]byte, 64)
		for i := range took {
			if _, _, err := p.b.Recv(ctx, buf); err != nil {
				t.Fatal("Recv:", err)
			}
			took[i] = time.Duration(time.Now().UnixNano() - int64(binary.BigEndian.Uint64(buf)))
		}
		wg.Wait()
		slices.Sort(took)
		at := func(f float64) time.Duration { return took[int(f*(count-1))] }
		t.Logf("50 %%: %v, 99 %%: %v, 99.9 %%: %v, most %v; %+v", at(0.5), at(0.99), at(0.999), at(1), p.a.Stats())
		if got := at(0.999); got > 5*rtt {
			t.Errorf("99.9 %% of the messages arrive within %v, want within 5 round trips", got)
		}
	})
}

// Messages that name an address go there as long as it works (RFC 6458, Section
// 5.3.4, SCTP_ADDR_OVER).
func TestMessageForOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		link := sctptest.Link{Delay: 5 * time.Millisecond}
		p := newDualPair(t, 7, link, link, nil, nil)
		p.waitConfirmed()
		second := p.a.RemoteAddr().Addrs[1]
		sent := func() (n [2]uint64) {
			for i, st := range p.a.Stats().Paths {
				n[i] = st.BytesSent
			}
			return n
		}
		buf := make([]byte, 10_000)
		send := func(to netip.AddrPort) {
			t.Helper()
			if err := p.a.Send(ctx, pattern(10_000), sctp.SendOptions{Remote: to}); err != nil {
				t.Fatal(err)
			}
			if got, _ := recvMessage(t, p.b, buf); len(got) != 10_000 {
				t.Fatalf("%d bytes came", len(got))
			}
		}
		was := sent()
		send(second)
		if now := sent(); now[0] != was[0] || now[1] < was[1]+10_000 {
			t.Errorf("bytes by path: %d, then %d", was, now)
		}
		was = sent()
		send(netip.AddrPort{})
		if now := sent(); now[1] != was[1] || now[0] < was[0]+10_000 {
			t.Errorf("bytes by path: %d, then %d", was, now)
		}
		p.net.Cut(addrA2, addrB2)
		send(second) // sent again by the other path
		was = sent()
		send(second) // the path has failed potentially
		if now := sent(); now[0] < was[0]+10_000 {
			t.Errorf("bytes by path: %d, then %d", was, now)
		}
		none := netip.AddrPortFrom(netip.MustParseAddr("10.9.9.9"), second.Port())
		if err := p.a.Send(ctx, buf, sctp.SendOptions{Remote: none}); err != sctp.ErrAddress {
			t.Errorf("to an address of nobody's: %v", err)
		}
	})
}
