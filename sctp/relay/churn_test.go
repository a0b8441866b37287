package relay_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp/relay"
)

// Processes that die without a word and restart at random moments, beside gateways that do, legs between the sites that are
// cut, readers that pause, and Sends that give up; with and without a direct path, in all modes. What a life of a
// process sent arrives at a life of its target as a prefix of it, once and in order; what was confirmed to a life that is still
// there has arrived; and when all is over nobody holds anything.
func TestConservationChurn(t *testing.T) {
	seed, rounds := rand.Uint64(), 1
	if testenv.Soak(t, 0) > 0 {
		rounds = 50
	}
	if s, err := strconv.ParseUint(os.Getenv("WEFT_CONSERVATION"), 10, 64); err == nil {
		seed, rounds = s, 1 // of a failure
	}
	for i := range uint64(rounds) {
		for _, withDirect := range []bool{false, true} {
			for _, mode := range []relay.Mode{relay.Piecewise, relay.Chained, relay.Lossy} {
				if raceEnabled && withDirect != (mode == relay.Chained) {
					continue // each mode once
				}
				t.Run(fmt.Sprintf("direct=%t/mode=%d", withDirect, mode), func(t *testing.T) {
					t.Logf("seed %d", seed+i)
					synctest.Test(t, func(t *testing.T) {
						c := &churn{t: t, seed: seed + i, mode: mode, direct: withDirect, sent: make(map[uint64]*churnSent), got: make(map[churnKey]*churnGot)}
						c.run()
					})
				})
			}
		}
	}
}

const (
	churnTime      = 8 * time.Second // in which processes and gateways die
	churnProcesses = 2               // of a site
)

// churnSent is what one life of a flow has sent.
type churnSent struct {
	to    relay.Address
	ok    []bool // by message: Send took it
	final bool   // all is confirmed, when no process dies any more
}

// churnKey is a life of a flow and a life of its target.
type churnKey struct {
	flow   uint64
	target relay.Address
	life   int
}

type churnGot struct {
	ordered   []uint32
	unordered map[uint32]bool
}

type churn struct {
	t      *testing.T
	seed   uint64
	mode   relay.Mode
	direct bool
	w      *world
	ctx    context.Context
	over   chan struct{} // no process dies any more

	mu    sync.Mutex
	flows uint64
	lives map[relay.Address]int
	sent  map[uint64]*churnSent
	got   map[churnKey]*churnGot
	lost  int
}

func (c *churn) run() {
	t := c.t
	w := newWorld(t, c.seed, 2, 2, false, nil)
	c.w = w
	bad, worse := lan, wan
	bad.Loss, bad.Reorder, bad.Duplicate = 0.001, 0.001, 0.001
	worse.Loss, worse.Reorder, worse.Duplicate = 0.01, 0.01, 0.01
	w.Net.SetDefault(bad)
	w.SetWAN(worse)
	if c.direct {
		w.far()
	}
	w.connected()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	c.ctx, c.over, c.lives = ctx, make(chan struct{}), make(map[relay.Address]int)
	var last sync.WaitGroup // lives that see the end
	var sending sync.WaitGroup
	leave := make(chan struct{})
	for site := range uint16(2) {
		for p := range uint16(churnProcesses) {
			sending.Add(1)
			last.Go(func() { c.process(site+1, p+1, &sending, leave) })
		}
	}
	var killers sync.WaitGroup
	killers.Go(c.killGateways)
	killers.Go(c.cutWAN)
	time.Sleep(churnTime)
	close(c.over)
	killers.Wait()
	sending.Wait()
	time.Sleep(3 * time.Second) // readers that pause
	close(leave)
	last.Wait()
	time.Sleep(15 * time.Second)
	for k, g := range w.Up {
		s := g.Stats()
		if s.Held != 0 || len(s.Flows) != 0 || len(s.Legs) != 3 {
			t.Errorf("seed %d: gateway %v holds %d bytes, %d flows, %d legs; want 0, 0, 3", c.seed, k, s.Held, len(s.Flows), len(s.Legs))
		}
	}
	w.Close()
	c.check()
}

// process runs the lives of a process. The last one tells by sending that its messages are confirmed.
func (c *churn) process(site, p uint16, sending *sync.WaitGroup, leave chan struct{}) {
	rng := rand.New(rand.NewPCG(c.seed, uint64(site)<<8|uint64(p)))
	for life := 1; ; life++ {
		c.mu.Lock()
		c.lives[address(site, p)] = life
		c.mu.Unlock()
		n, err := c.w.TryNode(site, p, func(cfg *relay.NodeConfig) {
			cfg.Mode, cfg.FlowWindow = c.mode, 256<<10
			if c.direct {
				direct(false)(cfg)
			}
		})
		if err != nil {
			c.t.Errorf("seed %d: life %d of %v: %v", c.seed, life, address(site, p), err)
			sending.Done()
			return
		}
		ctx, die := context.WithCancel(c.ctx)
		var senders, reader sync.WaitGroup
		for s := range uint16(2) {
			for q := range uint16(churnProcesses) {
				if to := address(s+1, q+1); to != n.Address() {
					r := rand.New(rand.NewPCG(rng.Uint64(), 1))
					senders.Go(func() { c.send(ctx, n, to, r) })
				}
			}
		}
		r := rand.New(rand.NewPCG(rng.Uint64(), 2))
		reader.Go(func() { c.read(ctx, n, life, r) })
		end := false
		select {
		case <-time.After(time.Duration(300+rng.IntN(4000)) * time.Millisecond):
		case <-c.over:
			end = true
		}
		if end {
			senders.Wait()
			sending.Done()
			<-leave
			s := n.Stats()
			if s.SendHeld != 0 || s.RecvHeld != 0 {
				c.t.Errorf("seed %d: %v holds %d bytes of what it sent and %d of what it received", c.seed, n.Address(), s.SendHeld, s.RecvHeld)
			}
		} else {
			c.cut(site, p, c.w.Net.Cut) // it dies without a word
		}
		die()
		n.Close()
		senders.Wait()
		reader.Wait()
		if end {
			return
		}
		time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
		c.cut(site, p, c.w.Net.Restore)
	}
}

// cut cuts or restores all links of a process.
func (c *churn) cut(site, p uint16, f func(a, b string)) {
	for s := range uint16(2) {
		for g := range uint16(2) {
			f(nodeAddr(site, p), lanAddr(s+1, g+1))
		}
		for q := range uint16(churnProcesses) {
			if own := nodeAddr(site, p); own != nodeAddr(s+1, q+1) {
				f(own, nodeAddr(s+1, q+1))
			}
		}
	}
}

func (c *churn) killGateways() {
	rng := rand.New(rand.NewPCG(c.seed, 1<<32))
	for {
		site, gw := uint16(1+rng.IntN(2)), uint16(1+rng.IntN(2))
		select {
		case <-c.over:
			return
		case <-time.After(time.Duration(rng.IntN(1000)) * time.Millisecond):
		}
		c.w.Kill(site, gw)
		time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		c.w.Revive(site, gw)
	}
}

// cutWAN cuts one way between the sites, or all.
func (c *churn) cutWAN() {
	rng := rand.New(rand.NewPCG(c.seed, 1<<33))
	for {
		select {
		case <-c.over:
			return
		case <-time.After(time.Duration(rng.IntN(2000)) * time.Millisecond):
		}
		most, g, h := rng.IntN(2) == 0, uint16(rng.IntN(2)), uint16(rng.IntN(2))
		for i := range uint16(2) {
			for j := range uint16(2) {
				if most || i == g && j == h {
					c.w.Net.Cut(wanAddr(1, i+1), wanAddr(2, j+1))
				}
			}
		}
		time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
		for i := range uint16(2) {
			for j := range uint16(2) {
				c.w.Net.Restore(wanAddr(1, i+1), wanAddr(2, j+1))
			}
		}
	}
}

// send sends on a flow, which is begun again when it ends, until the process dies, or all is confirmed at the end.
func (c *churn) send(ctx context.Context, n *node, to relay.Address, rng *rand.Rand) {
	for ctx.Err() == nil {
		s, err := n.Sender(to, 0)
		if err != nil {
			return // closed
		}
		c.mu.Lock()
		c.flows++
		id, f := c.flows, &churnSent{to: to}
		c.sent[id] = f
		c.mu.Unlock()
		for i := uint32(0); err == nil; i++ {
			final := false
			select {
			case <-c.over:
				final = true
			default:
			}
			msg := make([]byte, 16+rng.IntN(1<<(4+rng.IntN(12))))
			binary.BigEndian.PutUint64(msg, id)
			binary.BigEndian.PutUint32(msg[8:], i)
			binary.BigEndian.PutUint32(msg[12:], crc32.ChecksumIEEE(msg[16:]))
			short, cancel := context.WithTimeout(ctx, time.Duration(1+rng.IntN(3000))*time.Millisecond)
			err = s.Send(short, msg, relay.SendOptions{PPID: i, Unordered: i%5 == 4})
			cancel()
			c.mu.Lock()
			f.ok = append(f.ok, err == nil)
			c.mu.Unlock()
			if errors.Is(err, context.DeadlineExceeded) {
				err = nil
			}
			if final && err == nil {
				if err = s.Flush(ctx); err == nil {
					c.mu.Lock()
					f.final = true
					c.mu.Unlock()
					return
				}
			}
			if rng.IntN(3) == 0 {
				time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
			}
		}
		switch {
		case errors.Is(err, relay.ErrLost) && c.mode == relay.Lossy:
			c.mu.Lock()
			c.lost++
			c.mu.Unlock()
		case !errors.Is(err, relay.ErrRestarted) && !errors.Is(err, relay.ErrClosed) && ctx.Err() == nil:
			c.t.Errorf("seed %d: flow %v to %v ended with %v", c.seed, n.Address(), to, err)
		}
	}
}

func (c *churn) read(ctx context.Context, n *node, life int, rng *rand.Rand) {
	buf := make([]byte, 1<<16)
	partial := make(map[*relay.Receiver][]byte)
	for {
		r, err := n.Next(ctx)
		if err != nil {
			return
		}
		for {
			k, info, err := r.TryRecv(buf)
			if err != nil {
				break // nothing more, or the end of the flow
			}
			partial[r] = append(partial[r], buf[:k]...)
			if !info.EOR {
				continue
			}
			msg := partial[r]
			delete(partial, r)
			if info.Aborted {
				continue
			}
			i := binary.BigEndian.Uint32(msg[8:])
			if i != info.PPID || info.Unordered != (i%5 == 4) || crc32.ChecksumIEEE(msg[16:]) != binary.BigEndian.Uint32(msg[12:]) {
				c.t.Errorf("seed %d: message %d of %d bytes is damaged: %+v", c.seed, i, len(msg), info)
			}
			key := churnKey{binary.BigEndian.Uint64(msg), n.Address(), life}
			c.mu.Lock()
			g := c.got[key]
			if g == nil {
				g = &churnGot{unordered: make(map[uint32]bool)}
				c.got[key] = g
			}
			switch {
			case !info.Unordered:
				g.ordered = append(g.ordered, i)
			case g.unordered[i]:
				c.t.Errorf("seed %d: flow %d: unordered message %d came twice", c.seed, key.flow, i)
			default:
				g.unordered[i] = true
			}
			c.mu.Unlock()
		}
		if rng.IntN(20) == 0 {
			time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
		}
	}
}

// check compares what was received with what was sent.
func (c *churn) check() {
	t := c.t
	messages, deaths, finals := 0, 0, 0
	for key, g := range c.got {
		f := c.sent[key.flow]
		if f == nil || f.to != key.target {
			t.Errorf("seed %d: %v received flow %d, which is not for it", c.seed, key.target, key.flow)
			continue
		}
		next := uint32(0)
		for _, i := range g.ordered {
			for ; next < i; next++ {
				if int(next) < len(f.ok) && f.ok[next] && next%5 != 4 {
					t.Errorf("seed %d: flow %d: message %d is missing before %d", c.seed, key.flow, next, i)
				}
			}
			if i < next {
				t.Errorf("seed %d: flow %d: message %d again, or late", c.seed, key.flow, i)
			}
			next = max(next, i+1)
			messages++
		}
	}
	for id, f := range c.sent {
		if !f.final {
			deaths++
			continue
		}
		finals++
		g := c.got[churnKey{id, f.to, c.lives[f.to]}]
		if g == nil {
			t.Errorf("seed %d: flow %d to %v is confirmed, but nothing of it has arrived", c.seed, id, f.to)
			continue
		}
		have := make(map[uint32]bool)
		for _, i := range g.ordered {
			have[i] = true
		}
		for i, ok := range f.ok {
			if ok && !have[uint32(i)] && !g.unordered[uint32(i)] {
				t.Errorf("seed %d: flow %d: message %d is confirmed, but has not arrived", c.seed, id, i)
			}
		}
	}
	t.Logf("%d messages in order, %d flows that ended, %d of them with data lost, %d to the end", messages, deaths, c.lost, finals)
	if want := 2 * churnProcesses * (2*churnProcesses - 1); finals != want {
		t.Errorf("seed %d: %d flows reached the end, want %d", c.seed, finals, want)
	}
}
