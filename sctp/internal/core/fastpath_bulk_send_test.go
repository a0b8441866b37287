package core

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// conversation has two hosts send at random, under loss, and returns every packet with
// its time, and in the end what they know of the path; and how many packets were received
// in in-sequence batches, and in those of unfragmented messages.
func conversation(t *testing.T, seed uint64, cfg Config, loss int) (log [][]byte, inSequence, unfragmented int) {
	p := newPair(t, seed, &cfg)
	p.zeroSum = cfg.ZeroChecksum
	p.net.loss, p.net.jitter = loss, time.Millisecond
	if p.net.batches = seed/2%2 == 1; p.net.batches {
		p.net.jitter, p.net.slabs = 0, seed%3 == 0
		if !cfg.ZeroChecksum {
			p.net.corrupt = int(seed % 5)
		}
	}
	p.net.sniff = func(from *host, pkt []byte) {
		at := binary.BigEndian.AppendUint64([]byte(from.name), uint64(p.now))
		states := byte(0) // of chunks, among them whether they make their packets large
		if a := from.assoc; a != nil && a.tx.sb != nil {
			for x := a.tx.sb.CumTSN() + 1; x != a.tx.sb.NextTSN(); x++ {
				states += byte(outstanding(a.tx.sb, x).FieldByName("state").Uint())
			}
		}
		at = append(at, states)
		log = append(log, append(at, pkt...))
	}
	p.connect()
	for _, h := range []*host{p.a, p.z} {
		h.assoc.tx.sb.WatchSizes(0, h.assoc.paths[0].mtu, int(seed%3)*60, 1<<17)
		for sid := range uint16(3) {
			if err := h.assoc.SetStreamValue(sid, 1+sid*sid); err != nil {
				t.Fatal(err)
			}
		}
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 150 {
		h := p.a
		if rng.IntN(3) == 0 {
			h = p.z
		}
		size := 1 + rng.IntN(200)
		switch rng.IntN(8) {
		case 0:
			size = 1 + rng.IntN(100_000)
		case 1, 2:
			size = 1000 + rng.IntN(1000)
		}
		m := &tx.Message{SID: uint16(rng.IntN(3)), Unordered: rng.IntN(4) == 0, Immediate: rng.IntN(4) == 0}
		// With a small window it may be found a packet later that a message has expired,
		// whose chunks no longer fill the window then.
		if rng.IntN(10) == 0 && cfg.RecvBuffer == 0 {
			m.Lifetime = clock.Time(rng.IntN(20)) * clock.Time(time.Millisecond)
		}
		h.sendMsg(m, size)
		if rng.IntN(5) == 0 {
			m := &tx.Message{SID: m.SID, Unordered: true, Immediate: m.Immediate, Headers: []byte{}}
			if m.SegmentSize = h.assoc.MaxPayload(); rng.IntN(3) == 0 {
				m.SegmentSize = 50 + rng.IntN(m.SegmentSize)
			}
			m.Body = make([]byte, 1+rng.IntN(100_000))
			for i := range m.Body {
				m.Body[i] = byte(rng.Uint32())
			}
			if lead := rng.IntN(tx.MaxHeader); lead < m.SegmentSize/2 {
				m.SegmentSize -= lead
				_, n := m.Size()
				for range n * lead {
					m.Headers = append(m.Headers, byte(rng.Uint32()))
				}
			}
			if err := h.assoc.Send(p.now, m); err != nil && err != tx.ErrWouldBlock {
				t.Fatal(err)
			}
		}
		switch rng.IntN(20) {
		case 0:
			p.advance(time.Second) // heartbeats, late SACKs
		case 1:
			h.assoc.SetPathMTU(h.assoc.paths[0].Remote, 600+rng.IntN(800))
		case 2:
			h.assoc.ResetStreams(p.now, []uint16{2})
		default:
			p.advance(time.Duration(rng.IntN(30)) * time.Millisecond)
		}
	}
	p.drive()
	for _, h := range []*host{p.a, p.z} {
		a := h.assoc
		sb, path := a.tx.sb, &a.paths[0]
		for _, m := range h.got {
			log = append(log, m.data)
		}
		log = append(log, fmt.Append(nil, sb.Stats(), private(sb, "payload"), private(sb, "rwnd"), sb.Flight(0), sb.FlightChunks(0), private(sb, "paths.0.rack"), path.count, path.cc.Cwnd(), path.rto.SRTT()))
	}
	return log, p.a.inSequence + p.z.inSequence, p.a.unfragmented + p.z.unfragmented
}

// Packets of the fast paths, built one by one or in bulk, are those that
// nextPacket builds, and leave in the same batches at the same time; and so are those that
// follow acknowledgements of many chunks that are taken in at once, and packets that are
// received as in-sequence batches.
func TestFastPathsBuildTheSamePackets(t *testing.T) {
	middles, unfragmented := 0, 0
	seeds := withRace(48, 8)
	for seed := range uint64(seeds) {
		cfg := Config{Pieces: seed/4%3 == 2, NoInterleaving: seed%2 == 1, Bundle: seed%3 == 1, NoPacing: seed%4 >= 2, NoRACK: seed%5 == 3, ZeroChecksum: seed%8 == 6,
			Scheduler: tx.Scheduler(seed / 4 % 6)}
		if seed%4 == 2 {
			cfg.RecvBuffer = 40_000 // which bounds what is under way
		}
		loss := int(seed%3) * 15
		slowPath := cfg
		slowPath.slowPath = true
		short, n, w := conversation(t, seed, cfg, loss)
		long, none, _ := conversation(t, seed, slowPath, loss)
		if none != 0 {
			t.Fatalf("seed %d: %d packets in in-sequence batches", seed, none)
		}
		middles += n - w
		unfragmented += w
		for i := range min(len(short), len(long)) {
			if !bytes.Equal(short[i], long[i]) {
				t.Fatalf("seed %d: packet %d of %d and %d differs:\n%x\n%x", seed, i, len(short), len(long), short[i], long[i])
			}
		}
		if len(short) != len(long) || len(short) < 500 {
			t.Fatalf("seed %d: %d packets and %d", seed, len(short), len(long))
		}
	}
	if t.Logf("%d packets in in-sequence batches, %d in those of unfragmented messages", middles, unfragmented); middles < 90*seeds || unfragmented < 6*seeds {
		t.Error("hardly any in-sequence batches were received")
	}
}
