package rdmap

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weftstack/weft/ddp"
)

// seg builds a raw segment.
func seg(h ddp.Header, payload ...byte) []byte {
	return append(ddp.AppendHeader(nil, &h), payload...)
}

// TestFaultCodes sends one bad segment each and checks the Terminate message
// that comes back, octet by octet in its control word, with what Figure 10 of
// RFC 5040 says it includes.
func TestFaultCodes(t *testing.T) {
	const (
		size   = 100
		guard  = 16
		withD  = bitM | bitD
		withDR = bitM | bitD | bitR
	)
	type env struct {
		p               *pair
		rw, ro, wo, oth uint32 // STags: read-write, read-only, write-only, of another domain
		high            uint32 // based near the end of the offset space
	}
	readReq := func(e *env, r ReadRequestHeader) []byte {
		return seg(ddp.Header{Last: true, Ctrl: Control(ReadRequest), QN: 1, MSN: 1}, AppendReadRequest(nil, &r)...)
	}
	tests := []struct {
		name string
		seg  func(e *env) []byte
		want ddp.Fault
		bits byte
	}{
		// RFC 5041, Section 7.2.
		{"short segment", func(e *env) []byte { return []byte{0xC1, 0x40, 0} }, ddp.FaultLocal, 0},
		{"short untagged", func(e *env) []byte { return make([]byte, 17) }, ddp.FaultLocal, 0},
		{"tagged invalid STag", func(e *env) []byte {
			return seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(Write), STag: 0xBAD}, 1)
		}, ddp.FaultSTag, withD},
		{"tagged no right", func(e *env) []byte {
			return seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(Write), STag: e.ro}, 1)
		}, ddp.FaultSTag, withD},
		{"tagged one past the end", func(e *env) []byte {
			return seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(Write), STag: e.rw, TO: size - 3}, 1, 2, 3, 4)
		}, ddp.FaultBounds, withD},
		{"tagged before the base", func(e *env) []byte {
			return seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(Write), STag: e.high, TO: 1<<64 - 202}, 1, 2)
		}, ddp.FaultBounds, withD},
		{"tagged other domain", func(e *env) []byte {
			return seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(Write), STag: e.oth}, 1)
		}, ddp.FaultNotAssociated, withD},
		{"tagged wrap", func(e *env) []byte {
			return seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(Write), STag: e.high, TO: 1<<64 - 2}, 1, 2, 3)
		}, ddp.FaultWrap, withD},
		{"tagged version", func(e *env) []byte {
			b := seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(Write), STag: e.rw}, 1)
			b[0] = b[0]&^3 | 2
			return b
		}, ddp.FaultTaggedVersion, withD},
		{"untagged QN", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(Send), QN: 7, MSN: 1}, 1)
		}, ddp.FaultQN, withD},
		{"untagged no buffer", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(Send), MSN: 3}, 1)
		}, ddp.FaultNoBuffer, withD},
		{"untagged MSN range", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(Send), MSN: 1001}, 1)
		}, ddp.FaultMSN, withD},
		{"untagged MSN delivered", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(Send), MSN: 0}, 1)
		}, ddp.FaultMSN, withD},
		{"untagged MO", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(Send), MSN: 1, MO: 41}, 1)
		}, ddp.FaultMO, withD},
		{"untagged too long", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(Send), MSN: 1, MO: 39}, 1, 2)
		}, ddp.FaultTooLong, withD},
		{"untagged hole", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(Send), MSN: 1, MO: 5}, 1, 2)
		}, ddp.FaultMO, withD},
		{"untagged empty with offset", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(Send), MSN: 1, MO: 5})
		}, ddp.FaultMO, withD},
		{"untagged MSN skipped", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(Send), MSN: 2}, 1)
		}, ddp.FaultMSN, withD},
		{"untagged version, not last", func(e *env) []byte {
			b := seg(ddp.Header{Ctrl: Control(Send), MSN: 1}, 1)
			b[0] = 0
			return b
		}, ddp.FaultUntaggedVersion, withD},
		{"untagged version", func(e *env) []byte {
			b := seg(ddp.Header{Last: true, Ctrl: Control(Send), MSN: 1}, 1)
			b[0] &^= 3
			return b
		}, ddp.FaultUntaggedVersion, withD},
		// RFC 5040, Figure 9, remote protection.
		{"read invalid STag", func(e *env) []byte { return readReq(e, ReadRequestHeader{Size: 1, SrcSTag: 0xBAD}) }, FaultSTag, withDR},
		{"read bounds", func(e *env) []byte {
			return readReq(e, ReadRequestHeader{Size: size, SrcSTag: e.rw, SrcTO: 1})
		}, FaultBounds, withDR},
		{"read access", func(e *env) []byte { return readReq(e, ReadRequestHeader{Size: 1, SrcSTag: e.wo}) }, FaultAccess, withDR},
		{"read other domain", func(e *env) []byte { return readReq(e, ReadRequestHeader{Size: 1, SrcSTag: e.oth}) }, FaultNotAssociated, withDR},
		{"read wrap", func(e *env) []byte {
			return readReq(e, ReadRequestHeader{Size: 10, SrcSTag: e.high, SrcTO: 1<<64 - 5})
		}, FaultWrap, withDR},
		{"invalidate shared STag", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(SendInv), MSN: 1, Word: e.rw})
		}, FaultCannotInval, withD},
		{"invalidate unknown STag", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(SendSEInv), MSN: 1, Word: 0xBAD})
		}, FaultCannotInval, withD},
		// Remote operation.
		{"RDMAP version tagged", func(e *env) []byte {
			return seg(ddp.Header{Tagged: true, Last: true, Ctrl: 0xC0, STag: e.rw}, 1)
		}, FaultVersion, withD},
		{"RDMAP version untagged", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: 0x83, MSN: 1}, 1)
		}, FaultVersion, withD},
		{"opcode undefined", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(0xC), MSN: 1}, 1)
		}, FaultOpcode, withD},
		{"opcode tagged send", func(e *env) []byte {
			return seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(Send), STag: e.rw}, 1)
		}, FaultOpcode, withD},
		{"opcode untagged write", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(Write), MSN: 1}, 1)
		}, FaultOpcode, withD},
		{"opcode on wrong queue", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(Send), QN: 1, MSN: 1}, 1)
		}, FaultOpcode, withD},
		{"read response nobody asked for", func(e *env) []byte {
			return seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(ReadResponse), STag: e.p.b.s.sink.STag()}, 1)
		}, ddp.FaultBounds, withD},
		{"read response to a region", func(e *env) []byte {
			return seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(ReadResponse), STag: e.rw}, 1)
		}, ddp.FaultSTag, withD},
		{"write to the sink of reads", func(e *env) []byte {
			return seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(Write), STag: e.p.b.s.sink.STag()}, 1)
		}, ddp.FaultSTag, withD},
		{"empty read response nobody asked for", func(e *env) []byte {
			return seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(ReadResponse)})
		}, FaultOpcode, withD},
		{"atomic response nobody asked for", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(AtomicResponse), QN: 3, MSN: 1}, make([]byte, 12)...)
		}, FaultOpcode, withD},
		{"read request of wrong size", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(ReadRequest), QN: 1, MSN: 1}, make([]byte, 27)...)
		}, FaultUnspecified, withD},
		{"atomic request too long", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(AtomicRequest), QN: 1, MSN: 1}, make([]byte, 53)...)
		}, ddp.FaultTooLong, withD},
		{"atomic operation undefined", func(e *env) []byte {
			h := AtomicRequestHeader{Op: 1, STag: e.rw}
			return seg(ddp.Header{Last: true, Ctrl: Control(AtomicRequest), QN: 1, MSN: 1}, AppendAtomicRequest(nil, &h)...)
		}, FaultOpcode, withD},
		{"atomic not aligned", func(e *env) []byte {
			h := AtomicRequestHeader{STag: e.rw, TO: 4}
			return seg(ddp.Header{Last: true, Ctrl: Control(AtomicRequest), QN: 1, MSN: 1}, AppendAtomicRequest(nil, &h)...)
		}, FaultCatastrophic, withD},
		{"atomic swap not aligned", func(e *env) []byte {
			h := AtomicRequestHeader{Op: AtomicCmpSwap, STag: e.rw, TO: 1, Data: 1, Mask: 1<<64 - 1}
			return seg(ddp.Header{Last: true, Ctrl: Control(AtomicRequest), QN: 1, MSN: 1}, AppendAtomicRequest(nil, &h)...)
		}, FaultCatastrophic, withD},
		{"atomic bounds", func(e *env) []byte {
			h := AtomicRequestHeader{STag: e.rw, TO: size - 4}
			return seg(ddp.Header{Last: true, Ctrl: Control(AtomicRequest), QN: 1, MSN: 1}, AppendAtomicRequest(nil, &h)...)
		}, FaultBounds, withD},
		{"atomic RDMAP version", func(e *env) []byte {
			h := AtomicRequestHeader{STag: e.rw}
			return seg(ddp.Header{Last: true, Ctrl: Control(AtomicRequest) | 0x80, QN: 1, MSN: 1}, AppendAtomicRequest(nil, &h)...)
		}, FaultVersion, withD},
		{"atomic access", func(e *env) []byte {
			h := AtomicRequestHeader{STag: e.wo}
			return seg(ddp.Header{Last: true, Ctrl: Control(AtomicRequest), QN: 1, MSN: 1}, AppendAtomicRequest(nil, &h)...)
		}, FaultAccess, withD},
		{"immediate data too short", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(Immediate), MSN: 1}, 1, 2, 3)
		}, FaultUnspecified, withD},
		{"immediate data too long", func(e *env) []byte {
			return seg(ddp.Header{Last: true, Ctrl: Control(Immediate), MSN: 1}, make([]byte, 9)...)
		}, ddp.FaultTooLong, withD},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t, pairConfig{depth: 8})
			b := p.b
			mem := pattern(guard+size+guard, 0x55)
			inner := mem[guard : guard+size : guard+size]
			add := func(base uint64, acc ddp.Access, d *ddp.Domain) uint32 {
				r, err := b.table.Add(inner, base, acc, d, nil)
				if err != nil {
					t.Fatal(err)
				}
				return r.STag()
			}
			const all = ddp.RemoteRead | ddp.RemoteWrite | ddp.RemoteAtomic
			e := &env{p: p, rw: add(0, all, b.domain), ro: add(0, ddp.RemoteRead, b.domain),
				wo: add(0, ddp.RemoteWrite, b.domain), oth: add(0, all, &ddp.Domain{}), high: add(1<<64-201, all, b.domain)}
			r1, r2 := pattern(40, 1), pattern(40, 2)
			b.postRecv(1, r1)
			b.postRecv(2, r2)
			var term []byte
			p.pipe.B.Tap = func(s []byte) {
				if op, _ := ParseControl(s[1]); op == Terminate {
					if term != nil {
						t.Error("more than one Terminate")
					}
					term = s
				}
			}
			before := bytes.Clone(mem)
			bad := tt.seg(e)
			p.pipe.A.Inject(bad)
			p.pipe.A.Inject(seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(Write), STag: e.rw, TO: 7}, 0xFF, 0xFF))
			p.pipe.Reorder = 0
			p.pipe.Run()

			if term == nil {
				t.Fatal("no Terminate")
			}
			h, body, _ := ddp.ParseHeader(term)
			if h.Tagged || !h.Last || h.QN != 2 || h.MSN != 1 || h.MO != 0 || h.Word != 0 {
				t.Errorf("header of Terminate = %+v", h)
			}
			ctl := []byte{byte(tt.want >> 8), byte(tt.want), tt.bits, 0}
			if !bytes.Equal(body[:4], ctl) {
				t.Errorf("control word = % x, want % x", body[:4], ctl)
			}
			if tt.bits&bitD != 0 {
				hl := ddp.UntaggedHeaderLen
				if bad[0]&0x80 != 0 {
					hl = ddp.TaggedHeaderLen
				}
				if got := int(body[4])<<8 | int(body[5]); got != len(bad) {
					t.Errorf("segment length = %d, want %d", got, len(bad))
				}
				if !bytes.Equal(body[6:6+hl], bad[:hl]) {
					t.Errorf("terminated header = % x, want % x", body[6:6+hl], bad[:hl])
				}
				rest := body[6+hl:]
				if tt.bits&bitR != 0 {
					if !bytes.Equal(rest, bad[hl:]) {
						t.Errorf("terminated request = % x, want % x", rest, bad[hl:])
					}
				} else if len(rest) != 0 {
					t.Errorf("trailing % x", rest)
				}
			} else if len(body) != 4 {
				t.Errorf("Terminate has %d octets, want 4", len(body))
			}
			placed := tt.name == "untagged MSN skipped" // only its delivery is wrong
			if !bytes.Equal(mem, before) || !bytes.Equal(r2, pattern(40, 2)) && !placed {
				t.Error("memory was written to")
			}
			for _, o := range []*side{p.a, p.b} {
				var te *TerminateError
				if !errors.As(o.err, &te) || te.Header.Fault != tt.want || te.ByPeer != (o == p.a) || !errors.Is(o.err, tt.want) {
					t.Errorf("%s: error = %v", o.name, o.err)
				}
				o.wantStates(StateRTS, StateTerminate, StateError)
				if o.drained != 1 || !o.end.Released() {
					t.Errorf("%s: drained %d, released %v", o.name, o.drained, o.end.Released())
				}
			}
			st := StatusFlush
			if tt.want == ddp.FaultTooLong && bad[1] != Control(AtomicRequest) {
				st = StatusLocalLength
			}
			b.wantRecv(1, st)
			b.wantRecv(2, StatusFlush)
			b.wantNothing()
		})
	}
}

func TestBlamedOperations(t *testing.T) {
	t.Run("read", func(t *testing.T) {
		p := newPair(t, pairConfig{})
		ok := p.b.region(100, ddp.RemoteRead)
		p.a.post(Work{ID: 1, Kind: OpRead, STag: ok.STag()}, make([]byte, 10))
		p.a.post(Work{ID: 2, Kind: OpRead, STag: ok.STag(), TO: 95}, make([]byte, 10))
		p.a.post(Work{ID: 3, Kind: OpRead, STag: ok.STag()}, make([]byte, 10))
		p.pipe.Reorder = 0
		p.pipe.Run()
		if len(p.a.sent) == 3 {
			p.a.wantSent(1, StatusFlush) // its response may have been cut off
		}
		p.a.wantSent(2, StatusRemoteAccess)
		p.a.wantSent(3, StatusFlush)
	})
	t.Run("write", func(t *testing.T) {
		p := newPair(t, pairConfig{})
		ok := p.b.region(5000, ddp.RemoteWrite)
		p.a.post(Work{ID: 1, Kind: OpWrite, STag: ok.STag(), TO: 100}, make([]byte, 4901))
		p.pipe.Reorder = 0
		for p.pipe.A.Deliver() { // nothing is acknowledged yet
		}
		for p.pipe.B.Deliver() {
		}
		p.pipe.Run()
		p.a.wantSent(1, StatusRemoteAccess)
	})
}

// Each operation that the peer objects to has the status that says so, whichever kind
// it is: those before it what became of them, those after it a flush. RFC 5040,
// Section 4.8 and RFC 7306, Section 8.1: the headers of the segment at fault come back.
func TestTheOperationAtFaultHasTheStatus(t *testing.T) {
	const access, operation = StatusRemoteAccess, StatusRemoteOperation
	big := make([]byte, 5000) // more than a segment: not complete before it is acknowledged
	for _, tt := range []struct {
		name string
		work func(p *pair) (w Work, bufs [][]byte)
		want Status
	}{
		{"write", func(p *pair) (Work, [][]byte) { return Work{Kind: OpWrite, STag: 0xBAD}, [][]byte{big} }, access},
		{"write with immediate, its write", func(p *pair) (Work, [][]byte) {
			return Work{Kind: OpWriteImm, STag: 0xBAD}, [][]byte{big}
		}, access},
		{"write with immediate, its immediate", func(p *pair) (Work, [][]byte) {
			return Work{Kind: OpWriteImm, STag: p.b.region(5000, ddp.RemoteWrite).STag()}, [][]byte{big}
		}, operation},
		{"send without a receive", func(p *pair) (Work, [][]byte) { return Work{Kind: OpSend}, [][]byte{big} }, operation},
		{"send that is too long", func(p *pair) (Work, [][]byte) {
			p.b.postRecv(1, make([]byte, 4999))
			return Work{Kind: OpSend}, [][]byte{big}
		}, operation},
		{"short send", func(p *pair) (Work, [][]byte) { return Work{Kind: OpSend}, [][]byte{big[:5]} }, operation},
		{"send with invalidate", func(p *pair) (Work, [][]byte) {
			p.b.postRecv(1, make([]byte, 5000))
			return Work{Kind: OpSendInvalidate, Invalidate: 0xBAD}, [][]byte{big}
		}, access},
		{"immediate", func(p *pair) (Work, [][]byte) { return Work{Kind: OpImm}, nil }, operation},
		{"read", func(p *pair) (Work, [][]byte) { return Work{Kind: OpRead, STag: 0xBAD}, [][]byte{big} }, access},
		{"fetch-add, no such region", func(p *pair) (Work, [][]byte) {
			return Work{Kind: OpFetchAdd, STag: 0xBAD}, [][]byte{big[:8]}
		}, access},
		{"fetch-add, no right", func(p *pair) (Work, [][]byte) {
			return Work{Kind: OpFetchAdd, STag: p.b.region(8, ddp.RemoteRead).STag()}, [][]byte{big[:8]}
		}, access},
		{"compare-swap, out of bounds", func(p *pair) (Work, [][]byte) {
			return Work{Kind: OpCompareSwap, STag: p.b.region(8, ddp.RemoteAtomic).STag(), TO: 8}, [][]byte{big[:8]}
		}, access},
		{"compare-swap, unaligned", func(p *pair) (Work, [][]byte) {
			return Work{Kind: OpCompareSwap, STag: p.b.region(16, ddp.RemoteAtomic).STag(), TO: 4}, [][]byte{big[:8]}
		}, operation},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t, pairConfig{})
			good := p.b.region(5000, ddp.RemoteWrite|ddp.RemoteAtomic)
			w, bufs := tt.work(p)
			w.ID = 2
			p.pipe.Reorder = 0
			// What is before it is not acknowledged when the Terminate message comes.
			p.a.post(Work{ID: 1, Kind: OpWrite, Flags: FlagSignaled, STag: good.STag()}, make([]byte, 5000))
			p.a.post(w, bufs...)
			p.a.post(Work{ID: 3, Kind: OpFetchAdd, STag: good.STag()}, make([]byte, 8))
			for p.pipe.A.Deliver() {
			}
			for p.pipe.B.Deliver() {
			}
			p.pipe.Run()
			p.a.wantSent(1, StatusSuccess)
			p.a.wantSent(2, tt.want)
			p.a.wantSent(3, StatusFlush)
			p.a.wantNothing()
		})
	}
}

// The error names the message that the Terminate message is about.
func TestTerminateErrorsNameTheMessage(t *testing.T) {
	for want, w := range map[string]Work{
		"rdmap: terminate received: ddp: DDP tagged buffer: invalid STag (1/1/00), STag 0xbad at 0x10":                         {Kind: OpWrite, STag: 0xBAD, TO: 16},
		"rdmap: terminate received: ddp: remote protection: invalid STag (0/1/00), read of 8 bytes of STag 0xbad at 0x10":      {Kind: OpRead, STag: 0xBAD, TO: 16},
		"rdmap: terminate received: ddp: remote protection: invalid STag (0/1/00), message 1 of queue 1":                       {Kind: OpFetchAdd, STag: 0xBAD},
		"rdmap: terminate received: ddp: DDP untagged buffer: invalid MSN, no buffer available (1/2/02), message 1 of queue 0": {Kind: OpSend},
	} {
		p := newPair(t, pairConfig{})
		p.a.post(w, make([]byte, 8))
		p.pipe.Run()
		if p.a.err == nil || p.a.err.Error() != want {
			t.Errorf("%v: %v, want %q", w.Kind, p.a.err, want)
		}
	}
}

// A peer that answers what was not asked ends the stream, and the operation whose answer
// was due says so.
func TestBadResponsesAreTold(t *testing.T) {
	read := func(sink *Stream, to uint64, b ...byte) []byte {
		return seg(ddp.Header{Tagged: true, Last: true, Ctrl: Control(ReadResponse), STag: sink.sink.STag(), TO: to}, b...)
	}
	atomic := func(b []byte) []byte {
		return seg(ddp.Header{Last: true, Ctrl: Control(AtomicResponse), QN: QueueAtomicResponse, MSN: 1}, b...)
	}
	for _, tt := range []struct {
		name string
		kind OpKind
		seg  func(s *Stream) []byte
	}{
		{"read, too much", OpRead, func(s *Stream) []byte { return read(s, 0, make([]byte, 9)...) }},
		{"read, too little", OpRead, func(s *Stream) []byte { return read(s, 0, 1) }},
		{"read, elsewhere", OpRead, func(s *Stream) []byte { return read(s, 100, 1) }},
		{"read, an atomic", OpRead, func(s *Stream) []byte { return atomic(AppendAtomicResponse(nil, 1, 0)) }},
		{"fetch-add, another", OpFetchAdd, func(s *Stream) []byte { return atomic(AppendAtomicResponse(nil, 77, 0)) }},
		{"fetch-add, short", OpFetchAdd, func(s *Stream) []byte { return atomic(make([]byte, 11)) }},
		{"compare-swap, a read", OpCompareSwap, func(s *Stream) []byte { return read(s, 0) }},
		{"compare-swap, a read of something", OpCompareSwap, func(s *Stream) []byte { return read(s, 0, 1) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t, pairConfig{})
			p.pipe.Reorder = 0
			p.a.post(Work{ID: 1, Kind: tt.kind}, make([]byte, 8))
			p.a.post(Work{ID: 2, Kind: OpRead}, make([]byte, 8))
			p.pipe.B.Inject(tt.seg(p.a.s))
			p.pipe.B.Deliver()
			p.a.wantSent(1, StatusBadResponse)
			p.a.wantSent(2, StatusFlush)
			p.a.wantNothing()
		})
	}
}

func TestRevokedInTheMidstOfARead(t *testing.T) {
	// RFC 5040, Section 4.8: the header is "updated to reflect the current
	// location of the RDMA Read operation".
	p := newPair(t, pairConfig{mulpdu: 114, window: 4})
	src := p.b.region(10000, ddp.RemoteRead)
	p.a.post(Work{ID: 1, Kind: OpRead, STag: src.STag(), TO: 50}, make([]byte, 9000))
	p.pipe.A.Deliver() // four segments of 100 octets go out
	src.Revoke()
	p.pipe.Run()
	var te *TerminateError
	if !errors.As(p.a.err, &te) {
		t.Fatalf("error = %v", p.a.err)
	}
	r := te.Header.Read
	if te.Header.Fault != FaultSTag || !te.Header.HasRead || r.SrcTO != 450 || r.SinkTO != 400 || r.Size != 8600 || r.SrcSTag != src.STag() {
		t.Errorf("Terminate = %+v", te.Header)
	}
	p.a.wantSent(1, StatusRemoteAccess)
	if p.b.drained != 1 {
		t.Error("responder not drained")
	}
}

func TestReboundInTheMidstOfARead(t *testing.T) {
	// A read of what a window was bound to is not answered from what it is bound
	// to now, nor from memory that the peer has no right to any more.
	p := newPair(t, pairConfig{mulpdu: 114, window: 4})
	w, err := p.b.table.Reserve(p.b.domain)
	if err != nil {
		t.Fatal(err)
	}
	bind := func() {
		if !w.Bind(make([]byte, 10000), 0, ddp.RemoteRead, p.b.s.Scope(), nil) {
			t.Fatal("not bound")
		}
	}
	bind()
	p.a.post(Work{ID: 1, Kind: OpRead, STag: w.STag()}, make([]byte, 9000))
	p.pipe.A.Deliver()
	w.Revoke()
	bind()
	p.pipe.Run()
	if !errors.Is(p.a.err, FaultSTag) {
		t.Errorf("error = %v, want %v", p.a.err, FaultSTag)
	}
	p.a.wantSent(1, StatusRemoteAccess)
}

func TestFailSendsTerminateWithoutHeaders(t *testing.T) {
	p := newPair(t, pairConfig{})
	p.a.s.Fail(FaultInsufficientIRD)
	p.pipe.Run()
	var te *TerminateError
	if !errors.As(p.b.err, &te) || te.Header != (TerminateHeader{Fault: FaultInsufficientIRD}) || !te.ByPeer {
		t.Errorf("error = %v", p.b.err)
	}
}
