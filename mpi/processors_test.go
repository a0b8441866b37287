package mpi

import (
	"runtime"
	"slices"
	"testing"
)

func TestCrowded(t *testing.T) {
	one, two, both, high := cpuSet{1}, cpuSet{2}, cpuSet{3}, cpuSet{0, 1}
	for _, tt := range []struct {
		name  string
		own   cpuSet
		local []cpuSet
		procs int
		want  bool
	}{
		{"as many as processors", both, []cpuSet{both, both}, 2, false},
		{"more", both, []cpuSet{both, both, both}, 2, true},
		{"each its own", one, []cpuSet{one, two, high}, 1, false},
		{"two on one", one, []cpuSet{one, one, two}, 1, true},
		{"alone on one", one, []cpuSet{one}, 1, false},
		{"some of mine are another's", both, []cpuSet{both, two}, 2, false},
		{"and one too many", both, []cpuSet{both, two, one}, 2, true},
		{"of 65", high, []cpuSet{high, {1, 1}, both}, 1, false},
		{"who uses one of two", both, []cpuSet{both, both}, 1, true},
		{"alone, who uses one of two", both, []cpuSet{both}, 1, false},
		{"not known", nil, []cpuSet{nil, nil}, 2, false},
		{"not known, more", nil, []cpuSet{nil, nil, nil}, 2, true},
		{"not known, one", nil, []cpuSet{nil}, 1, true},
		{"not known of another", one, []cpuSet{one, nil}, 1, true},
	} {
		before := slices.Clone(tt.own)
		if got := crowded(tt.own, tt.local, tt.procs); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
		if !slices.Equal(before, tt.own) {
			t.Errorf("%s: changed", tt.name)
		}
	}
}

func TestProcessors(t *testing.T) {
	s, want := processors(), runtime.NumCPU()
	if runtime.GOOS != "linux" {
		want = 0 // it is not known where
	}
	if s.len() != want || want > 0 && s[len(s)-1] == 0 {
		t.Errorf("%x has %d processors, want %d", s, s.len(), want)
	}
	c, err := parseBusinessCard(businessCard{CPUs: s}.String())
	if err != nil || !slices.Equal(c.CPUs, s) {
		t.Errorf("%x is told as %x: %v", s, c.CPUs, err)
	}
}
