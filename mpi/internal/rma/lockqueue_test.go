package rma

import (
	"fmt"
	"testing"
)

func TestLockQueue(t *testing.T) {
	var l lockQueue
	l.init(5)
	names := func(g []lockRequest) (s string) {
		for _, r := range g {
			s += fmt.Sprint(r.origin)
		}
		return s
	}
	take := func(origin int, mode LockMode, want string) {
		t.Helper()
		if g, ok := l.acquire(origin, mode, 1); !ok || names(g) != want {
			t.Errorf("rank %d asks: granted to %q (%v), want %q", origin, names(g), ok, want)
		}
	}
	give := func(origin int, want string) {
		t.Helper()
		if g := names(l.release(origin)); g != want {
			t.Errorf("rank %d gives back: granted to %q, want %q", origin, g, want)
		}
	}
	take(0, LockShared, "0")
	take(1, LockShared, "1")
	take(2, LockExclusive, "")
	take(3, LockShared, "") // does not pass the exclusive one
	take(4, LockShared, "")
	if _, ok := l.acquire(3, LockShared, 1); ok {
		t.Error("a second request of rank 3 was taken")
	}
	if _, ok := l.acquire(0, LockShared, 1); ok {
		t.Error("a request of a holder was taken")
	}
	give(0, "")
	give(1, "2")
	give(3, "") // withdrawn
	give(2, "4")
	give(4, "")
	give(4, "")
	take(2, LockExclusive, "2")
}
