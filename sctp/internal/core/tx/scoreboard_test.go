package tx

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
	"pgregory.net/rapid"
)

func TestSackMovesCumTSN(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(5)
	h.wantFlight(0, 5*tsnChunk)
	res := h.sack(102)
	if !res.CumAdvanced || res.Paths[0].Acked != 3*tsnChunk || res.Paths[0].FlightBefore != 5*tsnChunk || res.NewlyAcked != 3000 {
		t.Errorf("SACK of three chunks = %+v", res)
	}
	h.wantFlight(0, 2*tsnChunk)
	if h.sb.CumTSN() != 102 || h.sb.Outstanding() != 2 {
		t.Errorf("cumulative TSN %d with %d outstanding, want 102 with 2", h.sb.CumTSN(), h.sb.Outstanding())
	}
	res = h.sack(102)
	if res.CumAdvanced || res.Paths[0].Acked != 0 {
		t.Errorf("a SACK that repeats itself = %+v", res)
	}
}

// Section 6.2.1, D, i: "If Cumulative TSN Ack is less than the Cumulative TSN Ack
// Point, then drop the SACK chunk."
func TestOldSackIsDropped(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(5)
	h.sack(103)
	if res := h.sack(101, 103, 104); !res.Old || res.Paths[0].Acked != 0 {
		t.Errorf("old SACK = %+v", res)
	}
	h.wantFlight(0, tsnChunk)
}

func TestSackForUnsentTSNIsViolation(t *testing.T) {
	h := newTxTest(t, withTSN(0xfffffffe))
	h.sendTSNs(4) // 2^32-2 .. 1
	for _, x := range []*wire.Sack{
		sackOf(2, 1000, nil, nil),
		sackOf(0x7ffffff0, 1000, nil, nil),
		sackOf(0xfffffffe, 1000, []seq.TSN{0, 2}, nil),
		sackOf(0xfffffffd, 1000, []seq.TSN{0, 0, 200, 60_000}, nil),
	} {
		if _, err := h.sb.HandleSack(h.now, x); !errors.Is(err, ErrAckUnsent) {
			t.Errorf("SACK cum %d gaps %v: %v, want ErrAckUnsent", x.CumTSN, x.Gaps, err)
		}
	}
	h.wantFlight(0, 4*tsnChunk)
	if got := h.sb.PeerWindow(); got != 1<<30-4000 {
		t.Errorf("the window moved to %d with a bad SACK", got)
	}
	h.sack(1)
	h.wantFlight(0, 0)
}

// A gap block may be empty, overlap another or come out of order.
func TestOddGapBlocks(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(20)
	res := h.sack(101, 115, 117, 105, 108, 107, 110, 103, 102, 116, 116, 111, 111)
	if got, want := res.Paths[0].Acked, (2+3+7)*tsnChunk; got != want {
		t.Errorf("newly acknowledged = %d, want %d", got, want)
	}
	if got, want := fmt.Sprint(h.sb.gaps), "[{105 112} {115 118}]"; got != want {
		t.Errorf("gaps = %s, want %s", got, want)
	}
}

// Section 6.2.1, B, C and D, ii.
func TestPeerWindow(t *testing.T) {
	h := newTxTest(t, withRWND(10_000))
	want := func(n int) {
		t.Helper()
		if got := h.sb.PeerWindow(); got != n {
			t.Fatalf("rwnd = %d, want %d", got, n)
		}
	}
	h.sendTSNs(4)
	want(6000)
	// "Set rwnd equal to the newly received a_rwnd minus the number of bytes
	// still outstanding".
	if _, err := h.sb.HandleSack(h.now, sackOf(100, 9000, []seq.TSN{102, 102}, nil)); err != nil {
		t.Fatal(err)
	}
	want(7000)
	h.sb.OnTimeout(h.now, 0)
	want(9000) // "add the data size of those chunks to the rwnd"
	h.rtx(0)
	want(8000)
}

// Section 6.1, A: "regardless of the value of rwnd (including if it is 0), the
// data sender can always have one DATA chunk in flight".
func TestZeroWindowLetsOneChunkThrough(t *testing.T) {
	h := newTxTest(t, withRWND(1500))
	h.push(0, 1000)
	h.push(0, 1000)
	if d := h.packet(0); len(d) != 1 {
		t.Fatalf("%d chunks, want 1", len(d))
	}
	if d := h.packet(0); len(d) != 0 {
		t.Fatal("a chunk larger than the window went out")
	}
	if _, err := h.sb.HandleSack(h.now, sackOf(100, 0, nil, nil)); err != nil {
		t.Fatal(err)
	}
	if !h.sb.ZeroWindow() {
		t.Error("window of 0 not noticed")
	}
	h.push(0, 1000)
	if d := h.packet(0); len(d) != 1 {
		t.Fatalf("%d chunks into a window of 0 with nothing in flight, want 1", len(d))
	}
	if d := h.packet(0); len(d) != 0 {
		t.Fatal("a second chunk went into a window of 0")
	}
}

// Section 6.2.1, D, iii: a TSN that a gap block acknowledged before and does not
// any more is in flight again, counts one miss indication, and T3 starts.
func TestReneging(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(4)
	h.sack(99, 101, 103)
	h.wantFlight(0, tsnChunk)
	res := h.sack(99, 102, 103)
	if !res.Paths[0].Reneged || res.Paths[0].Acked != 0 {
		t.Errorf("reneging SACK = %+v", res.Paths[0])
	}
	h.wantFlight(0, 2*tsnChunk)
	if got := h.sb.rec(101).miss; got != 1 {
		t.Errorf("miss indications of the reneged TSN = %d, want 1", got)
	}
	if res := h.sack(101, 103, 103); res.Paths[0].Acked != 2*tsnChunk {
		t.Errorf("newly acknowledged = %d, want the hole and the reneged chunk", res.Paths[0].Acked)
	}
	h.sack(103)
	h.wantFlight(0, 0)
	if h.sb.Stats().Reneged != 2 {
		t.Errorf("%d TSNs reneged on, want 2", h.sb.Stats().Reneged)
	}
}

// everyOther returns n gap blocks of one TSN each, from first on.
func everyOther(first seq.TSN, n int) (gaps []seq.TSN) {
	for i := range seq.TSN(n) {
		gaps = append(gaps, first+2*i, first+2*i)
	}
	return gaps
}

// A SACK has no space for more than so many gap blocks. What was acknowledged
// above the last one is not reneged on.
func TestFullSackDoesNotRenege(t *testing.T) {
	h := newTxTest(unlogged{t})
	const blocks = fullSack + 2
	h.sendTSNs(4 * blocks)
	low, high := everyOther(101, blocks), everyOther(101+2*blocks, blocks)
	h.sack(99, high...)
	res := h.sack(99, low...)
	if got := h.sb.Stats().Reneged; got != 0 {
		t.Fatalf("%d TSNs reneged on by a SACK that was full", got)
	}
	if res.Paths[0].Acked != blocks*tsnChunk || len(h.sb.gaps) != 2*blocks {
		t.Errorf("newly acknowledged = %d with %d gap blocks known", res.Paths[0].Acked, len(h.sb.gaps))
	}
	// A block that reaches the first of those kept.
	top, next := low[len(low)-1], high[0]
	h.sack(99, append(low, top+1, next-1)...)
	if last := h.sb.gaps[blocks-1]; last.lo != top || last.hi != next+1 {
		t.Errorf("block %v, want [%d, %d)", last, top, next+1)
	}
	// A SACK with space left does renege.
	h.sack(99, 101, 101)
	if got := h.sb.Stats().Reneged; got == 0 {
		t.Error("nothing reneged on by a SACK that was not full")
	}
}

// What was not acknowledged above the last block is not lost.
func TestFullSackShowsNoLossAboveItsEnd(t *testing.T) {
	h := newTxTest(unlogged{t}, withRACK)
	const blocks = fullSack + 2
	h.sendTSNs(4 * blocks)
	h.advance(20 * ms)
	low := everyOther(101, blocks)
	h.sack(99, low...)
	h.rtx(0)
	h.advance(20 * ms)
	h.sack(101, low[2:]...) // the retransmission, sent after everything else, arrived
	top := low[len(low)-1]
	for x := top + 1; x != h.sb.NextTSN(); x++ {
		if h.sb.marked.Has(x) {
			t.Fatalf("TSN %d is lost, though the SACK ends at %d", x, top)
		}
	}
	if got := h.sb.paths[0].rack.reorder; got != 0 {
		t.Errorf("reordering timer at %v for chunks about which nothing is known", got)
	}
	h.sack(101, 103, top)
	h.advance(25 * ms) // RACK.rtt is 40 ms now, and 5 ms are for reordering
	h.sb.OnLossTimer(h.now, 0, false)
	if !h.sb.marked.Has(top + 1) {
		t.Errorf("TSN %d is not lost, though a SACK that was not full lacks it", top+1)
	}
}

// A SHUTDOWN carries a cumulative TSN only; gap blocks stay known.
func TestCumAckKeepsGaps(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(5)
	h.sack(99, 102, 103)
	if _, err := h.sb.HandleCumAck(h.now, 100); err != nil {
		t.Fatal(err)
	}
	h.wantFlight(0, 2*tsnChunk)
	if h.sb.Stats().Reneged != 0 {
		t.Error("a cumulative ack reneged on gap blocks")
	}
	if _, err := h.sb.HandleCumAck(h.now, 102); err != nil {
		t.Fatal(err)
	}
	h.wantFlight(0, tsnChunk)
}

// Section 6.3.1, C4 and C5.
func TestRTTSamples(t *testing.T) {
	h := newTxTest(t)
	want := func(res *SackResult, rtt clock.Time) {
		t.Helper()
		if got := res.Paths[0].RTT; got != rtt {
			t.Fatalf("RTT = %v, want %v", got, rtt)
		}
	}
	h.sendTSNs(1)
	h.advance(5 * ms)
	h.sendTSNs(3)
	h.advance(20 * ms)
	want(h.sack(100), 25*ms)
	h.advance(ms)
	// C4: "no more than once per round trip".
	res := h.sack(101)
	want(res, 0)
	if res.Paths[0].AckRTT != 21*ms {
		t.Errorf("AckRTT = %v, want %v", res.Paths[0].AckRTT, 21*ms)
	}
	h.sack(103)
	// C5: "MUST NOT be made using chunks that were retransmitted".
	h.sendTSNs(1)
	h.sb.OnTimeout(h.now, 0)
	h.advance(10 * ms)
	h.wantRtx(0, 104)
	h.advance(10 * ms)
	want(h.sack(104), 0)
	// "only [...] if no DATA chunk with TSN less than or equal to r was
	// retransmitted since the DATA chunk with TSN r was sent first".
	h.sendTSNs(2)
	h.sb.mark(105, h.sb.rec(105))
	h.advance(10 * ms)
	h.wantRtx(0, 105)
	h.advance(10 * ms)
	want(h.sack(106), 0)
	// A gap block reports a chunk when it came, whatever is retransmitted below.
	h.sendTSNs(2)
	h.sb.mark(107, h.sb.rec(107))
	h.wantRtx(0, 107)
	h.advance(10 * ms)
	want(h.sack(106, 108, 108), 10*ms)
}

func TestOutstandingIsBounded(t *testing.T) {
	h := newTxTest(unlogged{t}, withIData)
	n := 0
	for n <= MaxOutstanding {
		for range 64 {
			h.push(uint16(n), 4)
		}
		c := len(h.packet(0))
		if n += c; c == 0 {
			break
		}
	}
	if n != MaxOutstanding || h.sb.Outstanding() != MaxOutstanding {
		t.Fatalf("%d chunks outstanding, want %d", n, MaxOutstanding)
	}
	h.sack(99 + 10)
	if c := len(h.packet(0)); c != 10 {
		t.Errorf("%d chunks went after 10 were acknowledged", c)
	}
}

func TestResetTSN(t *testing.T) {
	h := newTxTest(t)
	h.sendTSNs(2)
	if h.sb.ResetTSN(5000) {
		t.Fatal("reset with TSNs outstanding")
	}
	h.sack(101)
	if !h.sb.ResetTSN(5000) {
		t.Fatal("no reset with nothing outstanding")
	}
	h.push(0, 10)
	if d := h.packet(0); d[0].TSN != 5000 {
		t.Errorf("TSN after the reset = %d, want 5000", d[0].TSN)
	}
	h.sack(5000)
}

// sbModel is what the scoreboard should be, in the simplest terms.
type sbModel struct {
	base, next seq.TSN
	recs       map[seq.TSN]*sbModelRec
	recovery   bool
	exit       seq.TSN
	rwnd       int
}

type sbModelRec struct {
	size, path, miss, tx int
	acked, marked, fast  bool
	sent                 clock.Time
}

func (m *sbModel) flight(path int) (n int) {
	for _, r := range m.recs {
		if r.path == path && !r.acked && !r.marked {
			n += (r.size + 16 + 3) &^ 3
		}
	}
	return n
}

func (m *sbModel) payload() (n int) {
	for _, r := range m.recs {
		if !r.acked && !r.marked {
			n += r.size
		}
	}
	return n
}

// sack applies a SACK by the book and returns the bytes newly acknowledged per
// path and which paths lost chunks in a new fast recovery.
func (m *sbModel) sack(cum seq.TSN, in func(seq.TSN) bool, top seq.TSN, rwnd, paths int) (acked []int, loss []bool) {
	acked, loss = make([]int, paths), make([]bool, paths)
	advanced := cum != m.base-1
	var htna seq.TSN
	any := false
	var htnaSent clock.Time
	for t := m.base; t != m.next; t++ {
		r := m.recs[t]
		was := r.acked
		now := t.LessEq(cum) || in(t)
		if now && !was {
			acked[r.path] += (r.size + 16 + 3) &^ 3
			htna, any = t, true
			htnaSent = max(htnaSent, r.sent)
			r.marked = false
		}
		if was && !now && r.miss < 2 && !r.fast {
			r.miss++
		}
		r.acked = now
	}
	for ; m.base != cum+1; m.base++ {
		delete(m.recs, m.base)
	}
	m.rwnd = rwnd - m.payload()
	if m.recovery && m.exit.LessEq(cum) {
		m.recovery = false
	}
	if !any {
		htna = m.base - 1
	}
	if m.recovery && advanced && htna.Less(top) {
		htna = top
	}
	var lost []int
	for t := m.base; t.Less(htna); t++ {
		r := m.recs[t]
		if r == nil || r.acked || r.marked || r.fast || r.tx > 1 && r.sent > htnaSent {
			continue
		}
		if r.miss++; r.miss >= 3 {
			r.marked, r.fast, r.miss = true, true, 0
			m.rwnd += r.size
			lost = append(lost, r.path)
		}
	}
	if len(lost) > 0 && !m.recovery {
		m.recovery, m.exit = true, m.next-1
		for _, p := range lost {
			loss[p] = true
		}
	}
	return acked, loss
}

// The scoreboard agrees with the model after any sequence of sends, SACKs with
// gaps and reneging, retransmissions and timeouts, across the wrap of TSNs.
func TestScoreboardAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const paths = 3
		start := seq.TSN(rapid.SampledFrom([]uint32{0, 1, 0xffffffe0, 0x7ffffff0}).Draw(t, "tsn"))
		q := NewQueue(1<<30, 4, SchedRR)
		sb := NewScoreboard(q, ScoreboardConfig{TSN: start, RWND: 1 << 30, Paths: paths})
		m := &sbModel{base: start, next: start, recs: map[seq.TSN]*sbModelRec{}, rwnd: 1 << 30}
		have := map[seq.TSN]bool{} // what the receiver holds beyond its cumulative TSN
		rcum := start - 1
		now := second
		var b []byte
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += clock.Time(rapid.IntRange(0, 2).Draw(t, "dt")) * ms
			switch rapid.SampledFrom([]string{"send", "send", "arrive", "arrive", "sack", "sack", "sack", "rtx", "t3", "drop"}).Draw(t, "op") {
			case "send":
				path := rapid.IntRange(0, paths-1).Draw(t, "path")
				for range rapid.SampledFrom([]int{1, 2, 7, 40}).Draw(t, "n") {
					size := rapid.IntRange(1, 300).Draw(t, "size")
					if err := q.Push(now, &Message{SID: 1, Body: make([]byte, size)}); err != nil {
						t.Fatal(err)
					}
					if _, ok := sb.AppendNew(b[:0], now, path, Room{400, 400}); !ok {
						t.Fatal("nothing was sent")
					}
					m.recs[m.next] = &sbModelRec{size: size, path: path, tx: 1, sent: now}
					m.next++
					m.rwnd -= size
				}
			case "arrive":
				for range rapid.IntRange(0, 20).Draw(t, "n") {
					if n := int(m.next - rcum - 1); n > 0 {
						have[rcum+1+seq.TSN(rapid.IntRange(0, n-1).Draw(t, "tsn"))] = true
					}
				}
				if rapid.Bool().Draw(t, "fill") {
					have[rcum+1] = rcum+1 != m.next
				}
				for have[rcum+1] {
					rcum++
				}
			case "drop": // the receiver reneges
				for x := range have {
					if rcum.Less(x) && rapid.Bool().Draw(t, "renege") {
						delete(have, x)
					}
				}
			case "sack":
				var gaps []seq.TSN
				top := rcum
				in := func(x seq.TSN) bool { return rcum.Less(x) && have[x] }
				for x := rcum + 1; x.Less(m.next); x++ {
					if !in(x) {
						continue
					}
					if n := len(gaps); n > 0 && gaps[n-1] == x-1 {
						gaps[n-1] = x
					} else {
						gaps, top = append(gaps, x, x), x
					}
				}
				res, err := sb.HandleSack(now, sackOf(rcum, 1<<20, gaps, nil))
				if err != nil {
					t.Fatalf("cum %d gaps %v next %d: %v", rcum, gaps, m.next, err)
				}
				acked, loss := m.sack(rcum, in, top, 1<<20, paths)
				for i := range paths {
					if got := res.Paths[i]; got.Acked != acked[i] || got.Loss != loss[i] {
						t.Fatalf("path %d: acked %d loss %v, want %d %v", i, got.Acked, got.Loss, acked[i], loss[i])
					}
				}
			case "rtx":
				path := rapid.IntRange(0, paths-1).Draw(t, "path")
				for range rapid.IntRange(0, 10).Draw(t, "n") {
					out, ok := sb.AppendRtx(b[:0], now, path, 1000)
					if !ok {
						break
					}
					x := seq.TSN(parseOne(t, out).TSN)
					for y := m.base; y != x; y++ {
						if m.recs[y].marked {
							t.Fatalf("retransmitted %d before %d", x, y)
						}
					}
					r := m.recs[x]
					if r == nil || !r.marked {
						t.Fatalf("retransmitted %d, which was not marked", x)
					}
					r.marked, r.path, r.sent = false, path, now
					r.tx++
					m.rwnd -= r.size
				}
			case "t3":
				path := rapid.IntRange(0, paths-1).Draw(t, "path")
				sb.OnTimeout(now, path)
				for _, r := range m.recs {
					if r.path == path && !r.acked && !r.marked {
						r.marked, r.miss = true, 0
						m.rwnd += r.size
					}
				}
				m.recovery = false
			}
			if sb.base != m.base || sb.next != m.next || sb.rwnd != m.rwnd || sb.payload != m.payload() || sb.InRecovery(0) != m.recovery {
				t.Fatalf("base %d next %d rwnd %d payload %d recovery %v, want %d %d %d %d %v", sb.base, sb.next, sb.rwnd, sb.payload,
					sb.InRecovery(0), m.base, m.next, m.rwnd, m.payload(), m.recovery)
			}
			var early [paths]seq.TSN
			var anyEarly [paths]bool
			for x := m.next; x != m.base; {
				x--
				r, s := m.recs[x], sb.rec(x)
				if r.marked != (s.state&recMarked != 0) || r.acked != (s.state&recAcked != 0) || r.marked != sb.marked.Has(x) {
					t.Fatalf("TSN %d: marked %v acked %v, want %v %v", x, s.state&recMarked != 0, s.state&recAcked != 0, r.marked, r.acked)
				}
				if !r.acked && !r.marked {
					early[r.path], anyEarly[r.path] = x, true
				}
			}
			for i := range paths {
				if sb.Flight(i) != m.flight(i) {
					t.Fatalf("path %d: %d bytes in flight, want %d", i, sb.Flight(i), m.flight(i))
				}
				if e, ok := sb.Earliest(i); ok != anyEarly[i] || ok && e != early[i] {
					t.Fatalf("path %d: earliest %d %v, want %d %v", i, e, ok, early[i], anyEarly[i])
				}
			}
			if q.Messages() != int(m.next-m.base) {
				t.Fatalf("%d messages held, want %d", q.Messages(), m.next-m.base)
			}
		}
	})
}

func parseOne(t *rapid.T, b []byte) wire.Data {
	it := wire.NewChunks(b)
	if !it.Next() {
		t.Fatal("no chunk")
	}
	d, err := wire.ParseData(it.Chunk())
	if err != nil {
		t.Fatal(err)
	}
	return d
}
