package core

import (
	"bytes"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// slowReader takes a little from an association now and then, in every manner
// there is, and enters whole messages in the ledger of its host.
type slowReader struct {
	h     *host
	parts map[uint64][]byte
	out   []reasm.Piece
}

func (s *slowReader) take() {
	a, rng := s.h.assoc, s.h.p.rng
	if a == nil {
		return
	}
	for range rng.IntN(4) {
		switch {
		case a.cfg.Pieces:
			sid := uint16(rng.IntN(6))
			a.PausePieces(sid, rng.IntN(3) == 0)
			if p := (reasm.Piece{}); a.PopPiece(&p) {
				s.enter(p.Message, p.SID, p.Unordered, p.Data, p.End)
				s.out = append(s.out, p)
			}
			for len(s.out) > rng.IntN(4) {
				a.ReleasePiece(&s.out[0])
				s.out = s.out[1:]
			}
		default:
			dst := make([]byte, 1+rng.IntN(3000))
			var info reasm.RecvInfo
			n, ok := a.Read(dst, &info)
			if rng.IntN(2) == 0 && !ok {
				n, ok = a.ReadStream(uint16(rng.IntN(6)), dst, &info)
			}
			if ok {
				s.enter(info.Message, info.SID, info.Unordered, dst[:n], info.EOR)
			}
		}
	}
}

func (s *slowReader) enter(id uint64, sid uint16, unordered bool, b []byte, end bool) {
	s.parts[id] = append(s.parts[id], b...)
	if !end {
		return
	}
	l := ledgerOf(s.h.in, sid)
	if unordered {
		l.unordered = append(l.unordered, s.parts[id])
	} else {
		l.ordered = append(l.ordered, s.parts[id])
	}
	delete(s.parts, id)
}

// fragments returns how many fragments are held.
func fragments(r *reasm.Queue) int {
	_, _, n, _ := r.Held()
	return n
}

// TestSlowReaders sends messages larger than the receive buffer, and many small
// ones, to a reader that lags behind, over a bad network: nothing may stall,
// overflow or leak.
func TestSlowReaders(t *testing.T) {
	seeds := 120
	if testing.Short() {
		seeds = 24
	}
	for seed := range seeds {
		t.Run(seedName(seed), func(t *testing.T) {
			cfg := lossyConfig(seed)
			cfg.RecvBuffer = 4000 + seed%7*4000
			cfg.Pieces = seed%3 == 0
			p := newPair(t, uint64(seed), cfg)
			p.net.loss, p.net.dup, p.net.reorder = seed%4*30, seed%2*30, seed%5*60
			p.net.jitter = time.Duration(seed%3) * 3 * time.Millisecond
			p.a.reading, p.z.reading = false, false
			p.connect()
			for range 40 {
				n := 1 + p.rng.IntN(200)
				if p.rng.IntN(8) == 0 {
					n = 1 + p.rng.IntN(40000)
				}
				p.a.sendMsg(&tx.Message{SID: uint16(p.rng.IntN(6)), Unordered: p.rng.IntN(4) == 0}, n)
			}
			s := &slowReader{h: p.z, parts: map[uint64][]byte{}}
			most := 0
			done := p.driveUntil(2*time.Hour, func() bool {
				if p.rng.IntN(3) == 0 {
					s.take()
				}
				held, _, _, _ := p.z.assoc.rx.reasm.Held()
				most = max(most, held)
				return p.idle()
			})
			r := p.z.assoc.rx.reasm
			if !done {
				t.Fatalf("stalled: %+v; %d held of %d, %d parts", p.a.assoc.Stats(), r.Payload(), cfg.RecvBuffer, len(s.parts))
			}
			if _, limit, _, _ := r.Held(); most > limit {
				t.Errorf("%d bytes held, more than %d", most, limit)
			}
			for sid := range uint16(6) {
				p.z.assoc.PausePieces(sid, false)
			}
			for i := 0; fragments(r) > 0 && i < 10000; i++ {
				p.z.assoc.PausePieces(uint16(i%6), false)
				s.take()
				for sid := range uint16(6) {
					p.z.assoc.PausePieces(sid, false)
				}
			}
			p.a.flush()
			p.z.flush()
			p.wantDelivered()
			if held, _, frags, _ := r.Held(); len(s.parts) != 0 || frags != 0 || held != 0 {
				t.Errorf("left over: %d parts, %d fragments, %d bytes", len(s.parts), frags, held)
			}
			p.z.assoc.Release()
		})
	}
}

// TestWindowUpdates: a reader that was away tells the peer when it is back,
// once per quarter of its buffer at most (RFC 9260, Section 6.2).
func TestWindowUpdates(t *testing.T) {
	cfg := &Config{RecvBuffer: 64 << 10}
	p := newPair(t, 1, cfg)
	p.z.reading = false
	p.connect()
	for range 100 {
		p.a.send(0, 4000)
	}
	p.advance(5 * time.Second) // the window is closed, and stays so
	if n := p.z.assoc.rx.reasm.Rwnd(); n != 0 {
		t.Fatalf("window of %d, want it closed", n)
	}
	sacks := p.z.assoc.Stats().SacksSent
	var got []byte
	dst := make([]byte, 500)
	for held := p.z.assoc.rx.reasm.Payload(); p.z.assoc.rx.reasm.Payload() > held/4; {
		n, ok := p.z.assoc.Read(dst, new(reasm.RecvInfo))
		if !ok {
			t.Fatal("nothing to read")
		}
		got = append(got, dst[:n]...)
		p.z.flush()
	}
	updates := p.z.assoc.Stats().SacksSent - sacks
	if updates < 1 || updates > 3 {
		t.Errorf("%d window updates for three quarters of the buffer, want 1 to 3", updates)
	}
	at := p.now
	if !p.driveUntil(100*time.Millisecond, func() bool { return p.z.assoc.rx.reasm.Payload() > 48<<10 }) {
		t.Errorf("the peer does not go on within %v of the update: %+v; window %d, %+v", time.Duration(p.now-at), p.a.assoc.Stats(), p.z.assoc.rx.reasm.Rwnd(), p.a.sent[len(p.a.sent)-5:])
	}
	p.z.reading = true
	p.z.parts[0] = nil
	p.drive()
	first := p.a.out[0].ordered[0]
	if !bytes.Equal(got[:len(first)], first) {
		t.Error("what was read is not what was sent")
	}
}

// A peer that keeps to the window loses nothing of what it sends, however small: the
// window closes before the buffer is full, and no chunk is dropped and sent again.
func TestTinyMessagesKeepToTheWindow(t *testing.T) {
	for _, size := range []int{1, 20, 100, 400, 3000} {
		p := newPair(t, 90, &Config{RecvBuffer: 1 << 20, HBInterval: -1})
		p.connect()
		p.z.reading = false
		for range 20_000 {
			p.a.send(0, size)
			if p.a.assoc.tx.q.Messages()%500 == 0 {
				p.advance(time.Millisecond)
			}
		}
		p.advance(5 * time.Second)
		st := p.a.assoc.Stats()
		if held, most, _, _ := p.z.assoc.rx.reasm.Held(); held < 1<<19 || held > most {
			t.Errorf("messages of %d: %d held of %d", size, held, most)
		}
		if n := p.a.assoc.tx.sb.Outstanding(); n > 1 {
			t.Errorf("messages of %d: %d chunks were dropped", size, n)
		}
		p.z.reading = true
		p.z.read()
		p.drive()
		p.wantDelivered()
		if after := p.a.assoc.Stats(); after.Retransmits-st.Retransmits > 1 {
			t.Errorf("messages of %d: %d chunks were sent again", size, after.Retransmits-st.Retransmits)
		}
	}
}
