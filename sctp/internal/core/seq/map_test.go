package seq

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weftstack/weft/sctp/wire"
)

func newMap(initial TSN) *Map {
	m := new(Map)
	m.Init(initial)
	return m
}

func TestTSNMapReportsGapsAndDuplicates(t *testing.T) {
	m := newMap(10)
	// RFC 9260, Section 3.3.4: the example of gap ack blocks.
	for _, n := range []TSN{10, 11, 12, 14, 15, 17} {
		if got := m.Observe(n); got != New {
			t.Fatalf("observe(%d) = %d, want new", n, got)
		}
	}
	if m.CumTSN() != 12 || m.Highest() != 17 || !m.HasGaps() {
		t.Errorf("cum %d highest %d gaps %v, want 12 17 true", m.CumTSN(), m.Highest(), m.HasGaps())
	}
	want := []wire.GapBlock{{Start: 2, End: 3}, {Start: 5, End: 5}}
	if got := m.AppendGaps(nil, 100); !slices.Equal(got, want) {
		t.Errorf("gaps %v, want %v", got, want)
	}
	// Section 6.7: lowest first when there is no room for all.
	if got := m.AppendGaps(nil, 1); !slices.Equal(got, want[:1]) {
		t.Errorf("gaps bounded to one %v, want %v", got, want[:1])
	}
	if got := m.AppendGaps(nil, 0); len(got) != 0 {
		t.Errorf("gaps bounded to none %v", got)
	}
	if got := m.Observe(11); got != Old {
		t.Errorf("observe(11) = %d, want old", got)
	}
	if got := m.Observe(15); got != Duplicate {
		t.Errorf("observe(15) = %d, want duplicate", got)
	}
	if got := m.Duplicates(); !slices.Equal(got, []uint32{11, 15}) {
		t.Errorf("duplicates %v, want [11 15]", got)
	}
	m.ClearDuplicates()
	if len(m.Duplicates()) != 0 {
		t.Error("duplicates not cleared")
	}
	m.Observe(13)
	m.Observe(16)
	if m.CumTSN() != 17 || m.HasGaps() {
		t.Errorf("after filling: cum %d gaps %v, want 17 false", m.CumTSN(), m.HasGaps())
	}
}

func TestTSNMapLimits(t *testing.T) {
	m := newMap(0xffff0000 - 20) // the last offset falls within a word
	cum := m.CumTSN()
	if got := m.Observe(cum + MaxWindow + 1); got != OutOfWindow {
		t.Errorf("one beyond the window = %d, want out of window", got)
	}
	if got := m.Observe(cum + MaxWindow); got != New {
		t.Errorf("last of the window = %d, want new", got)
	}
	if got := 64 * len(m.ring); got != MaxWindow {
		t.Errorf("ring of %d bits, want %d", got, MaxWindow)
	}
	// A gap ack block cannot name what is further than 65535 away.
	if got := m.AppendGaps(nil, 10); len(got) != 0 {
		t.Errorf("gaps %v, want none that fit", got)
	}
	m.Observe(cum + maxGapOffset)
	if got, want := m.AppendGaps(nil, 10), []wire.GapBlock{{Start: maxGapOffset, End: maxGapOffset}}; !slices.Equal(got, want) {
		t.Errorf("gaps %v, want %v", got, want)
	}
	for off := TSN(maxGapOffset - 100); off < maxGapOffset+5; off++ {
		m.Observe(cum + off)
	}
	if got, want := m.AppendGaps(nil, 10), []wire.GapBlock{{Start: maxGapOffset - 100, End: maxGapOffset}}; !slices.Equal(got, want) {
		t.Errorf("gaps %v, want %v", got, want)
	}
	m.ClearDuplicates()
	for range maxDuplicates + 10 {
		m.Observe(cum)
	}
	if got := len(m.Duplicates()); got != maxDuplicates {
		t.Errorf("%d duplicates listed, want %d", got, maxDuplicates)
	}
}

func TestTSNMapForward(t *testing.T) {
	// RFC 3758, Section 3.6: the example.
	m := newMap(103)
	for _, n := range []TSN{104, 105, 107} {
		m.Observe(n)
	}
	if !m.Forward(103) || m.CumTSN() != 105 || m.Highest() != 107 {
		t.Errorf("cum %d highest %d, want 105 107", m.CumTSN(), m.Highest())
	}
	if m.Forward(105) || m.Forward(90) {
		t.Error("out-of-date FORWARD-TSN moved the tracker")
	}
	if got := m.Observe(103); got != Old {
		t.Errorf("skipped TSN = %d, want old", got)
	}
	far := m.CumTSN() + 1<<30 // much more than the window
	if !m.Forward(far) || m.CumTSN() != far || m.HasGaps() {
		t.Errorf("cum %d gaps %v, want %d false", m.CumTSN(), m.HasGaps(), far)
	}
	if m.Observe(far+2) != New || m.Check(far+1) != New {
		t.Error("bits left over after a far FORWARD-TSN")
	}
}

// tsnModel is the obvious receive tracker.
type tsnModel struct {
	cum TSN
	got map[TSN]bool
}

func (m *tsnModel) advance() {
	for m.got[m.cum+1] {
		m.cum++
		delete(m.got, m.cum)
	}
}

func (m *tsnModel) observe(t TSN) Result {
	switch {
	case t.LessEq(m.cum):
		return Old
	case t.Sub(m.cum) > MaxWindow:
		return OutOfWindow
	case m.got[t]:
		return Duplicate
	}
	m.got[t] = true
	m.advance()
	return New
}

func (m *tsnModel) gaps() []wire.GapBlock {
	var offs []int
	for t := range m.got {
		if d := t.Sub(m.cum); d <= maxGapOffset {
			offs = append(offs, d)
		}
	}
	slices.Sort(offs)
	var out []wire.GapBlock
	for _, o := range offs {
		if n := len(out); n > 0 && int(out[n-1].End) == o-1 {
			out[n-1].End++
		} else {
			out = append(out, wire.GapBlock{Start: uint16(o), End: uint16(o)})
		}
	}
	return out
}

func TestTSNMapAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		initial := TSN(rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(0xfffffe00, 0xffffffff)).Draw(t, "initial"))
		m, model := newMap(initial), &tsnModel{initial - 1, map[TSN]bool{}}
		spread := rapid.SampledFrom([]int{5, 100, 300, 9000, 2 * MaxWindow}).Draw(t, "spread")
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch rapid.IntRange(0, 20).Draw(t, "step") {
			case 0:
				to := model.cum + TSN(rapid.IntRange(-3, spread).Draw(t, "forward"))
				moved := model.cum.Less(to)
				if got := m.Forward(to); got != moved {
					t.Fatalf("forward(%d) = %v, want %v", to, got, moved)
				}
				if moved {
					for n := range model.got {
						if n.LessEq(to) {
							delete(model.got, n)
						}
					}
					model.cum = to
					model.advance()
				}
			case 1: // a run, as of a burst
				at := model.cum + TSN(rapid.IntRange(1, spread).Draw(t, "at"))
				for i := range TSN(rapid.IntRange(1, 200).Draw(t, "run")) {
					if got, want := m.Observe(at+i), model.observe(at+i); got != want {
						t.Fatalf("observe(%d) = %d, want %d", at+i, got, want)
					}
				}
			default:
				n := model.cum + TSN(rapid.IntRange(-2, spread).Draw(t, "tsn"))
				c := m.Check(n)
				got, want := m.Observe(n), model.observe(n)
				if got != want || c != want {
					t.Fatalf("observe(%d) = %d, check %d, want %d", n, got, c, want)
				}
			}
			if m.CumTSN() != model.cum {
				t.Fatalf("cum = %d, want %d", m.CumTSN(), model.cum)
			}
			if got := m.HasGaps(); got != (len(model.got) > 0) {
				t.Fatalf("hasGaps = %v, with %d out of order", got, len(model.got))
			}
			want := model.gaps()
			limit := rapid.IntRange(0, 50).Draw(t, "limit")
			if got := m.AppendGaps(nil, limit); !slices.Equal(got, want[:min(limit, len(want))]) {
				t.Fatalf("gaps = %v, want %v of %d", got, want, limit)
			}
		}
	})
}

func TestTSNMapDoesNotAllocate(t *testing.T) {
	m := newMap(0)
	gaps := make([]wire.GapBlock, 0, 100)
	n := TSN(0)
	step := func() {
		for i := range TSN(64) {
			if i%7 != 0 {
				m.Observe(n + i)
			}
		}
		gaps = m.AppendGaps(gaps[:0], 100)
		for i := TSN(0); i < 64; i += 7 {
			m.Observe(n + i)
		}
		n += 64
	}
	if got := testing.AllocsPerRun(200, step); got != 0 {
		t.Errorf("%v allocations per 64 TSNs, want 0", got)
	}
}

func BenchmarkTSNMap(b *testing.B) {
	for _, bm := range []struct {
		name string
		gap  TSN
	}{{"order=straight", 0}, {"order=swapped", 1}, {"order=gap1000", 1000}} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			m := newMap(0)
			var n TSN
			for b.Loop() {
				if bm.gap == 0 {
					m.Observe(n)
				} else {
					m.Observe(n/(bm.gap+1)*(bm.gap+1) + (n+1)%(bm.gap+1))
				}
				n++
			}
		})
	}
	b.Run("gaps=1000", func(b *testing.B) {
		b.ReportAllocs()
		m := newMap(0)
		for n := TSN(1); n < 2000; n += 2 {
			m.Observe(n)
		}
		dst := make([]wire.GapBlock, 0, 300)
		for b.Loop() {
			dst = m.AppendGaps(dst[:0], 300)
		}
	})
}
