package tx

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/slab"
	"pgregory.net/rapid"
)

// cut cuts a body at random into runs, some of them empty.
func cut(r *rapid.T, body []byte) (list [][]byte) {
	longest := rapid.SampledFrom([]int{1, 7, 64, 600, 5000}).Draw(r, "longest run")
	if len(body) > 500*longest {
		longest = 64 // a run for every draw
	}
	for len(body) > 0 {
		n := min(rapid.IntRange(0, longest).Draw(r, "run"), len(body))
		list, body = append(list, body[:n:n]), body[n:]
	}
	if rapid.Bool().Draw(r, "an empty run at the end") {
		list = append(list, nil)
	}
	return list
}

// A message of runs is sent, and sent again, as one of one body is: the same bytes in the same
// packets, whatever else is sent, lost, acknowledged or abandoned, and however large packets are.
func TestRunsMatchOneBody(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var opts []txOption
		for _, o := range []txOption{withIData, withRACK, withPR} {
			if rapid.Bool().Draw(r, "option") {
				opts = append(opts, o)
			}
		}
		opts = append(opts, withScheduler(rapid.SampledFrom([]Scheduler{SchedFCFS, SchedRR, SchedRRPacket}).Draw(r, "scheduler")))
		one, two := newTxTest(t, opts...), newTxTest(t, opts...)
		var owners [2][]*ownerLog
		both := func(f func(h *txTest) []byte) {
			if a, b := f(one), f(two); !bytes.Equal(a, b) {
				r.Fatalf("the runs went as\n%x, one body as\n%x", b, a)
			}
		}
		// Of the runs, parts stay where they are, or are copied late.
		vecs := make([]slab.IOVec, 0, rapid.IntRange(1, 8).Draw(r, "iovecs"))
		how, least := rapid.IntRange(0, 2).Draw(r, "how"), rapid.SampledFrom([]int{20, 600}).Draw(r, "least")
		build := func(h *txTest, f func(b []byte) ([]byte, bool)) []byte {
			if h == two {
				switch vecs = vecs[:0]; how {
				case 1:
					h.sb.Gather(&vecs, least)
				case 2:
					h.sb.DeferCopies(true)
				}
			}
			b, ok := make([]byte, 0, 2000), true
			for ok {
				b, ok = f(b)
			}
			h.q.EndPacket()
			h.sb.CopyDeferred(b)
			h.sb.FillIOVecs(b, 0)
			h.sb.EndGather()
			return b
		}
		packet := func(h *txTest) []byte {
			return build(h, func(b []byte) ([]byte, bool) { return h.sb.AppendNew(b, h.now, 0, Room{h.mtu - len(b), h.mtu}) })
		}
		again := func(h *txTest) []byte {
			return build(h, func(b []byte) ([]byte, bool) { return h.sb.AppendRtx(b, h.now, 0, 1800-len(b)) })
		}
		sack := func(cum seq.TSN, gaps ...seq.TSN) {
			both(func(h *txTest) []byte { return fmt.Append(nil, *h.sack(cum, gaps...)) })
		}
		for range 40 {
			one.advance(ms)
			two.advance(ms)
			switch rapid.IntRange(0, 7).Draw(r, "op") {
			case 0, 1:
				body := make([]byte, rapid.SampledFrom([]int{1, 300, 1384, 3000, 9000}).Draw(r, "size"))
				for i := range body {
					body[i] = byte(i * i >> 5)
				}
				m := Message{SID: uint16(rapid.IntRange(0, 2).Draw(r, "sid")), Unordered: rapid.Bool().Draw(r, "unordered"),
					Header: body[:rapid.SampledFrom([]int{0, 1, MaxHeader}).Draw(r, "header")%(len(body)+1)], Body: body, Force: true}
				switch rapid.IntRange(0, 5).Draw(r, "policy") {
				case 0:
					m.LimitRtx, m.MaxRtx = true, 1
				case 1:
					m.Lifetime = 5 * ms
				}
				for i, h := range []*txTest{one, two} {
					o := new(ownerLog)
					owners[i] = append(owners[i], o)
					if m.Owner = o; h == two {
						m.SetRuns(cut(r, body))
					}
					h.pushMsg(m)
				}
			case 2, 3, 4:
				both(packet)
			case 5:
				if out := one.sb.Outstanding(); out > 0 {
					cum := one.sb.CumTSN() + seq.TSN(rapid.IntRange(0, out).Draw(r, "cum"))
					if left := one.sb.NextTSN().Sub(cum) - 1; left > 1 && rapid.Bool().Draw(r, "gap") {
						sack(cum, cum+2+seq.TSN(rapid.IntRange(0, left-2).Draw(r, "at")))
					} else {
						sack(cum)
					}
				}
			case 6:
				if rapid.Bool().Draw(r, "timeout") {
					both(func(h *txTest) []byte { return fmt.Append(nil, h.sb.OnTimeout(h.now, 0)) })
				}
				both(again)
			case 7:
				one.mtu = rapid.SampledFrom([]int{400, 1000, 1400}).Draw(r, "MTU")
				two.mtu = one.mtu
			}
			if a, b := [...]int64{one.q.Buffered(), one.q.Unsent()}, [...]int64{two.q.Buffered(), two.q.Unsent()}; a != b {
				r.Fatalf("buffered and unsent: %d, of the runs %d", a, b)
			}
		}
		for one.q.Pending() {
			both(packet)
		}
		sack(one.sb.NextTSN() - 1)
		one.release()
		two.release()
		for i, o := range owners[1] {
			if o.n != 1 || o.err != owners[0][i].err {
				r.Fatalf("message %d of runs: released %d times (%v), that of one body with %v", i, o.n, o.err, owners[0][i].err)
			}
		}
		if two.q.Messages() != 0 || !two.q.Empty() {
			r.Fatalf("%d messages are left", two.q.Messages())
		}
	})
}

// A packet looks at the runs that it takes, not at those before them; so does a retransmission
// that follows another.
func TestRunsAreNotSearchedFromTheirBeginning(t *testing.T) {
	h := newTxTest(t, withRACK)
	const n = 100_000
	list := make([][]byte, n)
	for i := range list {
		list[i] = []byte{byte(i)}
	}
	var m Message
	m.SetRuns(list)
	h.pushMsg(m)
	o := h.q.streams[0].head
	for h.q.Pending() {
		from := o.runs.next
		if h.packet(0); o.runs.next.i-from.i > h.mtu || o.runs.next.i < from.i {
			t.Fatalf("from run %d to %d for a packet", from.i, o.runs.next.i)
		}
	}
	h.advance(second)
	h.sb.OnTimeout(h.now, 0)
	for was := -1; h.sb.HasRtx(); {
		if h.rtx(0); o.runs.again.i-was > h.mtu || o.runs.again.i < was {
			t.Fatalf("from run %d to %d for a retransmission", was, o.runs.again.i)
		}
		was = o.runs.again.i
	}
	// The last one once more: not from the first run, where the search has not been for long.
	o.runs.again = runPos{}
	if p := o.runs.at(o.runs.next.begin - 10); p.begin != o.runs.next.begin-10 || p != &o.runs.again {
		t.Errorf("10 bytes before the end: %+v, the end is %+v", *p, o.runs.next)
	}
}

func TestRunsRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		runs [][]byte
		f    func(m *Message)
		want error
	}{
		{"as they are", [][]byte{nil, make([]byte, 5), {}}, func(*Message) {}, nil},
		{"none", [][]byte{}, func(*Message) {}, ErrNoUserData},
		{"empty", [][]byte{nil, {}}, func(*Message) {}, ErrNoUserData},
		{"empty with a header", [][]byte{nil, {}}, func(m *Message) { m.Header = []byte("x") }, nil},
		{"in segments", [][]byte{make([]byte, 5), make([]byte, 5)}, func(m *Message) { m.Unordered, m.SegmentSize = true, 2 }, ErrSegmented},
		{"larger than the buffer", [][]byte{make([]byte, 600), make([]byte, 600)}, func(*Message) {}, ErrWouldBlock},
	} {
		q := NewQueue(1000, 1, SchedRR)
		if err := q.Push(second, &Message{Body: make([]byte, 1)}); err != nil {
			t.Fatal(err)
		}
		var m Message
		m.SetRuns(tt.runs)
		tt.f(&m)
		if err := q.Push(second, &m); !errors.Is(err, tt.want) {
			t.Errorf("%s: Push = %v, want %v", tt.name, err, tt.want)
		}
	}
}

// A record of a message keeps what a message of runs needs.
func TestRunsDoNotAllocate(t *testing.T) {
	h := newTxTest(t, withRACK)
	list := [][]byte{make([]byte, 100), make([]byte, 3000)}
	buf := make([]byte, 0, 2000)
	if n := testing.AllocsPerRun(1000, func() {
		var m Message
		m.SetRuns(list)
		h.pushMsg(m)
		for ok := true; ok; {
			_, ok = h.sb.AppendNew(buf, h.now, 0, Room{h.mtu, h.mtu})
		}
		h.now += ms
		h.sb.HandleCumAck(h.now, h.sb.NextTSN()-1)
	}); n != 0 {
		t.Errorf("%v allocations a message, want 0", n)
	}
}
