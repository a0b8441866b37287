package sctp

import (
	"math"
	"sync"
	"sync/atomic"
)

const (
	// memoryStep is how much more or less memory an association may hold than it has told
	// its transport: it counts as much from the beginning. So the count changes rarely, and
	// is never less than what is held.
	memoryStep = 4 << 10
	// memoryPart is how many times what an association may use has to be free, and
	// unprovenPart the same for one on probation. A threshold in proportion to what is
	// free, as switches have it for the memory that their queues share (Choudhury and
	// Hahne, 1998), leaves some for new associations.
	memoryPart   = 8
	unprovenPart = 64
	// memoryReserve is the part of the budget, a 64th, that is not for new associations.
	memoryReserve = 64
)

// memoryBudget is the memory of what the associations of a transport have received.
type memoryBudget struct {
	size int64 // math.MaxInt64 is no bound
	used atomic.Int64
	// enough is how much has to be free for windows to be opened that were made smaller,
	// noMemoryWanted if there are none.
	enough atomic.Int64

	mu       sync.Mutex
	squeezed map[*Association]bool // associations with reduced windows; guarded by mu
	opening  bool                  // a goroutine opens windows; guarded by mu
}

// noMemoryWanted is the value of memoryBudget.enough that is never reached.
const noMemoryWanted = math.MaxInt64

func (m *memoryBudget) init(size int) {
	switch {
	case size == 0:
		m.size = DefaultRecvMemory
	case size < 0:
		m.size = math.MaxInt64
	default:
		m.size = int64(size)
	}
	m.enough.Store(noMemoryWanted)
	m.squeezed = make(map[*Association]bool)
}

func (m *memoryBudget) free() int64 { return max(m.size-m.used.Load(), 0) }

// short reports whether there is no memory for new associations.
func (m *memoryBudget) short() bool { return m.free() < m.size/memoryReserve }

// joinMemory counts an association that was made. a.mu is held.
func (a *Association) joinMemory() {
	if !a.dead {
		a.counted = memoryStep
		a.t.memory.used.Add(memoryStep)
	}
}

// leaveMemory is the end of that: what has not been read yet is the reader's from now on.
// a.mu is held.
func (a *Association) leaveMemory() {
	m := &a.t.memory
	m.used.Add(-a.counted)
	a.counted = 0
	if a.squeezed {
		a.squeezed = false
		m.mu.Lock()
		delete(m.squeezed, a)
		m.mu.Unlock()
	}
	m.freed()
}

// countMemory tells the transport what the association holds. a.mu is held.
func (a *Association) countMemory() {
	d := int64(a.core.RecvMemory()) + memoryStep - a.counted
	if d < memoryStep && d > -memoryStep || a.counted == 0 {
		return
	}
	a.counted += d
	m := &a.t.memory
	if m.used.Add(d); d < 0 {
		m.freed()
	}
}

// shareMemory tells the association how much it may hold. a.mu is held.
func (a *Association) shareMemory() { a.shareFree(a.t.memory.free()) }

// shareFree is shareMemory when so much was free a moment ago.
func (a *Association) shareFree(free int64) {
	m := &a.t.memory
	part := int64(memoryPart)
	if a.admitBy != 0 {
		part = unprovenPart
	}
	less := a.core.SetRecvShare(int(min(free/part, math.MaxInt)))
	if !less && !a.squeezed {
		return
	}
	enough := m.enoughAfter(free)
	if less == a.squeezed && enough >= m.enough.Load() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.squeezed = less; less {
		m.squeezed[a] = true
		m.enough.Store(min(m.enough.Load(), enough))
	} else {
		delete(m.squeezed, a)
	}
	m.openLocked() // others may have left memory before they could see that it is wanted
}

// enoughAfter returns what enough is for windows that were made when so much was free: a
// sixteenth more. The step is small since a window that is closed stays closed until there
// is room for a quarter of the share: with a large one an association might not be told of
// memory that it could use, and wait for a probe of its peer.
func (m *memoryBudget) enoughAfter(free int64) int64 {
	return free + max(free/16, m.size/(4*memoryReserve))
}

// freed is called when memory was given back: if there is enough, windows are opened.
func (m *memoryBudget) freed() {
	if m.free() < m.enough.Load() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.openLocked()
}

// openLocked has windows opened if there is enough memory. m.mu is held.
func (m *memoryBudget) openLocked() {
	if !m.opening && m.free() >= m.enough.Load() {
		m.opening = true
		go m.open()
	}
}

// open tells the associations with reduced windows what they may hold now.
func (m *memoryBudget) open() {
	for {
		m.mu.Lock()
		free := m.free()
		m.enough.Store(noMemoryWanted)
		if len(m.squeezed) > 0 {
			m.enough.Store(m.enoughAfter(free))
		}
		list := make([]*Association, 0, len(m.squeezed))
		for a := range m.squeezed {
			list = append(list, a)
		}
		m.mu.Unlock()
		for _, a := range list {
			a.mu.Lock()
			if !a.dead {
				a.shareMemory()
			}
			a.goCallbacks(a.flushLocked(a.t.now()))
		}
		m.mu.Lock()
		if m.opening = m.free() >= m.enough.Load(); !m.opening {
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
	}
}
