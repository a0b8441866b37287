package ddpsctp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/sctp"
)

func TestSessionAccepted(t *testing.T) {
	// RFC 5043, Section 6.2; with enhanced messages RFC 6581, Section 7.
	for seed := range uint64(100) {
		w := newWire(t, seed, 8)
		var e *Enhanced
		if seed%2 == 0 {
			e = &Enhanced{IRD: 1, ORD: 2}
		}
		pa, pb := open(t, w, e)
		var want []string
		for i := range 30 {
			s := fmt.Sprintf("message %d", i)
			pb.send(t, s) // the passive side may send before its Accept arrives
			want = append(want, s)
		}
		w.run()
		for i := range 30 {
			pa.send(t, fmt.Sprintf("message %d", i))
		}
		w.run()
		pa.session.Terminate()
		w.run()
		pb.session.Terminate()
		w.run()
		all := append(append([]string{"skip"}, want...), "end")
		if !slices.Equal(text(pa.got), all) || !slices.Equal(text(pb.got), all) {
			t.Fatalf("seed %d: active got %q, passive %q", seed, text(pa.got), text(pb.got))
		}
		if pa.answer == nil || pa.answer.Result != Accepted || string(pa.answer.Private) != "ok" || pa.answer.IsEnhanced != (e != nil) {
			t.Fatalf("seed %d: answer %+v", seed, pa.answer)
		}
		if e != nil {
			if pa.answer.Enhanced != (Enhanced{IRD: 3, ORD: 4}) || w.b.reqs[0].Enhanced != *e {
				t.Errorf("read depths: %+v, %+v", pa.answer.Enhanced, w.b.reqs[0].Enhanced)
			}
			w.a.wantLog("0:0:Enhanced Initiate", "0:31:Terminate")
			w.b.wantLog("0:0:Enhanced Accept", "0:31:Terminate")
		} else {
			w.a.wantLog("0:0:Initiate", "0:31:Terminate")
			w.b.wantLog("0:0:Accept", "0:31:Terminate")
		}
		pa.session.Release()
		pb.session.Release()
		if n := w.a.assoc.Sessions() + w.b.assoc.Sessions(); n != 0 {
			t.Errorf("%d sessions left", n)
		}
	}
}

func TestSessionRejected(t *testing.T) {
	// RFC 5043, Section 6.3.
	for _, enhanced := range []bool{false, true} {
		w := newWire(t, 1, 2)
		pa := &peerStream{}
		var e *Enhanced
		want := "0:0:Reject"
		if enhanced {
			e, want = &Enhanced{}, "0:0:Enhanced Reject"
		}
		w.a.assoc.Initiate(pa, pa.bind, e, nil)
		w.run()
		if err := w.b.reqs[0].Reject([]byte("busy")); err != nil {
			t.Fatal(err)
		}
		if err := w.b.reqs[0].Reject(nil); !errors.Is(err, ErrAnswered) {
			t.Errorf("second answer: %v", err)
		}
		w.run()
		w.b.wantLog(want)
		if pa.answer == nil || pa.answer.Result != Rejected || string(pa.answer.Private) != "busy" {
			t.Errorf("answer = %+v", pa.answer)
		}
		if n := w.a.assoc.Sessions() + w.b.assoc.Sessions(); n != 0 {
			t.Errorf("%d sessions left", n)
		}
	}
}

func TestSessionRefusedOverLimit(t *testing.T) {
	// RFC 5043, Section 6.4.
	w := newWire(t, 1, 16)
	w.b.assoc.acc.backlog = 3
	var ps []*peerStream
	for range 5 {
		p := &peerStream{}
		ps = append(ps, p)
		w.a.assoc.Initiate(p, p.bind, nil, nil)
	}
	w.run()
	refused := 0
	for _, p := range ps {
		if p.answer != nil && p.answer.Result == Refused {
			refused++
		}
	}
	if refused != 2 || len(w.b.reqs) != 3 {
		t.Errorf("%d refused, %d pending; want 2 and 3", refused, len(w.b.reqs))
	}
	for _, l := range w.b.log {
		if !strings.HasSuffix(l, ":0:Terminate") {
			t.Errorf("control message %q", l)
		}
	}
	// A decision makes room.
	w.b.reqs[0].Reject(nil)
	p := &peerStream{}
	w.a.assoc.Initiate(p, p.bind, nil, nil)
	w.run()
	if len(w.b.reqs) != 4 {
		t.Errorf("%d requests, want 4", len(w.b.reqs))
	}
}

// RFC 5043, Section 6.6: a stream is not used again before what refuses a session, or
// takes back one that is rejected at the same time, has arrived.
func TestStreamWaitsForTheLastTerminate(t *testing.T) {
	arrived := func(l *testLink, f Function) {
		t.Helper()
		if l.assoc.sessions[0].Load() == nil {
			t.Errorf("the stream is free before the %v has arrived", f)
		}
		m := l.queue[len(l.queue)-1]
		if c, ok := ParseControl(m.data[2:]); !ok || c.Function != f {
			t.Fatalf("%v is the last message", c.Function)
		}
		if m.owner.Released(nil); l.assoc.sessions[0].Load() != nil {
			t.Errorf("the stream is not free though the %v has arrived", f)
		}
	}
	w := newWire(t, 1, 4)
	w.b.assoc.acc.onRequest = nil
	w.b.assoc.receive(0, PPIDControl, AppendControl([]byte{0, 0}, &Control{Function: Initiate}))
	arrived(w.b, Terminate)

	w = newWire(t, 1, 4)
	p := &peerStream{}
	s, err := w.a.assoc.Initiate(p, p.bind, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Terminate()
	w.a.queue[0].owner.Released(nil)
	w.a.assoc.receive(0, PPIDControl, AppendControl([]byte{0, 0}, &Control{Function: Reject}))
	if p.lost == nil {
		t.Error("the end of a session that was taken back is not told")
	}
	arrived(w.a, Terminate)
}

func TestNobodyListens(t *testing.T) {
	w := newWire(t, 1, 2)
	w.b.assoc.acc.onRequest = nil
	p := &peerStream{}
	w.a.assoc.Initiate(p, p.bind, nil, nil)
	w.run()
	if p.answer == nil || p.answer.Result != Refused || w.b.assoc.Sessions() != 0 {
		t.Errorf("answer = %+v", p.answer)
	}
}

func TestIllegalSequences(t *testing.T) {
	// RFC 5043, Section 6.1: "the DDP Stream Session MUST be terminated".
	ctl := func(ssn uint16, f Function, private ...byte) []byte {
		return AppendControl(binary.BigEndian.AppendUint16(nil, ssn), &Control{Function: f, Private: private})
	}
	tests := []struct {
		name string
		ppid uint32
		data []byte
	}{
		{"accept twice", PPIDControl, ctl(1, Accept)},
		{"second accept numbered 0", PPIDControl, ctl(0, Accept)},
		{"initiate in a session", PPIDControl, ctl(0, Initiate)},
		{"initiate numbered 1", PPIDControl, ctl(1, Initiate)},
		{"reject in a session", PPIDControl, ctl(1, Reject)},
		{"undefined function", PPIDControl, []byte{0, 1, 0, 99}},
		{"no number", PPIDSegment, []byte{0}},
		{"other payload protocol", 0, []byte("text")},
		{"segment numbered 0", PPIDSegment, append([]byte{0, 0}, make([]byte, 18)...)},
		{"number before the first", PPIDSegment, append([]byte{0xFF, 0xFF}, make([]byte, 18)...)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWire(t, 1, 4)
			pa, pb := open(t, w, nil)
			w.run()
			w.a.assoc.receive(0, tt.ppid, tt.data)
			if !errors.Is(pa.lost, ErrProtocol) {
				t.Errorf("stream of the receiver: %v", pa.lost)
			}
			w.a.wantLog("0:0:Initiate", "0:1:Terminate")
			w.run()
			if !slices.Equal(pb.got, []string{"skip", "end"}) {
				t.Errorf("the peer heard %q", pb.got)
			}
			// What still comes is dropped, without another Terminate.
			w.a.assoc.receive(0, tt.ppid, tt.data)
			if len(w.a.log) != 2 {
				t.Errorf("control messages %q", w.a.log)
			}
			// The other streams go on.
			pa2, _ := open(t, w, nil)
			w.run()
			if pa2.answer == nil || pa2.session.SID() == 0 {
				t.Error("no other session, or on the dead stream")
			}
		})
	}
}

func TestStreamErrorEndsSession(t *testing.T) {
	w := newWire(t, 1, 4)
	pa, pb := open(t, w, nil)
	w.run()
	pb.fail = ddp.ErrSequence
	pa.send(t, "x")
	w.run()
	if !errors.Is(pb.lost, ddp.ErrSequence) {
		t.Errorf("stream lost: %v", pb.lost)
	}
	w.b.wantLog("0:0:Accept", "0:1:Terminate")
	// RFC 5043, Section 6.6: what else the other side sent may still come.
	pb.session.Release()
	if w.b.assoc.sessions[0].Load() == nil {
		t.Error("the stream is free though not all that was sent on it has come")
	}
}

func TestSegmentBeforeDecision(t *testing.T) {
	// A segment to a session whose consumer has not decided has no endpoint.
	w := newWire(t, 1, 4)
	p := &peerStream{}
	w.a.assoc.Initiate(p, p.bind, nil, nil)
	w.run()
	p.send(t, "x")
	w.run()
	w.b.wantLog("0:0:Terminate")
	if p.answer == nil || p.answer.Result != Refused {
		t.Errorf("answer = %+v", p.answer)
	}
	if err := w.b.reqs[0].Accept(&peerStream{}, p.bind, Enhanced{}, nil); !errors.Is(err, ErrAnswered) {
		t.Errorf("Accept: %v", err)
	}
}

func TestControlWaitsForControl(t *testing.T) {
	// RFC 5043, Section 6.6: a control message "MUST NOT be sent if it may be
	// received before a prior" one.
	w := newWire(t, 1, 4)
	p := &peerStream{}
	s, _ := w.a.assoc.Initiate(p, p.bind, nil, nil)
	s.Terminate()
	w.a.wantLog("0:0:Initiate")
	w.run() // acknowledges the Initiate
	w.a.wantLog("0:0:Initiate", "0:1:Terminate")
	w.b.wantLog("0:0:Terminate")
	if p.lost == nil || p.answer != nil {
		t.Errorf("lost %v, answer %+v", p.lost, p.answer)
	}
	if err := w.b.reqs[0].Reject(nil); !errors.Is(err, ErrAnswered) {
		t.Errorf("answer to a request taken back: %v", err)
	}

	w = newWire(t, 1, 4)
	pa, pb := open(t, w, nil)
	pb.session.Terminate()
	w.b.wantLog("0:0:Accept")
	w.run()
	w.b.wantLog("0:0:Accept", "0:1:Terminate")
	if !slices.Equal(pa.got, []string{"skip", "end"}) {
		t.Errorf("active side got %q", pa.got)
	}
}

func TestStreamReuse(t *testing.T) {
	// RFC 5043, Section 6.6: not "while any Data Chunk from a prior session
	// might be outstanding".
	w := newWire(t, 1, 2) // one stream of each parity
	pa, pb := open(t, w, nil)
	w.run()
	pa.session.Terminate()
	for range 3 {
		w.run()
	}
	pb.session.Terminate()
	w.run()
	if pa.session.SID() != 0 {
		t.Fatalf("SID = %d, want 0", pa.session.SID())
	}
	p2 := &peerStream{}
	if s, err := w.a.assoc.Initiate(p2, p2.bind, nil, nil); err != nil || s.SID() != 1 {
		t.Errorf("second session: %v", err) // of the other parity: ours are used up
	}
	p3 := &peerStream{}
	if _, err := w.a.assoc.Initiate(p3, p3.bind, nil, nil); !errors.Is(err, ErrNoStream) {
		t.Errorf("third session: %v, want %v", err, ErrNoStream)
	}
	pa.session.Release()
	s, err := w.a.assoc.Initiate(p3, p3.bind, nil, nil)
	if err != nil || s.SID() != 0 {
		t.Fatalf("after the release: %v", err)
	}
	pb.session.Release() // late: must not hurt the new session
	w.run()
	pb3 := &peerStream{}
	var r *Request
	for _, q := range w.b.reqs {
		if q.s.SID() == 0 {
			r = q // the last one on it
		}
	}
	if err := r.Accept(pb3, pb3.bind, Enhanced{}, nil); err != nil {
		t.Fatal(err)
	}
	w.run()
	p3.send(t, "again")
	w.run()
	if !slices.Equal(text(pb3.got), []string{"skip", "again"}) {
		t.Errorf("new session got %q: numbers must start at 0 again", text(pb3.got))
	}
}

func TestCollision(t *testing.T) {
	// Both sides choose the same stream: both move to another.
	for seed := range uint64(50) {
		w := newWire(t, seed, 64)
		w.b.tag = w.a.tag // as if the peer chose by another rule
		w.a.assoc.choose()
		w.b.assoc.choose()
		pa, pb := &peerStream{}, &peerStream{}
		w.a.assoc.Initiate(pa, pa.bind, nil, nil)
		w.b.assoc.Initiate(pb, pb.bind, nil, nil)
		w.run()
		if w.a.assoc.count.collided.Load() == 0 {
			t.Fatalf("seed %d: no collision", seed)
		}
		if len(w.a.reqs) != 1 || len(w.b.reqs) != 1 {
			t.Fatalf("seed %d: requests %d and %d, want one each", seed, len(w.a.reqs), len(w.b.reqs))
		}
		qa, qb := &peerStream{}, &peerStream{}
		w.a.reqs[0].Accept(qa, qa.bind, Enhanced{}, nil)
		w.b.reqs[0].Accept(qb, qb.bind, Enhanced{}, nil)
		w.run()
		pa.send(t, "from a")
		pb.send(t, "from b")
		w.run()
		if got := text(qb.got); !slices.Equal(got, []string{"skip", "from a"}) {
			t.Fatalf("seed %d: %q", seed, got)
		}
		if got := text(qa.got); !slices.Equal(got, []string{"skip", "from b"}) {
			t.Fatalf("seed %d: %q", seed, got)
		}
	}
}

// Who takes which streams does not depend on who opened the association, and is the
// other way round once the peer restarts with a smaller tag.
func TestStreamsOfEachSide(t *testing.T) {
	w := newWire(t, 1, 9)
	sids := func(l *testLink) (s []uint16) {
		for range 3 {
			p := &peerStream{}
			if _, err := l.assoc.Initiate(p, p.bind, nil, nil); err != nil {
				t.Fatal(err)
			}
			s = append(s, p.session.SID())
		}
		return s
	}
	even, odd := []uint16{0, 2, 4}, []uint16{1, 3, 5}
	for i, tag := range []uint32{w.b.tag - 1, w.b.tag + 1} {
		w.a.tag = tag
		w.a.assoc.Down(ErrRestart, true)
		w.b.assoc.Down(ErrRestart, true)
		a, b := sids(w.a), sids(w.b)
		if i == 1 {
			a, b = b, a
		}
		if !slices.Equal(a, odd) || !slices.Equal(b, even) {
			t.Errorf("tag %#x and %#x: streams %v and %v", w.a.tag, w.b.tag, a, b)
		}
	}
}

// Each stream is found when it is the only one that is free.
func TestTheLastFreeStreamIsFound(t *testing.T) {
	for _, n := range []int{1, 2, 7} {
		w := newWire(t, 1, n)
		var ss []*Session
		for range n {
			p := &peerStream{}
			s, err := w.a.assoc.Initiate(p, p.bind, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			ss = append(ss, s)
		}
		for _, s := range ss {
			p := &peerStream{}
			w.a.assoc.free(s)
			if again, err := w.a.assoc.Initiate(p, p.bind, nil, nil); err != nil || again.SID() != s.SID() {
				t.Errorf("%d streams, %d free: %v", n, s.SID(), err)
			}
		}
		p := &peerStream{}
		if _, err := w.a.assoc.Initiate(p, p.bind, nil, nil); !errors.Is(err, ErrNoStream) {
			t.Errorf("%d streams, none free: %v", n, err)
		}
	}
}

// A peer that initiates a session on each stream that we choose does not keep us
// choosing for ever.
func TestCollisionsAreBounded(t *testing.T) {
	w := newWire(t, 1, 4*maxTries)
	p := &peerStream{}
	if _, err := w.a.assoc.Initiate(p, p.bind, nil, nil); err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; len(w.a.queue) > 0 && n < 4*maxTries; n++ {
		m := w.a.queue[0]
		w.a.queue = w.a.queue[1:]
		w.a.assoc.receive(m.sid, PPIDControl, bytes.Clone(m.data))
	}
	if n != maxTries || !errors.Is(p.lost, ErrNoStream) {
		t.Errorf("%d streams tried, want %d; then %v", n, maxTries, p.lost)
	}
}

func TestAssociationDown(t *testing.T) {
	w := newWire(t, 1, 8)
	pa, pb := open(t, w, nil)
	waiting := &peerStream{}
	w.a.assoc.Initiate(waiting, waiting.bind, nil, nil)
	w.run()
	gone := errors.New("gone")
	said := len(w.a.log) + len(w.b.log)
	w.a.assoc.Down(gone, false)
	w.b.assoc.Down(gone, false)
	w.run()
	// RFC 5043, Section 11.3: what ends everything is told of no stream.
	if n := len(w.a.log) + len(w.b.log); n != said {
		t.Errorf("control messages after the end: %q, %q", w.a.log, w.b.log)
	}
	for i, p := range []*peerStream{pa, pb, waiting} {
		if p.lost != gone {
			t.Errorf("stream %d: %v", i, p.lost)
		}
	}
	if _, err := w.a.assoc.Initiate(waiting, waiting.bind, nil, nil); err != gone {
		t.Errorf("Initiate: %v", err)
	}
}

func TestPrivateDataLimit(t *testing.T) {
	w := newWire(t, 1, 8)
	p := &peerStream{}
	if _, err := w.a.assoc.Initiate(p, p.bind, nil, make([]byte, 513)); !errors.Is(err, ErrPrivate) {
		t.Errorf("513 octets: %v", err)
	}
	if _, err := w.a.assoc.Initiate(p, p.bind, &Enhanced{}, make([]byte, 509)); !errors.Is(err, ErrPrivate) {
		t.Errorf("509 octets with the enhanced data: %v", err)
	}
	w.a.assoc.Initiate(p, p.bind, &Enhanced{}, make([]byte, 508))
	if n := len(w.a.queue[0].data); n != 516 {
		t.Errorf("largest control message has %d octets, want 516", n)
	}
	w.run()
	if err := w.b.reqs[0].Reject(make([]byte, 513)); !errors.Is(err, ErrPrivate) {
		t.Errorf("reject with 513 octets: %v", err)
	}
}

func TestMULPDU(t *testing.T) {
	w := newWire(t, 1, 8)
	pa, _ := open(t, w, nil)
	w.run()
	for max, want := range map[int]int{1444: 1426, 1424: 1406, 500: 516, 65000: 64982} {
		w.a.max = max
		if got := pa.session.MULPDU(); got != want {
			t.Errorf("MULPDU for packets of %d = %d, want %d", max, got, want)
		}
	}
	// RFC 5043, Section 9: "MUST reject DDP Segments that are larger".
	w = newWire(t, 1, 8)
	pa, _ = open(t, w, nil)
	w.run()
	pa.session.MULPDU()
	big := make([]byte, 2000)
	m := ddp.Message{SGL: []ddp.Mem{{B: big}}, Len: 2000, Owner: &noOwner{}, Credit: &noOwner{}}
	segs := make([]ddp.Segment, 1)
	m.Next(1427, &segs[0])
	if n, err := pa.session.Send(segs); n != 0 || !errors.Is(err, ErrSegment) {
		t.Errorf("segment over the MULPDU: %v", err)
	}
	w.a.queue = nil
	var batch ddp.Train
	m = ddp.Message{SGL: []ddp.Mem{{B: big}}, Len: 2000, Owner: &noOwner{}, Credit: &noOwner{}}
	m.NextTrain(1427, 2, &batch)
	if err := pa.session.SendTrain(&batch); !errors.Is(err, ErrSegment) || len(w.a.queue) > 0 {
		t.Errorf("batch over the MULPDU: %v", err)
	}
	batch.Unit--
	if err := pa.session.SendTrain(&batch); err != nil || len(w.a.queue) != 2 {
		t.Errorf("batch within the MULPDU: %v, %d segments", err, len(w.a.queue))
	}
}

// RFC 5041, Section 3: a segment that was cut before the MULPDU fell need not be
// cut again.
func TestMULPDUFalls(t *testing.T) {
	w := newWire(t, 1, 8)
	pa, pb := open(t, w, nil)
	w.run()
	const n = 1426 - ddp.UntaggedHeaderLen
	m := ddp.Message{SGL: []ddp.Mem{{B: make([]byte, n)}}, Len: n, Owner: &noOwner{}, Credit: &noOwner{}}
	segs := make([]ddp.Segment, 1)
	m.Next(pa.session.MULPDU(), &segs[0])
	w.a.max = 500
	if got := pa.session.MULPDU(); got != 516 {
		t.Errorf("MULPDU = %d, want 516", got)
	}
	if _, err := pa.session.Send(segs); err != nil {
		t.Errorf("a segment of the MULPDU before: %v", err)
	}
	w.run()
	if len(pb.got) != 2 || len(pb.got[1]) != 1426 {
		t.Errorf("%d segments arrived", len(pb.got)-1)
	}
}

func TestFragments(t *testing.T) {
	w := newWire(t, 1, 8)
	pa, pb := open(t, w, nil)
	w.run()
	pa.send(t, strings.Repeat("long ", 100))
	m := w.a.queue[0]
	w.a.queue = nil
	a := w.b.assoc
	piece := func(id uint64, sid uint16, data []byte, begin, end bool) {
		a.Receive(&sctp.Piece{Message: id, Stream: sid, PPID: m.ppid, Data: data, Begin: begin, End: end})
	}
	piece(10, m.sid, m.data[:100], true, false)
	piece(11, 5, m.data[:100], true, false) // of another message
	piece(10, m.sid, m.data[100:200], false, false)
	piece(12, m.sid, m.data[200:], false, true) // of none
	if len(pb.got) != 1 {
		t.Error("delivered before its end")
	}
	piece(10, m.sid, m.data[200:], false, true)
	if !slices.Equal(text(pb.got), []string{"skip", strings.Repeat("long ", 100)}) {
		t.Errorf("got %q", text(pb.got))
	}
	a.Receive(&sctp.Piece{Message: 11, Stream: 5, End: true, Aborted: true})
	if w.b.held != 0 || len(a.parts) != 0 {
		t.Errorf("%d bytes of %d messages are held, want none", w.b.held, len(a.parts))
	}
	// Any number of messages may lack a fragment that was lost: they count, and are
	// complete when it comes.
	const many = 1000
	for i := range uint64(many) {
		piece(100+i, 6, m.data[:100], true, false)
	}
	if w.b.aborted != "" || w.b.held < many*100 {
		t.Errorf("%d messages lack a fragment: aborted %q, %d bytes held", many, w.b.aborted, w.b.held)
	}
	for i := range uint64(many) {
		piece(100+i, 6, m.data[100:], false, true)
	}
	if w.b.held != 0 {
		t.Errorf("%d bytes are held, want none", w.b.held)
	}
	piece(1, 6, nil, true, false)
	for range maxPartial/1000 + 1 {
		piece(1, 6, make([]byte, 1000), false, false)
	}
	if w.b.aborted == "" {
		t.Error("the size of fragmented messages is not bounded")
	}
}

// Segments of a session that come at once are taken together as far as their numbers
// follow one another, and each thing that comes has its turn.
func TestRuns(t *testing.T) {
	w := newWire(t, 1, 8)
	var pa, pb [2]*peerStream
	for i := range pa {
		pa[i], pb[i] = open(t, w, nil)
		w.run()
	}
	var queues [2][]message
	for i := range queues {
		for k := range maxRun + 20 {
			pa[i].send(t, fmt.Sprint(i, ":", k))
		}
		queues[i], w.a.queue = w.a.queue, nil
	}
	b := w.b.assoc
	pieces := func(ms ...message) {
		for i, m := range ms {
			b.Receive(&sctp.Piece{Stream: m.sid, PPID: m.ppid, Data: m.data, Begin: true, End: true, More: i < len(ms)-1})
		}
		if b.run != nil {
			t.Fatal("something waits although no piece comes")
		}
	}
	check := func(i, upto int, runs ...int) {
		t.Helper()
		want := []string{"skip"}
		for k := range upto {
			want = append(want, fmt.Sprint(i, ":", k))
		}
		if got := text(pb[i].got); !slices.Equal(got, want) || !slices.Equal(pb[i].runs, runs) {
			t.Errorf("session %d got %q in runs %d, want %q in %d", i, got, pb[i].runs, want, runs)
		}
		pb[i].runs = nil
	}
	x, y := queues[0], queues[1]
	pieces(x[0], x[1], x[2])
	check(0, 3, 3)
	pieces(x[3])
	check(0, 4)
	pieces(x[5], x[6], x[4], x[8], x[7]) // out of order
	check(0, 9, 2, 1, 1)
	pieces(x[9], x[10], y[0], x[11], y[1], y[2]) // of two sessions
	check(0, 12, 2, 1)
	check(1, 3, 1, 2)
	pieces(x[12:]...)
	check(0, len(x), maxRun, len(x)-12-maxRun)
	// A fragment, and what kills the session, in the midst.
	b.Receive(&sctp.Piece{Stream: y[3].sid, PPID: y[3].ppid, Data: y[3].data, Begin: true, End: true, More: true})
	b.Receive(&sctp.Piece{Stream: y[4].sid, PPID: y[4].ppid, Data: y[4].data[:4], TSN: 7, Begin: true, More: true})
	b.Receive(&sctp.Piece{Stream: y[4].sid, PPID: y[4].ppid, Data: y[4].data[4:], TSN: 8, End: true, More: true})
	pieces(y[5], message{sid: y[0].sid, ppid: 99, data: []byte("what is this")}, y[6])
	check(1, 6, 1, 1)
	if pb[1].lost != ErrProtocol {
		t.Errorf("lost %v, want %v", pb[1].lost, ErrProtocol)
	}
	// What is wrong with one of a run ends the session.
	pa[0].send(t, "a")
	pa[0].send(t, "b")
	pb[0].fail = errors.New("no")
	pieces(w.a.queue...)
	if pb[0].lost != pb[0].fail {
		t.Errorf("lost %v, want %v", pb[0].lost, pb[0].fail)
	}
}

func TestNumbersWrap(t *testing.T) {
	// A DDP-SSN has 16 bits; the stream sees 64.
	w := newWire(t, 7, 2)
	pa, pb := open(t, w, nil)
	w.run()
	const n = 200000
	for i := range n {
		pa.send(t, "x")
		if i%100 == 99 {
			w.run()
		}
	}
	w.run()
	if pb.next != n+1 {
		t.Errorf("next sequence number = %d, want %d", pb.next, n+1)
	}
}

func TestPeerToPeerIsMirrored(t *testing.T) {
	// RFC 6581, Section 9.2.
	w := newWire(t, 1, 2)
	pa, _ := open(t, w, &Enhanced{PeerToPeer: true, RTRSend: true, IRD: 5, ORD: 6})
	w.run()
	if e := pa.answer.Enhanced; !e.PeerToPeer || e.RTRSend || !e.RTRWrite || !e.RTRRead {
		t.Errorf("answer = %+v", e)
	}
}
