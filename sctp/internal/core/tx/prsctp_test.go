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

// forward builds the FORWARD-TSN that is due and returns it as text.
func (h *txTest) forward(space int) string {
	h.t.Helper()
	if !h.sb.ForwardDue() {
		return "none"
	}
	b, ok := h.sb.AppendForward(nil, space)
	if !ok {
		return "no space"
	}
	if len(b) > space {
		h.t.Fatalf("FORWARD-TSN of %d bytes in a space of %d", len(b), space)
	}
	it := wire.NewChunks(b)
	it.Next()
	if c := it.Chunk(); c.Type == wire.ChunkIForwardTSN {
		x, err := wire.ParseIForwardTSN(c)
		if err != nil {
			h.t.Fatal(err)
		}
		return fmt.Sprintf("I%d%v", x.CumTSN, x.Skips.AppendTo(nil))
	}
	x, err := wire.ParseForwardTSN(it.Chunk())
	if err != nil {
		h.t.Fatal(err)
	}
	return fmt.Sprintf("%d%v", x.CumTSN, x.Skips.AppendTo(nil))
}

func (h *txTest) wantForward(want string) {
	h.t.Helper()
	if got := h.forward(1000); got != want {
		h.t.Fatalf("FORWARD-TSN = %s, want %s", got, want)
	}
}

// loseAll has T3 expire and the retransmission of everything tried.
func (h *txTest) loseAll() {
	h.t.Helper()
	h.sb.OnTimeout(h.now, 0)
	for len(h.rtx(0)) > 0 {
	}
}

// RFC 3758, Section 4.1: a message whose lifetime expired before a part of it was
// sent is dropped; it takes no TSN and no SSN.
func TestLifetimeExpiresUnsent(t *testing.T) {
	h := newTxTest(t) // the peer need not know PR-SCTP for that
	var o ownerLog
	h.pushMsg(Message{Body: make([]byte, 10), Lifetime: 10 * ms, Owner: &o})
	h.push(0, 20)
	h.advance(10 * ms)
	if d := h.packet(0); len(d) != 1 || len(d[0].Payload) != 20 || d[0].SSN != 0 || d[0].TSN != 100 {
		t.Fatalf("sent %+v, want the second message as TSN 100, SSN 0", d)
	}
	h.release()
	if o.n != 1 || !errors.Is(o.err, ErrAbandoned) {
		t.Errorf("owner told %d times, %v", o.n, o.err)
	}
	if u, s := h.q.AbandonedMessages(); u != 1 || s != 0 {
		t.Errorf("abandoned %d unsent, %d sent, want 1 and 0", u, s)
	}
}

// Section 3.5, C2: the example of the RFC, whose point advances from 102 to 104.
func TestAdvancedPeerAckPoint(t *testing.T) {
	h := newTxTest(t, withPR)
	h.sendTSNs(3) // 100 .. 102
	for sid := range uint16(2) {
		h.pushMsg(Message{SID: sid + 1, Body: make([]byte, 1000), LimitRtx: true}) // 103, 104
		h.packet(0)
	}
	h.sendTSNs(2) // 105, 106
	h.sack(102, 106, 106)
	h.wantForward("none")
	h.sb.OnTimeout(h.now, 0)
	h.wantRtx(0, 105) // 103 and 104 are abandoned instead
	h.wantForward("104[{1 0} {2 0}]")
	h.wantForward("none")
	if !h.sb.ForwardOutstanding() {
		t.Error("C5: no T3 runs for a FORWARD-TSN that is not answered")
	}
	h.sack(106)
	if h.sb.ForwardOutstanding() || h.sb.Outstanding() != 0 {
		t.Error("FORWARD-TSN still outstanding after it was acknowledged")
	}
}

// A2: an abandoned chunk is "no longer outstanding" and "The sender MUST NOT
// credit an 'abandoned' data chunk".
func TestAbandonedChunkIsNotCredited(t *testing.T) {
	h := newTxTest(t, withPR)
	h.pushMsg(Message{Body: make([]byte, 1000), Lifetime: 10 * ms})
	h.packet(0)
	h.sendTSNs(1)
	h.advance(20 * ms)
	h.sb.OnTimeout(h.now, 0)
	h.wantRtx(0, 101)
	h.wantFlight(0, tsnChunk)
	if res := h.sack(101); res.Paths[0].Acked != tsnChunk {
		t.Errorf("newly acknowledged = %d, want only the chunk that was not abandoned", res.Paths[0].Acked)
	}
}

// A3: "if it is part of a fragmented message, all other TSN's within that
// fragmented message MUST be abandoned at the same time". A TSN stands for the
// fragments never sent, as the peer may have got all the others.
func TestAbandonTakesTheWholeMessage(t *testing.T) {
	h := newTxTest(t, withPR)
	var o ownerLog
	h.pushMsg(Message{SID: 4, Body: make([]byte, 10_000), LimitRtx: true, Owner: &o})
	h.packet(0) // 100
	h.packet(0) // 101
	h.packet(0) // 102
	h.push(5, 1000)
	h.sack(100, 102, 102)
	h.sb.OnTimeout(h.now, 0)
	h.wantRtx(0)
	h.release()
	if o.n != 1 || !errors.Is(o.err, ErrAbandoned) {
		t.Errorf("owner told %d times, %v", o.n, o.err)
	}
	h.wantFlight(0, 0)
	h.wantForward("103[{4 0}]")
	if d := h.packet(0); len(d) != 1 || d[0].SID != 5 || d[0].TSN != 104 {
		t.Fatalf("sent %+v, want the next message as TSN 104", d)
	}
	h.sack(104)
	if h.sb.Outstanding() != 0 || !h.q.Empty() || h.q.Buffered() != 0 {
		t.Errorf("%d outstanding, %d bytes queued", h.sb.Outstanding(), h.q.Buffered())
	}
}

// RFC 7496, Section 3.1: the limit is on retransmissions, not on transmissions.
func TestRetransmissionLimit(t *testing.T) {
	h := newTxTest(t, withPR)
	h.pushMsg(Message{Body: make([]byte, 1000), LimitRtx: true, MaxRtx: 2})
	h.packet(0)
	for range 2 {
		h.sb.OnTimeout(h.now, 0)
		h.wantRtx(0, 100)
	}
	h.sb.OnTimeout(h.now, 0)
	h.wantRtx(0)
	h.wantForward("100[{0 0}]")
	if u, s := h.q.AbandonedMessages(); u != 0 || s != 1 {
		t.Errorf("abandoned %d unsent, %d sent, want 0 and 1", u, s)
	}
}

// Without FORWARD-TSN at the peer, nothing that has a TSN can be given up.
func TestNoAbandonWithoutPeerSupport(t *testing.T) {
	h := newTxTest(t)
	h.pushMsg(Message{Body: make([]byte, 1000), LimitRtx: true, Lifetime: ms})
	h.packet(0)
	h.advance(second)
	h.sb.OnTimeout(h.now, 0)
	h.wantRtx(0, 100)
	h.wantForward("none")
}

// Section 3.5, C4: every stream once, with its largest SSN; unordered messages
// are not reported.
func TestForwardNamesStreamsOnce(t *testing.T) {
	h := newTxTest(t, withPR)
	for _, m := range []Message{{SID: 7}, {SID: 8}, {SID: 7}, {SID: 9, Unordered: true}, {SID: 7}} {
		m.Body, m.LimitRtx = make([]byte, 1000), true
		h.pushMsg(m)
	}
	for range 5 {
		h.packet(0)
	}
	h.loseAll()
	h.wantForward("104[{7 2} {8 0}]")
}

// RFC 8260, Section 2.3.1: I-FORWARD-TSN carries MIDs, and tells ordered from
// unordered.
func TestIForwardTSN(t *testing.T) {
	h := newTxTest(t, withPR, withIData)
	for _, m := range []Message{{SID: 7}, {SID: 7, Unordered: true}, {SID: 7}, {SID: 7, Unordered: true}, {SID: 2}} {
		m.Body, m.LimitRtx = make([]byte, 1000), true
		h.pushMsg(m)
	}
	for range 5 {
		h.packet(0)
	}
	h.loseAll()
	h.wantForward("I104[{7 false 1} {2 false 0} {7 true 1}]")
}

// C4: "If the total size of the FORWARD TSN does NOT fit in a single MTU, then the
// sender of the FORWARD TSN SHOULD lower the Advanced.Peer.Ack.Point to the last
// TSN that will fit in a single MTU."
func TestForwardThatDoesNotFitGoesAsFarAsItCan(t *testing.T) {
	h := newTxTest(t, withPR)
	for sid := range uint16(6) {
		h.pushMsg(Message{SID: sid, Body: make([]byte, 1000), LimitRtx: true})
		h.packet(0)
	}
	h.loseAll()
	if got := h.forward(8); got != "no space" {
		t.Errorf("FORWARD-TSN in 8 bytes = %s", got)
	}
	if got := h.forward(8 + 3*4); got != "102[{0 0} {1 0} {2 0}]" {
		t.Errorf("FORWARD-TSN in 20 bytes = %s", got)
	}
	h.sack(102)
	h.wantForward("105[{3 0} {4 0} {5 0}]")
	h.sack(105)
	h.wantForward("none")
}

// A FORWARD-TSN that was lost goes again: with every other SACK, and when T3
// expires (A5).
func TestForwardIsRepeated(t *testing.T) {
	h := newTxTest(t, withPR)
	h.pushMsg(Message{Body: make([]byte, 1000), LimitRtx: true})
	h.packet(0)
	h.sendTSNs(4)
	h.sb.mark(100, h.sb.rec(100))
	h.wantRtx(0)
	h.wantForward("100[{0 0}]")
	h.sack(99, 101, 101)
	h.wantForward("none")
	h.sack(99, 101, 102)
	h.wantForward("100[{0 0}]")
	h.sb.OnTimeout(h.now, 0)
	h.wantForward("100[{0 0}]")
}

// RFC 7496, Section 3.2: messages of lower priority make room for one of higher
// priority, the lowest first; equals do not.
func TestPriorityPolicyMakesRoom(t *testing.T) {
	h := newTxTest(t, withPR, withLimit(4*(1000+messageCharge)))
	owners := map[uint32]*ownerLog{}
	push := func(prio uint32) error {
		o := &ownerLog{}
		owners[prio] = o
		return h.q.Push(h.now, &Message{SID: uint16(prio), Body: make([]byte, 1000), Droppable: true, Priority: prio, Owner: o})
	}
	h.push(0, 1000) // not droppable
	for _, p := range []uint32{5, 9, 7} {
		if err := push(p); err != nil {
			t.Fatal(err)
		}
	}
	h.packet(0)
	h.packet(0) // stream 5 is in flight
	h.packet(0) // stream 9 too
	if err := push(10); !errors.Is(err, ErrWouldBlock) {
		t.Fatalf("a message of the lowest priority: %v", err)
	}
	if err := push(6); err != nil {
		t.Fatal(err)
	}
	h.release()
	if o := owners[9]; o.n != 1 || !errors.Is(o.err, ErrAbandoned) {
		t.Errorf("priority 9: released %d times with %v", o.n, o.err)
	}
	if err := push(1); err != nil {
		t.Fatal(err)
	}
	if err := h.q.Push(h.now, &Message{Body: make([]byte, 1000)}); !errors.Is(err, ErrWouldBlock) {
		t.Errorf("a message without the policy: %v", err)
	}
	h.release()
	if owners[7].n != 1 || owners[5].n != 0 || owners[6].n != 0 {
		t.Errorf("released: 5 %d, 6 %d, 7 %d times, want only 7", owners[5].n, owners[6].n, owners[7].n)
	}
	if u, s := h.q.AbandonedMessages(); u != 1 || s != 1 {
		t.Errorf("abandoned %d unsent, %d sent, want one each", u, s)
	}
	if h.q.Buffered() != 4000 {
		t.Errorf("Buffered = %d, want 4000", h.q.Buffered())
	}
}

// Whatever is lost, abandoned and forwarded: every message is released once, a
// receiver that follows the FORWARD-TSNs gets past everything, and nothing is
// left at the end.
func TestPartialReliabilityEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		idata, useRACK := rapid.Bool().Draw(t, "idata"), rapid.Bool().Draw(t, "rack")
		q := NewQueue(1<<30, 5, SchedRR)
		q.SetInterleaving(idata)
		q.SetPartialReliability(true)
		sb := NewScoreboard(q, ScoreboardConfig{TSN: seq.TSN(rapid.Uint32().Draw(t, "tsn")), RWND: 1 << 30, RACK: useRACK})
		var owners []*ownerLog
		have := map[seq.TSN]bool{}
		cum := sb.CumTSN()
		now := second
		deliver := func(b []byte, drop func() bool) {
			it := wire.NewChunks(b)
			for it.Next() {
				if drop() {
					continue
				}
				switch c := it.Chunk(); c.Type {
				case wire.ChunkForwardTSN:
					x, _ := wire.ParseForwardTSN(c)
					if cum.Less(seq.TSN(x.CumTSN)) {
						cum = seq.TSN(x.CumTSN)
					}
				case wire.ChunkIForwardTSN:
					x, _ := wire.ParseIForwardTSN(c)
					if cum.Less(seq.TSN(x.CumTSN)) {
						cum = seq.TSN(x.CumTSN)
					}
				case wire.ChunkData:
					x, _ := wire.ParseData(c)
					have[seq.TSN(x.TSN)] = true
				case wire.ChunkIData:
					x, _ := wire.ParseIData(c)
					have[seq.TSN(x.TSN)] = true
				}
			}
			for have[cum+1] {
				cum++
			}
		}
		sack := func() {
			var gaps []seq.TSN
			for x := cum + 1; x.Less(sb.NextTSN()); x++ {
				if have[x] {
					gaps = append(gaps, x, x)
				}
			}
			if _, err := sb.HandleSack(now, sackOf(cum, 1<<20, gaps, nil)); err != nil {
				t.Fatal(err)
			}
		}
		step := func(drop func() bool, rtx bool) {
			var b []byte
			if sb.ForwardDue() {
				b, _ = sb.AppendForward(b, 60)
			}
			for ok := rtx; ok; {
				b, ok = sb.AppendRtx(b, now, 0, 2000-len(b))
			}
			for ok := true; ok; {
				b, ok = sb.AppendNew(b, now, 0, Room{2000 - len(b), 2000})
			}
			q.EndPacket()
			deliver(b, drop)
		}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now += clock.Time(rapid.IntRange(0, 3).Draw(t, "dt")) * ms
			switch rapid.SampledFrom([]string{"push", "push", "send", "send", "sack", "t3"}).Draw(t, "op") {
			case "push":
				o := &ownerLog{}
				m := Message{SID: uint16(rapid.IntRange(0, 4).Draw(t, "sid")), Owner: o, Unordered: rapid.Bool().Draw(t, "u"),
					Body: make([]byte, rapid.SampledFrom([]int{1, 500, 5000}).Draw(t, "n"))}
				switch rapid.IntRange(0, 3).Draw(t, "policy") {
				case 0:
					m.Lifetime = clock.Time(rapid.IntRange(1, 10).Draw(t, "lifetime")) * ms
				case 1:
					m.LimitRtx, m.MaxRtx = true, uint32(rapid.IntRange(0, 1).Draw(t, "max"))
				case 2:
					m.Droppable, m.Priority = true, 5
				}
				if err := q.Push(now, &m); err != nil {
					t.Fatal(err)
				}
				owners = append(owners, o)
			case "send":
				step(func() bool { return rapid.Bool().Draw(t, "drop") }, rapid.Bool().Draw(t, "rtx"))
			case "sack":
				sack()
			case "t3":
				sb.OnTimeout(now, 0)
			}
		}
		for range 300 {
			now += 100 * ms
			sb.OnTimeout(now, 0)
			step(func() bool { return false }, true)
			sack()
		}
		for _, r := range q.TakeReleases(nil) {
			r.Owner.Released(r.Err)
		}
		for i, o := range owners {
			if o.n != 1 {
				t.Fatalf("message %d was released %d times", i, o.n)
			}
		}
		if sb.Outstanding() != 0 || sb.TotalFlight() != 0 || q.Buffered() != 0 || q.Unsent() != 0 || sb.payload != 0 ||
			sb.marked.Len() != 0 || sb.missing.Len() != 0 || len(q.droppable.list) != 0 || sb.paths[0].rack.n != 0 || sb.paths[0].rack.sacked != 0 {
			t.Fatalf("left: %d outstanding, %d in flight, %d buffered, %d unsent, %d marked", sb.Outstanding(), sb.TotalFlight(),
				q.Buffered(), q.Unsent(), sb.marked.Len())
		}
		for i := range q.streams {
			if st := &q.streams[i]; st.inFlight != 0 || st.ordered != 0 || st.head != nil || st.skip != [2]int32{} {
				t.Fatalf("stream %d: %+v", i, *st)
			}
		}
	})
}
