//go:build linux && cgo

package main

import (
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
)

func TestEntries(t *testing.T) {
	var e entries
	stored := func(h abi.Handle) (value int, ok bool) {
		v := *e.at(h)
		return int(uint32(v)), abi.Handle(v>>32) == h && h != 0
	}
	const world, first, second = abi.Handle(257), abi.Handle(1<<24 | 1), abi.Handle(1<<24 | 1<<16 | 1)
	e.put(world, 3)
	e.put(first, 0)
	for h, want := range map[abi.Handle]int{world: 3, first: 0} {
		if got, ok := stored(h); !ok || got != want {
			t.Errorf("handle %#x: %d, %v, want %d", h, got, ok, want)
		}
	}
	if _, ok := stored(0); ok {
		t.Error("the handle 0 has a value")
	}

	// Another generation of an index takes the entry, and is not dropped with the old one.
	e.put(second, 7)
	if _, ok := stored(first); ok {
		t.Error("a handle still has a value after another took its entry")
	}
	e.drop(first)
	if got, ok := stored(second); !ok || got != 7 {
		t.Errorf("dropping a handle took the value of another: %d, %v", got, ok)
	}
	e.drop(second)
	if _, ok := stored(second); ok {
		t.Error("a dropped handle has a value")
	}

	// What does not fit is asked for in Go.
	for _, value := range []int{-1, 1 << 31} {
		e.put(second, value)
		if got, ok := stored(second); ok {
			t.Errorf("%d is stored as %d", value, got)
		}
	}
}
