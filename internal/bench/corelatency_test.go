package bench

import (
	"errors"
	"runtime"
	"testing"
	"time"
)

func TestHop(t *testing.T) {
	start := time.Now()
	d := CoreLatency()
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	t.Logf("%.1f ns", d)
	if d < 0 || d > float64(latencyLimit) || d > 0 && runtime.NumCPU() < 2 {
		t.Errorf("%v ns", d)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if d := CoreLatency(); d != 0 {
		t.Errorf("with one processor: %v ns", d)
	}
}

func TestCoreLatencies(t *testing.T) {
	var h CoreLatencies
	if h.String() != "" {
		t.Error("something was seen")
	}
	for _, tt := range []struct {
		before, after float64
		near          bool
	}{
		{40, 45, true}, {45, 120, false}, {45, 99, true}, {180, 40, false}, {0, 0, true},
		{15, 75, true}, // one of few that was short makes nothing far
		{41, 104, false},
	} {
		if near := h.count(h.note(tt.before), h.note(tt.after)); near != tt.near {
			t.Errorf("%v ns before and %v after: near %v", tt.before, tt.after, near)
		}
	}
	want := "A cache line took 15 to 180 ns between processors; before or after 3 runs, which were repeated if possible, more than 2.5 times the 40 ns that the nearest quarter takes."
	if s := h.String(); s != want {
		t.Errorf("%s\nwant %s", s, want)
	}
}

func TestHopsRun(t *testing.T) {
	var h CoreLatencies // of one processor, for the distance not to matter
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, tt := range []struct {
		again int // how many times
		err   error
		runs  int
	}{{0, nil, 1}, {2, nil, 3}, {9, nil, 4}, {9, errors.ErrUnsupported, 1}} {
		runs := 0
		err := h.Run(4, func() (bool, error) {
			runs++
			return runs <= tt.again, tt.err
		})
		if err != tt.err || runs != tt.runs {
			t.Errorf("%+v: %d runs, %v", tt, runs, err)
		}
	}
}
