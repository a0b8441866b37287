package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/rto"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// probeCases are the ways in which data is sent to a reader that pauses.
var probeCases = []struct {
	name string
	cfg  func(c *Config)
	send func(h *host)
}{
	{"one stream", func(*Config) {}, func(h *host) { h.send(0, 400_000) }},
	{"full packets", func(c *Config) { c.NoInterleaving = true }, func(h *host) {
		for range 300 {
			h.send(0, h.assoc.MaxPayload())
		}
	}},
	{"small messages", func(*Config) {}, func(h *host) {
		for range 4000 {
			h.send(0, 100)
		}
	}},
	{"streams", func(c *Config) { c.NoInterleaving = true }, func(h *host) {
		for i := range 40 {
			h.send(uint16(i%8), 10_000)
		}
	}},
	{"interleaved streams", func(*Config) {}, func(h *host) {
		for i := range 40 {
			h.send(uint16(i%8), 10_000)
		}
	}},
	{"unordered", func(*Config) {}, func(h *host) {
		for i := range 100 {
			h.sendMsg(&tx.Message{SID: uint16(i % 8), Unordered: true}, 4000)
		}
	}},
	{"limited lifetime", func(*Config) {}, func(h *host) {
		for range 100 {
			h.sendMsg(&tx.Message{Lifetime: clock.Time(10 * time.Hour)}, 4000)
		}
	}},
	{"limited retransmissions", func(*Config) {}, func(h *host) {
		for range 100 {
			h.sendMsg(&tx.Message{LimitRtx: true, MaxRtx: 60_000}, 4000)
		}
	}},
}

// A window that opens is a reason to send again what was sent to ask for it: however long
// the reader has paused, the data goes on one round trip after it reads.
func TestPausedReaderGoesOnAtOnce(t *testing.T) {
	const delay = 5 * time.Millisecond
	for _, tc := range probeCases {
		for _, paths := range []string{"one", "failover", "multipath"} {
			for _, noRACK := range []bool{false, true} {
				for _, pause := range []time.Duration{50 * time.Millisecond, 30 * time.Second} {
					t.Run(fmt.Sprintf("%s/paths=%s/NoRACK=%v/pause=%v", tc.name, paths, noRACK, pause), func(t *testing.T) {
						c := &Config{RecvBuffer: 64 << 10, NoRACK: noRACK, Multipath: paths == "multipath", MTU: 1452}
						tc.cfg(c)
						p := newMultihomed(t, 760, c)
						p.t = quiet{t}
						if paths == "one" {
							p = newPair(t, 760, c)
						}
						p.net.delay = delay
						p.connect()
						if paths != "one" {
							p.confirmAll()
						}
						p.z.reading = false
						tc.send(p.a)
						p.advance(pause)
						p.z.reading = true
						start, got := p.now, p.z.assoc.Stats().BytesReceived
						p.z.read()
						// The window update, a round trip, and the first that follows.
						if p.advance(3*delay + time.Millisecond); p.z.assoc.Stats().BytesReceived == got {
							t.Errorf("nothing came in a round trip and a half")
						}
						if !p.driveUntil(time.Hour, p.idle) {
							t.Fatal("not everything was delivered")
						}
						// Slow start from whatever window is left, and the delay of a SACK.
						limit := 40*delay + DefaultSackDelay
						if noRACK { // what overtakes a chunk that was dropped may fill the buffer till T3
							limit += 2 * rto.DefaultMin
						}
						if took := time.Duration(p.now - start); took > limit {
							t.Errorf("%v from the read until everything was delivered", took)
						}
						p.a.flush()
						p.z.read()
						p.wantDelivered()
						p.a.wantState(Established)
						if n := p.a.assoc.errors; n > 0 {
							t.Errorf("%d errors counted of a peer that answered", n)
						}
					})
				}
			}
		}
	}
}

// probed is a client with one chunk in flight that its peer, which the test plays, dropped
// because its window was too small.
func probed(t *testing.T, window uint32, c *Config) *pair {
	t.Helper()
	p := newPair(t, 761, c)
	p.connect()
	p.a.send(0, 1000)
	p.drive()
	p.a.refuse(window)
	for range 200 {
		p.a.send(0, 1200)
	}
	p.a.outbox()
	if window == 0 { // a probe goes when an RTO has passed
		p.now += p.a.assoc.paths[0].rto.Value()
		p.a.assoc.HandleTimeout(p.now)
		p.a.outbox()
	}
	if n := p.a.assoc.tx.sb.FlightChunks(0); n != 1 {
		t.Fatalf("%d chunks in flight, want the probe", n)
	}
	p.now += clock.Time(10 * time.Millisecond)
	p.a.refuse(window)
	return p
}

// refuse has h get a SACK that acknowledges nothing more, with a window.
func (h *host) refuse(window uint32) {
	h.deliver(h.packet(h.assoc.Tag(), wire.AppendSack(nil, uint32(h.assoc.tx.sb.CumTSN()), window, nil, nil)))
}

// refuseFor has h's peer answer every packet with a window for so long.
func (h *host) refuseFor(d time.Duration, window uint32) (packets int) {
	p := h.p
	for end := p.now + clock.Time(d); h.assoc.State() == Established; {
		at := h.assoc.NextTimeout()
		if at == 0 || at > end {
			p.now = end
			break
		}
		p.now = max(p.now, at)
		h.assoc.HandleTimeout(p.now)
		for _, pkt := range h.outbox() {
			it := wire.NewChunks(pkt[wire.HeaderLen:])
			for it.Next() {
				switch c := it.Chunk(); c.Type {
				case wire.ChunkIData:
					packets++
					p.now += clock.Time(10 * time.Millisecond)
					h.refuse(window)
				case wire.ChunkHeartbeat:
					h.deliver(h.packet(h.assoc.Tag(), wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, c.Value)))
				}
			}
		}
	}
	return packets
}

// RFC 9260, Section 6.1, A: a window is closed if it "is smaller than the size of the next
// DATA chunk". A peer that answers keeps it so for as long as it likes; that is no error
// of the peer or path, no congestion, and no sign of a smaller path MTU.
func TestRefusedProbesAreNoLosses(t *testing.T) {
	for _, window := range []uint32{0, 4, 1199} {
		for _, noRACK := range []bool{false, true} {
			p := probed(t, window, &Config{NoRACK: noRACK, MTU: 1452, MaxMTU: 1452, Discover: true, HBInterval: -1})
			a := p.a.assoc
			path := &a.paths[0]
			setField(&path.plpmtu, "low", 1452) // as if the search had ended
			cwnd, mtu := path.cc.Cwnd(), path.mtu
			n := p.a.refuseFor(2*time.Hour, window)
			p.a.wantState(Established)
			// Once a minute at last, and some more at first.
			if n < 60 || n > 200 {
				t.Errorf("window %d: %d probes in two hours", window, n)
			}
			if a.errors > 0 || path.errors > 0 {
				t.Errorf("window %d: %d errors of the association, %d of the path", window, a.errors, path.errors)
			}
			if path.cc.Cwnd() != cwnd {
				t.Errorf("window %d: cwnd %d, was %d", window, path.cc.Cwnd(), cwnd)
			}
			if path.mtu != mtu || path.count.holes > 0 {
				t.Errorf("window %d: packets of %d bytes, were %d; %d black holes", window, path.mtu, mtu, path.count.holes)
			}
			// It opens: the probe goes again, at once, with the timeout that was measured.
			p.a.refuse(100_000)
			if got := p.a.outbox(); len(got) < 1 || !hasChunk(got[0], wire.ChunkIData) {
				t.Fatalf("window %d, NoRACK %v: %d packets when the window opened", window, noRACK, len(got))
			}
			if rto := path.rto.Value(); rto > clock.Time(time.Second) {
				t.Errorf("window %d: RTO %v after the window opened", window, time.Duration(rto))
			}
			if p.a.assoc.tx.sb.Probing() {
				t.Errorf("window %d: probes in flight", window)
			}
		}
	}
}

// A SACK with an open window that left the peer before the probe had come tells nothing of
// it: the probe is on its way to a window that is open by now.
func TestProbeOnItsWayIsNotSentAgain(t *testing.T) {
	p := newPair(t, 762, &Config{RecvBuffer: 64 << 10})
	p.connect()
	p.a.send(0, 1000)
	p.drive()
	p.a.refuse(0)
	for range 3 {
		p.a.send(0, 1200)
	}
	p.a.outbox()
	p.now += p.a.assoc.paths[0].rto.Value()
	p.a.assoc.HandleTimeout(p.now)
	if got := p.a.outbox(); len(got) != 1 {
		t.Fatalf("%d probes", len(got))
	}
	p.now += clock.Time(time.Millisecond)
	p.a.refuse(60_000)
	for _, pkt := range p.a.outbox() {
		it := wire.NewChunks(pkt[wire.HeaderLen:])
		for it.Next() {
			var d wire.Data
			c := it.Chunk()
			if d.ParseI(&c) == nil && seq.TSN(d.TSN) == p.a.assoc.tx.sb.CumTSN()+1 {
				t.Errorf("the probe was sent again after a fifth of a round trip: %s", wire.Describe(pkt))
			}
		}
	}
	// If the peer dropped it nevertheless, T3 repairs it in the time that was measured.
	if at := p.a.assoc.timers.Path[0][timer.T3]; at == 0 || at-p.now > clock.Time(time.Second) {
		t.Errorf("T3 in %v", time.Duration(at-p.now))
	}
}
