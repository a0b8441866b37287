package stream_test

import (
	"context"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/stream"
)

// A process that sends anything but the protocol gets no connection, harms no connection of others, and leaves nothing
// behind; what it breaks is counted.
func TestHostileMessages(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, func(_ *relay.NodeConfig, c *stream.Config) { c.Linger = 5 * time.Second })
		defer p.close()
		x := p.end(1, 9, nil)
		_ = x.Endpoint.Close() // its node speaks for itself
		defer x.close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		go func() {
			for {
				r, err := x.node.Next(ctx)
				if err != nil {
					return
				}
				for buf := make([]byte, 4096); ; {
					if _, _, err := r.TryRecv(buf); err != nil {
						break
					}
				}
			}
		}()
		go func() {
			for { // accepts most of what it opens, and closes it sooner or later
				r, err := p.b.Accept(ctx)
				if err != nil {
					return
				}
				if c, err := r.Accept(ctx); err == nil {
					go io.Copy(io.Discard, c)
					time.AfterFunc(time.Second, func() { c.Close() })
				}
			}
		}()
		send := func(streamNumber uint16, kind, generation uint32, msg []byte) {
			t.Helper()
			s, err := x.node.Sender(p.b.Address(), streamNumber)
			wantNil(t, err)
			wantNil(t, s.Send(ctx, msg, relay.SendOptions{PPID: kind<<29 | generation}))
		}
		violations := func(what string, streamNumber uint16, kind, generation uint32, msg ...byte) {
			t.Helper()
			before := p.b.Stats().Violations
			send(streamNumber, kind, generation, msg)
			time.Sleep(time.Second)
			if n := p.b.Stats().Violations - before; n != 1 {
				t.Errorf("%s: %d violations counted, want 1", what, n)
			}
		}
		violations("open on the other side's stream", 3, 1, 5, 1)
		violations("open of another version", 2, 1, 5, 2)
		violations("open on the stream for control", 0, 2, 5, 1)
		violations("open that is too long", 2, 1, 5, make([]byte, 5000)...)
		violations("reset on the stream of a connection", 2, 7, 5, 0, 2, 0)
		violations("short reset", 0, 7, 5, 0, 2)
		violations("type 0", 2, 0, 5, 1)

		send(2, 1, 77, []byte{1})
		send(2, 5, 77, []byte{1})
		time.Sleep(50 * time.Millisecond)
		violations("end twice", 2, 5, 77, 1)
		send(2, 1, 78, []byte{1})
		send(2, 5, 78, []byte{1})
		time.Sleep(50 * time.Millisecond)
		violations("data behind the end", 2, 4, 78, 1)

		rng := rand.New(rand.NewPCG(seed, 0))
		for range 3000 {
			msg := make([]byte, 1+rng.IntN(1<<rng.IntN(12)))
			if rng.IntN(2) == 0 {
				msg[0] = 1
			}
			if rng.IntN(3) == 0 {
				msg = []byte{0, byte(rng.IntN(10)), 0}
			}
			send(uint16(rng.IntN(10)), rng.Uint32N(8), 70+rng.Uint32N(10), msg)
			if rng.IntN(10) == 0 {
				time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
			}
		}
		time.Sleep(10 * time.Second)
		go func() {
			p.c.Write([]byte("unharmed"))
			p.c.Close()
		}()
		if got, err := io.ReadAll(p.d); string(got) != "unharmed" || err != nil {
			t.Errorf("connection of another process: %q, %v", got, err)
		}
		p.d.Close()
		x.kill()
		time.Sleep(20 * time.Second)
		s, held := p.b.Stats(), p.b.node.Stats()
		t.Logf("%+v", s)
		if s.Conns != 0 || held.RecvHeld != 0 || held.SendHeld != 0 {
			t.Errorf("%d connections, %d bytes received and %d sent are held", s.Conns, held.RecvHeld, held.SendHeld)
		}
	})
}
