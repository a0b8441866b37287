package mpi

import "sync"

// partChannels counts the partitioned operations begun on a communicator, so that the two ranks
// of a pair of PsendInit and PrecvInit agree on a communicator without a message.
type partChannels struct {
	mu sync.Mutex
	n  map[partKey]int
}

type partKey struct {
	sends     bool
	peer, tag int
}

// next counts an operation and returns its number, from 1.
func (p *partChannels) next(k partKey) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n == nil {
		p.n = make(map[partKey]int)
	}
	p.n[k]++
	return p.n[k]
}
