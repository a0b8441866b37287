package tx

import (
	"fmt"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// txLoop sends messages forever: window chunks are outstanding, and every SACK
// acknowledges batch of them. All its memory exists from the start.
type txLoop struct {
	q     *Queue
	sb    *Scoreboard
	m     Message
	buf   []byte
	rel   []Release
	now   clock.Time
	batch int
	count int // messages of m
}

func newTxLoop(window, batch, size int, rack, idata bool) *txLoop {
	l := &txLoop{q: NewQueue(1<<30, 16, SchedRR), now: second, batch: batch, count: 1, buf: make([]byte, 0, 1<<16)}
	l.q.SetInterleaving(idata)
	l.sb = NewScoreboard(l.q, ScoreboardConfig{TSN: 1, RWND: 1 << 30, RACK: rack})
	l.m = Message{Body: make([]byte, size), Owner: &ownerLog{}}
	l.send(window)
	return l
}

// newSegmentedLoop is newTxLoop with segmented sends of a GSO batch of messages, which have a header.
func newSegmentedLoop(window, batch, size int) *txLoop {
	l := newTxLoop(0, batch, batch*size, true, false)
	l.m.Unordered, l.m.SegmentSize, l.m.Headers, l.count = true, size, make([]byte, 16*batch), batch
	l.send(window)
	return l
}

func (l *txLoop) send(n int) {
	for i := 0; i < n; i += l.count {
		l.m.SID = uint16(i & 3)
		if l.q.Push(l.now, &l.m) != nil {
			panic("refused")
		}
	}
	for l.q.Pending() {
		b := l.buf[:0]
		for ok := true; ok; {
			b, ok = l.sb.AppendNew(b, l.now, 0, Room{1400 - len(b), 1400})
		}
		l.q.EndPacket()
	}
}

func (l *txLoop) sack(x *wire.Sack) {
	l.now += ms
	res, err := l.sb.HandleSack(l.now, x)
	if err != nil || res.Old {
		panic("bad SACK")
	}
	l.rel = l.q.TakeReleases(l.rel[:0])
}

func (l *txLoop) step() {
	var x wire.Sack
	x.CumTSN, x.RWND = uint32(l.sb.CumTSN())+uint32(l.batch), 1<<30
	l.sack(&x)
	l.send(l.batch)
}

func TestSendAckDoesNotAllocate(t *testing.T) {
	for _, rack := range []bool{false, true} {
		for _, idata := range []bool{false, true} {
			l := newTxLoop(1000, 44, 1000, rack, idata)
			l.step()
			if n := testing.AllocsPerRun(200, l.step); n != 0 {
				t.Errorf("rack=%v idata=%v: %v allocations per batch, want 0", rack, idata, n)
			}
		}
	}
}

func TestSegmentedDoesNotAllocate(t *testing.T) {
	l := newSegmentedLoop(1012, 44, 1000)
	l.step()
	if n := testing.AllocsPerRun(200, l.step); n != 0 {
		t.Errorf("%v allocations per segmented send, want 0", n)
	}
}

// Loss, gap blocks and retransmissions reuse their memory too.
func TestLossDoesNotAllocate(t *testing.T) {
	for _, rack := range []bool{false, true} {
		l := newTxLoop(1000, 44, 1000, rack, false)
		sacks := make([]*wire.Sack, 0, 8*300)
		for i := range 300 {
			// Of every 44 chunks the first, the third and the fifth are lost.
			cum := seq.TSN(44 * i)
			for j := range seq.TSN(4) {
				sacks = append(sacks, sackOf(cum, 1<<30, []seq.TSN{cum + 2, cum + 2, cum + 4, cum + 4, cum + 6, cum + 40 + j}, nil))
			}
		}
		round := func() {
			for range 4 {
				l.sack(sacks[0])
				sacks = sacks[1:]
			}
			for ok := true; ok; {
				_, ok = l.sb.AppendRtx(l.buf[:0], l.now, 0, 1400)
			}
			l.step()
		}
		for range 20 {
			round()
		}
		if n := testing.AllocsPerRun(200, round); n != 0 {
			t.Errorf("rack=%v: %v allocations per round, want 0", rack, n)
		}
		if got := l.sb.Stats().FastRetransmits; got < 3*200 {
			t.Errorf("rack=%v: %d chunks were lost, the test is void", rack, got)
		}
	}
}

// BenchmarkSendAck is a chunk's way from Push to the release of its owner, with
// copying into the packet.
func BenchmarkSendAck(b *testing.B) {
	for _, window := range []int{100, 1000, 10_000, 100_000} {
		for _, rack := range []bool{false, true} {
			b.Run(fmt.Sprintf("outstanding=%d/rack=%v", window, rack), func(b *testing.B) {
				l := newTxLoop(window, 64, 1000, rack, false)
				l.step()
				b.ReportAllocs()
				b.SetBytes(64 * 1000)
				for b.Loop() {
					l.step()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/TSN")
			})
		}
	}
}

// BenchmarkSegmented is BenchmarkSendAck for messages that fill packets, with a header
// each: one by one, and by segmented sends.
func BenchmarkSegmented(b *testing.B) {
	for _, in := range []string{"one by one", "segmented"} {
		b.Run(in, func(b *testing.B) {
			const window, batch, size = 44 * 46, 44, 1368
			l := newSegmentedLoop(window, batch, size)
			if in == "one by one" {
				l = newTxLoop(0, batch, size, true, false)
				l.m.Unordered, l.m.Header = true, make([]byte, 16)
				l.send(window)
			}
			l.step()
			b.ReportAllocs()
			b.SetBytes(batch * size)
			for b.Loop() {
				l.step()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/TSN")
		})
	}
}

// BenchmarkSackGaps is a SACK with many gap blocks of which one grew, while
// 100,000 chunks are outstanding.
func BenchmarkSackGaps(b *testing.B) {
	for _, blocks := range []int{1, 30, 300} {
		b.Run(fmt.Sprintf("blocks=%d", blocks), func(b *testing.B) {
			l := newTxLoop(100_000, 64, 100, true, false)
			var alt [2]*wire.Sack
			for i := range alt {
				var gaps []seq.TSN
				for j := range blocks {
					lo := seq.TSN(100 + 200*j)
					gaps = append(gaps, lo, lo+100)
				}
				gaps[len(gaps)-1] += seq.TSN(i) // one more acknowledged, one reneged on
				alt[i] = sackOf(0, 1<<30, gaps, nil)
			}
			l.sack(alt[0])
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				l.sack(alt[i&1])
			}
		})
	}
}

// BenchmarkScheduler is one chunk with 65,535 busy streams.
func BenchmarkScheduler(b *testing.B) {
	for k, name := range []string{SchedFCFS: "fcfs", SchedRR: "rr", SchedRRPacket: "rrpkt", SchedPrio: "prio", SchedFair: "fair", SchedWFQ: "wfq"} {
		b.Run(name, func(b *testing.B) {
			s := newScheduler(Scheduler(k))
			for sid := range 65535 {
				s.add(uint16(sid), uint64(sid))
			}
			arrival := uint64(1 << 16)
			b.ReportAllocs()
			for b.Loop() {
				sid, _ := s.next()
				arrival++
				s.sent(sid, 1000, arrival, true)
				s.endPacket()
			}
		})
	}
}
