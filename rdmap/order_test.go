package rdmap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/weftstack/weft/ddp"
)

// ordered plays two operations, each of several segments where it can have
// them, over a pipe that reorders, and checks what the ordering tables of RFC
// 5040, Appendix B and RFC 7306, Section 7 guarantee.
type ordered struct {
	t      *testing.T
	p      *pair
	mem    []byte // at b: what is written, read and counted in
	r      *ddp.Region
	result [2][]byte
	recv   [2][]byte
	// answered lists the responses that b has begun, by their operation.
	answered []int
	began    map[uint64]bool
}

const orderedSize = 480

func newOrdered(t *testing.T, seed uint64) *ordered {
	o := &ordered{t: t, p: newPair(t, pairConfig{seed: seed, mulpdu: 64}), mem: pattern(orderedSize+8, 1), began: map[uint64]bool{}}
	var err error
	o.r, err = o.p.b.table.Add(o.mem, 0, ddp.RemoteRead|ddp.RemoteWrite|ddp.RemoteAtomic, o.p.b.domain, nil)
	if err != nil {
		t.Fatal(err)
	}
	binary.NativeEndian.PutUint64(o.mem[orderedSize:], 5)
	for i := range o.recv {
		o.recv[i] = make([]byte, orderedSize)
		o.p.b.postRecv(uint64(i), o.recv[i])
	}
	return o
}

// data is what operation i sends or writes.
func (o *ordered) data(i int) []byte { return pattern(orderedSize, byte(100+i)) }

func (o *ordered) post(i int, kind OpKind, flags OpFlags) {
	w := Work{ID: uint64(i), Kind: kind, Flags: flags | FlagSignaled, STag: o.r.STag()}
	switch kind {
	case OpSend, OpWrite:
		o.p.a.post(w, o.data(i))
	case OpImm:
		w.Imm = uint64(i)
		o.p.a.post(w)
	case OpRead:
		o.result[i] = make([]byte, orderedSize+8)
		o.p.a.post(w, o.result[i])
	case OpFetchAdd:
		w.TO, w.Data = orderedSize, 1
		o.result[i] = make([]byte, 8)
		o.p.a.post(w, o.result[i])
	}
}

// done reports whether b has completed (sends) or placed (writes) or answered
// (reads, atomics) operation i.
func (o *ordered) done(i int, kind OpKind) bool {
	switch kind {
	case OpSend:
		return len(o.p.b.recv) > i && bytes.Equal(o.recv[i], o.data(i))
	case OpImm:
		return len(o.p.b.recv) > i && o.p.b.recv[i].Imm == uint64(i)
	case OpWrite:
		return bytes.Equal(o.mem[:orderedSize], o.data(i))
	}
	return len(o.answered) > i
}

// TestOrderAtTheRemotePeer: what a read, an atomic, a send or immediate data of
// the second operation finds done of the first.
func TestOrderAtTheRemotePeer(t *testing.T) {
	kinds := []OpKind{OpSend, OpImm, OpWrite, OpRead, OpFetchAdd}
	for _, first := range kinds {
		for _, second := range kinds {
			if second == OpWrite {
				continue // placed in any order: see TestFenceWaitsForReads
			}
			// A send or immediate data may overtake the answer of what it follows
			// (RFC 5040, Section 5.5, rule 18).
			free := !second.Responds() && first.Responds()
			overtaken := false
			t.Run(fmt.Sprintf("%v, %v", first, second), func(t *testing.T) {
				for seed := range uint64(15) {
					o := newOrdered(t, seed)
					fail := func(what string) {
						t.Fatalf("seed %d: the %v %s before the %v was done", seed, second, what, first)
					}
					o.p.pipe.B.Tap = func(seg []byte) {
						h, _, _ := ddp.ParseHeader(seg)
						op, _ := ParseControl(h.Ctrl)
						id := h.TO / (orderedSize + 8)
						switch {
						case op == AtomicResponse:
						case op == ReadResponse && !o.began[id]:
							o.began[id] = true
						default:
							return
						}
						if i := len(o.answered); second.Responds() && (i == 1 || !first.Responds()) && !o.done(0, first) {
							fail("was answered")
						}
						o.answered = append(o.answered, len(o.answered))
					}
					o.post(0, first, 0)
					o.post(1, second, 0)
					slot := 1
					if first.Responds() || first == OpWrite {
						slot = 0 // of the receives
					}
					for o.p.pipe.Step() {
						if !second.Responds() && len(o.p.b.recv) > slot {
							switch ok := o.done(0, first); {
							case free:
								overtaken = overtaken || len(o.p.a.sent) == 0
							case !ok:
								fail("was delivered")
							}
						}
					}
					o.p.a.wantSent(0, StatusSuccess) // rule 15
					o.p.a.wantSent(1, StatusSuccess)
					o.results(first, second)
				}
			})
			if free && !overtaken && !t.Failed() {
				t.Errorf("the %v never completed before the %v was answered: nothing is tested", second, first)
			}
		}
	}
}

// results checks what reads and atomics have returned.
func (o *ordered) results(first, second OpKind) {
	o.t.Helper()
	count := uint64(5)
	for i, kind := range []OpKind{first, second} {
		switch kind {
		case OpFetchAdd:
			if got := binary.NativeEndian.Uint64(o.result[i]); got != count {
				o.t.Fatalf("%v, %v: original value %d, want %d", first, second, got, count)
			}
			count++
		case OpRead:
			want := pattern(orderedSize, 1)
			if i == 1 && first == OpWrite {
				want = o.data(0) // the read was posted after the write
			}
			if !bytes.Equal(o.result[i][:orderedSize], want) {
				o.t.Fatalf("%v, %v: read something else", first, second)
			}
			if got := binary.NativeEndian.Uint64(o.result[i][orderedSize:]); i == 1 && got != count {
				o.t.Fatalf("%v, %v: read a count of %d, want %d", first, second, got, count)
			}
		}
	}
	if got := binary.NativeEndian.Uint64(o.mem[orderedSize:]); got != count {
		o.t.Fatalf("%v, %v: count %d at the end, want %d", first, second, got, count)
	}
}

// TestFenceAfterAtomics: a fenced operation starts when all reads and atomics
// before it have been answered, and not earlier.
func TestFenceAfterAtomics(t *testing.T) {
	for seed := range uint64(20) {
		o := newOrdered(t, seed)
		var started []Opcode
		o.p.pipe.A.Tap = func(seg []byte) {
			if h, _, _ := ddp.ParseHeader(seg); h.Last {
				op, _ := ParseControl(h.Ctrl)
				started = append(started, op)
			}
		}
		o.post(0, OpFetchAdd, 0)
		o.p.a.post(Work{ID: 7, Kind: OpRead, STag: o.r.STag()}, make([]byte, 100))
		o.p.a.post(Work{ID: 8, Kind: OpImm, Flags: FlagFence | FlagSignaled})
		for o.p.pipe.Step() {
			if len(started) > 2 && o.p.a.s.rdTail != 2 {
				t.Fatalf("seed %d: the fenced operation started with %d of two answered", seed, o.p.a.s.rdTail)
			}
		}
		if len(started) != 3 || started[2] != Immediate {
			t.Fatalf("seed %d: %v", seed, started)
		}
		o.p.a.wantSent(0, StatusSuccess)
		o.p.a.wantSent(8, StatusSuccess)
	}
}

func TestPauseAndResume(t *testing.T) {
	p := newPair(t, pairConfig{})
	target := p.b.region(5000, ddp.RemoteWrite)
	p.a.post(Work{ID: 1, Kind: OpWrite, Flags: FlagSignaled, STag: target.STag()}, make([]byte, 5000))
	if err := p.a.s.Pause(); err != nil {
		t.Fatal(err)
	}
	p.a.post(Work{ID: 2, Kind: OpWrite, Flags: FlagSignaled, STag: target.STag()}, make([]byte, 100))
	if p.a.idle != 0 {
		t.Error("idle with a write under way")
	}
	p.pipe.Run()
	p.a.wantSent(1, StatusSuccess)
	p.a.wantNothing()
	if paused, idle := p.a.s.Paused(); !paused || !idle || p.a.idle != 1 {
		t.Errorf("paused %v, idle %v, told %d times", paused, idle, p.a.idle)
	}
	if err := p.a.s.Resume(); err != nil {
		t.Fatal(err)
	}
	p.pipe.Run()
	p.a.wantSent(2, StatusSuccess)
	// An end of the stream ends the pause, and is not idleness.
	p.a.s.Pause()
	p.a.post(Work{ID: 3, Kind: OpImm, Flags: FlagSignaled})
	p.a.s.Abort(ErrClosed)
	p.pipe.Run()
	p.a.wantSent(3, StatusFlush)
	if p.a.idle != 2 || p.a.s.Pause() != ErrState || p.a.s.Resume() != ErrState {
		t.Errorf("idle %d times", p.a.idle)
	}
}

// TestMessagesAreSubmittedInOrder: RFC 5040, Section 5.5, rules 13 and 20, and
// RFC 7306, Section 5.4: messages go to DDP in the order of the operations, one
// after the other, a Read for which there is no depth holds up what follows it,
// and responses go in the order of the requests.
func TestMessagesAreSubmittedInOrder(t *testing.T) {
	for _, ord := range []int{1, 2, 4} {
		for seed := range uint64(10) {
			p := newPair(t, pairConfig{seed: seed, mulpdu: 80, ird: ord, ord: ord, window: 3})
			r, err := p.b.table.Add(make([]byte, 4096), 0, ddp.RemoteRead|ddp.RemoteWrite|ddp.RemoteAtomic, p.b.domain, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				p.b.postRecv(uint64(i), make([]byte, 300))
			}
			var sent, asked, answered []string
			middle := false // of a message
			p.pipe.A.Tap = func(seg []byte) {
				h, payload, _ := ddp.ParseHeader(seg)
				op, _ := ParseControl(h.Ctrl)
				if !middle {
					name := fmt.Sprint(op)
					switch op {
					case Write:
						name += fmt.Sprint(" ", h.TO)
					case ReadRequest:
						req, _ := ParseReadRequest(payload)
						name += fmt.Sprint(" ", req.SrcTO)
						asked = append(asked, fmt.Sprint("read ", req.SinkTO))
					case AtomicRequest:
						req, _ := ParseAtomicRequest(payload)
						name += fmt.Sprint(" ", req.TO)
						asked = append(asked, fmt.Sprint("atomic ", req.ID))
					default:
						name += fmt.Sprint(" ", h.MSN)
					}
					sent = append(sent, name)
				} else if h.Tagged != (op == Write) || !h.Tagged && h.MO == 0 {
					t.Errorf("%v begins before the end of %v", op, sent[len(sent)-1])
				}
				middle = !h.Last
			}
			begun := false
			p.pipe.B.Tap = func(seg []byte) {
				h, payload, _ := ddp.ParseHeader(seg)
				switch {
				case h.Tagged && !begun:
					answered = append(answered, fmt.Sprint("read ", h.TO))
				case !h.Tagged:
					id, _, _ := ParseAtomicResponse(payload)
					answered = append(answered, fmt.Sprint("atomic ", id))
				}
				begun = !h.Last
			}
			at := func(kind OpKind, to uint64) Work {
				return Work{Kind: kind, STag: r.STag(), TO: to, Flags: FlagSignaled}
			}
			p.a.post(at(OpWrite, 8), make([]byte, 250))
			p.a.post(at(OpSend, 0), make([]byte, 120))
			p.a.post(at(OpRead, 16), make([]byte, 250))
			p.a.post(at(OpRead, 24), make([]byte, 90))
			p.a.post(at(OpWrite, 0), make([]byte, 250))
			p.a.post(at(OpFetchAdd, 32), make([]byte, 8))
			p.a.post(at(OpRead, 40), make([]byte, 150))
			p.a.post(at(OpImm, 0))
			p.a.post(at(OpCompareSwap, 48), make([]byte, 8))
			p.a.post(at(OpSend, 0), make([]byte, 200))
			p.a.post(at(OpWriteImm, 56), make([]byte, 100))
			p.pipe.Run()
			want := []string{fmt.Sprint(Write, " 8"), fmt.Sprint(Send, " 1"), fmt.Sprint(ReadRequest, " 16"), fmt.Sprint(ReadRequest, " 24"), fmt.Sprint(Write, " 0"),
				fmt.Sprint(AtomicRequest, " 32"), fmt.Sprint(ReadRequest, " 40"), fmt.Sprint(Immediate, " 2"), fmt.Sprint(AtomicRequest, " 48"),
				fmt.Sprint(Send, " 3"), fmt.Sprint(Write, " 56"), fmt.Sprint(Immediate, " 4")}
			if !slices.Equal(sent, want) {
				t.Errorf("seed %d, ORD %d: %q, want %q", seed, ord, sent, want)
			}
			if len(asked) != 5 || !slices.Equal(answered, asked) {
				t.Errorf("seed %d, ORD %d: %q answered in the order %q", seed, ord, asked, answered)
			}
			for range 11 {
				p.a.wantSent(0, StatusSuccess)
			}
			for i := range uint64(4) {
				p.b.wantRecv(i, StatusSuccess)
			}
		}
	}
}

// TestResponseGoesWhereTheRequestSays: RFC 5040, Section 4.4: sink STag and
// offset "MUST be copied, without interpretation" to the response.
func TestResponseGoesWhereTheRequestSays(t *testing.T) {
	p := newPair(t, pairConfig{mulpdu: 100})
	src := p.b.region(300, ddp.RemoteRead)
	req := ReadRequestHeader{SinkSTag: 0xFEDCBA98, SinkTO: 1<<63 + 5, Size: 200, SrcSTag: src.STag(), SrcTO: 50}
	p.pipe.A.Inject(seg(ddp.Header{Last: true, Ctrl: Control(ReadRequest), QN: 1, MSN: 1}, AppendReadRequest(nil, &req)...))
	next, last := req.SinkTO, false
	p.pipe.B.Tap = func(seg []byte) {
		h, payload, _ := ddp.ParseHeader(seg)
		off := int(h.TO - req.SinkTO)
		if !h.Tagged || last || h.Ctrl != Control(ReadResponse) || h.STag != req.SinkSTag || h.TO != next || !bytes.Equal(payload, src.Bytes()[50+off:][:len(payload)]) {
			t.Errorf("segment %+v of %d octets, want offset %#x", h, len(payload), next)
		}
		next += uint64(len(payload))
		last = h.Last
	}
	p.pipe.A.Deliver()
	if !last || next != req.SinkTO+200 {
		t.Errorf("%d octets answered, the last marked: %v", next-req.SinkTO, last)
	}
}

// TestRequestsWaitForWhatIsBeforeThem: RFC 5040, Section 5.5, rules 12 and 17, and
// RFC 7306, Section 5.4: a request that has arrived is not processed before all
// messages in front of it have been delivered.
func TestRequestsWaitForWhatIsBeforeThem(t *testing.T) {
	for _, op := range []Opcode{ReadRequest, AtomicRequest} {
		p := newPair(t, pairConfig{})
		mem := make([]byte, 8)
		r, err := p.b.table.Add(mem, 0, ddp.RemoteRead|ddp.RemoteWrite|ddp.RemoteAtomic, p.b.domain, nil)
		if err != nil {
			t.Fatal(err)
		}
		req := AppendReadRequest(nil, &ReadRequestHeader{Size: 8, SrcSTag: r.STag()})
		if op == AtomicRequest {
			req = AppendAtomicRequest(nil, &AtomicRequestHeader{STag: r.STag(), Data: 1})
		}
		var answer []byte
		p.pipe.B.Tap = func(seg []byte) { answer = seg }
		if err := p.b.s.Segment(1, seg(ddp.Header{Last: true, Ctrl: Control(op), QN: 1, MSN: 1}, req...)); err != nil {
			t.Fatal(err)
		}
		if answer != nil || !bytes.Equal(mem, make([]byte, 8)) {
			t.Errorf("%v: answered % x, memory % x, before the write in front of it came", op, answer, mem)
		}
		five := binary.NativeEndian.AppendUint64(nil, 5)
		if err := p.b.s.Segment(0, seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(Write), STag: r.STag()}, five...)); err != nil {
			t.Fatal(err)
		}
		want := five
		if op == AtomicRequest {
			want = binary.BigEndian.AppendUint64(nil, 5)
			five = binary.NativeEndian.AppendUint64(nil, 6)
		}
		if !bytes.HasSuffix(answer, want) || !bytes.Equal(mem, five) {
			t.Errorf("%v: answered % x, memory % x", op, answer, mem)
		}
	}
}

// TestCompleteWhenTheResponseIs: RFC 5040, Section 5.5, rule 19, and RFC 7306,
// Section 5.4: neither a Read nor an atomic is complete before all of its response
// has been delivered.
func TestCompleteWhenTheResponseIs(t *testing.T) {
	for _, kind := range []OpKind{OpRead, OpFetchAdd, OpCompareSwap} {
		p := newPair(t, pairConfig{mulpdu: 114, window: 64})
		p.pipe.Reorder = 0
		r, err := p.b.table.Add(make([]byte, 400), 0, ddp.RemoteRead|ddp.RemoteAtomic, p.b.domain, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 400
		if kind != OpRead {
			n = 8
		}
		p.a.post(Work{ID: 1, Kind: kind, Flags: FlagSignaled, STag: r.STag()}, make([]byte, n))
		var answer [][]byte
		p.pipe.B.Tap = func(seg []byte) { answer = append(answer, seg) }
		for p.pipe.A.Deliver() {
		}
		if len(answer) != (n+99)/100 {
			t.Fatalf("%v: answered by %d segments", kind, len(answer))
		}
		for i := len(answer) - 1; i >= 0; i-- { // the last one first
			p.a.wantNothing()
			if err := p.a.s.Segment(uint64(i), answer[i]); err != nil {
				t.Fatal(err)
			}
		}
		p.a.wantSent(1, StatusSuccess)
	}
}
