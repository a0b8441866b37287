package poll

import (
	"runtime"
	"testing"
	"time"
)

func TestRunnable(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for end := time.Now().Add(time.Minute); Runnable(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("goroutines wait all the time")
		}
	}
	done := make(chan struct{})
	go close(done)
	if !Runnable() {
		t.Error("a goroutine that waits for the processor was not found")
	}
	<-done
	runnable.mu.Lock()
	defer runnable.mu.Unlock()
	go func() {}()
	if Runnable() {
		t.Error("two looked at a time")
	}
}

func TestRunnableDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Runnable() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
