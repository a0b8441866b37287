package ddp

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// segments returns the segments of a Train, and checks their numbers.
func (t *Train) segments(tb testing.TB, first uint16) (segs [][]byte) {
	tb.Helper()
	frames := t.Frames([]byte("before"), first)[6:]
	n := t.Segments()
	size := len(frames) / n
	if len(frames)%n > 0 || size > MaxTrainFrame {
		tb.Fatalf("%d frames in %d octets", n, len(frames))
	}
	for i := range n {
		f := frames[i*size:][:size]
		if ssn := binary.BigEndian.Uint16(f); ssn != first+uint16(i) {
			tb.Errorf("frame %d begins with %d, the first one with %d", i, ssn, first)
		}
		segs = append(segs, append(bytes.Clone(f[Headroom:]), t.Body[i*t.Unit:min((i+1)*t.Unit, len(t.Body))]...))
	}
	return segs
}

// Messages that are cut into batches, as far as they can be, have the same payload at the
// same places as those that are cut into segments.
func TestBatchesAreSegments(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	batches := 0
	for i := range 2000 {
		want, sgl := randomSGL(rng, 1+rng.IntN(4), func() int { return rng.IntN(2) * rng.IntN(20_000) })
		ref, credit := &owner{}, &owner{}
		m := &Message{Header: Header{Tagged: i%2 == 0, TO: 100, STag: 7, MSN: 9, Ctrl: 0x43}, SGL: sgl, Len: uint32(len(want)),
			Copy: rng.IntN(8) == 0, Owner: ref, Credit: credit}
		header, mulpdu := m.Header, 70+rng.IntN(3000)
		var got []byte
		for last := false; !last; {
			var segs [][]byte
			var tr Train
			has, most := m.HasTrain(mulpdu), rng.IntN(12)
			n, end := m.NextTrain(mulpdu, most, &tr)
			if n > 0 != (has && most > 1) {
				t.Fatalf("a batch of %d, of up to %d, where HasTrain says %v", n, most, has)
			}
			if n > 0 {
				batches++
				if n < 2 || n > most || n != tr.Segments() || tr.Owner != ref || tr.Unit != mulpdu-header.Len() || tr.Urgent || m.Copy {
					t.Fatalf("%d segments, of up to %d: %+v", n, most, tr)
				}
				segs, last = tr.segments(t, uint16(rng.Uint32())), end
			} else {
				var s Segment
				last = m.Next(mulpdu, &s)
				segs = [][]byte{s.AppendTo(nil)}
			}
			for k, s := range segs {
				h, p, f := ParseHeader(s)
				off := int(h.MO)
				if h.Tagged {
					off = int(h.TO) - 100
				}
				if f != 0 || len(s) > mulpdu || off != len(got) || h.Last != (last && k == len(segs)-1) {
					t.Fatalf("message %d: offset %d of %d, last %v, fault %v", i, off, len(got), h.Last, f)
				}
				h.MO, h.TO, h.Last = header.MO, header.TO, false
				if h.Tagged {
					h.MSN = header.MSN // is not told
				} else {
					h.TO, h.STag = header.TO, header.STag
				}
				if h != header {
					t.Fatalf("header %+v, want %+v", h, header)
				}
				got = append(got, p...)
			}
		}
		if !bytes.Equal(got, want) || int(m.Sent()) != len(want) {
			t.Fatalf("message %d: %d octets of %d, or others", i, len(got), len(want))
		}
	}
	if batches < 1000 {
		t.Errorf("%d batches", batches)
	}
}

// What a Train may have is bounded.
func TestBatchLimits(t *testing.T) {
	mem := make([]byte, 4<<20)
	for _, tt := range []struct{ mulpdu, most, want int }{
		{1000, 1 << 20, MaxTrain},
		{1000, MaxTrain - 1, MaxTrain - 1},
		{1000, 1, 0},
		{maxBatchBytes/4 + TaggedHeaderLen, 1 << 20, 4},
		{maxBatchBytes + TaggedHeaderLen, 1 << 20, 2},
		{maxBatchBytes * 2, 1 << 20, 2},
		{maxFrame - Headroom, 1 << 20, 0}, // the payload is in frames
		{maxFrame - Headroom + 1, 1 << 20, MaxTrain},
	} {
		m := &Message{Header: Header{Tagged: true}, SGL: []Mem{{B: mem}}, Len: uint32(len(mem))}
		var tr Train
		if n, _ := m.NextTrain(tt.mulpdu, tt.most, &tr); n != tt.want {
			t.Errorf("MULPDU %d, up to %d: %d segments, want %d", tt.mulpdu, tt.most, n, tt.want)
		}
	}
	const inFrame = maxFrame - Headroom - TaggedHeaderLen
	for _, tt := range []struct{ over, want int }{{0, 5}, {1, 5}, {inFrame, 5}, {inFrame + 1, 6}} {
		m := &Message{Header: Header{Tagged: true}, SGL: []Mem{{B: mem[:5*500+tt.over]}}, Len: uint32(5*500 + tt.over)}
		var tr Train
		if n, last := m.NextTrain(500+TaggedHeaderLen, 100, &tr); n != tt.want || last != (tt.over == 0 || n > 5) {
			t.Errorf("%d bytes over: %d segments, last %v; want %d", tt.over, n, last, tt.want)
		}
	}
	frames := make([]byte, 0, MaxTrain*MaxTrainFrame)
	tr := Train{Body: mem[:1000], Unit: 10}
	if n := testing.AllocsPerRun(100, func() { tr.Frames(frames, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
