package stream_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp/relay/stream"
)

// Everything at once: loss, reordering and duplicates on all links; many connections between several processes, with
// random lengths in both directions, whose ends are half-closed, closed or reset at random moments; readers that
// pause; calls that are interrupted by deadlines; gateways that are killed without a word, and return. Of a connection
// that was not reset all bytes arrive, of the others the first ones; then nothing is held any more.
func TestConservation(t *testing.T) {
	seed := rand.Uint64()
	rounds := uint64(1)
	if testenv.Soak(t, 0) > 0 {
		rounds = 50
	}
	if s, err := strconv.ParseUint(os.Getenv("WEFT_CONSERVATION"), 10, 64); err == nil {
		seed, rounds = s, 1 // of a failure
	}
	for i := range rounds {
		t.Logf("seed %d", seed+i)
		synctest.Test(t, func(t *testing.T) { conserve(t, seed+i) })
	}
}

const conserveConns = 12 // that each process opens

// tally counts connections.
type tally struct{ whole, reset atomic.Int64 }

func conserve(t *testing.T, seed uint64) {
	bad, worse := lan, wan
	bad.Loss, bad.Reorder, bad.Duplicate = 0.001, 0.001, 0.001
	worse.Loss, worse.Reorder, worse.Duplicate = 0.01, 0.01, 0.01
	w := newWorld(t, seed, 2, bad, worse)
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	var ends []*end
	for site := uint16(1); site <= 2; site++ {
		for p := range uint16(2) {
			ends = append(ends, w.end(site, p+1, nil))
		}
	}
	var n tally
	var sides sync.WaitGroup
	for i, x := range ends {
		sides.Go(func() {
			for range conserveConns * (len(ends) - 1) {
				r, err := x.Accept(ctx)
				if err != nil {
					t.Errorf("seed %d: Accept: %v", seed, err)
					return
				}
				sides.Go(func() {
					id := binary.BigEndian.Uint64(r.Bytes())
					c, err := r.Accept(ctx)
					if err != nil {
						t.Errorf("seed %d: Accept of %x: %v", seed, id, err)
						return
					}
					n.side(t, seed, c, id, 1)
				})
			}
		})
		for j, y := range ends {
			if i == j {
				continue
			}
			for k := range conserveConns {
				id := uint64(i)<<32 | uint64(j)<<16 | uint64(k)
				sides.Go(func() {
					time.Sleep(time.Duration(rand.New(rand.NewPCG(seed, id)).IntN(8000)) * time.Millisecond)
					c, err := x.Dial(ctx, y.Address(), binary.BigEndian.AppendUint64(nil, id))
					if plan(seed, id).resetter == 1 && errors.Is(err, stream.ErrReset) {
						n.reset.Add(1)
						return
					}
					if err != nil {
						t.Errorf("seed %d: Dial %x: %v", seed, id, err)
						return
					}
					n.side(t, seed, c, id, 0)
				})
			}
		}
	}
	done := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 1<<32))
		for kills := 0; ; kills++ {
			site, gw := uint16(1+rng.IntN(2)), uint16(1+rng.IntN(2))
			select {
			case <-done:
				t.Logf("%d gateways killed, %d sides whole, %d reset", kills, n.whole.Load(), n.reset.Load())
				return
			case <-time.After(time.Duration(rng.IntN(2000)) * time.Millisecond):
			}
			w.Kill(site, gw)
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
			w.Revive(site, gw)
		}
	})
	sides.Wait()
	close(done)
	killer.Wait()
	time.Sleep(90 * time.Second) // as long as what was closed may linger
	for _, x := range ends {
		s, held := x.Stats(), x.node.Stats()
		if s.Conns != 0 || s.Violations != 0 || s.PeersLost != 0 || held.SendHeld != 0 || held.RecvHeld != 0 {
			t.Errorf("seed %d: %v: %+v, %d bytes sent and %d received are held", seed, x.Address(), s, held.SendHeld, held.RecvHeld)
		}
		x.close()
	}
	time.Sleep(5 * time.Second)
	for k, g := range w.Up {
		if held := g.Stats().Held; held != 0 {
			t.Errorf("seed %d: gateway %v holds %d bytes", seed, k, held)
		}
	}
	if n.whole.Load() < 2*conserveConns || n.reset.Load() == 0 {
		t.Errorf("seed %d: %d sides whole, %d reset", seed, n.whole.Load(), n.reset.Load())
	}
}

// plot is what both ends of a connection know of it.
type plot struct {
	lengths  [2]int        // of what each sends
	resetter uint64        // which of them resets it; above 1: none
	after    time.Duration // after which time
}

func plan(seed, id uint64) (p plot) {
	rng := rand.New(rand.NewPCG(seed, id|1<<60))
	for i := range p.lengths {
		p.lengths[i] = rng.IntN(1 << (3 + rng.IntN(18)))
	}
	p.resetter, p.after = uint64(rng.IntN(8)), time.Duration(rng.IntN(3000))*time.Millisecond
	return p
}

// side is one end of connection id: it sends, receives and ends as seed and id say, which the other one knows.
func (n *tally) side(t *testing.T, seed uint64, c *stream.Conn, id, which uint64) {
	p := plan(seed, id)
	lengths, resetter := p.lengths, p.resetter
	rng := rand.New(rand.NewPCG(seed, id|which<<61))
	what := fmt.Sprintf("seed %d: connection %x, side %d", seed, id, which)
	if resetter == which {
		time.AfterFunc(p.after, c.Reset)
	}
	mayFail := resetter < 2
	failed := func(err error) bool {
		over := errors.Is(err, stream.ErrReset) || errors.Is(err, net.ErrClosed) && resetter == which
		if !mayFail || !over {
			t.Errorf("%s: %v", what, err)
		}
		return over
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		rest := pattern(lengths[which], id<<1|which)
		for len(rest) > 0 {
			k := min(len(rest), 1+rng.IntN(1<<rng.IntN(18)))
			if rng.IntN(8) == 0 {
				c.SetWriteDeadline(time.Now().Add(time.Duration(rng.IntN(50)) * time.Millisecond))
			}
			k, err := c.Write(rest[:k])
			rest = rest[k:]
			if errors.Is(err, os.ErrDeadlineExceeded) {
				c.SetWriteDeadline(time.Time{})
			} else if err != nil {
				failed(err)
				return
			}
			if rng.IntN(4) == 0 {
				time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			}
		}
		if err := c.CloseWrite(); err != nil {
			failed(err)
		}
	})
	want := pattern(lengths[1-which], id<<1|(1-which))
	reader := rand.New(rand.NewPCG(seed, id|which<<62))
	buf := make([]byte, 1<<17)
	whole := false
	for got := 0; ; {
		if reader.IntN(8) == 0 {
			c.SetReadDeadline(time.Now().Add(time.Duration(reader.IntN(50)) * time.Millisecond))
		}
		k, err := c.Read(buf[:1+reader.IntN(1<<reader.IntN(18))])
		if got+k > len(want) || string(buf[:k]) != string(want[got:got+k]) {
			t.Errorf("%s: other bytes after %d of %d", what, got, len(want))
			break
		}
		got += k
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.SetReadDeadline(time.Time{})
			continue
		}
		if err == io.EOF {
			if whole = got == len(want); !whole {
				t.Errorf("%s: end after %d bytes of %d", what, got, len(want))
			}
			break
		}
		if err != nil {
			failed(err)
			break
		}
		if reader.IntN(4) == 0 {
			time.Sleep(time.Duration(reader.IntN(300)) * time.Millisecond)
		}
	}
	writer.Wait()
	if whole {
		n.whole.Add(1)
	} else {
		n.reset.Add(1)
	}
	if err := c.Close(); err != nil {
		failed(err)
	}
}
