package seq

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTSNSetAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := 64 << rapid.IntRange(0, 12).Draw(t, "log size")
		base := TSN(rapid.Uint32().Draw(t, "base"))
		s, model := NewSet(size), map[TSN]bool{}
		off := rapid.OneOf(rapid.IntRange(0, size-1), rapid.IntRange(0, 63))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			x := base + TSN(off.Draw(t, "tsn"))
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				s.Remove(x)
				delete(model, x)
			case 1:
				s = s.Grow(size, base, base+TSN(size))
			default:
				s.Add(x)
				model[x] = true
			}
			from := base + TSN(off.Draw(t, "from"))
			want, wantOK := TSN(0), false
			for m := range model {
				if from.LessEq(m) && (!wantOK || m.Less(want)) {
					want, wantOK = m, true
				}
			}
			if got, ok := s.Next(from, base+TSN(size)); ok != wantOK || ok && got != want {
				t.Fatalf("next(%d) = %d %v, want %d %v", from, got, ok, want, wantOK)
			}
			if s.n != len(model) || s.Has(x) != model[x] {
				t.Fatalf("size %d has(%d) %v, want %d %v", s.n, x, s.Has(x), len(model), model[x])
			}
		}
	})
}
