package core

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/wire"
)

// batchMaker makes GRO batches as a peer sends them that does everything right, most of the
// time.
type batchMaker struct {
	rng   *rand.Rand
	idata bool
	head  wire.Header
	tsn   uint32
	mids  [2][4]uint32 // next, of ordered and unordered messages
	open  [4]*wire.Data
	last  int // stream
	zero  bool
}

// packet makes a packet of n bytes with one chunk, or of a few more or less.
func (m *batchMaker) packet(n int) []byte {
	b := wire.AppendHeader(nil, m.head)
	over := wire.DataHeaderLen
	if m.idata {
		over = wire.IDataHeaderLen
	}
	room := n - wire.HeaderLen - over
	sid := m.last
	if m.rng.IntN(60) == 0 {
		sid = m.rng.IntN(4)
		if !m.idata && m.open[m.last] != nil {
			sid = m.last // its message goes on
		}
	}
	m.last = sid
	d := m.open[sid]
	var c wire.Data
	if d != nil {
		c = *d
		c.Begin = false
		c.FSN++
		c.End = m.rng.IntN(40) == 0
	} else {
		u := m.rng.IntN(2)
		c = wire.Data{SID: uint16(sid), Unordered: u == 1, Begin: true, PPID: m.rng.Uint32(), MID: m.mids[u][sid]}
		c.SSN = uint16(c.MID)
		if m.mids[u][sid]++; u == 1 && m.rng.IntN(20) == 0 {
			m.mids[u][sid]++ // nobody notices
		}
		if c.End = c.Unordered && m.rng.IntN(3) > 0; m.rng.IntN(4) == 0 {
			c.End = true
		}
		if !m.idata && c.Unordered {
			c.SSN = 0
			m.mids[1][sid] = 0
		}
	}
	c.TSN = m.tsn
	m.tsn++
	c.Immediate = m.rng.IntN(60) == 0
	c.Payload = make([]byte, room-max(0, m.rng.IntN(40)-36))
	for i := range c.Payload {
		c.Payload[i] = byte(m.rng.Uint32())
	}
	if m.open[sid] = &c; c.End {
		m.open[sid] = nil
	}
	// What a peer must not do, and what the network does.
	x := c
	switch m.rng.IntN(4000) {
	case 0:
		x.MID++
		x.SSN++
	case 1:
		x.FSN++
	case 2:
		x.SID ^= 1
	case 3:
		x.Unordered = !x.Unordered
	}
	if m.idata {
		b = wire.AppendIData(b, x)
	} else {
		b = wire.AppendData(b, x)
	}
	if m.rng.IntN(200) == 0 {
		b[wire.HeaderLen+10] = 1 // reserved in an I-DATA chunk
	}
	if m.zero && m.rng.IntN(2) == 0 {
		return b
	}
	wire.SetChecksum(b)
	switch m.rng.IntN(300) {
	case 0:
		b[m.rng.IntN(len(b))] ^= 1 << m.rng.IntN(8)
	case 1:
		clear(b[8:12])
	}
	return b
}

// What HandleInSequence takes in is taken in as by HandlePacket, whatever the batches are like:
// after each all that can be seen is the same, and what is read.
func TestInSequenceFastPathMatchesSlowPath(t *testing.T) {
	taken, unfragmented := 0, 0
	seeds := withRace(400, 40)
	for seed := range uint64(seeds) {
		cfg := Config{Pieces: seed%2 == 1, NoInterleaving: seed%4 >= 2, ZeroChecksum: seed%5 == 4}
		if seed%7 == 3 {
			cfg.RecvBuffer = 100_000
		}
		plain := cfg
		plain.slowPath = true
		p, q := newPair(t, seed, &cfg), newPair(t, seed, &plain)
		p.zeroSum, q.zeroSum = cfg.ZeroChecksum, cfg.ZeroChecksum
		p.connect()
		q.connect()
		x, y := p.z.assoc, q.z.assoc
		rng := rand.New(rand.NewPCG(seed, 3))
		m := &batchMaker{rng: rng, idata: !cfg.NoInterleaving, tsn: uint32(x.rx.tsns.CumTSN()) + 1, zero: cfg.ZeroChecksum,
			head: wire.Header{SrcPort: x.peer.port, DstPort: x.port, VTag: x.tag}}
		now := p.now
		var held [][]byte // that come late
		holding := false
		for step := range 60 {
			var batch [][]byte
			n := 100 + 4*rng.IntN(300)
			for range 1 + rng.IntN(30) {
				b := m.packet(n)
				if holding = len(held) < 30 && rng.IntN(60) == 0 || holding && rng.IntN(4) > 0; holding {
					held = append(held, b)
					continue
				}
				switch rng.IntN(200) {
				case 0: // lost
				case 1:
					batch = append(batch, b, bytes.Clone(b))
				default:
					batch = append(batch, b)
				}
			}
			pkt := Packet{Tuple: Tuple{Local: p.z.local[0], Remote: p.a.local[0]}}
			if rng.IntN(20) == 0 {
				pkt.ECN = ECNCE
			}
			got := x.receiveBatch(now, pkt, batch, p)
			taken += got
			if got > 0 && x.rx.reasm.HasUnfragmented() {
				unfragmented += got
			}
			if n := y.receiveBatch(now, pkt, batch, q); n != 0 {
				t.Fatalf("seed %d: %d packets in in-sequence batches", seed, n)
			}
			if step%3 == 0 { // it takes its time, and they do not become alike again
				if s := diffState(x, y); s != "" {
					t.Fatalf("seed %d: taken in as a batch and one by one: %s", seed, s)
				}
			}
			if len(held) > 0 && rng.IntN(3) == 0 {
				k := 1 + rng.IntN(len(held))
				taken += x.receiveBatch(now, pkt, held[:k], p)
				y.receiveBatch(now, pkt, held[:k], q)
				if s := diffState(x, y); s != "" {
					t.Fatalf("seed %d: late, taken in as a batch and one by one: %s", seed, s)
				}
				held = held[k:]
			}
			if rng.IntN(3) > 0 && (cfg.RecvBuffer == 0 || rng.IntN(8) == 0) {
				if a, b := received(x), received(y); !bytes.Equal(a, b) {
					t.Fatalf("seed %d: read %d and %d bytes", seed, len(a), len(b))
				}
			}
			if rng.IntN(2) == 0 { // SACKs
				for _, a := range []*Assoc{x, y} {
					for ok := true; ok; {
						_, _, ok = a.PollTransmit(now, make([]byte, 0, MaxPacket), 10)
					}
				}
			}
			if rng.IntN(10) == 0 {
				on := rng.IntN(2) == 0
				sid := uint16(rng.IntN(4))
				x.PausePieces(sid, on)
				y.PausePieces(sid, on)
			}
			switch rng.IntN(12) {
			case 0:
				now += clock.Time(time.Second)
			case 1:
				now += clock.Time(rng.IntN(200)) * msec
			default:
				now += clock.Time(rng.IntN(1000)) * 1000
			}
			if x.state == Closed {
				break
			}
		}
	}
	if t.Logf("%d packets were taken in as in-sequence batches, %d of them with unfragmented messages", taken, unfragmented); taken < 15*seeds || unfragmented < seeds/2 {
		t.Error("hardly any in-sequence batches")
	}
}

// receiveBatch takes in the packets of a batch as a driver does, those of one size
// after another. It returns how many HandleInSequence took.
func (a *Assoc) receiveBatch(now clock.Time, pkt Packet, batch [][]byte, p *pair) (taken int) {
	for len(batch) > 0 {
		size, n := len(batch[0]), 1
		for n < len(batch) && n < maxBatch && len(batch[n]) == size {
			n++
		}
		pkt.Buf = p.slabs.Get()
		b := append(pkt.Buf.B[:0], bytes.Join(batch[:n], nil)...)
		batch = batch[n:]
		for len(b) > 0 {
			pkt.Data = b[:size]
			b = b[size:]
			if a.HandlePacket(now, &pkt) == DropNone {
				k := a.HandleInSequence(now, &pkt, b, size)
				b = b[k*size:]
				taken += k
			}
		}
		a.EndBatch(now)
		pkt.Buf.Release()
	}
	return taken
}

// received takes what there is to read, or a part of it.
func received(a *Assoc) (got []byte) {
	if a.rx.reasm == nil {
		return nil
	}
	if a.cfg.Pieces {
		var p reasm.Piece
		for len(got) < 30_000 && a.PopPiece(&p) {
			got = fmt.Append(got, p.SID, p.SSN, p.MID, p.PPID, p.TSN, p.Unordered, p.Begin, p.End, p.Message, p.Offset)
			got = append(got, p.Data...)
			a.ReleasePiece(&p)
		}
		return got
	}
	var info reasm.RecvInfo
	var buf [5000]byte
	for len(got) < 30_000 {
		n, ok := a.Read(buf[:], &info)
		if !ok {
			return got
		}
		got = append(fmt.Append(got, info), buf[:n]...)
	}
	return got
}

// A packet that is not the peer's leaves nothing behind, though it came behind one that is.
func TestInSequenceBatchOfUnknownStreamMakesNoStream(t *testing.T) {
	for _, flags := range []byte{0, flagUnordered, flagUnordered | flagBegin | flagEnd} {
		p := newPair(t, 1, &Config{Pieces: true})
		p.connect()
		a := p.z.assoc
		m := &batchMaker{rng: rand.New(rand.NewPCG(1, 1)), idata: true, tsn: uint32(a.rx.tsns.CumTSN()) + 1,
			head: wire.Header{SrcPort: a.peer.port, DstPort: a.port, VTag: a.tag}}
		pkt := Packet{Tuple: Tuple{Local: p.z.local[0], Remote: p.a.local[0]}, Data: m.packet(500)}
		if d := a.HandlePacket(p.now, &pkt); d != DropNone {
			t.Fatal(d)
		}
		b := m.packet(500)
		b[4]++ // the tag
		b[wire.HeaderLen+1] = flags
		b[wire.HeaderLen+9] = 7 // the stream
		wire.SetChecksum(b)
		if n := a.HandleInSequence(p.now, &pkt, b, len(b)); n != 0 || a.rx.reasm.HasStream(7) {
			t.Errorf("flags %d: %d packets taken, stream made %v", flags, n, a.rx.reasm.HasStream(7))
		}
		for n := range b { // whatever is left of it
			if k := a.HandleInSequence(p.now, &pkt, b[:n], n); k != 0 {
				t.Errorf("%d bytes: %d packets taken", n, k)
			}
		}
	}
}
