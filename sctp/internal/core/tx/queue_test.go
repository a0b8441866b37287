package tx

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
	"pgregory.net/rapid"
)

func TestPushRefusesWhatCannotBeSent(t *testing.T) {
	q := NewQueue(1000, 4, SchedRR)
	for _, tt := range []struct {
		name string
		m    Message
		want error
	}{
		{"empty", Message{}, ErrNoUserData},
		{"header of 65 bytes", Message{Header: make([]byte, MaxHeader+1)}, ErrHeaderTooLong},
		{"stream 4 of 4", Message{SID: 4, Body: []byte("x")}, ErrStream},
	} {
		if err := q.Push(second, &tt.m); !errors.Is(err, tt.want) {
			t.Errorf("%s: Push = %v, want %v", tt.name, err, tt.want)
		}
	}
	if q.Messages() != 0 || q.Buffered() != 0 || q.Pending() {
		t.Error("a refused message left traces")
	}
}

func TestPushBlocksWhenFull(t *testing.T) {
	h := newTxTest(t, withLimit(10_000))
	big := Message{Body: make([]byte, 1<<20)}
	if err := h.q.Push(h.now, &big); err != nil {
		t.Fatalf("a message larger than the limit into an empty queue: %v", err)
	}
	small := Message{Body: []byte("x")}
	if err := h.q.Push(h.now, &small); !errors.Is(err, ErrWouldBlock) {
		t.Fatalf("Push into a full queue = %v, want ErrWouldBlock", err)
	}
	small.Force = true
	if err := h.q.Push(h.now, &small); err != nil {
		t.Fatalf("Push with Force = %v", err)
	}
	if got := h.q.Buffered(); got != 1<<20+1 {
		t.Errorf("Buffered = %d, want %d", got, 1<<20+1)
	}
	if h.q.Unblocked() {
		t.Error("the queue claims to have room")
	}
	for h.q.Pending() {
		h.packet(0)
	}
	h.sack(h.sb.NextTSN() - 1)
	if !h.q.Unblocked() || h.q.Unblocked() {
		t.Error("Unblocked does not report room once")
	}
	if h.q.Buffered() != 0 || !h.q.Empty() || h.q.Unsent() != 0 {
		t.Errorf("Buffered %d, Unsent %d, Messages %d after everything was acknowledged", h.q.Buffered(), h.q.Unsent(), h.q.Messages())
	}
}

// Tiny messages are charged for their records.
func TestTinyMessagesAreCharged(t *testing.T) {
	q := NewQueue(100_000, 1, SchedRR)
	n := 0
	for q.Push(second, &Message{Body: []byte("x")}) == nil {
		n++
	}
	if want := 100_000 / (messageCharge + 1); n != want {
		t.Errorf("%d messages of a byte fit, want %d", n, want)
	}
}

func TestFragmentsFillPackets(t *testing.T) {
	h := newTxTest(t)
	h.push(1, 3000)
	h.push(1, 10)
	p1, p2, p3 := h.packet(0), h.packet(0), h.packet(0)
	// 1400 bytes of space take a header of 16 and 1384 of payload.
	if len(p1) != 1 || len(p1[0].Payload) != 1384 || !p1[0].Begin || p1[0].End {
		t.Fatalf("first packet = %+v", p1)
	}
	if len(p2) != 1 || len(p2[0].Payload) != 1384 || p2[0].Begin || p2[0].End {
		t.Fatalf("second packet = %+v", p2)
	}
	if len(p3) != 2 || len(p3[0].Payload) != 232 || !p3[0].End || len(p3[1].Payload) != 10 {
		t.Fatalf("third packet = %+v, want the end of one message and another", p3)
	}
	if p3[0].SSN != 0 || p3[1].SSN != 1 || p3[0].TSN != p1[0].TSN+2 {
		t.Errorf("SSN %d then %d, TSN %d", p3[0].SSN, p3[1].SSN, p3[0].TSN)
	}
}

// A message that fits an empty packet is not cut, a long one not into crumbs.
func TestSmallMessagesAreNotCut(t *testing.T) {
	h := newTxTest(t)
	h.push(0, 1000)
	h.push(0, 1000)
	if got := h.packet(0); len(got) != 1 || !got[0].End {
		t.Fatalf("first packet = %+v, want one whole message", got)
	}
	if got := h.packet(0); len(got) != 1 || !got[0].Begin || !got[0].End {
		t.Fatalf("second packet = %+v, want one whole message", got)
	}
	h.push(0, 1400-16-16-minFragment-4+8) // leaves space for a header and less than minFragment
	h.push(0, 5000)
	if got := h.packet(0); len(got) != 1 {
		t.Fatalf("packet = %d chunks, want the long message not to begin with a crumb", len(got))
	}
}

func TestHeaderGoesBeforeBody(t *testing.T) {
	h := newTxTest(t)
	h.mtu = 16 + 80
	hdr, body := bytes.Repeat([]byte("header. "), MaxHeader/8), []byte("the body, which does not fit")
	want := string(hdr) + string(body)
	h.pushMsg(Message{Header: hdr, Body: body, PPID: 7})
	clear(hdr) // it was copied
	var got []byte
	for _, size := range []int{80, 12} {
		d := h.packet(0)
		if len(d) != 1 || len(d[0].Payload) != size || d[0].PPID != 7 {
			t.Fatalf("packet = %+v, want one chunk of %d bytes", d, size)
		}
		got = append(got, d[0].Payload...)
	}
	if string(got) != want {
		t.Errorf("message = %q, want %q", got, want)
	}
}

// RFC 9260, Section 6.9: fragments of a message have consecutive TSNs, so with
// DATA no other message begins before this one ends.
func TestDataMessagesAreNotInterleaved(t *testing.T) {
	for _, k := range []Scheduler{SchedFCFS, SchedRR, SchedRRPacket, SchedPrio, SchedFair, SchedWFQ} {
		h := newTxTest(t, withScheduler(k))
		h.push(5, 4000)
		h.packet(0)
		h.push(1, 100)
		var sids []uint16
		for h.q.Pending() {
			for _, d := range h.packet(0) {
				sids = append(sids, d.SID)
			}
		}
		if got := fmt.Sprint(sids); got != "[5 5 1]" {
			t.Errorf("scheduler %d: streams after the first fragment = %v, want [5 5 1]", k, got)
		}
	}
}

// RFC 8260, Section 2.2: with I-DATA, ordered and unordered messages have MIDs of
// their own, and fragments count FSNs; PPID is in the first only.
func TestIDataNumbers(t *testing.T) {
	h := newTxTest(t, withIData)
	h.pushMsg(Message{SID: 3, Body: make([]byte, 3000), PPID: 9})
	h.pushMsg(Message{SID: 3, Body: make([]byte, 10), Unordered: true})
	h.pushMsg(Message{SID: 3, Body: make([]byte, 10), Unordered: true})
	h.pushMsg(Message{SID: 3, Body: make([]byte, 10)})
	var got []string
	for h.q.Pending() {
		for _, d := range h.packet(0) {
			got = append(got, fmt.Sprintf("U%v MID%d FSN%d PPID%d", d.Unordered, d.MID, d.FSN, d.PPID))
		}
	}
	want := []string{"Ufalse MID0 FSN0 PPID9", "Ufalse MID0 FSN1 PPID0", "Ufalse MID0 FSN2 PPID0",
		"Utrue MID0 FSN0 PPID0", "Utrue MID1 FSN0 PPID0", "Ufalse MID1 FSN0 PPID0"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("chunks = %v\nwant %v", got, want)
	}
}

// RFC 7053: the I bit is set on the last chunk of a message that asks for it.
func TestImmediateOnLastFragment(t *testing.T) {
	h := newTxTest(t)
	h.pushMsg(Message{Body: make([]byte, 2000), Immediate: true})
	if d := h.packet(0); d[0].Immediate {
		t.Error("I bit on a first fragment")
	}
	if d := h.packet(0); !d[0].Immediate {
		t.Error("no I bit on the last fragment")
	}
}

func TestOwnerIsReleasedOnceAcknowledged(t *testing.T) {
	h := newTxTest(t)
	var o ownerLog
	h.pushMsg(Message{Body: make([]byte, 2500), Owner: &o})
	h.packet(0)
	h.packet(0)
	h.sack(100)
	h.release()
	if o.n != 0 {
		t.Fatal("released with half of the message acknowledged")
	}
	h.sack(101)
	if o.n != 0 || !h.q.HasReleases() {
		t.Fatal("the queue called the owner itself")
	}
	h.release()
	h.release()
	if o.n != 1 || o.err != nil {
		t.Errorf("released %d times with %v, want once with nil", o.n, o.err)
	}
}

// A gap block is no promise: the data may be reneged on.
func TestOwnerIsNotReleasedByGapBlock(t *testing.T) {
	h := newTxTest(t)
	var o ownerLog
	h.push(0, 100)
	h.pushMsg(Message{Body: make([]byte, 1390), Owner: &o})
	h.packet(0)
	h.packet(0)
	h.packet(0)
	h.sack(99, 101, 102)
	if h.release(); o.n != 0 {
		t.Error("released on a gap block")
	}
}

func TestCloseReleasesEverything(t *testing.T) {
	h := newTxTest(t, withIData)
	owners := make([]ownerLog, 6)
	for i := range owners {
		h.pushMsg(Message{SID: uint16(i % 3), Body: make([]byte, 2000), Owner: &owners[i]})
	}
	h.packet(0)
	h.packet(0)
	h.packet(0)
	h.sack(99, 101, 101)
	end := errors.New("gone")
	h.q.Close(end)
	h.release()
	for i := range owners {
		if owners[i].n != 1 || owners[i].err != end {
			t.Errorf("owner %d: released %d times with %v", i, owners[i].n, owners[i].err)
		}
	}
	if h.q.Buffered() != 0 || h.q.Pending() || h.sb.Outstanding() != 0 || h.sb.TotalFlight() != 0 {
		t.Errorf("left: %d bytes, %d TSNs, %d in flight", h.q.Buffered(), h.sb.Outstanding(), h.sb.TotalFlight())
	}
	if err := h.q.Push(h.now, &Message{Body: []byte("x")}); !errors.Is(err, ErrStream) {
		t.Errorf("Push after Close = %v", err)
	}
}

func TestMessagesOnRefusedStreamsAreReleased(t *testing.T) {
	h := newTxTest(t)
	var low, high ownerLog
	h.pushMsg(Message{SID: 9, Body: []byte("x"), Owner: &low})
	h.pushMsg(Message{SID: 10, Body: []byte("x"), Owner: &high})
	h.q.SetStreams(10)
	h.release()
	if low.n != 0 || high.n != 1 || !errors.Is(high.err, ErrStream) {
		t.Errorf("released: stream 9 %d times, stream 10 %d times with %v", low.n, high.n, high.err)
	}
}

// RFC 6525, Section 5.1.2: before a stream is reset, no new message begins and
// everything sent on it is acknowledged.
func TestStreamResetHooks(t *testing.T) {
	h := newTxTest(t)
	h.push(2, 2000)
	h.push(2, 100)
	h.packet(0)
	h.q.Pause(2, 0)
	if h.q.Drained(2) {
		t.Error("drained in the middle of a message")
	}
	if d := h.packet(0); len(d) != 1 || !d[0].End {
		t.Fatalf("paused stream sent %+v, want the end of the message", d)
	}
	if d := h.packet(0); len(d) != 0 || h.q.Pending() {
		t.Fatalf("paused stream began a message: %+v", d)
	}
	if h.q.Drained(2) {
		t.Error("drained with chunks outstanding")
	}
	h.sack(101)
	if !h.q.Drained(2) {
		t.Error("not drained with everything acknowledged")
	}
	h.q.ResetStreams([]uint16{2})
	h.q.Resume(2)
	h.q.Reschedule()
	if d := h.packet(0); len(d) != 1 || d[0].SSN != 0 {
		t.Errorf("after the reset: %+v, want SSN 0", d)
	}
}

// RFC 9260, Section 6.1: "the data sender MUST NOT have more than 2^16 - 1
// ordered user messages in the current send window".
func TestOrderedMessagesInFlightAreBounded(t *testing.T) {
	h := newTxTest(t)
	for range maxOrderedInFlight + 10 {
		h.push(0, 4)
	}
	h.push(1, 4)
	n := 0
	for h.q.Pending() {
		n += len(h.packet(0))
	}
	if want := maxOrderedInFlight + 1; n != want {
		t.Fatalf("%d messages in flight, want %d on stream 0 and one on stream 1", n, want)
	}
	h.sack(100)
	if d := h.packet(0); len(d) != 1 {
		t.Errorf("%d messages went after one was acknowledged, want 1", len(d))
	}
	h.sack(110)
	if d := h.packet(0); len(d) != 9 {
		t.Errorf("%d messages went, want 9", len(d))
	}
}

// Every byte goes once and in the order of its stream, whatever the scheduler,
// the sizes and the packets.
func TestQueueDeliversStreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		idata := rapid.Bool().Draw(t, "idata")
		kind := Scheduler(rapid.IntRange(0, int(SchedWFQ)).Draw(t, "scheduler"))
		q := NewQueue(1<<30, 8, kind)
		q.SetInterleaving(idata)
		sb := NewScoreboard(q, ScoreboardConfig{TSN: seq.TSN(rapid.Uint32().Draw(t, "tsn")), RWND: 1 << 30})
		type key struct {
			sid uint16
			u   bool
		}
		sent, got := map[key][][]byte{}, map[key][][]byte{}
		partial := map[key][]byte{}
		fill := byte(0)
		var wantTSN = uint32(sb.NextTSN())
		var current *key // DATA: the message in the middle of which we are
		packet := func(space int) int {
			var b []byte
			for {
				var ok bool
				if b, ok = sb.AppendNew(b, second, 0, Room{space - len(b), space}); !ok {
					break
				}
			}
			q.EndPacket()
			if len(b) > space {
				t.Fatalf("packet of %d bytes in a space of %d", len(b), space)
			}
			it := wire.NewChunks(b)
			n := 0
			for it.Next() {
				n++
				d, err := wire.ParseData(it.Chunk())
				if idata {
					d, err = wire.ParseIData(it.Chunk())
				}
				if err != nil {
					t.Fatal(err)
				}
				if d.TSN != wantTSN {
					t.Fatalf("TSN %d, want %d", d.TSN, wantTSN)
				}
				wantTSN++
				k := key{d.SID, d.Unordered}
				if !idata {
					if d.Begin != (current == nil) || current != nil && *current != k {
						t.Fatalf("message of %v in the middle of that of %v", k, current)
					}
					if current = &k; d.End {
						current = nil
					}
				}
				if d.Begin != (len(partial[k]) == 0) {
					t.Fatalf("fragments of stream %v interleave", k)
				}
				partial[k] = append(partial[k], d.Payload...)
				if d.End {
					if seq := len(got[k]); !idata && !k.u && d.SSN != uint16(seq) || idata && d.MID != uint32(seq) {
						t.Fatalf("message %d of %v has SSN %d MID %d", seq, k, d.SSN, d.MID)
					}
					got[k] = append(got[k], partial[k])
					delete(partial, k)
				}
			}
			return n
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "push") {
				m := Message{SID: uint16(rapid.IntRange(0, 7).Draw(t, "sid")), Unordered: rapid.Bool().Draw(t, "unordered")}
				n := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, 6000)).Draw(t, "len")
				fill++
				all := bytes.Repeat([]byte{fill}, n)
				for i := range all {
					all[i] += byte(i)
				}
				hdr := min(n, rapid.IntRange(0, MaxHeader).Draw(t, "header"))
				m.Header, m.Body = all[:hdr], all[hdr:]
				if err := q.Push(second, &m); err != nil {
					t.Fatal(err)
				}
				k := key{m.SID, m.Unordered}
				sent[k] = append(sent[k], all)
			} else {
				packet(rapid.IntRange(40, 3000).Draw(t, "space"))
			}
		}
		for q.Pending() {
			if packet(1400) == 0 {
				t.Fatal("something is pending, but nothing goes into an empty packet")
			}
		}
		if q.Unsent() != 0 {
			t.Fatalf("Unsent = %d with nothing pending", q.Unsent())
		}
		for k, msgs := range sent {
			if len(got[k]) != len(msgs) {
				t.Fatalf("stream %v: %d messages, want %d", k, len(got[k]), len(msgs))
			}
			for i := range msgs {
				if !bytes.Equal(got[k][i], msgs[i]) {
					t.Fatalf("stream %v: message %d differs", k, i)
				}
			}
		}
	})
}
