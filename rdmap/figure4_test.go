package rdmap

import (
	"errors"
	"testing"

	"github.com/weftstack/weft/ddp"
)

// TestMessagesUseDDPAsFigure4Says plays every operation and checks each segment
// on the wire: RFC 5040, Section 4.1, Figure 4 and RFC 7306, Section 4.1.
func TestMessagesUseDDPAsFigure4Says(t *testing.T) {
	p := newPair(t, pairConfig{seed: 3, mulpdu: 100})
	type use struct {
		tagged bool
		qn     uint32
		word   bool // the Invalidate STag
	}
	figure := map[Opcode]use{Write: {tagged: true}, ReadRequest: {qn: 1}, ReadResponse: {tagged: true}, Send: {}, SendSE: {},
		SendInv: {word: true}, SendSEInv: {word: true}, Terminate: {qn: 2}, Immediate: {}, ImmediateSE: {},
		AtomicRequest: {qn: 1}, AtomicResponse: {qn: 3}}
	messages := make(map[Opcode]int)
	var stags [4]uint32
	for i, end := range [...]interface{ tap(func([]byte)) }{tapper{&p.pipe.A.Tap}, tapper{&p.pipe.B.Tap}} {
		var next [4]uint32 // MSN
		ended := false
		end.tap(func(seg []byte) {
			h, payload, f := ddp.ParseHeader(seg)
			op, v := ParseControl(h.Ctrl)
			u, ok := figure[op]
			switch {
			case f != 0 || !ok || v != 1 || h.Ctrl&0x30 != 0 || seg[0]&0x3C != 0:
				t.Errorf("%v: control octets %02x %02x", op, seg[0], seg[1])
			case ended:
				t.Errorf("%v after a Terminate", op) // Section 5.4
			case h.Tagged != u.tagged:
				t.Errorf("%v: tagged %v", op, h.Tagged)
			case h.Tagged:
			case h.QN != u.qn || (h.Word != 0) != u.word || u.word && h.Word != stags[1] && h.Word != stags[2]:
				t.Errorf("%v: QN %d, Invalidate STag %#x", op, h.QN, h.Word)
			case h.MO == 0 && h.MSN != next[h.QN]+1 || h.MO != 0 && h.MSN != next[h.QN]:
				t.Errorf("%v: side %d, MSN %d after %d", op, i, h.MSN, next[h.QN])
			default:
				next[h.QN] = h.MSN
			}
			if op == Immediate && len(payload) != ImmediateLen {
				t.Errorf("immediate data of %d octets", len(payload))
			}
			if h.Last {
				messages[op]++
			}
			ended = op == Terminate
		})
	}
	mem := make([]byte, 400)
	for i, scope := range []*ddp.Scope{nil, p.b.s.Scope(), p.b.s.Scope()} {
		r, err := p.b.table.Add(mem, 0, ddp.RemoteRead|ddp.RemoteWrite|ddp.RemoteAtomic, p.b.domain, scope)
		if err != nil {
			t.Fatal(err)
		}
		stags[i] = r.STag()
	}
	for i := range 8 {
		p.b.postRecv(uint64(i), make([]byte, 400))
	}
	at := Work{STag: stags[0]}
	for _, kind := range []OpKind{OpWrite, OpRead, OpSend, OpSendInvalidate, OpImm, OpFetchAdd, OpCompareSwap, OpWriteImm} {
		w := at
		w.Kind, w.Invalidate = kind, stags[1]
		buf := make([]byte, 250)
		switch kind {
		case OpFetchAdd, OpCompareSwap:
			p.a.post(w, buf[:8])
		case OpImm:
			p.a.post(w)
		default:
			p.a.post(w, buf)
		}
	}
	p.a.post(Work{Kind: OpSendInvalidate, Flags: FlagSolicited, Invalidate: stags[2]})
	p.a.post(Work{Kind: OpSend, Flags: FlagSolicited})
	p.a.post(Work{Kind: OpImm, Flags: FlagSolicited})
	p.pipe.Run()
	if p.a.err != nil || p.b.err != nil {
		t.Fatalf("ended: %v, %v", p.a.err, p.b.err)
	}
	p.b.s.Fail(FaultUnspecified)
	p.pipe.Run()
	// One request and one response for each read and atomic (Section 5.2).
	want := map[Opcode]int{Write: 2, ReadRequest: 1, ReadResponse: 1, Send: 1, SendInv: 1, SendSE: 1, SendSEInv: 1, Terminate: 1,
		Immediate: 2, ImmediateSE: 1, AtomicRequest: 2, AtomicResponse: 2}
	for op := range figure {
		if messages[op] != want[op] {
			t.Errorf("%d messages %v, want %d", messages[op], op, want[op])
		}
	}
}

// tapper sets the Tap of one end.
type tapper struct{ f *func([]byte) }

func (x tapper) tap(f func([]byte)) { *x.f = f }

// TestReservedBitsAreIgnored: RFC 5040, Section 4.1 ("ignored by the receiver"),
// RFC 5041, Section 4.1 ("not checked on receive").
func TestReservedBitsAreIgnored(t *testing.T) {
	p := newPair(t, pairConfig{})
	p.b.postRecv(1, make([]byte, 10))
	b := seg(ddp.Header{Last: true, Ctrl: Control(Send) | 0x30, MSN: 1, Word: 0xABCD}, 1, 2, 3)
	b[0] |= 0x3C
	p.pipe.A.Inject(b)
	p.pipe.Run()
	if c := p.b.wantRecv(1, StatusSuccess); c.Len != 3 || c.Flags != 0 || c.Invalidated != 0 {
		t.Errorf("completion %+v", c)
	}
	// Of the RDMA Consortium's version, too.
	p.b.postRecv(2, make([]byte, 10))
	p.pipe.A.Inject(seg(ddp.Header{Last: true, Ctrl: uint8(Send), MSN: 2}, 4))
	p.pipe.Run()
	p.b.wantRecv(2, StatusSuccess)
}

// TestTheFirstErrorIsTold: RFC 5040, Section 7.1, case 4.
func TestTheFirstErrorIsTold(t *testing.T) {
	p := newPair(t, pairConfig{})
	p.pipe.Reorder = 0
	p.pipe.A.Inject(seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(Write), STag: 0xBAD, TO: 9}, 1))
	p.pipe.A.Inject(seg(ddp.Header{Last: true, Ctrl: Control(Send), QN: 7, MSN: 1}, 1))
	p.pipe.Run()
	var te *TerminateError
	if !errors.As(p.a.err, &te) || te.Header.Fault != ddp.FaultSTag || te.Header.DDP.STag != 0xBAD || te.Header.DDP.TO != 9 {
		t.Errorf("Terminate %+v", p.a.err)
	}
}

// TestATerminateAlwaysFindsABuffer: RFC 5040, Section 5.4: "MUST guarantee
// placement of a single Terminate Message", with no receive posted, and as soon
// as what fills the window is acknowledged.
func TestATerminateAlwaysFindsABuffer(t *testing.T) {
	p := newPair(t, pairConfig{mulpdu: 64, window: 1})
	src := p.b.region(5000, ddp.RemoteRead)
	p.a.post(Work{ID: 1, Kind: OpRead, STag: src.STag()}, make([]byte, 5000))
	p.pipe.A.Deliver() // the request, whose response fills the window
	p.pipe.A.Inject(seg(ddp.Header{Last: true, Ctrl: Control(Send), MSN: 1}, 1))
	p.pipe.Run()
	var te *TerminateError
	if !errors.As(p.a.err, &te) || !te.ByPeer || te.Header.Fault != ddp.FaultNoBuffer {
		t.Errorf("end %v", p.a.err)
	}
}

// TestNothingFollowsATerminate: RFC 5040, Section 5.4: "MUST NOT send any more
// Messages", neither of operations of its own nor answers, whatever waits for the
// window.
func TestNothingFollowsATerminate(t *testing.T) {
	for _, how := range []string{"fault of the peer", "fault of its own"} {
		p := newPair(t, pairConfig{mulpdu: 64, window: 2})
		src, dst := p.b.region(2000, ddp.RemoteRead), p.a.region(2000, ddp.RemoteWrite)
		p.a.post(Work{ID: 1, Kind: OpRead, STag: src.STag()}, make([]byte, 2000))
		p.pipe.A.Deliver()
		p.b.post(Work{ID: 2, Kind: OpWrite, STag: dst.STag()}, make([]byte, 2000))
		p.b.post(Work{ID: 3, Kind: OpSend})
		before, after, ended := 0, 0, false
		p.pipe.B.Tap = func(seg []byte) {
			switch op, _ := ParseControl(seg[1]); {
			case ended:
				after++
			case op == Terminate:
				ended = true
			default:
				before++
			}
		}
		for range 4 {
			p.pipe.Step()
		}
		if how == "fault of the peer" {
			p.pipe.A.Inject(seg(ddp.Header{Last: true, Ctrl: Control(Send), MSN: 1}, 1))
		} else {
			p.b.s.Fail(FaultUnspecified)
		}
		p.pipe.Run()
		if !ended || after != 0 || before == 0 || before > 20 {
			t.Errorf("%s: %d messages before a Terminate (%v) and %d after it", how, before, ended, after)
		}
		p.b.wantSent(2, StatusFlush)
		p.b.wantSent(3, StatusFlush)
		if err := p.b.s.Reserve(1); !errors.Is(err, ErrState) {
			t.Errorf("%s: Reserve: %v", how, err)
		}
	}
}

// TestEmptyMessages: RFC 5041, Section 5.2: one segment each, and STag and TO of
// tagged ones are not checked; RFC 5040, Section 5.3: one buffer for each send.
func TestEmptyMessages(t *testing.T) {
	p := newPair(t, pairConfig{})
	segments := 0
	p.pipe.A.Tap = func([]byte) { segments++ }
	p.b.postRecv(1)
	p.b.postRecv(2, make([]byte, 5))
	p.a.post(Work{ID: 1, Kind: OpWrite, Flags: FlagSignaled, STag: 0xBAD, TO: 1<<64 - 1})
	p.a.post(Work{ID: 2, Kind: OpRead, Flags: FlagSignaled, STag: 0xBAD, TO: 1<<64 - 1})
	p.a.post(Work{ID: 3, Kind: OpSend, Flags: FlagSignaled})
	p.a.post(Work{ID: 4, Kind: OpSend, Flags: FlagSignaled})
	p.pipe.Run()
	for id := range uint64(4) {
		p.a.wantSent(id+1, StatusSuccess)
	}
	p.b.wantRecv(1, StatusSuccess)
	if c := p.b.wantRecv(2, StatusSuccess); c.Len != 0 {
		t.Errorf("completion %+v", c)
	}
	if segments != 4 {
		t.Errorf("%d segments, want 4", segments)
	}
}
