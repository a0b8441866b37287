package poll

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// As many goroutines spin as there are processors, whoever they poll for.
func TestSpinnersAreBounded(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	RefreshProcs()
	var a, b Spinning
	if a.Any() || Full() {
		t.Error("goroutines spin in the beginning")
	}
	if !a.Enter() || !b.Enter() || !a.Enter() {
		t.Fatal("there is no processor for three goroutines")
	}
	if a.Enter() || b.Enter() || Enter() || Spinners() != 3 || !Full() {
		t.Errorf("a fourth goroutine may spin, or %d are counted", Spinners())
	}
	runtime.GOMAXPROCS(4)
	if !b.Enter() || Procs() != 4 {
		t.Error("another processor is not noticed")
	}
	for range 2 {
		a.Leave()
		b.Leave()
	}
	if a.Any() || b.Any() || Spinners() != 0 {
		t.Errorf("left: %d spinners", Spinners())
	}
}

func TestSpinnersAtOnce(t *testing.T) {
	RefreshProcs()
	var most atomic.Int32
	var s Spinning
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if s.Enter() {
					if n := int32(Spinners()); n > most.Load() {
						most.Store(n)
					}
					s.Leave()
				}
			}
		})
	}
	wg.Wait()
	if int(most.Load()) > Procs() || Spinners() != 0 {
		t.Errorf("%d goroutines spun on %d processors; %d are left", most.Load(), Procs(), Spinners())
	}
}
