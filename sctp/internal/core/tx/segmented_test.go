package tx

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/seq"
	"pgregory.net/rapid"
)

// segmentedOf makes a segmented send of a body, and the same messages one by one. Headers of hdr
// bytes tell the number of the message.
func segmentedOf(sid uint16, body []byte, unit, hdr int, immediate bool) (s Message, each []Message) {
	for at := 0; at < len(body); at += unit {
		part := body[at:min(at+unit, len(body))]
		h := bytes.Repeat([]byte{byte(len(each)), byte(hdr)}, hdr)[:hdr]
		s.Headers = append(s.Headers, h...)
		each = append(each, Message{SID: sid, PPID: 9, Unordered: true, Header: h, Body: part, Force: true})
	}
	each[len(each)-1].Immediate = immediate
	s.SID, s.PPID, s.Unordered, s.Body, s.SegmentSize, s.Force, s.Immediate = sid, 9, true, body, unit, true, immediate
	return s, each
}

// A segmented send is sent, and sent again, as its messages one by one are: the same bytes in
// the same packets, whatever else is sent, lost or acknowledged.
func TestSegmentedSendMatchesItsMessages(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var opts []txOption
		for _, o := range []txOption{withIData, withRACK, withPR} {
			if rapid.Bool().Draw(r, "option") {
				opts = append(opts, o)
			}
		}
		opts = append(opts, withScheduler(rapid.SampledFrom([]Scheduler{SchedFCFS, SchedRR, SchedRRPacket, SchedPrio, SchedFair, SchedWFQ}).Draw(r, "scheduler")))
		one, two := newTxTest(t, opts...), newTxTest(t, opts...)
		var owners [2]ownerLog
		segmented := 0
		both := func(f func(h *txTest) []byte) {
			a, b := f(one), f(two)
			if !bytes.Equal(a, b) {
				r.Fatalf("the segmented send went as\n%x, the messages as\n%x", b, a)
			}
		}
		packet := func(h *txTest) []byte {
			h.packet(0)
			return bytes.Clone(h.buf)
		}
		again := func(h *txTest) []byte {
			b, ok := h.buf[:0], true
			for ok {
				b, ok = h.sb.AppendRtx(b, h.now, 0, h.mtu-len(b))
			}
			return bytes.Clone(b)
		}
		sack := func(cum seq.TSN, gaps ...seq.TSN) {
			both(func(h *txTest) []byte { return fmt.Append(nil, *h.sack(cum, gaps...)) })
		}
		for range 40 {
			one.advance(second / 1000)
			two.advance(second / 1000)
			switch rapid.IntRange(0, 6).Draw(r, "op") {
			case 0:
				m := Message{SID: uint16(rapid.IntRange(0, 2).Draw(r, "sid")), Unordered: rapid.Bool().Draw(r, "unordered"),
					Body: make([]byte, rapid.SampledFrom([]int{1, 500, 1384, 3000}).Draw(r, "size")), Force: true}
				one.pushMsg(m)
				two.pushMsg(m)
			case 1, 2:
				body := make([]byte, rapid.SampledFrom([]int{1, 300, 1500, 3000, 6000}).Draw(r, "size"))
				for i := range body {
					body[i] = byte(i * i >> 5)
				}
				unit := rapid.SampledFrom([]int{200, 700, 1000, 1368, 1600, 2500}).Draw(r, "unit")
				s, each := segmentedOf(uint16(rapid.IntRange(0, 2).Draw(r, "sid")), body, unit,
					rapid.SampledFrom([]int{0, 16, MaxHeader}).Draw(r, "header"), rapid.Bool().Draw(r, "immediate"))
				for i := range each {
					each[i].Owner = &owners[0]
					one.pushMsg(each[i])
				}
				s.Owner = &owners[1]
				two.pushMsg(s)
				segmented++
			case 3, 4:
				both(packet)
			case 5:
				out := one.sb.Outstanding()
				if out == 0 {
					continue
				}
				cum := one.sb.CumTSN() + seq.TSN(rapid.IntRange(0, out).Draw(r, "cum"))
				if left := one.sb.NextTSN().Sub(cum) - 1; left > 1 && rapid.Bool().Draw(r, "gap") {
					sack(cum, cum+2+seq.TSN(rapid.IntRange(0, left-2).Draw(r, "at")))
				} else {
					sack(cum)
				}
			case 6:
				if rapid.Bool().Draw(r, "timeout") {
					both(func(h *txTest) []byte { return fmt.Append(nil, h.sb.OnTimeout(h.now, 0)) })
				}
				both(again)
			}
			if a, b := [...]int64{one.q.Buffered(), one.q.Unsent()}, [...]int64{two.q.Buffered(), two.q.Unsent()}; a != b {
				r.Fatalf("buffered and unsent: %d, of the segmented send %d", a, b)
			}
		}
		for one.q.Pending() {
			both(packet)
		}
		sack(one.sb.NextTSN() - 1)
		one.release()
		two.release()
		if owners[1].n != segmented || owners[1].err != nil || two.q.Messages() != 0 || !two.q.Empty() {
			r.Fatalf("%d of %d segmented sends released (%v), %d messages left", owners[1].n, segmented, owners[1].err, two.q.Messages())
		}
	})
}

func TestSegmentedRefused(t *testing.T) {
	body := make([]byte, 100)
	good := func() Message {
		return Message{Unordered: true, SegmentSize: 40, Headers: make([]byte, 3*5), Body: body}
	}
	for _, tt := range []struct {
		name string
		f    func(m *Message)
		want error
	}{
		{"as it is", func(m *Message) {}, nil},
		{"without headers", func(m *Message) { m.Headers = nil }, nil},
		{"of MaxSeries", func(m *Message) { m.Body, m.Headers = make([]byte, MaxSegmented), nil }, nil},
		{"over MaxSeries", func(m *Message) { m.Body, m.Headers = make([]byte, MaxSegmented+1), nil }, ErrSegmented},
		{"headers of MaxHeader", func(m *Message) { m.Headers = make([]byte, 3*MaxHeader) }, nil},
		{"longer headers", func(m *Message) { m.Headers = make([]byte, 3*MaxHeader+3) }, ErrSegmented},
		{"headers of different lengths", func(m *Message) { m.Headers = make([]byte, 16) }, ErrSegmented},
		{"Unit < 0", func(m *Message) { m.SegmentSize = -1 }, ErrSegmented},
		{"no body", func(m *Message) { m.Body = nil }, ErrSegmented},
		{"ordered", func(m *Message) { m.Unordered = false }, ErrSegmented},
		{"a Header", func(m *Message) { m.Header = body[:1] }, ErrSegmented},
		{"a lifetime", func(m *Message) { m.Lifetime = 1 }, ErrSegmented},
		{"limited retransmissions", func(m *Message) { m.LimitRtx = true }, ErrSegmented},
		{"a priority", func(m *Message) { m.Droppable = true }, ErrSegmented},
	} {
		q := NewQueue(4<<20, 1, SchedRR)
		m := good()
		tt.f(&m)
		if err := q.Push(second, &m); !errors.Is(err, tt.want) {
			t.Errorf("%s: Push = %v, want %v", tt.name, err, tt.want)
		}
	}
}

// A SegmentSize longer than the body makes one message, however long it is.
func TestSegmentedOfOne(t *testing.T) {
	for _, unit := range []int{101, math.MaxInt - 4, math.MaxInt} {
		h := newTxTest(t)
		h.pushMsg(Message{Unordered: true, SegmentSize: unit, Headers: []byte("five "), Body: make([]byte, 100)})
		d := h.packet(0)
		if len(d) != 1 || len(d[0].Payload) != 105 || !d[0].Begin || !d[0].End || h.q.Pending() {
			t.Errorf("Unit %d: %d chunks, pending %v: %+v", unit, len(d), h.q.Pending(), d)
		}
	}
}

// A segmented send is counted as the messages that it stands for.
func TestSegmentedCounts(t *testing.T) {
	h := newTxTest(t)
	h.pushMsg(Message{Unordered: true, SegmentSize: 40, Headers: make([]byte, 3*5), Body: make([]byte, 100)})
	if h.q.Messages() != 3 || h.q.Buffered() != 115 || h.q.Unsent() != 115 {
		t.Errorf("Messages %d, Buffered %d, Unsent %d, want 3, 115, 115", h.q.Messages(), h.q.Buffered(), h.q.Unsent())
	}
	h.packet(0)
	h.sack(h.sb.NextTSN() - 2)
	if h.q.Messages() != 3 || h.q.Buffered() != 25 || h.q.HasReleases() {
		t.Errorf("Messages %d, Buffered %d before the last was acknowledged, want 3, 25", h.q.Messages(), h.q.Buffered())
	}
	h.sack(h.sb.NextTSN() - 1)
	if h.q.Messages() != 0 || h.q.Buffered() != 0 {
		t.Errorf("Messages %d, Buffered %d at the end", h.q.Messages(), h.q.Buffered())
	}
}

// A segmented send needs the room that its messages would.
func TestSegmentedNeedsRoom(t *testing.T) {
	q := NewQueue(10_000, 1, SchedRR)
	if err := q.Push(second, &Message{Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		messages int
		want     error
	}{{10_000 / messageCharge, ErrWouldBlock}, {10_000/messageCharge - 2, nil}} {
		m := Message{Unordered: true, SegmentSize: 1, Body: make([]byte, tt.messages)}
		if err := q.Push(second, &m); err != tt.want {
			t.Errorf("%d messages: Push = %v, want %v", tt.messages, err, tt.want)
		}
	}
}
