package affinity

import (
	"errors"
	"runtime"
	"slices"
	"testing"
)

func TestSet(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	was := Allowed()
	if runtime.GOOS != "linux" {
		if err := Set(0); was != nil || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v, %v", was, err)
		}
		return
	}
	if len(was) != runtime.NumCPU() || !slices.IsSorted(was) {
		t.Fatalf("%v, want %d processors", was, runtime.NumCPU())
	}
	last := was[len(was)-1]
	if err := Set(last); err != nil || !slices.Equal(Allowed(), []int{last}) {
		t.Errorf("after Set of %d: %v, %v", last, Allowed(), err)
	}
	if err := Set(1 << 20); err == nil {
		t.Error("a processor that is not there was set")
	}
	if err := Set(was...); err != nil || !slices.Equal(Allowed(), was) {
		t.Errorf("after Set of %v: %v, %v", was, Allowed(), err)
	}
}
