package tx

import (
	"fmt"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"pgregory.net/rapid"
)

// Chunks that are acknowledged many at once are acknowledged as they would be one by
// one, whatever comes between.
func TestChunksAreAcknowledgedAtOnceAsOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := ScoreboardConfig{TSN: seq.TSN(rapid.Uint32().Draw(t, "tsn")), RWND: 1 << 30, Paths: 2, RACK: true}
		var q [2]*Queue
		var sb [2]*Scoreboard
		for i := range sb {
			q[i] = NewQueue(1<<30, 4, SchedRR)
			sb[i] = NewScoreboard(q[i], config)
			sb[i].WatchSizes(0, 1<<16, 10, 1<<17)
		}
		sb[1].noBulk = true
		now := second
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += clock.Time(rapid.IntRange(0, 40).Draw(t, "dt")) * ms
			var did [2]string
			op := rapid.SampledFrom([]string{"send", "send", "sack", "sack", "sack", "rtx", "t3", "loss"}).Draw(t, "op")
			path, n := rapid.IntRange(0, 1).Draw(t, "path"), rapid.IntRange(1, 30).Draw(t, "n")
			size := rapid.IntRange(1, 5000).Draw(t, "size")
			cum := sb[0].CumTSN() + seq.TSN(rapid.IntRange(0, sb[0].Outstanding()).Draw(t, "cum"))
			var gaps []seq.TSN
			if rapid.Bool().Draw(t, "gaps") {
				for x := cum + 2; x.Less(sb[0].NextTSN()); x++ {
					if rapid.IntRange(0, 2).Draw(t, "gap") == 0 {
						gaps = append(gaps, x, x)
					}
				}
			}
			for i, s := range sb {
				switch op {
				case "send":
					if err := q[i].Push(now, &Message{Body: make([]byte, size)}); err != nil {
						t.Fatal(err)
					}
					for range n {
						s.AppendNew(nil, now, path, Room{400, 400})
					}
				case "sack":
					res, err := s.HandleSack(now, sackOf(cum, 1<<20, gaps, nil))
					did[i] = fmt.Sprintf("%+v %v", *res, err)
				case "rtx":
					for range n {
						s.AppendRtx(nil, now, path, 400)
					}
				case "t3":
					s.OnTimeout(now, path)
				case "loss":
					loss, probe := s.OnLossTimer(now, path, true)
					did[i] = fmt.Sprint(loss, probe)
				}
				did[i] += fmt.Sprintf("\n%d %d %d %d %+v\n%d %d %d %+v", s.base, s.next, s.payload, s.rwnd, s.stats,
					q[i].Buffered(), q[i].Unsent(), q[i].Messages(), q[i].TakeReleases(nil))
				for j := range s.paths {
					f := &s.paths[j]
					if f.rack.n == 0 {
						f.rack.head, f.rack.tail = 0, 0 // which mean nothing
					}
					did[i] += fmt.Sprintf("\n%d %d %d %d %+v %+v", f.bytes, f.count, f.set.Len(), f.rttMark, f.size, f.rack)
				}
				for x := s.base; x != s.next; x++ {
					did[i] += fmt.Sprintf("\n%d %d %d", x, s.rec(x).state, s.rec(x).tx)
				}
			}
			if did[0] != did[1] {
				t.Fatalf("%s: at once %s\none by one %s", op, did[0], did[1])
			}
		}
	})
}
