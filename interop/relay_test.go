package interop

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
)

// A relay is a UDP path between us and a peer that loses, duplicates, swaps
// and corrupts packets as a seed says, or is cut.
//
//	us ↔ near | far ↔ peer
type relay struct {
	near, far *net.UDPConn
	cut       atomic.Bool
	lost      atomic.Int64

	mu       sync.Mutex
	us, peer netip.AddrPort // guarded by mu
	faults   faults         // guarded by mu
	wg       sync.WaitGroup
}

// faults are what a relay does to packets, as probabilities.
type faults struct {
	loss, dup, swap, corrupt float64
	seed                     uint64
	// drop decides about a packet beforehand. It is called for one at a time.
	drop func(fromUs bool, packet []byte) bool
}

func newRelay(t testing.TB, f faults) *relay {
	t.Helper()
	r := &relay{near: listenUDP(t), far: listenUDP(t), faults: f}
	r.wg.Add(2)
	go r.forward(r.near, r.far, true)
	go r.forward(r.far, r.near, false)
	t.Cleanup(func() {
		r.near.Close()
		r.far.Close()
		r.wg.Wait()
		t.Logf("relay: seed %d, %d packets lost", f.seed, r.lost.Load())
	})
	return r
}

// between sets the addresses of the two ends.
func (r *relay) between(us, peer netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.us, r.peer = us, peer
}

// set changes what the relay does.
func (r *relay) set(f faults) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.seed = r.faults.seed
	r.faults = f
}

func (r *relay) forward(from, to *net.UDPConn, fromUs bool) {
	defer r.wg.Done()
	var held []byte
	var rng *rand.Rand
	for buf := make([]byte, 65536); ; {
		n, _, err := from.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		r.mu.Lock()
		f, dst := r.faults, r.peer
		if !fromUs {
			dst = r.us
		}
		drop := f.drop != nil && f.drop(fromUs, buf[:n])
		r.mu.Unlock()
		if rng == nil {
			rng = rand.New(rand.NewPCG(f.seed, b2u(fromUs)))
		}
		p := buf[:n]
		if r.cut.Load() || !dst.IsValid() || drop || rng.Float64() < f.loss {
			r.lost.Add(1)
			continue
		}
		if rng.Float64() < f.corrupt {
			p[rng.IntN(n)] ^= 1 << rng.IntN(8)
		}
		if held == nil && rng.Float64() < f.swap {
			held = append([]byte(nil), p...)
			continue
		}
		to.WriteToUDPAddrPort(p, dst)
		if rng.Float64() < f.dup {
			to.WriteToUDPAddrPort(p, dst)
		}
		if held != nil {
			to.WriteToUDPAddrPort(held, dst)
			held = nil
		}
	}
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// listenUDP opens a socket on a free port of the loopback.
func listenUDP(t testing.TB) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadBuffer(7 << 20)
	return c
}
