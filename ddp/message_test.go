package ddp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

type owner struct{ released int }

func (o *owner) Released(error) { o.released++ }

// cut makes all segments of a message.
func cut(t *testing.T, m *Message, mulpdu int) (segs [][]byte, owners []Owner) {
	t.Helper()
	for {
		var s Segment
		last := m.Next(mulpdu, &s)
		b := s.AppendTo(nil)
		if len(b) > mulpdu || len(b) != s.Len() {
			t.Fatalf("segment of %d octets (Len %d), MULPDU %d", len(b), s.Len(), mulpdu)
		}
		if s.Owner == nil {
			t.Fatal("segment without owner")
		}
		segs, owners = append(segs, b), append(owners, s.Owner)
		if last {
			return segs, owners
		}
	}
}

func TestSegmentationExamples(t *testing.T) {
	// RFC 5041, Section 5.2.
	data := make([]byte, 2048)
	for i := range data {
		data[i] = byte(i)
	}
	o := &owner{}
	t.Run("untagged", func(t *testing.T) {
		m := &Message{Header: Header{QN: 0, MSN: 1, Ctrl: 0x43}, SGL: []Mem{{B: data}}, Len: 2048, Owner: o, Credit: o}
		segs, _ := cut(t, m, 1500)
		want := []struct {
			mo   uint32
			n    int
			last bool
		}{{0, 1482, false}, {1482, 566, true}}
		if len(segs) != 2 {
			t.Fatalf("%d segments, want 2", len(segs))
		}
		for i, w := range want {
			h, p, _ := ParseHeader(segs[i])
			if h.Tagged || h.MO != w.mo || len(p) != w.n || h.Last != w.last || h.MSN != 1 || h.Ctrl != 0x43 {
				t.Errorf("segment %d: %+v with %d octets", i, h, len(p))
			}
			if !bytes.Equal(p, data[w.mo:int(w.mo)+w.n]) {
				t.Errorf("segment %d: wrong payload", i)
			}
		}
	})
	t.Run("tagged", func(t *testing.T) {
		m := &Message{Header: Header{Tagged: true, STag: 7, TO: 16384}, SGL: []Mem{{B: data}}, Len: 2048, Owner: o, Credit: o}
		segs, _ := cut(t, m, 1500)
		want := []struct {
			to   uint64
			n    int
			last bool
		}{{16384, 1486, false}, {17870, 562, true}}
		if len(segs) != 2 {
			t.Fatalf("%d segments, want 2", len(segs))
		}
		for i, w := range want {
			h, p, _ := ParseHeader(segs[i])
			if !h.Tagged || h.TO != w.to || len(p) != w.n || h.Last != w.last || h.STag != 7 {
				t.Errorf("segment %d: %+v with %d octets", i, h, len(p))
			}
		}
	})
	t.Run("empty", func(t *testing.T) {
		// "A zero-length DDP Message ... MUST consume exactly one DDP Segment."
		for _, tagged := range []bool{false, true} {
			segs, _ := cut(t, &Message{Header: Header{Tagged: tagged}, Owner: o, Credit: o}, 1500)
			h, p, _ := ParseHeader(segs[0])
			if len(segs) != 1 || !h.Last || len(p) != 0 {
				t.Errorf("tagged=%v: %d segments, first %+v", tagged, len(segs), h)
			}
		}
	})
}

// randomSGL makes a list of n elements, of the sizes that size returns, and says what is
// in them.
func randomSGL(rng *rand.Rand, n int, size func() int) (all []byte, sgl []Mem) {
	for range n {
		b := make([]byte, size())
		for k := range b {
			b[k] = byte(rng.Uint32())
		}
		all, sgl = append(all, b...), append(sgl, Mem{B: b})
	}
	return all, sgl
}

func TestSegmentsReassemble(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range 500 {
		want, sgl := randomSGL(rng, rng.IntN(6), func() int { return rng.IntN(3000) })
		ref, credit := &owner{}, &owner{}
		m := &Message{Header: Header{Tagged: i%2 == 0, TO: 100}, SGL: sgl, Len: uint32(len(want)), Copy: i%3 == 0, Owner: ref, Credit: credit}
		segs, owners := cut(t, m, 20+rng.IntN(5000))
		var got []byte
		for k, s := range segs {
			h, p, _ := ParseHeader(s)
			off := int(h.MO)
			if h.Tagged {
				off = int(h.TO) - 100
			}
			if off != len(got) || h.Last != (k == len(segs)-1) {
				t.Fatalf("message %d segment %d: offset %d, last %v", i, k, off, h.Last)
			}
			got = append(got, p...)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("message %d differs", i)
		}
		for _, o := range owners {
			o.Released(nil)
		}
		if ref.released+credit.released != len(segs) {
			t.Fatalf("message %d: %d segments, %d released", i, len(segs), ref.released+credit.released)
		}
		if m.Copy && ref.released > 0 {
			t.Fatalf("message %d references memory it was to copy", i)
		}
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	data := make([]byte, 10000)
	o := &owner{}
	sgl := []Mem{{B: data[:5000]}, {B: data[5000:]}}
	var s Segment
	if n := testing.AllocsPerRun(100, func() {
		m := Message{Header: Header{Tagged: true}, SGL: sgl, Len: 10000, Owner: o, Credit: o}
		for {
			last := m.Next(1426, &s)
			s.Owner.Released(nil)
			if last {
				return
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations per message", n)
	}
}

func ExampleMessage_Next() {
	// The second example of RFC 5041, Section 5.2.
	m := Message{
		Header: Header{Tagged: true, STag: 0x1234, TO: 16384},
		SGL:    []Mem{{B: make([]byte, 2048)}},
		Len:    2048,
		Owner:  &owner{}, Credit: &owner{},
	}
	for last := false; !last; {
		var s Segment
		last = m.Next(1500, &s)
		h, payload, _ := ParseHeader(s.AppendTo(nil))
		fmt.Println(h.TO, len(payload), h.Last)
	}
	// Output:
	// 16384 1486 false
	// 17870 562 true
}

// batchOwner counts segments, and how often it was told.
type batchOwner struct{ owner, calls owner }

func (o *batchOwner) Released(err error) { o.ReleasedN(1, err) }

func (o *batchOwner) ReleasedN(n int, _ error) {
	o.owner.released += n
	o.calls.released++
}

func TestReleaseN(t *testing.T) {
	var one owner
	var many batchOwner
	ReleaseN(&one, 3, nil)
	ReleaseN(&many, 3, nil)
	if one.released != 3 || many.owner.released != 3 || many.calls.released != 1 {
		t.Errorf("released %d, and %d in %d calls, want 3, and 3 in 1", one.released, many.owner.released, many.calls.released)
	}
}
