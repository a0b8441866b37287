package ddp

import (
	"testing"
)

// TestHeadersAgreeInAMessage: RFC 5041, Sections 4.2 and 4.3: what the ULP said is
// in every segment of a message, the same in each; reserved bits are zero.
func TestHeadersAgreeInAMessage(t *testing.T) {
	o := &owner{}
	for _, h := range []Header{
		{Tagged: true, Ctrl: 0x55, STag: 0xA1B2C3D4, TO: 1 << 40},
		{Ctrl: 0x66, Word: 0x01020304, QN: 3, MSN: 0xFFFFFFFF},
	} {
		segs, _ := cut(t, &Message{Header: h, SGL: []Mem{{B: make([]byte, 700)}}, Len: 700, Owner: o, Credit: o}, 200)
		at := 0
		for i, s := range segs {
			want := h
			want.Last = i == len(segs)-1
			if want.Tagged {
				want.TO += uint64(at)
			} else {
				want.MO = uint32(at)
			}
			got, p, f := ParseHeader(s)
			if got != want || f != 0 || s[0]&0x3C != 0 {
				t.Errorf("segment %d: %+v, fault %v, first octet %02x, want %+v", i, got, f, s[0], want)
			}
			at += len(p)
		}
		if at != 700 || len(segs) < 4 {
			t.Errorf("%d octets in %d segments", at, len(segs))
		}
	}
}

// headerULP keeps the headers that it is given with messages.
type headerULP struct {
	testULP
	headers []Header
	lengths []uint32
}

func (u *headerULP) Deliver(h *Header, n uint32, b *Buffer, length uint32) Fault {
	u.headers, u.lengths = append(u.headers, *h), append(u.lengths, length)
	return 0
}

// TestDeliveryTellsTheHeader: RFC 5041, Sections 4.2, 4.3 and 5.4: the ULP is given
// STag and RsvdULP with a message, and the length of an untagged one.
func TestDeliveryTellsTheHeader(t *testing.T) {
	u := &headerULP{testULP: testULP{mem: make([]byte, 100)}}
	r := &Receiver{}
	r.Init(u)
	for q := range Queues {
		r.Queue(q).Init(1, 1)
	}
	b := r.Queue(0).Next()
	b.SGL = append(b.SGL, Mem{B: make([]byte, 10)})
	r.Queue(0).Post()
	want := []Header{{Tagged: true, Last: true, Ctrl: 0x55, STag: 0xA1B2C3D4, TO: 9}, {Last: true, Ctrl: 0x66, Word: 0x01020304, MSN: 1, MO: 2}}
	first := want[1]
	first.MO, first.Last = 0, false
	for i, s := range [][]byte{
		append(AppendHeader(nil, &want[0]), "abc"...), append(AppendHeader(nil, &first), "de"...), append(AppendHeader(nil, &want[1]), "fgh"...),
	} {
		if err := r.Segment(uint64(i), s); err != nil {
			t.Fatal(err)
		}
	}
	if len(u.headers) != 2 || u.headers[0].STag != want[0].STag || u.headers[0].Ctrl != want[0].Ctrl ||
		u.headers[1].Word != want[1].Word || u.headers[1].Ctrl != want[1].Ctrl || u.lengths[1] != 5 {
		t.Errorf("delivered %+v with lengths %v, fault %v", u.headers, u.lengths, u.fault)
	}
}
