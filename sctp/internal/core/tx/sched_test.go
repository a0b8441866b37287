package tx

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// order sends everything, and returns the streams of the chunks, a packet each
// in brackets.
func (h *txTest) order() (s []string) {
	for h.q.Pending() {
		var sids []uint16
		for _, d := range h.packet(0) {
			sids = append(sids, d.SID)
		}
		s = append(s, fmt.Sprint(sids))
	}
	return s
}

func (h *txTest) wantOrder(want string) {
	h.t.Helper()
	if got := fmt.Sprint(h.order()); got != want {
		h.t.Errorf("streams of the chunks by packet: %v, want %v", got, want)
	}
}

// RFC 8260, Section 3.1: "It just passes through the messages in the order in
// which they have been delivered by the application."
func TestFCFS(t *testing.T) {
	h := newTxTest(t, withScheduler(SchedFCFS))
	for _, sid := range []uint16{3, 1, 3, 3, 2, 1} {
		h.push(sid, 700)
	}
	h.wantOrder("[[3] [1] [3] [3] [2] [1]]")
}

// Section 3.2: "cycling around non-empty stream queues", by message.
func TestRoundRobinByMessage(t *testing.T) {
	h := newTxTest(t, withScheduler(SchedRR))
	for _, sid := range []uint16{1, 1, 1, 2, 2, 3} {
		h.push(sid, 700)
	}
	h.wantOrder("[[1] [2] [3] [1] [2] [1]]")
}

// Section 3.2: "When interleaving user messages, this scheduler provides a fair
// scheduling based on the number of I-DATA chunks".
func TestRoundRobinByChunk(t *testing.T) {
	h := newTxTest(t, withScheduler(SchedRR), withIData)
	h.push(1, 3*1380)
	h.push(2, 2*1380)
	h.wantOrder("[[1] [2] [1] [2] [1]]")
}

// Section 3.3: "It bundles only DATA or I-DATA chunks referring to the same
// stream in a packet."
func TestRoundRobinPerPacket(t *testing.T) {
	h := newTxTest(t, withScheduler(SchedRRPacket))
	for range 4 {
		h.push(1, 500)
		h.push(2, 500)
	}
	h.push(3, 10)
	h.wantOrder("[[1 1] [2 2] [3] [1 1] [2 2]]")
}

// Section 3.4: "Streams having a higher priority will be scheduled first", and
// Section 4.3.2: "The higher the assigned value, the lower the priority."
func TestPriority(t *testing.T) {
	h := newTxTest(t, withScheduler(SchedPrio))
	for sid, prio := range []uint16{9, 1, 40_000, 1} {
		if err := h.q.SetStreamValue(uint16(sid), prio); err != nil {
			t.Fatal(err)
		}
	}
	for _, sid := range []uint16{2, 0, 1, 1, 3, 3} {
		h.push(sid, 700)
	}
	h.wantOrder("[[1] [3] [1] [3] [0] [2]]")
}

// Section 3.4: "the sending of large, lower-priority user messages will not delay
// the sending of higher-priority user messages" when messages are interleaved.
func TestPriorityInterleaves(t *testing.T) {
	h := newTxTest(t, withScheduler(SchedPrio), withIData)
	h.q.SetStreamValue(1, 5)
	h.push(1, 10_000)
	h.packet(0)
	h.push(0, 1000)
	if d := h.packet(0); d[0].SID != 0 {
		t.Errorf("first chunk after the urgent message was queued is of stream %d", d[0].SID)
	}
	h.q.SetStreamValue(0, 6)
	h.push(0, 1000)
	if d := h.packet(0); d[0].SID != 1 {
		t.Errorf("stream %d goes first after the priorities were turned around", d[0].SID)
	}
}

// shares sends n packets from streams that always have something and returns the
// bytes of each.
func (h *txTest) shares(n int, sizes []int) []int {
	got, queued := make([]int, len(sizes)), make([]int, len(sizes))
	for range n {
		for sid, size := range sizes {
			for ; queued[sid] < got[sid]+2*h.mtu; queued[sid] += size {
				h.push(uint16(sid), size)
			}
		}
		for _, d := range h.packet(0) {
			got[d.SID] += len(d.Payload)
		}
		h.sack(h.sb.NextTSN() - 1)
	}
	return got
}

// Section 3.5: "considers the lengths of the messages of each stream and
// schedules them in a specific way to maintain an equal capacity".
func TestFairCapacity(t *testing.T) {
	for _, opt := range []txOption{func(*ScoreboardConfig, *txTest) {}, withIData} {
		h := newTxTest(unlogged{t}, withScheduler(SchedFair), opt)
		got := h.shares(3000, []int{100, 1000, 20_000})
		for i := range got {
			if got[i] < got[2]*80/100 || got[i] > got[2]*120/100 {
				t.Errorf("shares = %v, want them equal", got)
			}
		}
	}
}

// Section 3.6: "If the weight of stream S1 is n times the weight of stream S2,
// the scheduler should assign to stream S1 n times the capacity".
func TestWeightedFairQueueing(t *testing.T) {
	h := newTxTest(unlogged{t}, withScheduler(SchedWFQ), withIData)
	h.q.SetStreamValue(0, 10)
	h.q.SetStreamValue(1, 30)
	h.q.SetStreamValue(2, 0) // counts as 1
	got := h.shares(5000, []int{700, 900, 20_000})
	if r := float64(got[1]) / float64(got[0]); r < 2.8 || r > 3.2 {
		t.Errorf("shares %v: ratio %.2f, want 3", got, r)
	}
	if r := float64(got[0]) / float64(got[2]); r < 8 || r > 12 {
		t.Errorf("shares %v: ratio %.2f, want 10", got, r)
	}
}

// A stream that was idle has no claim on what it did not use, and gives none of
// its share away afterwards.
func TestFairQueueIdleStreamGainsNothing(t *testing.T) {
	h := newTxTest(unlogged{t}, withScheduler(SchedFair), withIData)
	h.shares(1000, []int{1000, 1000})
	for h.q.Pending() {
		h.packet(0)
	}
	h.sack(h.sb.NextTSN() - 1)
	got := h.shares(300, []int{1000, 1000, 1000})
	if got[2] > got[0]*110/100 || got[2] < got[0]*90/100 {
		t.Errorf("shares after stream 2 came back = %v, want them equal", got)
	}
}

func TestSchedulerCanChange(t *testing.T) {
	h := newTxTest(t, withScheduler(SchedFCFS))
	h.push(1, 700)
	h.push(1, 700)
	h.push(2, 700)
	h.q.SetScheduler(SchedRR)
	h.wantOrder("[[1] [2] [1]]")
}

// Virtual time may wrap.
func TestFairQueueWraps(t *testing.T) {
	h := newTxTest(unlogged{t}, withScheduler(SchedFair), withIData)
	f := h.q.sched.(*fairQueue)
	for sid := range uint16(2) {
		f.h.entry(sid).key.minor = ^uint64(0) - 1<<20
	}
	f.now = ^uint64(0) - 1<<20
	got := h.shares(200, []int{1000, 1000})
	if got[0] < got[1]*90/100 || got[0] > got[1]*110/100 {
		t.Errorf("shares across the wrap = %v, want them equal", got)
	}
}

// The heap agrees with a linear search, with 65,535 streams in mind.
func TestSchedHeapAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h schedHeap
		model := map[uint16]schedKey{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			sid := uint16(rapid.IntRange(0, 40).Draw(t, "sid"))
			if rapid.IntRange(0, 3).Draw(t, "op") == 0 {
				h.remove(sid)
				delete(model, sid)
			} else {
				k := schedKey{^uint64(0) - 50 + uint64(rapid.IntRange(0, 100).Draw(t, "minor")), uint16(rapid.IntRange(0, 2).Draw(t, "major"))}
				h.put(sid, k)
				model[sid] = k
			}
			top, ok := h.top()
			if ok != (len(model) > 0) || len(h.ids) != len(model) {
				t.Fatalf("heap of %d, want %d", len(h.ids), len(model))
			}
			for s, k := range model {
				if k.less(model[top]) {
					t.Fatalf("top is %d %v, but %d has %v", top, model[top], s, k)
				}
			}
		}
	})
}

// unlogged drops the log of tests with thousands of steps.
type unlogged struct{ testing.TB }

func (unlogged) Logf(string, ...any) {}

// Chunks that are sent many at once count as those sent one by one: the schedulers
// go on in the same order.
func TestBulkCountsAsItsChunks(t *testing.T) {
	for _, kind := range []Scheduler{SchedFCFS, SchedRR, SchedRRPacket, SchedPrio, SchedFair, SchedWFQ} {
		for _, interleave := range []bool{false, true} {
			var order [2][]uint16
			for run := range order {
				q := NewQueue(1<<30, 4, kind)
				q.SetInterleaving(interleave)
				push := func(sid uint16, n int) {
					if err := q.Push(0, &Message{SID: sid, Body: make([]byte, n)}); err != nil {
						t.Fatal(err)
					}
				}
				next := func(n int) *outMsg {
					m := q.head(0)
					n = min(n, int(m.end-m.sent))
					q.advance(m, n)
					q.EndPacket()
					return m
				}
				for sid := range uint16(4) {
					if err := q.SetStreamValue(sid, 3-sid); err != nil {
						t.Fatal(err)
					}
				}
				push(1, 1000)
				next(1000)
				push(2, 30_000)
				m := next(1000)
				if run == 1 {
					if q.BulkSource(0) != m {
						t.Fatalf("scheduler %d, interleave %v: not in the middle of the message", kind, interleave)
					}
					q.advanceBulk(m, 1000, 20)
				} else {
					for range 20 {
						next(1000)
					}
				}
				push(1, 15_000)
				push(3, 15_000)
				for !q.Empty() && q.Pending() {
					order[run] = append(order[run], next(1000).sid)
				}
				if f, ok := q.sched.(*fairQueue); ok {
					order[run] = append(order[run], uint16(f.now>>16), uint16(f.h.info[2].key.minor>>16))
				}
			}
			if !slices.Equal(order[0], order[1]) {
				t.Errorf("scheduler %d, interleave %v: one by one\n%v, at once\n%v", kind, interleave, order[0], order[1])
			}
		}
	}
}
