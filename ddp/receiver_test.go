package ddp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// testULP places tagged segments into one buffer and notes deliveries.
type testULP struct {
	mem       []byte
	delivered []string
	fault     Fault
	header    []byte
	length    int
	ended     int
	refuse    Fault // of Deliver
	runs      int   // calls of PlaceRun
}

func (u *testULP) PlaceTagged(h *Header, p []byte) Fault {
	if len(p) == 0 {
		return 0
	}
	at := h.TO + uint64(h.STag%2*9)
	if at+uint64(len(p)) > uint64(len(u.mem)) {
		return FaultBounds
	}
	copy(u.mem[at:], p)
	return 0
}

func (u *testULP) PlaceRun(h *Header, segs [][]byte, unit int) bool {
	u.runs++
	at := h.TO + uint64(h.STag%2*9)
	if at+uint64(len(segs)*unit) > uint64(len(u.mem)) {
		return false
	}
	for i, seg := range segs {
		copy(u.mem[at+uint64(i*unit):], seg[TaggedHeaderLen:])
	}
	return true
}

func (u *testULP) AdmitUntagged(h *Header) (Admission, Fault) {
	if h.Ctrl == 8 {
		return AdmitInline, 0
	}
	return AdmitBuffer, 0
}

func (u *testULP) Deliver(h *Header, n uint32, b *Buffer, length uint32) Fault {
	if u.refuse != 0 {
		return u.refuse
	}
	if h.Tagged {
		u.delivered = append(u.delivered, fmt.Sprintf("T%d+%d", h.TO, n))
		return 0
	}
	s := fmt.Sprintf("U%d/%d:", h.QN, h.MSN)
	if h.Ctrl == 8 {
		s += string(b.Inline[:length])
	} else if len(b.SGL) > 0 {
		s += string(b.SGL[0].B[:length])
	}
	u.delivered = append(u.delivered, s)
	return 0
}

func (u *testULP) Faulted(f Fault, header []byte, length int, b *Buffer) {
	u.fault, u.header, u.length = f, bytes.Clone(header), length
}

func (u *testULP) Ended() { u.ended++ }

// newReceiver makes a receiver with n buffers of size bytes on queue 0.
func newReceiver(n, size int) (*Receiver, *testULP) {
	u := &testULP{mem: make([]byte, 1000)}
	r := &Receiver{}
	r.Init(u)
	r.Queue(0).Init(n, 1)
	for range n {
		b := r.Queue(0).Next()
		b.SGL = append(b.SGL, Mem{B: make([]byte, size)})
		r.Queue(0).Post()
	}
	for q := 1; q < Queues; q++ {
		r.Queue(q).Init(0, 1)
	}
	return r, u
}

func untagged(msn, mo uint32, last bool, p string) []byte {
	return append(AppendHeader(nil, &Header{MSN: msn, MO: mo, Last: last}), p...)
}

func tagged(to uint64, last bool, p string) []byte {
	return append(AppendHeader(nil, &Header{Tagged: true, TO: to, Last: last}), p...)
}

func TestPlacementInAnyOrderDeliveryInOrder(t *testing.T) {
	segs := [][]byte{
		nil, // the lower layer's own
		untagged(1, 0, false, "ab"), untagged(1, 2, true, "cd"),
		tagged(10, false, "xy"), tagged(12, true, "z"),
		untagged(2, 0, true, ""),
		append(AppendHeader(nil, &Header{MSN: 3, Last: true, Ctrl: 8}), "imm"...),
		tagged(0, true, ""),
		untagged(4, 0, true, "last"),
	}
	want := []string{"U0/1:abcd", "T12+1", "U0/2:", "U0/3:imm", "T0+0", "U0/4:last"}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		r, u := newReceiver(4, 4)
		for _, i := range rng.Perm(len(segs) + 1) {
			var err error
			switch {
			case i == 0:
				err = r.Skip(0)
			case i == len(segs):
				err = r.End(uint64(i))
			default:
				err = r.Segment(uint64(i), segs[i])
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if !slices.Equal(u.delivered, want) || u.fault != 0 || u.ended != 1 {
			t.Fatalf("seed %d: delivered %q, fault %v, ended %d", seed, u.delivered, u.fault, u.ended)
		}
		if string(u.mem[10:13]) != "xyz" {
			t.Fatalf("seed %d: placed %q", seed, u.mem[10:13])
		}
		if r.Early() != 0 || r.Next() != uint64(len(segs)+1) {
			t.Fatalf("seed %d: %d early, next %d", seed, r.Early(), r.Next())
		}
	}
}

func TestPlacedBeforeDelivered(t *testing.T) {
	r, u := newReceiver(1, 4)
	r.Segment(3, tagged(5, true, "later"))
	if string(u.mem[5:10]) != "later" {
		t.Error("a segment that came early was not placed")
	}
	if len(u.delivered) > 0 {
		t.Error("a message was delivered out of order")
	}
}

func TestSequenceErrors(t *testing.T) {
	r, _ := newReceiver(1, 4)
	seg := tagged(0, true, "")
	if err := r.Segment(MaxOutstanding-1, seg); err != nil {
		t.Errorf("at the edge of the window: %v", err)
	}
	for name, seq := range map[string]uint64{"beyond the window": MaxOutstanding, "far beyond": 1 << 40, "twice": MaxOutstanding - 1} {
		if err := r.Segment(seq, seg); !errors.Is(err, ErrSequence) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r.Early() != 1 {
		t.Errorf("%d early, want 1", r.Early())
	}
	if err := r.Segment(0, seg); err != nil {
		t.Error(err)
	}
	if err := r.Segment(0, seg); !errors.Is(err, ErrSequence) {
		t.Errorf("delivered already: %v", err)
	}
	if err := r.End(5); err != nil {
		t.Error(err)
	}
	if err := r.Segment(6, seg); !errors.Is(err, ErrSequence) {
		t.Errorf("after the end: %v", err)
	}
}

func TestReorderWindowMemory(t *testing.T) {
	// Memory is proportional to what came early, wherever in the window that is: 4
	// bytes for each byte of the shortest segments, which are 20 with their number.
	const perByte = 5
	for _, step := range []uint64{1, 2, 63, 64, 100, 4096} {
		r, _ := newReceiver(0, 0)
		seg := tagged(0, true, "")
		came := 0
		for seq := step; seq < MaxOutstanding; seq += step {
			if err := r.Segment(seq, seg); err != nil {
				t.Fatal(err)
			}
			came++
			if got, most := r.Held(), perByte*20*came; got > most {
				t.Fatalf("each %d. number: %d early segments take %d bytes, want at most %d", step, came, got, most)
			}
		}
		if step == 1 && r.Held() < 24*came {
			t.Errorf("%d early segments are told to take %d bytes", came, r.Held())
		}
	}
	r, u := newReceiver(0, 0)
	seg := tagged(0, true, "")
	r.Segment(MaxOutstanding-1, seg)
	for seq := uint64(MaxOutstanding - 2); seq > 0; seq-- {
		if err := r.Segment(seq, seg); err != nil {
			t.Fatal(err)
		}
	}
	r.Segment(0, seg)
	if len(u.delivered) != MaxOutstanding || r.Early() != 0 || r.Held() != 0 || len(r.order.table) > minRecords {
		t.Errorf("delivered %d, early %d, held %d", len(u.delivered), r.Early(), r.Held())
	}
}

func TestFaultStopsPlacement(t *testing.T) {
	r, u := newReceiver(1, 4)
	bad := tagged(999, true, "zz")
	r.Segment(1, bad)
	if u.fault != FaultBounds || !bytes.Equal(u.header, bad[:14]) || u.length != 16 {
		t.Errorf("fault %v, header % x, length %d", u.fault, u.header, u.length)
	}
	// RFC 5041, Section 7.1: "MUST silently drop any subsequent incoming DDP
	// Segments", but the end of the stream is still heard.
	u.fault = 0
	r.Segment(0, tagged(3, true, "no"))
	r.Segment(2, tagged(5000, true, "no"))
	r.End(3)
	if u.mem[3] != 0 || u.fault != 0 || len(u.delivered) > 0 || u.ended != 1 {
		t.Errorf("after a fault: memory %v, fault %v, delivered %q, ended %d", u.mem[:5], u.fault, u.delivered, u.ended)
	}
}

func TestFaultOfDelivery(t *testing.T) {
	r, u := newReceiver(1, 4)
	u.refuse = 0x0206
	seg := untagged(1, 0, true, "abc")
	r.Segment(0, seg)
	if u.fault != 0x0206 || !bytes.Equal(u.header, seg[:18]) || u.length != 21 {
		t.Errorf("fault %v, header % x, length %d", u.fault, u.header, u.length)
	}
}

func TestMSNWraps(t *testing.T) {
	// RFC 5041, Section 4.3: "The MSN value MUST wrap to 0 after a value of
	// 0xFFFFFFFF."
	r, u := newReceiver(3, 4)
	q := r.Queue(0)
	for q.Len() > 0 {
		q.Drop()
	}
	q.first = 0xFFFFFFFF
	for range 3 {
		q.Next().SGL = q.Next().SGL[:1]
		q.Next().SGL[0] = Mem{B: make([]byte, 4)}
		q.Post()
	}
	r.Segment(1, untagged(0, 0, true, "b"))
	r.Segment(0, untagged(0xFFFFFFFF, 0, true, "a"))
	r.Segment(2, untagged(1, 0, true, "c"))
	if want := []string{"U0/4294967295:a", "U0/0:b", "U0/1:c"}; !slices.Equal(u.delivered, want) {
		t.Errorf("delivered %q, want %q, fault %v", u.delivered, want, u.fault)
	}
}

func TestMixedControlOctets(t *testing.T) {
	r, u := newReceiver(1, 8)
	r.Segment(0, untagged(1, 0, false, "ab"))
	r.Segment(1, append(AppendHeader(nil, &Header{MSN: 1, MO: 2, Last: true, Ctrl: 8}), "cd"...))
	if u.fault == 0 || len(u.delivered) > 0 {
		t.Errorf("fault %v, delivered %q", u.fault, u.delivered)
	}
}

func TestReceiverDoesNotAllocate(t *testing.T) {
	u := &nullULP{}
	r := &Receiver{}
	r.Init(u)
	r.Queue(0).Init(4, 1)
	q := r.Queue(0)
	mem := make([]byte, 2000)
	seq := uint64(0)
	msn := uint32(1)
	var segs [4][]byte
	for i := range segs {
		segs[i] = make([]byte, 0, 500)
	}
	if n := testing.AllocsPerRun(1000, func() {
		b := q.Next()
		b.SGL = append(b.SGL[:0], Mem{B: mem})
		q.Post()
		for i := range segs {
			segs[i] = AppendHeader(segs[i][:0], &Header{MSN: msn, MO: uint32(i) * 400, Last: i == 3})
			segs[i] = segs[i][: UntaggedHeaderLen+400 : cap(segs[i])]
		}
		for _, i := range [...]int{2, 3, 0, 1} {
			if err := r.Segment(seq+uint64(i), segs[i]); err != nil {
				t.Fatal(err)
			}
		}
		seq += 4
		msn++
	}); n > 0 {
		t.Errorf("%v allocations per message of four reordered segments", n)
	}
	if u.n == 0 {
		t.Error("nothing delivered")
	}
}

// nullULP counts deliveries.
type nullULP struct{ n int }

func (u *nullULP) PlaceTagged(*Header, []byte) Fault                      { return 0 }
func (u *nullULP) PlaceRun(*Header, [][]byte, int) bool                   { return true }
func (u *nullULP) AdmitUntagged(*Header) (Admission, Fault)               { return AdmitBuffer, 0 }
func (u *nullULP) Deliver(_ *Header, _ uint32, _ *Buffer, _ uint32) Fault { u.n++; return 0 }
func (u *nullULP) Faulted(f Fault, header []byte, length int, b *Buffer)  { panic(f) }
func (u *nullULP) Ended()                                                 {}
