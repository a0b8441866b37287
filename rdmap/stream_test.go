package rdmap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/ddp"
)

func TestSendIntoPostedBuffers(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			p := newPair(t, pairConfig{seed: seed, mulpdu: 100})
			big := pattern(1000, 1)
			r1, r2, r3 := make([]byte, 600), make([]byte, 600), make([]byte, 10)
			p.b.postRecv(1, r1, r2)
			p.b.postRecv(2, r3)
			p.b.postRecv(3)
			p.a.post(Work{ID: 10, Kind: OpSend, Flags: FlagSignaled}, big[:300], big[300:301], big[301:])
			p.a.post(Work{ID: 11, Kind: OpSend, Flags: FlagSignaled | FlagSolicited, Inline: []byte("hello")})
			p.a.post(Work{ID: 12, Kind: OpSend})
			p.pipe.Run()
			if c := p.b.wantRecv(1, StatusSuccess); c.Len != 1000 || c.Flags != 0 {
				t.Errorf("first message: %+v", c)
			}
			if !bytes.Equal(append(r1, r2...)[:1000], big) {
				t.Error("first message differs")
			}
			if c := p.b.wantRecv(2, StatusSuccess); c.Len != 5 || c.Flags != CompletionSolicited || string(r3[:5]) != "hello" {
				t.Errorf("second message: %+v %q", c, r3)
			}
			if c := p.b.wantRecv(3, StatusSuccess); c.Len != 0 {
				t.Errorf("third message: %+v", c)
			}
			p.a.wantSent(10, StatusSuccess)
			p.a.wantSent(11, StatusSuccess)
			p.a.wantNothing() // the third was not signaled
			p.b.wantNothing()
		})
	}
}

func TestWriteAndRead(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			p := newPair(t, pairConfig{seed: seed, mulpdu: 200, window: 7})
			target := p.b.region(10000, ddp.RemoteWrite|ddp.RemoteRead)
			before := bytes.Clone(target.Bytes())
			data := pattern(5000, 3)
			got := make([]byte, 6000)
			p.a.post(Work{ID: 1, Kind: OpWrite, Flags: FlagSignaled, STag: target.STag(), TO: 1000}, data)
			// RFC 5040, Section 5.5, rule 12: the read sees the write.
			p.a.post(Work{ID: 2, Kind: OpRead, Flags: FlagSignaled, STag: target.STag(), TO: 500}, got[:100], got[100:])
			p.a.post(Work{ID: 3, Kind: OpRead, Flags: FlagSignaled, STag: 0xDEAD, TO: 1})
			p.pipe.Run()
			want := bytes.Clone(before)
			copy(want[1000:], data)
			if !bytes.Equal(target.Bytes(), want) {
				t.Error("write: memory differs")
			}
			p.a.wantSent(1, StatusSuccess)
			if c := p.a.wantSent(2, StatusSuccess); c.Len != 6000 || !bytes.Equal(got, want[500:6500]) {
				t.Error("read: data differs")
			}
			p.a.wantSent(3, StatusSuccess) // Section 5.2.1: nothing is validated for size 0
			p.a.wantNothing()
			p.b.wantNothing() // the target's consumer hears nothing of it
		})
	}
}

func TestReadDepthIsKept(t *testing.T) {
	p := newPair(t, pairConfig{depth: 64, ird: 3, ord: 3, mulpdu: 100})
	requests, most := 0, 0
	p.pipe.A.Tap = func(seg []byte) {
		if seg[1] == Control(ReadRequest) {
			requests++
			most = max(most, requests)
		}
	}
	p.pipe.B.Tap = func(seg []byte) {
		if seg[1] == Control(ReadResponse) && seg[0]&0x40 != 0 {
			requests--
		}
	}
	src := p.b.region(300, ddp.RemoteRead)
	got := make([]byte, 64*300)
	for i := range 64 {
		p.a.post(Work{ID: uint64(i), Kind: OpRead, Flags: FlagSignaled, STag: src.STag()}, got[i*300:(i+1)*300])
	}
	p.pipe.Run()
	for i := range 64 {
		p.a.wantSent(uint64(i), StatusSuccess)
		if !bytes.Equal(got[i*300:(i+1)*300], src.Bytes()) {
			t.Fatalf("read %d differs", i)
		}
	}
	if most != 3 {
		t.Errorf("most requests outstanding = %d, want 3", most)
	}
}

func TestTooManyReadsAreRefused(t *testing.T) {
	// A peer that exceeds what was negotiated finds no buffer (RFC 5040,
	// Section 6.1; RFC 5041, Section 7.2). One response is sent and fills the
	// window, two wait, the fourth request is one too many.
	p := newPair(t, pairConfig{ird: 2, ord: 2, window: 1})
	p.a.s.window = 100
	p.pipe.Reorder = 0
	src := p.b.region(300, ddp.RemoteRead)
	p.a.s.ord = 4
	p.a.s.reads = make([]*Op, 4)
	for i := range 3 {
		p.a.post(Work{ID: uint64(i), Kind: OpRead, STag: src.STag()}, make([]byte, 10))
	}
	for p.pipe.A.Deliver() {
	}
	if p.b.err != nil {
		t.Fatalf("within the limit: %v", p.b.err)
	}
	p.a.post(Work{ID: 3, Kind: OpRead, STag: src.STag()}, make([]byte, 10))
	p.pipe.A.Deliver()
	if !errors.Is(p.b.err, ddp.FaultNoBuffer) {
		t.Errorf("error = %v, want %v", p.b.err, ddp.FaultNoBuffer)
	}
}

func TestFenceWaitsForReads(t *testing.T) {
	p := newPair(t, pairConfig{})
	src := p.b.region(100, ddp.RemoteRead|ddp.RemoteWrite)
	var order []Opcode
	p.pipe.A.Tap = func(seg []byte) {
		op, _ := ParseControl(seg[1])
		order = append(order, op)
	}
	want := bytes.Clone(src.Bytes())
	got := make([]byte, 100)
	p.a.post(Work{ID: 1, Kind: OpRead, Flags: FlagSignaled, STag: src.STag()}, got)
	p.a.post(Work{ID: 2, Kind: OpWrite, Flags: FlagSignaled | FlagFence, STag: src.STag()}, make([]byte, 100))
	if len(order) != 1 {
		t.Fatalf("sent before the read was answered: %v", order)
	}
	p.pipe.Run()
	p.a.wantSent(1, StatusSuccess)
	p.a.wantSent(2, StatusSuccess)
	if !bytes.Equal(got, want) {
		t.Error("the fenced write overtook the read")
	}
}

func TestImmediate(t *testing.T) {
	for seed := range uint64(10) {
		p := newPair(t, pairConfig{seed: seed, mulpdu: 64})
		target := p.b.region(500, ddp.RemoteWrite)
		buf := pattern(16, 9)
		p.b.postRecv(1, buf)
		p.b.postRecv(2)
		data := pattern(400, 5)
		p.a.post(Work{ID: 1, Kind: OpWriteImm, Flags: FlagSignaled, STag: target.STag(), TO: 50, Imm: 0x0123456789ABCDEF}, data)
		p.a.post(Work{ID: 2, Kind: OpImm, Flags: FlagSignaled | FlagSolicited, Imm: 7})
		p.pipe.Run()
		if c := p.b.wantRecv(1, StatusSuccess); c.Imm != 0x0123456789ABCDEF || c.Flags != CompletionImm || c.Len != 0 {
			t.Errorf("first: %+v", c)
		}
		if !bytes.Equal(target.Bytes()[50:450], data) {
			t.Error("the immediate data came before the write was placed")
		}
		if !bytes.Equal(buf, pattern(16, 9)) {
			t.Error("immediate data touched the receive buffer")
		}
		if c := p.b.wantRecv(2, StatusSuccess); c.Imm != 7 || c.Flags != CompletionImm|CompletionSolicited {
			t.Errorf("second: %+v", c)
		}
		p.a.wantSent(1, StatusSuccess)
		p.a.wantSent(2, StatusSuccess)
		p.a.wantNothing()
	}
}

func TestAtomics(t *testing.T) {
	p := newPair(t, pairConfig{ird: 2, ord: 2})
	buf := make([]byte, 32)
	r, err := p.b.table.Add(buf, 0, ddp.RemoteAtomic, p.b.domain, nil)
	if err != nil {
		t.Fatal(err)
	}
	binary.NativeEndian.PutUint64(buf[8:], 100)
	res := make([][]byte, 5)
	for i := range res {
		res[i] = make([]byte, 8)
	}
	p.a.post(Work{ID: 0, Kind: OpFetchAdd, Flags: FlagSignaled, STag: r.STag(), TO: 8, Data: 5}, res[0])
	p.a.post(Work{ID: 1, Kind: OpFetchAdd, Flags: FlagSignaled, STag: r.STag(), TO: 8, Data: 1<<64 - 1}, res[1])
	p.a.post(Work{ID: 2, Kind: OpCompareSwap, Flags: FlagSignaled, STag: r.STag(), TO: 8, Data: 7, Mask: 1<<64 - 1, Compare: 1, CompareMask: 1<<64 - 1}, res[2])
	p.a.post(Work{ID: 3, Kind: OpCompareSwap, Flags: FlagSignaled, STag: r.STag(), TO: 8, Data: 7, Mask: 1<<64 - 1, Compare: 104, CompareMask: 1<<64 - 1}, res[3])
	p.a.post(Work{ID: 4, Kind: OpFetchAdd, Flags: FlagSignaled, STag: r.STag(), TO: 8}, res[4])
	p.pipe.Run()
	for i, want := range []uint64{100, 105, 104, 104, 7} {
		p.a.wantSent(uint64(i), StatusSuccess)
		if got := binary.NativeEndian.Uint64(res[i]); got != want {
			t.Errorf("original value of op %d = %d, want %d", i, got, want)
		}
	}
}

func TestSendInvalidate(t *testing.T) {
	p := newPair(t, pairConfig{})
	r, err := p.b.table.Add(make([]byte, 10), 0, ddp.RemoteWrite, p.b.domain, p.b.s.Scope())
	if err != nil {
		t.Fatal(err)
	}
	p.b.postRecv(1)
	p.a.post(Work{Kind: OpWrite, STag: r.STag(), TO: 2}, []byte{1, 2, 3})
	p.a.post(Work{ID: 1, Kind: OpSendInvalidate, Flags: FlagSolicited, Invalidate: r.STag()})
	p.pipe.Run()
	if c := p.b.wantRecv(1, StatusSuccess); c.Invalidated != r.STag() || c.Flags != CompletionInvalidate|CompletionSolicited {
		t.Errorf("completion = %+v", c)
	}
	if !bytes.Equal(r.Bytes(), []byte{0, 0, 1, 2, 3, 0, 0, 0, 0, 0}) {
		t.Errorf("memory = %v", r.Bytes())
	}
	if !r.Revoked() {
		t.Error("region was not invalidated")
	}
	p.a.post(Work{ID: 2, Kind: OpWrite, STag: r.STag()}, []byte{9})
	p.pipe.Run()
	if r.Bytes()[0] != 0 {
		t.Error("a revoked region was written to")
	}
	if !errors.Is(p.a.err, ddp.FaultSTag) {
		t.Errorf("error = %v, want %v", p.a.err, ddp.FaultSTag)
	}
}

func TestLocalInvalidate(t *testing.T) {
	p := newPair(t, pairConfig{})
	r := p.a.region(10, ddp.RemoteWrite)
	p.a.post(Work{ID: 1, Kind: OpLocalInvalidate, Flags: FlagSignaled, Invalidate: r.STag()})
	p.a.post(Work{ID: 2, Kind: OpLocalInvalidate, Invalidate: 12345})
	p.a.wantSent(1, StatusSuccess)
	p.a.wantSent(2, StatusLocalProtection)
	if !r.Revoked() {
		t.Error("region was not invalidated")
	}
}

func TestQueueLimits(t *testing.T) {
	p := newPair(t, pairConfig{depth: 3})
	for i := range 3 {
		p.b.postRecv(uint64(i))
	}
	if err := p.b.s.ReserveRecv(1); !errors.Is(err, ErrFull) {
		t.Errorf("receive queue over its depth: %v", err)
	}
	if err := p.a.s.Reserve(4); !errors.Is(err, ErrFull) {
		t.Errorf("send queue over its depth: %v", err)
	}
	if err := p.a.s.Reserve(3); err != nil {
		t.Fatal(err)
	}
	p.a.s.Commit()
}

func TestWindowBoundsWhatIsOutstanding(t *testing.T) {
	p := newPair(t, pairConfig{mulpdu: 64, window: 5})
	src := p.b.region(100000, ddp.RemoteRead)
	got := make([]byte, 100000)
	p.a.post(Work{ID: 1, Kind: OpRead, Flags: FlagSignaled, STag: src.STag()}, got)
	for p.pipe.Step() {
		if n := p.b.s.inflight.Load(); n > 5 {
			t.Fatalf("%d segments outstanding, want at most 5", n)
		}
		if n := p.pipe.B.Queued(); n > 5 {
			t.Fatalf("%d segments queued, want at most 5", n)
		}
	}
	p.a.wantSent(1, StatusSuccess)
	if !bytes.Equal(got, src.Bytes()) {
		t.Error("data differs")
	}
}

func TestCompletionWaitsForReferencedMemory(t *testing.T) {
	p := newPair(t, pairConfig{})
	target := p.b.region(10000, ddp.RemoteWrite)
	p.a.post(Work{ID: 1, Kind: OpWrite, Flags: FlagSignaled, STag: target.STag()}, make([]byte, 100))
	p.a.wantSent(1, StatusSuccess) // copied
	p.a.post(Work{ID: 2, Kind: OpWrite, Flags: FlagSignaled, STag: target.STag()}, make([]byte, 10000))
	p.a.post(Work{ID: 3, Kind: OpWrite, Flags: FlagSignaled, STag: target.STag()}, make([]byte, 100))
	p.a.wantNothing()
	p.pipe.Run()
	p.a.wantSent(2, StatusSuccess)
	p.a.wantSent(3, StatusSuccess)
}

func TestGracefulClose(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			p := newPair(t, pairConfig{seed: seed, mulpdu: 100, window: 3})
			src := p.b.region(1000, ddp.RemoteRead)
			got := make([]byte, 1000)
			p.b.postRecv(1, make([]byte, 500))
			p.b.postRecv(2)
			p.a.post(Work{ID: 1, Kind: OpSend, Flags: FlagSignaled}, pattern(500, 0))
			p.a.post(Work{ID: 2, Kind: OpRead, Flags: FlagSignaled, STag: src.STag()}, got)
			p.a.s.Close()
			if err := p.a.s.Reserve(1); !errors.Is(err, ErrState) {
				t.Errorf("Reserve while closing: %v", err)
			}
			p.pipe.Run()
			p.a.wantSent(1, StatusSuccess)
			p.a.wantSent(2, StatusSuccess)
			if !bytes.Equal(got, src.Bytes()) {
				t.Error("data differs")
			}
			p.b.wantRecv(1, StatusSuccess)
			p.b.wantRecv(2, StatusFlush)
			for _, o := range []*side{p.a, p.b} {
				o.wantStates(StateRTS, StateClosing, StateError)
				if !errors.Is(o.err, ErrClosed) || o.drained != 1 || !o.end.Released() {
					t.Errorf("%s: err %v, drained %d, released %v", o.name, o.err, o.drained, o.end.Released())
				}
			}
		})
	}
}

func TestLostFlushes(t *testing.T) {
	p := newPair(t, pairConfig{mulpdu: 100})
	target := p.b.region(10000, ddp.RemoteWrite)
	p.b.postRecv(7)
	p.a.post(Work{ID: 1, Kind: OpWrite, STag: target.STag()}, make([]byte, 10000))
	p.a.post(Work{ID: 2, Kind: OpRead, STag: target.STag()}, make([]byte, 100))
	p.pipe.Step()
	p.pipe.Cut()
	p.a.wantSent(1, StatusFlush)
	p.a.wantSent(2, StatusFlush)
	p.b.wantRecv(7, StatusFlush)
	for _, o := range []*side{p.a, p.b} {
		if o.drained != 1 || !o.end.Released() || o.err == nil {
			t.Errorf("%s: drained %d, released %v, err %v", o.name, o.drained, o.end.Released(), o.err)
		}
	}
}

func TestAbortKeepsMemoryUntilReleased(t *testing.T) {
	p := newPair(t, pairConfig{})
	target := p.b.region(10000, ddp.RemoteWrite)
	p.a.post(Work{ID: 1, Kind: OpWrite, STag: target.STag()}, make([]byte, 10000))
	p.a.s.Abort(ErrClosed)
	p.a.wantNothing() // the channel still reads the memory
	if p.a.drained != 0 {
		t.Error("drained with memory referenced")
	}
	p.pipe.Run()
	p.a.wantNothing() // it had been handed over as a whole, and was not signaled
	if p.a.drained != 1 || p.b.drained != 1 {
		t.Errorf("drained %d and %d times, want once each", p.a.drained, p.b.drained)
	}
	p.b.wantStates(StateRTS, StateClosing, StateError)
}
