package sctp

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/reasm"
)

// Whatever an association holds and however much was free when windows were last opened: as
// long as they are not opened again, one that stays closed leaves less than half of its share
// unused.
func TestClosedWindowsMissLittle(t *testing.T) {
	const size = 1 << 20
	m := &memoryBudget{}
	m.init(size)
	for free := int64(0); free <= size; free += size / 512 {
		most := min(m.enoughAfter(free)-1, size) // what may be free without windows being opened
		for held := 0; held <= size/memoryPart; held += 1000 {
			q := new(reasm.Queue).Init(reasm.Config{}, 0)
			q.SetLimit(4 << 20)
			q.Keep(held)
			q.Advertised(0)
			if q.SetShare(int(free / memoryPart)); q.WindowGrown() {
				continue
			}
			share := int(most / memoryPart)
			if unused := share - held; unused > max(share/2, 2*size/memoryReserve/memoryPart) {
				t.Fatalf("%d bytes were free, then %d: a window is closed for one that holds %d and may hold %d", free, most, held, share)
			}
		}
	}
}

// Memory that others leave while an association is about to have a smaller window, and cannot
// be seen to want more yet, has the window opened again.
func TestMemoryLeftMeanwhile(t *testing.T) {
	a := memPair(t)[1]
	m := &a.t.memory
	m.init(1 << 20)
	a.mu.Lock()
	a.shareFree(1000) // by now all is free
	a.mu.Unlock()
	for end := time.Now().Add(10 * time.Second); m.enough.Load() < m.size/2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("windows are opened when %d bytes are free, although %d are", m.enough.Load(), m.free())
		}
	}
}
