package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi/internal/localsites"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// siteLayouts are the sites of six ranks, and the gateways between them, of tests of jobs that span sites.
var siteLayouts = []struct {
	name  string
	sites string // of the ranks
	opts  GatewayOptions
}{
	{"piecewise/hops=1", "AAABBB", GatewayOptions{}},
	{"chained/hops=1", "ABABAB", GatewayOptions{Chained: true}},
	{"piecewise/hops=2", "ABCABC", GatewayOptions{Line: true, PerSite: 2}},
	{"chained/hops=2", "ABCABC", GatewayOptions{Line: true, Chained: true}},
}

// virtualSites has the ranks of RunLocal, and gateways, use a network in memory: 1 Gb/s with 25 µs within a site, and 9 ms
// between gateways of different sites. Spawned ranks get hosts of their own.
func virtualSites(net *sctptest.Network, g GatewayOptions) []Option {
	net.SetDefault(sctptest.Link{Delay: 25 * time.Microsecond, Rate: 1e9, Queue: 8 << 20, MTU: 1500})
	lan := func(site, gw int) string { return fmt.Sprintf("10.%d.255.%d", site, gw) }
	wan := func(site, gw int) string { return fmt.Sprintf("192.0.%d.%d", site, gw) }
	const most = 3
	for s := 1; s <= most; s++ {
		for d := 1; d <= most; d++ {
			for x := range 4 {
				if s != d {
					net.SetLink(wan(s, x/2+1), wan(d, x%2+1), sctptest.Link{Delay: 9 * time.Millisecond, Rate: 1e9, Queue: 8 << 20, MTU: 1500})
				}
			}
		}
	}
	addr := func(f func(int, int) string) func(site, gw int) netip.AddrPort {
		return func(site, gw int) netip.AddrPort {
			return netip.AddrPortFrom(netip.MustParseAddr(f(site, gw)), sctp.DefaultUDPPort)
		}
	}
	var mu sync.Mutex
	known := make(map[string]*sctptest.Host) // of gateways, which may start again
	host := func(ip string) *sctptest.Host {
		mu.Lock()
		defer mu.Unlock()
		if known[ip] == nil {
			known[ip] = net.NewHost(ip)
		}
		return known[ip]
	}
	g.conns = &localsites.Config{
		Conns: func(site, gw int, isWAN bool) ([]sctp.PacketConn, error) {
			ip := lan(site, gw)
			if isWAN {
				ip = wan(site, gw)
			}
			pc, err := host(ip).ListenPacket(ip + ":9899")
			return []sctp.PacketConn{pc}, err
		},
		LAN: addr(lan), WAN: addr(wan),
	}
	var hosts atomic.Int32
	return []Option{
		WithTransport(TransportSCTP), WithSpin(0), WithGateways(g),
		WithPacketConns(func(int) ([]sctp.PacketConn, error) {
			ip := fmt.Sprintf("10.0.%d.1", hosts.Add(1))
			pc, err := net.NewHost(ip).ListenPacket(ip + ":9899")
			return []sctp.PacketConn{pc}, err
		}),
	}
}

// runSites runs f as six ranks over each layout of sites, in virtual time.
func runSites(t *testing.T, f func(ctx context.Context, w *World) error, more ...Option) {
	for _, tt := range siteLayouts {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := sctptest.NewNetwork(1)
				defer net.Close()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				opts := append(virtualSites(net, tt.opts), WithSite(func(rank int) string { return tt.sites[rank : rank+1] }))
				opts = append(opts, more...)
				if err := RunLocal(ctx, len(tt.sites), f, opts...); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A farm: rank 0 hands out numbered pieces of work to whoever asks, and each result comes back once.
func TestSitesFarm(t *testing.T) {
	runSites(t, func(ctx context.Context, w *World) error {
		_, err := farmOnce(ctx, w.Comm(), 300, 2000)
		return err
	})
}

// farmOnce runs a farm of n pieces of work of size bytes, and returns at rank 0 how many each rank did.
func farmOnce(ctx context.Context, c *Comm, n, size int) ([]int, error) {
	const tagAsk, tagWork, tagStop = 1, 2, 3
	buf := make([]byte, size)
	if c.Rank() > 0 {
		result := make([]byte, 8) // none the first time
		for {
			if err := Send(ctx, c, result, 0, tagAsk); err != nil {
				return nil, err
			}
			st, err := Recv(ctx, c, buf, 0, AnyTag)
			if err != nil || st.Tag == tagStop {
				return nil, err
			}
			if err := checkPattern(buf[1:], int(buf[0])); err != nil {
				return nil, err
			}
			result = append([]byte{1, buf[0]}, make([]byte, 6)...)
		}
	}
	counts, want := make([]int, c.Size()), make(map[int][]byte)
	var sum [256]int
	result := make([]byte, 8)
	for k, stopped := 0, 1; stopped < c.Size(); {
		st, err := Recv(ctx, c, result, AnySource, tagAsk)
		if err != nil {
			return nil, err
		}
		if result[0] == 1 {
			if !bytes.Equal(want[st.Source], result[1:2]) {
				return nil, fmt.Errorf("rank %d returned piece %d, want %d", st.Source, result[1], want[st.Source])
			}
			sum[result[1]]++
			counts[st.Source]++
		}
		if k == n {
			if err := Send(ctx, c, buf[:0], st.Source, tagStop); err != nil {
				return nil, err
			}
			stopped++
			continue
		}
		buf[0] = byte(k)
		pattern(buf[1:], k%256)
		want[st.Source] = []byte{byte(k)}
		if err := Send(ctx, c, buf, st.Source, tagWork); err != nil {
			return nil, err
		}
		k++
	}
	for k, got := range sum {
		if want := (n + 255 - k) / 256; got != want {
			return nil, fmt.Errorf("piece %d was done %d times, want %d", k, got, want)
		}
	}
	return counts, nil
}

// A ring of ranks exchanges the borders of their parts and averages, as often as without sites with the same result.
func TestSitesHalo(t *testing.T) {
	runSites(t, func(ctx context.Context, w *World) error {
		c := w.Comm()
		const n, steps = 3000, 20
		part := make([]float64, n+2)
		all := make([]float64, n*c.Size())
		for i := range all {
			all[i] = float64(i * 7919 % 10007)
		}
		copy(part[1:], all[n*c.Rank():][:n])
		left, right := (c.Rank()+c.Size()-1)%c.Size(), (c.Rank()+1)%c.Size()
		for range steps {
			if _, err := Sendrecv(ctx, c, part[1:2], left, 1, part[n+1:], right, 1); err != nil {
				return err
			}
			if _, err := Sendrecv(ctx, c, part[n:n+1], right, 2, part[:1], left, 2); err != nil {
				return err
			}
			next := slices.Clone(part)
			for i := 1; i <= n; i++ {
				next[i] = (part[i-1] + part[i] + part[i+1]) / 3
			}
			part = next
			whole := slices.Clone(all)
			for i := range whole {
				whole[i] = (all[(i+len(all)-1)%len(all)] + all[i] + all[(i+1)%len(all)]) / 3
			}
			all = whole
		}
		if !slices.Equal(part[1:n+1], all[n*c.Rank():][:n]) {
			return fmt.Errorf("rank %d has other values than without communication", c.Rank())
		}
		return nil
	})
}

// Collectives of short and long vectors, with the right results.
func TestSitesCollectives(t *testing.T) {
	large := 200_000
	if testenv.Race {
		large = 20_000
	}
	runSites(t, func(ctx context.Context, w *World) error {
		c := w.Comm()
		for _, n := range []int{1, 500, large} {
			in, out := make([]int32, n*c.Size()), make([]int32, n*c.Size())
			for i := range in {
				in[i] = int32(1000*c.Rank() + i/n*100 + i%7)
			}
			if err := Alltoall(ctx, c, in, out); err != nil {
				return err
			}
			for i := range out {
				if want := int32(1000*(i/n) + 100*c.Rank() + (c.Rank()*n+i%n)%7); out[i] != want {
					return fmt.Errorf("alltoall of %d: element %d = %d, want %d", n, i, out[i], want)
				}
			}
			sum := make([]int32, n)
			if err := Allreduce(ctx, c, in[:n], sum, Sum[int32]); err != nil {
				return err
			}
			for i := range sum {
				if want := int32(1000*15 + 6*(i%7)); sum[i] != want {
					return fmt.Errorf("allreduce of %d: element %d = %d, want %d", n, i, sum[i], want)
				}
			}
		}
		if err := Barrier(ctx, c); err != nil { // all has arrived
			return err
		}
		own := w.Site()
		for r, p := range w.Stats().Peers {
			s, err := c.SiteOf(r)
			if relayed := p.Relayed.Messages > 0 && p.Relayed.Bytes > 0; err != nil || relayed && s == own {
				return fmt.Errorf("rank %d at site %q, this one at %q: relayed %+v, %v", r, s, own, p.Relayed, err)
			} else if sent := p.Sent(); s != own && sent.Messages > 0 && (!relayed || p.Relayed.Bytes < sent.Bytes) {
				return fmt.Errorf("rank %d at site %q: relayed %+v of %+v", r, s, p.Relayed, sent)
			}
		}
		return nil
	})
}

// Put, Get and atomics on windows between sites, with fences and locks.
func TestSitesWindow(t *testing.T) {
	runSites(t, sitesWindow)
}

func sitesWindow(ctx context.Context, w *World) error {
	c := w.Comm()
	n := c.Size()
	mem := make([]int64, n+1)
	win, err := WinCreate(ctx, c, mem)
	if err != nil {
		return err
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	for r := range n {
		if err := win.Put(ctx, []int64{int64(100*c.Rank() + r)}, r, c.Rank()); err != nil {
			return err
		}
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	for r := range n {
		if mem[r] != int64(100*r+c.Rank()) {
			return fmt.Errorf("put of rank %d: %d", r, mem[r])
		}
	}
	got := make([]int64, n)
	right := (c.Rank() + 1) % n
	if err := win.Get(ctx, got, right, 0); err != nil {
		return err
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	for r := range n {
		if got[r] != int64(100*r+right) {
			return fmt.Errorf("get: element %d = %d", r, got[r])
		}
	}
	const each = 20
	seen := make([]int64, each)
	for i := range each {
		old, err := win.FetchAndOp(ctx, 1, 0, n, Sum[int64])
		if err != nil {
			return err
		}
		seen[i] = old
	}
	all := make([]int64, each*n)
	if err := Allgather(ctx, c, seen, all); err != nil {
		return err
	}
	slices.Sort(all)
	for i, v := range all {
		if v != int64(i) {
			return fmt.Errorf("%d additions of 1: the value %d was seen as number %d", len(all), v, i)
		}
	}
	return win.Free(ctx)
}

// A file that all ranks write interleaved, and read back.
func TestSitesFile(t *testing.T) {
	for _, tt := range siteLayouts {
		name := filepath.Join(t.TempDir(), "file")
		const n = 1000
		err := RunLocal(t.Context(), len(tt.sites), func(ctx context.Context, w *World) error {
			c := w.Comm()
			f, err := FileOpen[byte](ctx, c, name, FileCreate|FileReadWrite, nil)
			if err != nil {
				return err
			}
			b := make([]byte, n)
			pattern(b, c.Rank())
			if _, err := f.WriteAtAll(ctx, int64(n*c.Rank()), b); err != nil {
				return err
			}
			left := (c.Rank() + 1) % c.Size()
			if _, err := f.ReadAtAll(ctx, int64(n*left), b); err != nil {
				return err
			}
			if err := checkPattern(b, left); err != nil {
				return err
			}
			return f.Close(ctx)
		}, WithGateways(tt.opts), WithSite(func(rank int) string { return tt.sites[rank : rank+1] }))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if b, err := os.ReadFile(name); err != nil || len(b) != n*len(tt.sites) {
			t.Errorf("%s: file of %d bytes, %v", tt.name, len(b), err)
		}
	}
}

// Spawned ranks are at the sites of the first ones, and reach all of them; the roots connect through gateways, too.
func TestSitesSpawn(t *testing.T) {
	for _, tt := range siteLayouts {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := sctptest.NewNetwork(1)
				defer net.Close()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				const kids = 4
				worker := func(ctx context.Context, w *World, _ []string) error {
					p := w.Parent()
					for r := range p.RemoteSize() {
						b := make([]byte, 50_000)
						if _, err := Recv(ctx, p, b, r, 1); err != nil {
							return err
						}
						if err := checkPattern(b, 10*r+w.Rank()); err != nil {
							return err
						}
						if err := Send(ctx, p, b[:100], r, 2); err != nil {
							return err
						}
					}
					sum := []int{w.Rank()}
					if err := Allreduce(ctx, w.Comm(), sum, sum, Sum[int]); err != nil || sum[0] != kids*(kids-1)/2 {
						return fmt.Errorf("sum of the ranks %d, %v", sum[0], err)
					}
					return p.Disconnect(ctx)
				}
				opts := append(virtualSites(net, tt.opts), WithProgram("worker", worker),
					WithSite(func(rank int) string { return tt.sites[rank : rank+1] }))
				err := RunLocal(ctx, len(tt.sites), func(ctx context.Context, w *World) error {
					c := w.Comm()
					d, err := c.Spawn(ctx, Command{Path: "worker", N: kids}, 2)
					if err != nil {
						return err
					}
					for k := range kids {
						b := make([]byte, 50_000)
						pattern(b, 10*c.Rank()+k)
						if err := Send(ctx, d, b, k, 1); err != nil {
							return err
						}
					}
					for k := range kids {
						b := make([]byte, 100)
						if _, err := Recv(ctx, d, b, k, 2); err != nil {
							return err
						}
						if s, err := d.SiteOf(k); err != nil || s != tt.sites[k:k+1] {
							return fmt.Errorf("process %d is at site %q, %v", k, s, err)
						}
					}
					return d.Disconnect(ctx)
				}, opts...)
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Two groups of ranks at different sites connect at a port, which is reached through gateways only.
func TestSitesPort(t *testing.T) {
	runSites(t, func(ctx context.Context, w *World) error {
		c := w.Comm()
		half, err := c.Split(ctx, c.Rank()%2, 0)
		if err != nil {
			return err
		}
		name := make([]byte, MaxPortName)
		if c.Rank() == 0 {
			s, err := w.OpenPort()
			if err != nil {
				return err
			}
			copy(name, s)
		}
		if err := Bcast(ctx, c, name, 0); err != nil {
			return err
		}
		port := string(bytes.TrimRight(name, "\x00"))
		var d *Comm
		if c.Rank()%2 == 0 {
			d, err = half.Accept(ctx, port, 0)
		} else {
			d, err = half.Connect(ctx, port, 0, nil)
		}
		if err != nil {
			return err
		}
		x := []int{-1}
		if _, err := Sendrecv(ctx, d, []int{c.Rank()}, half.Rank(), 1, x, half.Rank(), 1); err != nil {
			return err
		}
		if x[0] != c.Rank()^1 {
			return fmt.Errorf("rank %d got %d", c.Rank(), x[0])
		}
		if _, err := half.Connect(ctx, port+"0", 0, nil); !errors.Is(err, ErrPort) {
			return fmt.Errorf("connecting to a port with a wrong key: %w", err)
		}
		return nil
	})
}
