package cpuset

import (
	"runtime"
	"slices"
	"testing"
)

func TestCrowded(t *testing.T) {
	one, two, both, high := Set{1}, Set{2}, Set{3}, Set{0, 1}
	for _, tt := range []struct {
		name  string
		own   Set
		local []Set
		procs int
		want  bool
	}{
		{"as many as processors", both, []Set{both, both}, 2, false},
		{"more", both, []Set{both, both, both}, 2, true},
		{"each its own", one, []Set{one, two, high}, 1, false},
		{"two on one", one, []Set{one, one, two}, 1, true},
		{"alone on one", one, []Set{one}, 1, false},
		{"some of mine are another's", both, []Set{both, two}, 2, false},
		{"and one too many", both, []Set{both, two, one}, 2, true},
		{"of 65", high, []Set{high, {1, 1}, both}, 1, false},
		{"who uses one of two", both, []Set{both, both}, 1, true},
		{"alone, who uses one of two", both, []Set{both}, 1, false},
		{"not known", nil, []Set{nil, nil}, 2, false},
		{"not known, more", nil, []Set{nil, nil, nil}, 2, true},
		{"not known, one", nil, []Set{nil}, 1, true},
		{"not known of another", one, []Set{one, nil}, 1, true},
	} {
		before := slices.Clone(tt.own)
		if got := Crowded(tt.own, tt.local, tt.procs); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
		if !slices.Equal(before, tt.own) {
			t.Errorf("%s: changed", tt.name)
		}
	}
}

func TestProcessors(t *testing.T) {
	s, want := Allowed(), runtime.NumCPU()
	if runtime.GOOS != "linux" {
		want = 0 // it is not known where
	}
	if s.len() != want || want > 0 && s[len(s)-1] == 0 {
		t.Errorf("%x has %d processors, want %d", s, s.len(), want)
	}
}
