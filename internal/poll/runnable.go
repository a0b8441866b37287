package poll

import (
	"runtime/metrics"
	"sync"
)

// runnable is the memory that Runnable reads the metric into.
var runnable = struct {
	mu     sync.Mutex
	sample [1]metrics.Sample // guarded by mu
}{sample: [1]metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}}

// Runnable reports whether goroutines of the process wait for a processor. If another
// goroutine asks at the same time it reports false. It does not allocate or block.
//
// A goroutine that goes on polling calls it before runtime.Gosched, which is expensive where
// none wait: the runtime wakes a thread for the goroutine that yields, which may continue on
// it on another processor, or compete for one with the threads of the peer.
func Runnable() bool {
	if !runnable.mu.TryLock() {
		return false
	}
	defer runnable.mu.Unlock()
	s := runnable.sample[:]
	metrics.Read(s)
	return s[0].Value.Kind() != metrics.KindUint64 || s[0].Value.Uint64() > 0
}
