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

// Everything at once: loss, reordering and duplicates on all links; many flows with messages of random lengths, some
// unordered; readers that pause; gateways that are killed without a word, and return, at random moments; processes that leave
// when they have sent what they had. What was sent is delivered once, in order, on the flow that it was sent on, and
// then nothing is held any more.
func TestConservation(t *testing.T) {
	seed := rand.Uint64()
	rounds := 1
	if testenv.Soak(t, 0) > 0 {
		rounds = 50
	}
	if s, err := strconv.ParseUint(os.Getenv("WEFT_CONSERVATION"), 10, 64); err == nil {
		seed, rounds = s, 1 // of a failure
	}
	for i := range uint64(rounds) {
		for _, sites := range []int{2, 3} {
			for _, mode := range []relay.Mode{relay.Piecewise, relay.Chained} {
				t.Run(fmt.Sprintf("gateways=%d/mode=%d", sites, mode), func(t *testing.T) {
					t.Logf("seed %d", seed+i)
					synctest.Test(t, func(t *testing.T) { conserve(t, seed+i, sites, mode) })
				})
			}
		}
	}
}

const (
	conserveProcesses = 3 // of each of the outer sites
	conserveStreams   = 2
)

func conserve(t *testing.T, seed uint64, sites int, mode relay.Mode) {
	w := newWorld(t, seed, sites, 2, true, nil)
	far := uint16(sites)
	bad, worse := lan, wan
	bad.Loss, bad.Reorder, bad.Duplicate = 0.001, 0.001, 0.001
	worse.Loss, worse.Reorder, worse.Duplicate = 0.01, 0.01, 0.01
	w.Net.SetDefault(bad)
	w.SetWAN(worse)
	w.connected()

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var nodes []*node
	for _, site := range []uint16{1, far} {
		for p := range uint16(conserveProcesses) {
			nodes = append(nodes, w.Node(site, p+1, func(c *relay.NodeConfig) { c.Mode = mode }))
		}
	}
	var sending, reading sync.WaitGroup
	for i, n := range nodes {
		reading.Go(func() { conserveRead(t, ctx, n, rand.New(rand.NewPCG(seed, uint64(i)))) })
		for _, peer := range nodes {
			for stream := range uint16(conserveStreams) {
				s, err := n.Sender(peer.Address(), stream)
				wantNil(t, err)
				rng := rand.New(rand.NewPCG(seed, uint64(i)<<16|uint64(peer.Address().Site)<<8|uint64(peer.Address().Process)<<4|uint64(stream)))
				sending.Go(func() { conserveSend(t, ctx, s, n.Address(), rng) })
			}
		}
	}
	done := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 1<<32))
		for kills := 0; ; kills++ {
			site, gw := uint16(1+rng.IntN(sites)), uint16(1+rng.IntN(2))
			wait := time.Duration(rng.IntN(300)) * time.Millisecond
			dead := time.Duration(rng.IntN(1500)) * time.Millisecond
			select {
			case <-done:
				t.Logf("%d gateways killed", kills)
				return
			case <-time.After(wait):
			}
			w.Kill(site, gw)
			time.Sleep(dead)
			w.Revive(site, gw)
		}
	})
	sending.Wait()
	close(done)
	killer.Wait()
	for _, n := range nodes {
		reading.Go(func() {
			// What was sent is confirmed before the process leaves, though its peers may have left.
			s := n.Stats()
			for _, f := range s.Senders {
				if f.Err != nil {
					t.Errorf("flow %v to %v/%d: %v", n.Address(), f.Target, f.Stream, f.Err)
				}
			}
		})
	}
	reading.Wait()
	var total relay.SenderCounters
	for _, n := range nodes {
		s := n.Stats()
		if s.SendHeld != 0 || s.RecvHeld != 0 {
			t.Errorf("seed %d: %v holds %d bytes of what it sent and %d of what it received", seed, n.Address(), s.SendHeld, s.RecvHeld)
		}
		for _, f := range s.Senders {
			total.GoBacks += f.GoBacks
			total.Resent += f.Resent
			total.Moves += f.Moves
			total.Frames += f.Frames
		}
	}
	t.Logf("%d frames, %d sent again, %d times gone back, %d moves", total.Frames, total.Resent, total.GoBacks, total.Moves)
	for _, n := range nodes {
		wantNil(t, n.Shutdown(ctx))
		_ = n.Transport.Close()
	}
	time.Sleep(5 * time.Second)
	for k, g := range w.Up {
		if held := g.Stats().Held; held != 0 {
			t.Errorf("seed %d: gateway %v holds %d bytes", seed, k, held)
		}
	}
	w.Close()
}

// conserveSend sends the messages of a flow: length, number and checksum, with the flow in front.
func conserveSend(t *testing.T, ctx context.Context, s *relay.Sender, from relay.Address, rng *rand.Rand) {
	for i := range conserveMessages {
		n := 32 + rng.IntN(1<<(5+rng.IntN(12)))
		msg := make([]byte, n)
		binary.BigEndian.PutUint32(msg, uint32(i))
		binary.BigEndian.PutUint16(msg[4:], from.Site)
		binary.BigEndian.PutUint16(msg[6:], from.Process)
		binary.BigEndian.PutUint16(msg[8:], s.Target().Site)
		binary.BigEndian.PutUint16(msg[10:], s.Target().Process)
		binary.BigEndian.PutUint16(msg[12:], s.Stream())
		for j := 20; j < n; j++ {
			msg[j] = byte(i + j)
		}
		binary.BigEndian.PutUint32(msg[16:], crc32.ChecksumIEEE(msg[20:]))
		o := relay.SendOptions{PPID: uint32(i), Unordered: i%7 == 6}
		err := relay.ErrWouldBlock
		if rng.IntN(4) == 0 {
			err = s.TrySend(msg, o)
		}
		if errors.Is(err, relay.ErrWouldBlock) {
			err = s.Send(ctx, msg, o)
		}
		if err != nil {
			t.Errorf("flow %v to %v/%d, message %d: %v", from, s.Target(), s.Stream(), i, err)
			return
		}
		if rng.IntN(3) == 0 {
			time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
		}
	}
	if err := s.Flush(ctx); err != nil {
		t.Errorf("flow %v to %v/%d: Flush: %v", from, s.Target(), s.Stream(), err)
	}
}

// conserveRead reads until all flows to n have delivered their messages.
func conserveRead(t *testing.T, ctx context.Context, n *node, rng *rand.Rand) {
	type state struct {
		got     [conserveMessages]bool
		ordered int
		partial []byte
	}
	flows := make(map[*relay.Receiver]*state)
	want := 2 * conserveProcesses * conserveStreams * conserveMessages
	buf := make([]byte, 20_000)
	for want > 0 {
		r, err := n.Next(ctx)
		if err != nil {
			t.Errorf("%v: Next with %d messages to come: %v", n.Address(), want, err)
			return
		}
		f := flows[r]
		if f == nil {
			f = new(state)
			flows[r] = f
		}
		for {
			k, info, err := r.TryRecv(buf)
			if errors.Is(err, relay.ErrWouldBlock) {
				break
			}
			if err != nil {
				t.Errorf("%v: TryRecv: %v", n.Address(), err)
				return
			}
			f.partial = append(f.partial, buf[:k]...)
			if !info.EOR {
				continue
			}
			msg := f.partial
			f.partial = nil
			i := int(binary.BigEndian.Uint32(msg))
			o, self := r.Origin(), n.Address()
			switch {
			case info.Aborted || int(info.PPID) != i || info.Unordered != (i%7 == 6):
				t.Errorf("message %d: %+v", i, info)
			case binary.BigEndian.Uint16(msg[4:]) != o.Site || binary.BigEndian.Uint16(msg[6:]) != o.Process ||
				binary.BigEndian.Uint16(msg[8:]) != self.Site || binary.BigEndian.Uint16(msg[10:]) != self.Process ||
				binary.BigEndian.Uint16(msg[12:]) != r.Stream():
				t.Errorf("message of another flow on %v to %v/%d", o, self, r.Stream())
			case binary.BigEndian.Uint32(msg[16:]) != crc32.ChecksumIEEE(msg[20:]):
				t.Errorf("message %d is damaged", i)
			case f.got[i]:
				t.Errorf("flow %v to %v/%d: message %d came twice", o, self, r.Stream(), i)
			case !info.Unordered && i < f.ordered:
				t.Errorf("flow %v to %v/%d: message %d after %d", o, self, r.Stream(), i, f.ordered)
			}
			f.got[i] = true
			if !info.Unordered {
				f.ordered = i
			}
			want--
		}
		if rng.IntN(20) == 0 {
			time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		}
	}
}
