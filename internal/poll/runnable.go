package poll

import (
	"runtime/metrics"
	"sync"
)

// runnable is what Runnable asks with.
var runnable = struct {
	mu     sync.Mutex
	sample [1]metrics.Sample // guarded by mu
}{sample: [1]metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}}

// Runnable reports whether goroutines of the process wait for a processor. If another
// goroutine asks at the same time it reports false.
//
// One that goes on without blocking calls it before runtime.Gosched, which is not cheap
// where it is for nothing: the runtime wakes a thread up for the goroutine that yields,
// which may go on with it on another processor of the system, or compete for one with
// the threads of whoever is waited for.
func Runnable() bool {
	if !runnable.mu.TryLock() {
		return false
	}
	defer runnable.mu.Unlock()
	s := runnable.sample[:]
	metrics.Read(s)
	return s[0].Value.Kind() != metrics.KindUint64 || s[0].Value.Uint64() > 0
}
