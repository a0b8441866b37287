package main

import (
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestStartOn(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	where := func() (set unix.CPUSet) {
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Fatal(err)
		}
		return set
	}
	was := where()
	last := 0
	for cpu := range 1024 {
		if was.IsSet(cpu) {
			last = cpu
		}
	}
	failed := errors.New("not started")
	err := startOn([]int{last}, func() error {
		if set := where(); set.Count() != 1 || !set.IsSet(last) {
			t.Errorf("started on %v, want %d", set, last)
		}
		return failed
	})
	if err != failed {
		t.Errorf("error %v, want that of start", err)
	}
	if where() != was {
		t.Errorf("after it on %v, before on %v", where(), was)
	}
	if err := startOn([]int{1023}, func() error { return nil }); !was.IsSet(1023) && err == nil {
		t.Error("started on a processor that is not there")
	}
	if err := startOn(nil, func() error { return failed }); err != failed || where() != was {
		t.Errorf("not bound: %v", err)
	}
}
