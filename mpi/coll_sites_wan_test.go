package mpi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// A wanLink is what all ranks of a site share on the way to the other ones, in one direction.
type wanLink struct {
	mu   sync.Mutex
	free time.Time // when the last packet of the queue is sent

	sent, dropped int64 // bytes of packets, and packets
}

const (
	wanRate  = 1e9 / 8 // bytes per second
	wanQueue = 4 << 20 // bytes
	wanDelay = 9 * time.Millisecond
)

// send calls deliver when a packet of n bytes has passed, unless the queue is full.
func (l *wanLink) send(n int, deliver func()) {
	n += 28 // the headers of IP and UDP
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	if l.free.Sub(now).Seconds()*wanRate > wanQueue {
		l.dropped++
		return
	}
	l.sent += int64(n)
	l.free = l.free.Add(time.Duration(float64(n) / wanRate * 1e9))
	time.AfterFunc(l.free.Sub(now), deliver)
}

// wanConn is the socket of a rank whose packets to other sites pass the link of its site.
type wanConn struct {
	net.PacketConn
	link *wanLink
	far  map[string]bool // addresses at other sites
}

func (c *wanConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if !c.far[to.String()] {
		return c.PacketConn.WriteTo(b, to)
	}
	b = append([]byte(nil), b...)
	c.link.send(len(b), func() { _, _ = c.PacketConn.WriteTo(b, to) })
	return len(b), nil
}

// runAcrossWAN runs f on ranks at the sites that the letters name, over SCTP in a network in memory: 1 Gb/s and
// 50 us between two ranks of a site, and 1 Gb/s, which the ranks of a site share, and 9 ms between sites.
// It returns what the sites have sent to others, by letter.
func runAcrossWAN(t *testing.T, sites string, f func(ctx context.Context, w *World) error) map[byte]*wanLink {
	t.Helper()
	network := sctptest.NewNetwork(1)
	defer network.Close()
	network.SetDefault(sctptest.Link{Delay: 50 * time.Microsecond, Rate: 1e9, Queue: 4 << 20})
	addr := func(rank int) string { return fmt.Sprintf("10.0.0.%d", rank+1) }
	links := make(map[byte]*wanLink)
	for a := range sites {
		links[sites[a]] = new(wanLink)
		for b := range sites {
			if sites[a] != sites[b] {
				network.SetLink(addr(a), addr(b), sctptest.Link{Delay: wanDelay})
			}
		}
	}
	err := RunLocal(t.Context(), len(sites), f, WithTransport(TransportSCTP), WithSpin(0), atSites(sites),
		WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
			pc, err := network.NewHost(addr(rank)).ListenPacket(addr(rank) + ":9899")
			if err != nil {
				return nil, err
			}
			far := make(map[string]bool)
			for b := range sites {
				if sites[b] != sites[rank] {
					far[addr(b)+":9899"] = true
				}
			}
			return []sctp.PacketConn{&wanConn{pc, links[sites[rank]], far}}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	return links
}

// plainTuning returns the built-in table without the algorithms for sites.
func plainTuning() *Tuning {
	t := new(Tuning)
	for _, r := range builtinTuning().Rules() {
		if !strings.HasPrefix(r.Algorithm, "sites") {
			if err := t.Add(r); err != nil {
				panic(err)
			}
		}
	}
	return t
}

// TestSitesAreFaster measures collectives between two sites of four ranks in virtual time, with and without the
// algorithms for sites. Sizes are those of a rank's send buffer in Allreduce, and of a block in Alltoall. Short ones
// take one crossing, which is the least that there can be, and longer ones less than two thirds of the time.
// With WEFT_FIGURES=1 it measures the sizes of the table in docs/gateways.md.
func TestSitesAreFaster(t *testing.T) {
	if testenv.Race || testing.Short() {
		t.Skip("many packets")
	}
	sizes := []int{8, 64 << 10}
	if os.Getenv("WEFT_FIGURES") != "" {
		sizes = []int{8, 512, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20}
	}
	for _, ranks := range []string{"AAAABBBB", "ABABABAB"} {
		for _, name := range []string{"allreduce", "alltoall"} {
			for _, size := range sizes {
				var took [2]time.Duration
				for i, table := range []*Tuning{plainTuning(), nil} {
					synctest.Test(t, func(t *testing.T) { took[i] = timeCollective(t, ranks, name, size, table) })
				}
				ratio := float64(took[0]) / float64(took[1])
				t.Logf("%s %-9s %8d B: %8.1f ms without, %8.1f ms with: %5.1f times as fast", ranks, name, size,
					took[0].Seconds()*1e3, took[1].Seconds()*1e3, ratio)
				switch {
				case size < 32<<10 && took[1] > wanDelay*5/4:
					t.Errorf("%s of %d bytes takes %v, want one crossing of %v", name, size, took[1], wanDelay)
				case size == 64<<10 && ratio < 1.5:
					t.Errorf("%s of %d bytes takes %v, and %v without sites", name, size, took[1], took[0])
				}
			}
		}
	}
}

// timeCollective returns how long a collective takes on the slowest rank.
func timeCollective(t *testing.T, ranks, name string, size int, table *Tuning) time.Duration {
	const warm, runs = 10, 5
	var mu sync.Mutex
	var begun, over time.Time
	links := runAcrossWAN(t, ranks, func(ctx context.Context, w *World) error {
		c := w.Comm()
		c.SetTuning(table)
		call := func() error { return Allreduce(ctx, c, make([]byte, size), make([]byte, size), Max[byte]) }
		all, one := make([]byte, size*c.Size()), make([]byte, size)
		switch name {
		case "alltoall":
			call = func() error { return Alltoall(ctx, c, all, make([]byte, len(all))) }
		case "allgather":
			call = func() error { return Allgather(ctx, c, one, all) }
		case "bcast": // and an answer, so that the next does not begin before
			call = func() error { return errors.Join(Bcast(ctx, c, one, 1), Barrier(ctx, c)) }
		case "reduce":
			call = func() error { return errors.Join(Reduce(ctx, c, one, all[:size], Max[byte], 1), Barrier(ctx, c)) }
		case "barrier":
			call = func() error { return Barrier(ctx, c) }
		}
		for i := range warm + runs {
			if i == warm {
				c.SetTuning(nil) // the same barrier in any case
				if err := Barrier(ctx, c); err != nil {
					return err
				}
				c.SetTuning(table)
				mu.Lock()
				if begun.IsZero() {
					begun = time.Now()
				}
				mu.Unlock()
			}
			if err := call(); err != nil {
				return err
			}
		}
		mu.Lock()
		over = time.Now()
		mu.Unlock()
		return nil
	})
	for site, l := range links {
		if l.dropped > 0 {
			t.Logf("%s of %d bytes: %d packets did not find room on the way from site %c", name, size, l.dropped, site)
		}
	}
	return over.Sub(begun) / runs
}
